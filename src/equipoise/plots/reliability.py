"""The reliability diagram: what was claimed against what came true, and how often it was claimed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from equipoise.core.predictions import Predictions
from equipoise.evaluate.audits import Audit
from equipoise.evaluate.scorecard import Score, Scorecard
from equipoise.metrics.binned import reliability_curve
from equipoise.metrics.curve import ReliabilityCurve
from equipoise.metrics.smooth import SmoothCurve
from equipoise.plots.smooth_reliability import add_smooth_curve
from equipoise.plots.style import BLUE, GRAY, INK, RED, check_not_empty, dress, on_axes, panels, wrapped

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["draw_confidence_histogram", "draw_reliability", "draw_reliability_diagrams"]

_PALE_RED = "#f8d8c6"
_FREQUENCY = {
    "top_label": "accuracy",
    "classwise": "frequency of the class",
    "positive": "frequency of class 1",
}
_CONFIDENCE = {
    "top_label": "confidence",
    "classwise": "probability of the class",
    "positive": "probability of class 1",
}
#: Names of the two means in a legend that is no wider than its panel.
_MEANS = {
    "top_label": ("mean confidence", "accuracy"),
    "classwise": ("mean probability", "frequency"),
    "positive": ("mean probability", "frequency"),
}


def draw_reliability(
    curve: ReliabilityCurve | Predictions | Scorecard | Audit,
    *,
    smooth: SmoothCurve | None = None,
    level: float = 0.95,
    title: str | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw accuracy by confidence: a bar per bin with rows, its gap to the mean confidence in red, its interval.

    A bin without rows stays empty. A gap above the black line is overconfidence, one below it underconfidence; they
    are hatched in opposite directions.

    Args:
        curve: The record to draw; or predictions, a scorecard or an audit, whose record of the top label is drawn.
        smooth: The smooth version, drawn over the bars with its bootstrap band.
        level: Level of the bins' intervals.
        title: What stands above.
        ax: Where to draw; by default a new figure.

    Returns:
        The axes.

    Example:
        >>> import numpy as np
        >>> curve = ReliabilityCurve(np.array([0.0, 4.0]), np.array([0.0, 3.6]), np.array([0.0, 3.0]))
        >>> ax = draw_reliability(curve)
        >>> [float(bar.get_height()) for bar in ax.containers[0]]
        [0.75]
    """
    curve = _curve_of(curve)
    ax = on_axes(ax, size=(4.0, 4.0))
    filled = curve.weight > 0
    width = 1.0 / len(curve.weight)
    left = curve.edges[:-1][filled]
    frequency, confidence = curve.frequency[filled], curve.confidence[filled]
    ax.plot([0, 1], [0, 1], linestyle="--", color=GRAY, linewidth=1, zorder=1)
    bars = "#9ccbe4" if smooth else BLUE
    ax.bar(left, frequency, width, align="edge", color=bars, edgecolor="white", linewidth=0.6, zorder=2)
    gaps = ax.bar(
        left,
        confidence - frequency,
        width,
        bottom=frequency,
        align="edge",
        color=_PALE_RED,
        edgecolor=RED,
        linewidth=0.8,
        label="gap",
        zorder=3,
    )
    for bar, gap in zip(gaps, confidence - frequency, strict=True):
        bar.set_hatch("////" if gap > 0 else "\\\\\\\\")
    ax.hlines(frequency, left, left + width, color=INK, linewidth=1.4, zorder=4)
    if smooth is not None:
        add_smooth_curve(ax, smooth)
    else:
        low, high = (end[filled] for end in curve.intervals(level=level))
        ends = np.stack([frequency - low, high - frequency])
        center = left + width / 2
        ax.errorbar(center, frequency, ends, fmt="none", ecolor=INK, elinewidth=1, capsize=2, zorder=4)
        ax.plot(confidence, frequency, color=INK, linewidth=0.9, marker="o", markersize=2.5, zorder=5)
    ax.set(xlim=(0, 1), ylim=(0, 1), box_aspect=1)
    return dress(ax, x=_CONFIDENCE[curve.target], y=_FREQUENCY[curve.target], title=title)


def _curve_of(held: ReliabilityCurve | Predictions | Scorecard | Audit) -> ReliabilityCurve:
    """Return the record of what people hold in their hand."""
    if isinstance(held, Predictions):
        return reliability_curve(held)
    if isinstance(held, Audit):
        return held.card.curve
    return held.curve if isinstance(held, Scorecard) else held


def draw_confidence_histogram(
    curve: ReliabilityCurve, *, counts: bool = True, title: str | None = None, ax: Axes | None = None
) -> Axes:
    """Draw how many rows each bin holds, with mean confidence and accuracy as dashed lines.

    Args:
        curve: The record to draw.
        counts: Write each bin's number of rows over its bar.
        title: What stands above the legend.
        ax: Where to draw; by default a new figure.

    Returns:
        The axes.

    Example:
        >>> import numpy as np
        >>> curve = ReliabilityCurve(np.array([0.0, 4.0]), np.array([0.0, 3.6]), np.array([0.0, 3.0]))
        >>> [float(bar.get_height()) for bar in draw_confidence_histogram(curve).containers[0]]
        [4.0]
    """
    ax = on_axes(ax, size=(4.0, 1.8))
    filled = curve.weight > 0
    width = 1.0 / len(curve.weight)
    left, weight = curve.edges[:-1][filled], curve.weight[filled]
    ax.bar(left, weight, width, align="edge", color="#bfc5cc", edgecolor="white", linewidth=0.6, zorder=2)
    if counts:
        for start, number in zip(left, weight, strict=True):
            ax.annotate(
                _short(number),
                (start + width / 2, number),
                (0, 2),
                textcoords="offset points",
                ha="center",
                fontsize=6,
                color=INK,
                bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.5},
                zorder=4,
            )
    total = curve.weight.sum()
    claimed, observed = _MEANS[curve.target]
    means = {
        claimed: (curve.confidence_sum.sum() / total, RED, "--"),
        observed: (curve.outcome_sum.sum() / total, BLUE, (0, (2, 1.5))),
    }
    for name, (value, color, dash) in means.items():
        ax.axvline(
            value, color=color, linestyle=dash, linewidth=1.4, label=f"{name} {100 * value:.1f}%", zorder=3
        )
    ax.set(xlim=(0, 1), ylim=(0, 1.2 * weight.max()))
    ax.legend(
        loc="lower left",
        bbox_to_anchor=(0, 1),
        ncols=2,
        frameon=False,
        fontsize="x-small",
        borderaxespad=0.2,
        borderpad=0,
        columnspacing=1.2,
        handlelength=1.6,
    )
    dress(ax, x=_CONFIDENCE[curve.target], y="rows")
    if title:
        _set_panel_title(ax, title, pad=20)
    return ax


def draw_reliability_diagrams(
    curves: Mapping[str, ReliabilityCurve],
    *,
    smooth: Mapping[str, SmoothCurve] | None = None,
    errors: Mapping[str, Score] | None = None,
    level: float = 0.95,
) -> Figure:
    """Draw one or several models side by side, four in a row, each with its histogram of confidence underneath.

    Args:
        curves: Records by the name that stands above them.
        smooth: Smooth versions by the same names; models without one get bins alone.
        errors: The ECE that a panel prints, by the same names, where it is not that of its curve: the mean over seeds.
        level: Level of the bins' intervals.

    Returns:
        The figure.

    Example:
        >>> import numpy as np
        >>> curve = ReliabilityCurve(np.array([0.0, 4.0]), np.array([0.0, 3.6]), np.array([0.0, 3.0]))
        >>> len(draw_reliability_diagrams({"before": curve, "after": curve}).axes)
        4
    """
    check_not_empty(curves, where="draw_reliability_diagrams")
    figure, grid = panels(len(curves), size=(3.6, 5.7), heights=(3.0, 1.0))
    starts = {upper.get_position().x0 for upper, _ in grid}
    for (name, curve), (upper, lower) in zip(curves.items(), grid, strict=True):
        smoothed = (smooth or {}).get(name)
        draw_reliability(curve, smooth=smoothed, level=level, ax=upper)
        _set_panel_title(upper, name, pad=18)
        upper.annotate(
            _error_text(curve, (errors or {}).get(name)),
            (0, 1),
            (0, 4),
            xycoords="axes fraction",
            textcoords="offset points",
            color=INK,
            fontsize="small",
            annotation_clip=False,
        )
        upper.set_xlabel("")
        draw_confidence_histogram(curve, ax=lower).set_box_aspect(1 / 3)
        if upper.get_position().x0 > min(starts):
            upper.set_ylabel("")
            lower.set_ylabel("")
    return figure


def _set_panel_title(ax: Axes, title: str, *, pad: float) -> None:
    """Put a title above a panel, in lines that are no wider than its axes even if every letter is wide."""
    ax.set_title(wrapped(title, 30), loc="left", fontsize="small", fontweight="bold", color=INK, pad=pad)


def _error_text(curve: ReliabilityCurve, score: Score | None) -> str:
    if score is None:
        return f"ECE {100 * curve.expected_error():.1f}%"
    return f"mean ECE {100 * score.value:.1f}% ({100 * score.low:.1f} to {100 * score.high:.1f})"


def _short(number: float) -> str:
    """Return a count in at most four characters; means of counts and weights need not be whole."""
    for limit, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if number >= 10 * limit or (number >= limit and unit != "k"):
            return f"{number / limit:.3g}{unit}"
    return f"{number:.0f}" if number >= 10 else f"{number:.2g}"
