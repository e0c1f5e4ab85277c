"""Gradient of losses by the probability of the true class."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from equipoise.plots.style import GRAY, check_not_empty, dress, on_axes, outside_legend, series_styles
from equipoise.theory.gradients import GradientWeight

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["draw_gradient_weights"]


def draw_gradient_weights(weights: Mapping[str, GradientWeight], *, ax: Axes | None = None) -> Axes:
    """Draw the pull of each loss on the true class by the probability that it has already.

    Where a line crosses zero, the loss holds a sample for sure enough, and pushes down beyond.

    Args:
        weights: Records by the name of the loss.
        ax: Where to draw; by default a new figure.

    Returns:
        The axes.

    Example:
        >>> import torch
        >>> from equipoise.theory import gradient_weight
        >>> pull = gradient_weight(torch.nn.functional.cross_entropy, confidence=[0.25, 0.75])
        >>> draw_gradient_weights({"ce": pull}).lines[1].get_xdata().tolist()
        [0.25, 0.75]
    """
    check_not_empty(weights, where="draw_gradient_weights")
    ax = on_axes(ax, size=(5.4, 3.6))
    ax.axhline(0.0, color=GRAY, linewidth=1)
    for (name, record), (color, _, dash) in zip(weights.items(), series_styles(), strict=False):
        ax.plot(record.confidence, record.weight, color=color, linestyle=dash, linewidth=1.6, label=name)
    ax.set(xlim=(0, 1))
    outside_legend(ax)
    return dress(ax, x="probability of the true class", y=r"pull on its logit")
