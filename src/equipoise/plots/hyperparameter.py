"""Calibration and accuracy against a hyperparameter of methods."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from equipoise.evaluate.scorecard import Score
from equipoise.metrics.facts import metric_facts
from equipoise.plots.style import (
    check_not_empty,
    dress,
    legend_width,
    new_figure,
    outside_legend,
    series_styles,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["draw_hyperparameter"]


def draw_hyperparameter(
    scores: Mapping[str, Mapping[str, Mapping[float, Score]]], *, parameter: str, title: str | None = None
) -> Figure:
    """Draw metrics against the values of a hyperparameter, one panel per metric and one line per method.

    Args:
        scores: By metric, method and value of the hyperparameter: the score with its interval.
        parameter: Name of the hyperparameter.
        title: What stands above.

    Returns:
        The figure.

    Example:
        >>> one, two = Score(0.1, 0.05, 0.15), Score(0.9, 0.85, 0.95)
        >>> found = {"ece": {"focal": {1.0: one, 2.0: one}}, "accuracy": {"focal": {1.0: two, 2.0: two}}}
        >>> [ax.get_ylabel() for ax in draw_hyperparameter(found, parameter="gamma").axes]
        ['ECE %', 'accuracy %']
    """
    check_not_empty(scores, where="draw_hyperparameter")
    methods = list(dict.fromkeys(name for part in scores.values() for name in part))
    width = 4.2 + legend_width(methods)
    figure, grid = new_figure(len(scores), 1, size=(width, 2.6 * len(scores) + 0.4))
    for place, ((metric, part), (ax,)) in enumerate(zip(scores.items(), grid, strict=True)):
        facts = metric_facts(metric)
        for name, (colour, marker, dash) in zip(methods, series_styles(), strict=False):
            found = sorted(part.get(name, {}).items())
            if not found:
                continue
            middle, low, high = facts.scale * np.array([score[:3] for _, score in found]).T
            ax.errorbar(
                [value for value, _ in found],
                middle,
                yerr=[np.maximum(middle - low, 0), np.maximum(high - middle, 0)],
                color=colour,
                marker=marker,
                linestyle=dash,
                markersize=5,
                linewidth=1.4,
                elinewidth=1,
                capsize=2,
                label=name,
            )
        is_last = place == len(scores) - 1
        dress(ax, x=parameter if is_last else "", y=facts.head, title=title if place == 0 else None)
    outside_legend(grid[0][0])
    return figure
