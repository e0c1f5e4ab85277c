"""Calibration and accuracy against a knob of a method."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from equipoise.evaluate.scorecard import Score
from equipoise.metrics.facts import metric_facts
from equipoise.plots.style import BLUE, RED, dress, on_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["draw_knob"]


def draw_knob(
    values: Sequence[float], scores: Mapping[str, Sequence[Score]], *, knob: str, ax: Axes | None = None
) -> Axes:
    """Draw up to two metrics against the settings of a knob, with intervals; the second has its axis on the right.

    Args:
        values: The settings.
        scores: One score per setting, by metric.
        knob: Its name.
        ax: Where to draw; by default a new figure.

    Returns:
        The axes of the first metric.

    Example:
        >>> one, two = Score(0.1, 0.05, 0.15), Score(0.9, 0.85, 0.95)
        >>> ax = draw_knob([1.0, 2.0], {"ece": [one, one], "accuracy": [two, two]}, knob="margin")
        >>> ax.get_xlabel(), ax.get_ylabel()
        ('margin', 'ECE %')
    """
    ax = on_axes(ax)
    sides = [ax, *([ax.twinx()] if len(scores) > 1 else [])]
    for (metric, found), axes, colour, marker in zip(
        scores.items(), sides, (BLUE, RED), ("o", "s"), strict=True
    ):
        facts = metric_facts(metric)
        middle, low, high = facts.scale * np.array([one[:3] for one in found]).T
        reach = [np.maximum(middle - low, 0), np.maximum(high - middle, 0)]
        axes.errorbar(values, middle, yerr=reach, color=colour, marker=marker, markersize=5, capsize=2)
        dress(axes, x=knob, y=facts.head, grid=axes is ax)
        axes.yaxis.label.set_color(colour)
    for other in sides[1:]:
        other.spines["right"].set_visible(True)
        other.spines["left"].set_visible(False)
    return ax
