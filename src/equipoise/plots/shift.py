"""Calibration as test sets move away from the one a network was made for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from equipoise.core.errors import DataError
from equipoise.evaluate.shift import ShiftScores
from equipoise.metrics.facts import metric_facts
from equipoise.plots.style import band_opacity, dress, on_axes, outside_legend, series_styles

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["draw_shift"]


def draw_shift(
    shifts: Sequence[ShiftScores], *, family: str, metric: str = "ece", ax: Axes | None = None
) -> Axes:
    """Draw a metric against severity, one line per method, with intervals; severity 0 is the clean test set.

    Args:
        shifts: What methods scored.
        family: Which corruption.
        metric: ``"ece"``, ``"nll"`` or ``"accuracy"``.
        ax: Where to draw; by default a new figure.

    Returns:
        The axes.

    Raises:
        DataError: If no method was scored under it.

    Example:
        >>> from equipoise.evaluate import Score
        >>> curve = {0: {"ece": Score(0.02, 0.01, 0.03)}, 5: {"ece": Score(0.2, 0.1, 0.3)}}
        >>> ax = draw_shift([ShiftScores("ce", "identity", {"contrast": curve}, {})], family="contrast")
        >>> ax.get_ylabel()
        'ECE %'
    """
    known = [one for one in shifts if family in one.curves]
    if not known:
        raise DataError(
            f"draw_shift: no run was scored under {family!r}. Name it in `shift` of the comparison."
        )
    ax = on_axes(ax, names=[one.name for one in known])
    facts = metric_facts(metric)
    for one, (color, marker, dash) in zip(known, series_styles(), strict=False):
        curve = dict(sorted(one.curves[family].items()))
        values, low, high = facts.scale * np.array([scores[metric][:3] for scores in curve.values()]).T
        ax.fill_between(list(curve), low, high, color=color, alpha=band_opacity(len(known)), linewidth=0)
        ax.plot(
            list(curve),
            values,
            color=color,
            marker=marker,
            linestyle=dash,
            markersize=5,
            linewidth=1.6,
            label=one.name,
        )
    ax.set_xticks(sorted({level for one in known for level in one.curves[family]}))
    outside_legend(ax)
    return dress(ax, x="severity", y=facts.head, title=family)
