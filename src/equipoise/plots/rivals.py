"""How probable the rival of the true class is."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import cycle
from typing import TYPE_CHECKING

from equipoise.core.arrays import Array
from equipoise.plots.style import COLORS, INK, check_not_empty, dress, on_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["draw_rivals"]


def draw_rivals(rivals: Mapping[str, Array], *, ax: Axes | None = None) -> Axes:
    """Draw a box per method: median and quartiles of the rival's probability, whiskers from 5 to 95%.

    Args:
        rivals: What :func:`equipoise.metrics.rival_probability` gives, by the name of the method.
        ax: Where to draw; by default a new figure.

    Returns:
        The axes.

    Example:
        >>> import numpy as np
        >>> ax = draw_rivals({"ce": np.array([0.1, 0.2, 0.3])})
        >>> [text.get_text() for text in ax.get_xticklabels()]
        ['ce']
    """
    check_not_empty(rivals, where="draw_rivals")
    ax = on_axes(ax, size=(max(4.5, 0.6 * len(rivals) + 1.5), 3.4))
    boxes = ax.boxplot(
        list(rivals.values()),
        whis=(5, 95),
        showfliers=False,
        patch_artist=True,
        widths=0.5,
        medianprops={"color": INK, "linewidth": 1.6},
    )
    for box, color in zip(boxes["boxes"], cycle(COLORS), strict=False):
        box.set(facecolor=color + "50", edgecolor=color)
    ax.set_xticks(range(1, len(rivals) + 1), list(rivals), rotation=30, ha="right", fontsize="small")
    ax.set_ylim(bottom=0)
    return dress(ax, x="", y="probability of the rival $q_j$")
