"""Calibration and accuracy against a hyperparameter of methods."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
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
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["draw_hyperparameter"]


Scores = Mapping[str, Mapping[str, Mapping[float | str, Score]]]


def draw_hyperparameter(
    scores: Scores, *, parameter: str, tune: Scores | None = None, title: str | None = None
) -> Figure:
    """Draw metrics against the values of a hyperparameter, one panel per metric and one line per method.

    Args:
        scores: By metric, method and value of the hyperparameter: the score on ``test`` with its interval. Values
            that are not all numbers are categories, which stand at equal distances without a line. Numbers over two
            decades or more have a logarithmic axis.
        parameter: Name of the hyperparameter.
        tune: The same on the validation split; drawn with open markers.
        title: What stands above.

    Returns:
        The figure.

    Example:
        >>> one, two = Score(0.1, 0.05, 0.15), Score(0.9, 0.85, 0.95)
        >>> found = {"ece": {"cals": {"phr": one, "p2": one}}, "accuracy": {"cals": {"phr": two, "p2": two}}}
        >>> [ax.get_ylabel() for ax in draw_hyperparameter(found, parameter="penalty").axes]
        ['ECE %', 'accuracy %']
    """
    check_not_empty(scores, where="draw_hyperparameter")
    splits = {"test": scores} if tune is None else {"test": scores, "tune": tune}
    methods = list(dict.fromkeys(name for part in scores.values() for name in part))
    labels = {
        (name, split): name if tune is None else f"{name}, {split}" for name in methods for split in splits
    }
    places = _places(value for part in scores.values() for line in part.values() for value in line)
    has_categories = any(isinstance(value, str) for value in places)
    figure, grid = new_figure(
        len(scores), 1, size=(4.2 + legend_width(labels.values()), 2.6 * len(scores) + 0.4)
    )
    for metric, (ax,) in zip(scores, grid, strict=True):
        facts = metric_facts(metric)
        for name, (color, marker, dash) in zip(methods, series_styles(), strict=False):
            for split, part in splits.items():
                found = sorted((places[value], score) for value, score in part[metric].get(name, {}).items())
                if not found:
                    continue
                middle, low, high = facts.scale * np.array([score[:3] for _, score in found]).T
                ax.errorbar(
                    [position for position, _ in found],
                    middle,
                    yerr=[np.maximum(middle - low, 0), np.maximum(high - middle, 0)],
                    color=color,
                    marker=marker,
                    markerfacecolor=color if split == "test" else "white",
                    linestyle="none" if has_categories else dash if split == "test" else ":",
                    markersize=5,
                    linewidth=1.4,
                    elinewidth=1,
                    capsize=2,
                    label=labels[name, split],
                )
        is_last = ax is grid[-1][0]
        dress(ax, x=parameter if is_last else "", y=facts.head, title=title if ax is grid[0][0] else None)
        if has_categories:
            ax.set_xticks(list(places.values()), [str(value) for value in places])
            ax.margins(x=0.15)
        else:
            _set_scale(ax, sorted(places.values()))
    outside_legend(grid[0][0])
    return figure


def _places(values: Iterable[float | str]) -> dict[float | str, float]:
    """Return where values stand on the axis: numbers at themselves, categories at equal distances in their order."""
    found = list(dict.fromkeys(values))
    if any(isinstance(value, str) for value in found):
        return {value: float(number) for number, value in enumerate(found)}
    return {value: float(value) for value in found}


def _set_scale(ax: Axes, values: Sequence[float]) -> None:
    """Make the axis logarithmic for values of two decades or more; below the smallest positive one it is linear."""
    positive = [value for value in values if value > 0]
    if positive and max(positive) >= 100 * min(positive) and min(values) >= 0:
        if min(values) == 0:
            ax.set_xscale("symlog", linthresh=positive[0])
        else:
            ax.set_xscale("log")
