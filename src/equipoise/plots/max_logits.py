"""How large the winning logit grows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from equipoise.core.predictions import Predictions
from equipoise.plots.style import band_opacity, check_not_empty, dress, on_axes, outside_legend, series_styles

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["draw_max_logits"]


def draw_max_logits(
    predictions: Mapping[str, Predictions | Sequence[Predictions]],
    *,
    n_bins: int = 40,
    ax: Axes | None = None,
) -> Axes:
    """Draw the distribution of the largest logit, one outline per method.

    Args:
        predictions: Predictions with logits, by the name of the method; those of several seeds are pooled.
        n_bins: Bars over the common range.
        ax: Where to draw; by default a new figure.

    Returns:
        The axes; heights are densities, so that methods with other numbers of rows can be compared.

    Example:
        >>> shown = Predictions(logits=[[3.0, 0.0], [1.0, 0.0]], labels=[0, 0])
        >>> draw_max_logits({"ce": shown}, n_bins=4).get_legend_handles_labels()[1]
        ['ce']
    """
    check_not_empty(predictions, where="draw_max_logits")
    ax = on_axes(ax, names=predictions)
    seeds = {name: [part] if isinstance(part, Predictions) else part for name, part in predictions.items()}
    largest = {
        name: np.concatenate([one.logits.max(axis=1) for one in parts]).astype(np.float64)
        for name, parts in seeds.items()
    }
    every = np.concatenate(list(largest.values()))
    low, high = every.min(), every.max()
    if high - low < 1e-9 * max(1.0, abs(high)):  # values that differ by rounding only leave no width for bars
        low, high = low - 0.5, high + 0.5
    edges = np.linspace(low, high, n_bins + 1)
    for (name, values), (color, _, dash) in zip(largest.items(), series_styles(), strict=False):
        heights, _ = np.histogram(values, edges, density=True)
        ax.stairs(
            heights,
            edges,
            fill=True,
            facecolor=f"{color}{round(255 * band_opacity(len(largest))):02x}",
            edgecolor=color,
            linestyle=dash,
            linewidth=1.4,
            label=name,
        )
    outside_legend(ax)
    return dress(ax, x="largest logit", y="density")
