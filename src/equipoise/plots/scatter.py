"""Accuracy against calibration, over methods."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import cycle
from typing import TYPE_CHECKING

from equipoise.evaluate.scorecard import Scorecard
from equipoise.metrics.facts import metric_facts
from equipoise.plots.style import COLOURS, MARKERS, check_not_empty, dress, on_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["draw_accuracy_against_error"]


def draw_accuracy_against_error(
    cards: Mapping[str, Scorecard], *, metric: str = "ece", ax: Axes | None = None
) -> Axes:
    """Draw each method at its error and accuracy, with both intervals; the best corner is above on the left.

    Args:
        cards: Scorecards by the name of the method.
        metric: What stands on the horizontal axis: a key of the scorecard.
        ax: Where to draw; by default a new figure.

    Returns:
        The axes.

    Example:
        >>> from equipoise import Predictions, score
        >>> card = score(Predictions(probs=[0.9, 0.8, 0.3], labels=[1, 0, 0]), n_resamples=20)
        >>> draw_accuracy_against_error({"ce": card}).get_legend_handles_labels()[1]
        ['ce']
    """
    check_not_empty(cards, where="draw_accuracy_against_error")
    facts = metric_facts(metric)
    ax = on_axes(ax)
    factor = facts.scale
    for (name, card), colour, marker in zip(cards.items(), cycle(COLOURS), cycle(MARKERS), strict=False):
        across, up = card[metric], card["accuracy"]
        ax.errorbar(
            factor * across.value,
            100 * up.value,
            xerr=[[factor * (across.value - across.low)], [factor * (across.high - across.value)]],
            yerr=[[100 * (up.value - up.low)], [100 * (up.high - up.value)]],
            color=colour,
            marker=marker,
            markersize=6,
            elinewidth=1,
            capsize=2,
            linestyle="none",
            label=name,
        )
    ax.legend(frameon=False, fontsize="small")
    ax.margins(0.08)
    return dress(ax, x=f"{facts.title} (%)" if facts.percent else facts.title, y="accuracy (%)")
