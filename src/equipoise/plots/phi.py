"""Focal and dual focal training: where they are overconfident or underconfident."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from equipoise.plots.style import BLUE, COLORS, GRAY, INK, RED, dress, on_axes
from equipoise.theory.phi import dual_focal_phi
from equipoise.theory.regions import ConfidenceRegions, dual_focal_regions, focal_regions

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["draw_phi"]


def draw_phi(*, gamma: float = 1.0, rivals: Sequence[float] = (0.0, 0.3), ax: Axes | None = None) -> Axes:
    """Draw phi of focal and dual focal loss with its marks, and the confidence regions of focal loss.

    Args:
        gamma: Focusing parameter, above 0.
        rivals: Probabilities of the rival, in [0, 1/2]; with 0 dual focal loss is focal loss.
        ax: Where to draw; by default a new figure.

    Returns:
        The axes.

    Example:
        >>> ax = draw_phi()
        >>> ax.get_legend_handles_labels()[1]
        ['focal', 'dual focal, rival 0.3', 'focal: overconfident', 'focal: underconfident']

    Reference:
        Tao et al. (2023), Dual focal loss for calibration, figure 1; its marks are those of
        :class:`equipoise.theory.ConfidenceRegions`.
    """
    ax = on_axes(ax, size=(5.4, 3.8))
    ax.axhline(1.0, color=GRAY, linewidth=1, linestyle=":")
    grid = np.linspace(0.0, 1.0, 401)
    for rival, color, dash in zip(rivals, COLORS, ("-", "--", "-.", ":"), strict=False):
        name = "focal" if rival == 0 else f"dual focal, rival {rival:g}"
        phi = dual_focal_phi(grid, rival, gamma=gamma)
        ax.plot(grid, phi, color=color, linestyle=dash, linewidth=1.8, label=name)
        _mark(ax, dual_focal_regions(gamma=gamma, rival=rival), rival, gamma, color)
    focal = focal_regions(gamma=gamma)
    ax.axvspan(0, focal.v_m, color=RED, alpha=0.12, linewidth=0, zorder=0, label="focal: overconfident")
    ax.axvspan(focal.v_uc, 1, color=BLUE, alpha=0.08, linewidth=0, zorder=0, label="focal: underconfident")
    ax.set(xlim=(0, 1), ylim=(0, ax.get_ylim()[1] * 1.12))
    ax.legend(frameon=False, fontsize="small", loc="upper right")
    dress(ax, x="probability $q$", y=r"$\varphi(q)$", title=rf"$\gamma$ = {gamma:g}", grid=False)
    ax.title.set_color(INK)
    return ax


def _mark(ax: Axes, marks: ConfidenceRegions, rival: float, gamma: float, color: str) -> None:
    """Put labelled marks at the peak of phi, where it falls through its value at 0, and where it falls through 1."""
    positions = {"$v^m$": marks.v_m, "$v'$": marks.v_prime, "$v^{uc}$": marks.v_uc}
    if marks.v_prime == marks.v_uc:
        positions = {"$v^m$": marks.v_m, "$v' = v^{uc}$": marks.v_uc}
    for name, position in positions.items():
        height = float(dual_focal_phi(position, rival, gamma=gamma))
        ax.plot(position, height, marker="o", color=color, markersize=5)
        is_low = "uc" in name
        ax.annotate(
            name,
            (position, height),
            (-4, -4) if is_low else (4, 4),
            textcoords="offset points",
            ha="right" if is_low else "left",
            va="top" if is_low else "bottom",
            color=color,
            fontsize="small",
        )
