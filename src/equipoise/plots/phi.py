"""Why focal training is under-confident where it is sure, and dual focal training less so."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from equipoise.plots.style import BLUE, COLOURS, GREY, INK, RED, dress, on_axes
from equipoise.theory.phi import dual_focal_phi
from equipoise.theory.regions import dual_focal_regions, focal_regions

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["draw_phi"]


def draw_phi(
    *, gamma: float = 5.0, rivals: Sequence[float] = (0.0, 0.1, 0.2), ax: Axes | None = None
) -> Axes:
    """Draw phi of focal and dual focal loss, and the regions of over- and under-confidence of focal loss.

    Args:
        gamma: Focusing parameter, above 0.
        rivals: Probabilities of the rival; with 0 dual focal loss is focal loss.
        ax: Where to draw; by default a new figure.

    Returns:
        The axes.

    Example:
        >>> ax = draw_phi(gamma=2.0, rivals=[0.0, 0.2])
        >>> ax.get_legend_handles_labels()[1]
        ['focal', 'dual focal, rival 0.2']
    """
    ax = on_axes(ax)
    marks = focal_regions(gamma=gamma)
    ax.axvspan(0, marks.v_m, color=RED, alpha=0.12, linewidth=0)
    ax.axvspan(marks.v_uc, 1, color=BLUE, alpha=0.08, linewidth=0)
    ax.axhline(1.0, color=GREY, linewidth=1, linestyle=":")
    for rival, colour, dash in zip(rivals, COLOURS, ("-", "--", "-.", ":"), strict=False):
        grid = np.linspace(max(rival, 1e-6), 1.0, 400)
        name = "focal" if rival == 0 else f"dual focal, rival {rival:g}"
        ax.plot(
            grid,
            dual_focal_phi(grid, rival, gamma=gamma),
            color=colour,
            linestyle=dash,
            linewidth=1.8,
            label=name,
        )
        unit = dual_focal_regions(gamma=gamma, rival=rival).v_uc
        ax.plot(unit, float(dual_focal_phi(unit, rival, gamma=gamma)), marker="o", color=colour, markersize=5)
    ax.set(xlim=(0, 1))
    top = ax.get_ylim()[1] * 1.12
    ax.set_ylim(0, top)
    ax.text(0.97, 0.4 * top, "focal: under-confident", ha="right", va="center", color=BLUE, fontsize="small")
    ax.annotate(
        "focal: over-confident",
        (marks.v_m / 2, 0.06 * top),
        (marks.v_m + 0.05, 0.06 * top),
        color=RED,
        fontsize="small",
        va="center",
        arrowprops={"arrowstyle": "-", "color": RED, "linewidth": 0.8},
    )
    ax.legend(frameon=False, fontsize="small", loc="upper right")
    dress(ax, x="probability $q$", y=r"$\varphi(q)$", title=rf"$\gamma$ = {gamma:g}", grid=False)
    ax.title.set_color(INK)
    return ax
