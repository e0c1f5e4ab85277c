"""Reliability diagrams without bins: smoothed, or by isotonic regression (CORP)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from equipoise.metrics.corp import CorpCurve
from equipoise.metrics.smooth import SmoothCurve
from equipoise.plots.style import BLUE, GRAY, INK, RED, dress, on_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["add_smooth_curve", "draw_corp_reliability", "draw_smooth_reliability"]


def add_smooth_curve(ax: Axes, curve: SmoothCurve, *, color: str = INK, label: str | None = None) -> None:
    """Draw a smooth curve and its band into axes that have a frame already."""
    ax.fill_between(curve.confidence, curve.low, curve.high, color=color, alpha=0.22, linewidth=0, zorder=4)
    ax.plot(curve.confidence, curve.frequency, color=color, linewidth=1.6, label=label, zorder=5)


def draw_smooth_reliability(curve: SmoothCurve, *, title: str | None = None, ax: Axes | None = None) -> Axes:
    """Draw accuracy as a smooth function of confidence, its bootstrap band, and the density of confidence below.

    Args:
        curve: The record to draw.
        title: What stands above.
        ax: Where to draw; by default a new figure.

    Returns:
        The axes.

    Example:
        >>> import numpy as np
        >>> grid = np.linspace(0, 1, 5)
        >>> record = SmoothCurve(grid, grid, grid, grid, np.ones(5), 0.02, 0.95)
        >>> draw_smooth_reliability(record).lines[1].get_ydata().tolist()
        [0.0, 0.25, 0.5, 0.75, 1.0]
    """
    ax = on_axes(ax, size=(4.0, 4.0))
    ax.plot([0, 1], [0, 1], linestyle="--", color=GRAY, linewidth=1, zorder=1)
    add_smooth_curve(ax, curve, color=BLUE)
    ax.fill_between(
        curve.confidence, curve.confidence, curve.frequency, color=RED, alpha=0.18, linewidth=0, zorder=2
    )
    scale = 0.15 / curve.density.max()
    ax.fill_between(curve.confidence, scale * curve.density, color="#bfc5cc", linewidth=0, zorder=1)
    ax.set(xlim=(0, 1), ylim=(0, 1), aspect="equal")
    return dress(ax, x="confidence", y="accuracy", title=title)


def draw_corp_reliability(curve: CorpCurve, *, title: str | None = None, ax: Axes | None = None) -> Axes:
    """Draw the isotonic fit of accuracy on confidence, and where the rows are below.

    Args:
        curve: From :func:`equipoise.metrics.corp.corp_curve`.
        title: The title.
        ax: Where to draw; by default a new figure.

    Returns:
        The axes.

    Example:
        >>> from equipoise.metrics.corp import corp_curve
        >>> record = corp_curve([0.9, 0.8, 0.3, 0.2], [1, 0, 1, 0], event="positive")
        >>> draw_corp_reliability(record).lines[1].get_ydata().tolist()
        [0.0, 0.0, 0.5, 0.5, 1.0, 1.0]
    """
    ax = on_axes(ax, size=(4.0, 4.0))
    ax.plot([0, 1], [0, 1], linestyle="--", color=GRAY, linewidth=1, zorder=1)
    across = np.column_stack([curve.low, curve.high]).ravel()
    ax.plot(across, np.repeat(curve.frequency, 2), color=BLUE, linewidth=1.8, zorder=4)
    width = np.maximum(curve.high - curve.low, 0.02)
    density = curve.weight / width
    heights = 0.15 * density / density.max()
    ax.bar((curve.low + curve.high) / 2, heights, width=width, color="#bfc5cc", zorder=1)
    ax.set(xlim=(0, 1), ylim=(0, 1), aspect="equal")
    return dress(ax, x="confidence", y="accuracy", title=title)
