"""Which gammas a gamma-net gives to samples."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from equipoise.core.arrays import Array
from equipoise.plots.style import BLUE, INK, check_not_empty, dress, on_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["draw_gammas"]


def draw_gammas(gammas: Mapping[str, Array], *, n_bins: int = 40, ax: Axes | None = None) -> Axes:
    """Draw the distribution of per-sample gammas as one hill per moment, one above the other, medians marked.

    Args:
        gammas: Gammas of the samples, by the moment they were taken, such as ``"epoch 10"``; first at the bottom.
        n_bins: Steps of each hill over the common range.
        ax: Where to draw; by default a new figure.

    Returns:
        The axes.

    Example:
        >>> ax = draw_gammas({"epoch 1": np.array([1.0, 1.2]), "epoch 2": np.array([2.0, 2.5])})
        >>> [text.get_text() for text in ax.get_yticklabels()]
        ['epoch 1', 'epoch 2']
    """
    check_not_empty(gammas, where="draw_gammas")
    ax = on_axes(ax, size=(4.5, 1.2 + 0.6 * len(gammas)))
    values = [np.asarray(part, dtype=np.float64).reshape(-1) for part in gammas.values()]
    edges = np.histogram_bin_edges(np.concatenate(values), n_bins)
    for number, part in enumerate(values):
        heights, _ = np.histogram(part, edges, density=True)
        heights = 0.85 * heights / heights.max()
        ax.stairs(
            number + heights,
            edges,
            baseline=number,
            fill=True,
            facecolor=BLUE,
            linewidth=0,
            alpha=0.35 + 0.6 * (number + 1) / len(values) - 0.05,
        )
        median = float(np.median(part))
        ax.plot([median, median], [number, number + 0.85], color=INK, linewidth=1.2)
    ax.set_yticks(range(len(values)), list(gammas))
    ax.set_ylim(-0.05, len(values))
    dress(ax, x=r"$\gamma$ of the samples", y="", grid=False)
    ax.spines["left"].set_visible(False)
    ax.tick_params(axis="y", length=0)
    return ax
