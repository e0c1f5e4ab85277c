"""How penalties on a logit distance grow: the hinge, and those of class-adaptive smoothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from equipoise.losses.cals_alm import PENALTIES
from equipoise.plots.style import COLOURS, GREY, dress, on_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["draw_penalties"]


def draw_penalties(*, multiplier: float = 1.0, rho: float = 1.0, ax: Axes | None = None) -> Axes:
    """Draw penalties of how far a constraint is broken; left of 0 it is kept.

    Args:
        multiplier: The multiplier of the constraint.
        rho: The weight of the penalty.
        ax: Where to draw; by default a new figure.

    Returns:
        The axes.

    Example:
        >>> draw_penalties().get_legend_handles_labels()[1]
        ['hinge', 'PHR', 'P2', 'P3']

    Reference:
        Liu et al. (2023), Class adaptive network calibration, figure 2.
    """
    if not multiplier >= 0 or not rho > 0:
        raise ValueError(
            f"draw_penalties: `multiplier` must be at least 0 and `rho` above 0, got {multiplier} and {rho}."
        )
    ax = on_axes(ax)
    broken = torch.linspace(-2.0, 2.0, 401, dtype=torch.float64, device="cpu")
    ax.axvline(0, color=GREY, linewidth=1, linestyle=":")
    ax.plot(broken, broken.clamp(min=0), color=COLOURS[-1], linestyle="--", linewidth=1.6, label="hinge")
    both = [torch.tensor(value, dtype=torch.float64, device="cpu") for value in (multiplier, rho)]
    for (name, penalty), colour in zip(PENALTIES.items(), COLOURS, strict=False):
        ax.plot(broken, penalty(broken, *both), color=colour, linewidth=1.8, label=name.upper())
    ax.legend(frameon=False, fontsize="small")
    title = f"multiplier {multiplier:g}, weight {rho:g}"
    return dress(ax, x="how far the constraint is broken", y="penalty", title=title)
