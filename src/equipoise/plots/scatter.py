"""Accuracy against calibration, over methods."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from equipoise.evaluate.scorecard import Score, Scorecard
from equipoise.metrics.facts import metric_facts
from equipoise.plots.style import check_not_empty, dress, on_axes, outside_legend, series_styles

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["draw_accuracy_against_error"]


def draw_accuracy_against_error(
    scores: Mapping[str, Scorecard | Mapping[str, Score]],
    *,
    metric: str = "ece",
    title: str | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw each method at its error and accuracy, with both intervals; the best corner is above on the left.

    Args:
        scores: By the name of the method: its scorecard, or its accuracy and metric over seeds by their keys.
        metric: What stands on the horizontal axis: a key of the scorecard.
        title: What stands above the names of the methods.
        ax: Where to draw; by default a new figure.

    Returns:
        The axes.

    Example:
        >>> from equipoise import Predictions, score
        >>> card = score(Predictions(probs=[0.9, 0.8, 0.3], labels=[1, 0, 0]), n_resamples=20)
        >>> draw_accuracy_against_error({"ce": card}).get_legend_handles_labels()[1]
        ['ce']
    """
    check_not_empty(scores, where="draw_accuracy_against_error")
    facts = metric_facts(metric)
    ax = on_axes(ax, names=[*scores, title or ""])
    factor = facts.scale
    for (name, card), (color, marker, _) in zip(scores.items(), series_styles(), strict=False):
        across, up = card[metric], card["accuracy"]
        ax.errorbar(
            factor * across.value,
            100 * up.value,
            xerr=[[factor * (across.value - across.low)], [factor * (across.high - across.value)]],
            yerr=[[100 * (up.value - up.low)], [100 * (up.high - up.value)]],
            color=color,
            marker=marker,
            markersize=6,
            elinewidth=1,
            capsize=2,
            linestyle="none",
            label=name,
        )
    outside_legend(ax, title=title)
    ax.margins(0.08)
    return dress(ax, x=f"{facts.title} (%)" if facts.percent else facts.title, y="accuracy (%)")
