"""How large the winning logit grows."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import cycle
from typing import TYPE_CHECKING

import numpy as np

from equipoise.core.predictions import Predictions
from equipoise.plots.style import COLOURS, check_not_empty, dress, on_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["draw_max_logits"]


def draw_max_logits(
    predictions: Mapping[str, Predictions], *, n_bins: int = 40, ax: Axes | None = None
) -> Axes:
    """Draw the distribution of the largest logit, one outline per method.

    Args:
        predictions: Predictions with logits, by the name of the method.
        n_bins: Bars over the common range.
        ax: Where to draw; by default a new figure.

    Returns:
        The axes; heights are densities, so that methods with other numbers of rows can be compared.

    Example:
        >>> shown = Predictions(logits=[[3.0, 0.0], [1.0, 0.0]], labels=[0, 0])
        >>> len(draw_max_logits({"ce": shown}, n_bins=4).patches)
        1
    """
    check_not_empty(predictions, where="draw_max_logits")
    ax = on_axes(ax)
    largest = {name: part.logits.max(axis=1) for name, part in predictions.items()}
    edges = np.histogram_bin_edges(np.concatenate(list(largest.values())), n_bins)
    for (name, values), colour in zip(largest.items(), cycle(COLOURS), strict=False):
        heights, _ = np.histogram(values, edges, density=True)
        ax.stairs(
            heights, edges, fill=True, facecolor=colour + "30", edgecolor=colour, linewidth=1.4, label=name
        )
    ax.legend(frameon=False, fontsize="small")
    return dress(ax, x="largest logit", y="density")
