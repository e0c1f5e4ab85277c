"""Which class is off, and at which probability."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from equipoise.metrics.curve import ReliabilityCurve
from equipoise.plots.style import dress, on_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["draw_classwise"]


def draw_classwise(
    curves: Sequence[ReliabilityCurve],
    *,
    class_names: Sequence[str] | None = None,
    title: str | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw a heat map, one row per class: probability minus frequency in every bin.

    Bins without rows stay empty, bins with few are faint.

    Args:
        curves: One record per class, as :meth:`CalibrationState.class_curves` gives them.
        class_names: Labels of the rows; by default the class numbers.
        title: What stands above.
        ax: Where to draw; by default a new figure.

    Returns:
        The axes; the color bar is next to them.

    Example:
        >>> curve = ReliabilityCurve(np.array([0.0, 4.0]), np.array([0.0, 3.6]), np.array([0.0, 3.0]))
        >>> draw_classwise([curve, curve]).images[0].get_array().shape
        (2, 2)
    """
    if not curves:
        raise ValueError("draw_classwise: `curves` must hold one curve per class, got none.")
    ax = on_axes(ax, size=(5.2, min(12.0, 1.4 + 0.26 * len(curves))))
    gaps = np.ma.masked_invalid(np.stack([curve.confidence - curve.frequency for curve in curves]))
    # A bin with few rows is uncertain, so it is drawn faintly and does not stretch the scale.
    weight = np.stack([curve.weight for curve in curves])
    trust = weight / (weight + 3)
    limit = max(0.05, float((trust * np.abs(gaps)).max()) if gaps.count() else 0.0)
    image = ax.imshow(
        gaps,
        alpha=trust,
        cmap="PuOr_r",
        vmin=-limit,
        vmax=limit,
        aspect="auto",
        interpolation="nearest",
        extent=(0, 1, len(curves) - 0.5, -0.5),
    )
    bar = ax.figure.colorbar(image, ax=ax, pad=0.02)
    bar.set_label("probability − frequency")
    bar.outline.set_visible(False)
    names = list(map(str, class_names or range(len(curves))))
    step = max(1, round(len(names) / 30))
    ax.set_yticks(range(0, len(names), step), [_cut(name) for name in names[::step]], fontsize="small")
    ax.tick_params(length=0)
    return dress(ax, x="probability of the class", y="", title=title, grid=False)


def _cut(name: str, length: int = 24) -> str:
    """Return a name that is short enough for the figure; dollar signs are text, not mathematics."""
    return (name if len(name) <= length else name[: length - 1] + "…").replace("$", r"\$")
