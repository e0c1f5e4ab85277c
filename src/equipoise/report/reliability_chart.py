"""The reliability diagram of the page: hover or walk over its bins."""

from __future__ import annotations

from typing import NamedTuple

from equipoise.metrics.curve import ReliabilityCurve
from equipoise.metrics.target import TOP, Target
from equipoise.report.markup import Markup, join, tag
from equipoise.report.numbers import count, percent, points
from equipoise.report.svg import Frame, picture, text

__all__ = ["Words", "bin_table", "reliability_chart", "words_of"]

_ABOVE = Frame(left=44, top=8, width=266, height=266)


class Words(NamedTuple):
    """What a diagram calls its axes.

    Attributes:
        claimed: What is on the horizontal axis.
        came: What is on the vertical axis.
        right: What a row is that came true.
    """

    claimed: str = "confidence"
    came: str = "accuracy"
    right: str = "right"


def words_of(target: Target) -> Words:
    """Return what a diagram of a target calls its axes.

    Example:
        >>> words_of(Target("positive", 1, "fraud")).claimed
        'P(fraud)'
    """
    return {
        "top": Words(),
        "positive": Words(target.label, f"frequency of {target.event}", target.event),
        "classwise": Words("probability of a class", "frequency", "of the class"),
    }[target.kind]


def reliability_chart(curve: ReliabilityCurve, *, level: float, name: str, target: Target = TOP) -> Markup:
    """Return bars of frequency by probability, gaps, intervals, and the histogram of probabilities underneath."""
    words = words_of(target)
    below = Frame(left=44, top=300, width=266, height=58, up=(0.0, float(curve.weight.max())))
    means = [float(part.sum() / curve.weight.sum()) for part in (curve.confidence_sum, curve.outcome_sum)]
    ticks = [0, 0.2, 0.4, 0.6, 0.8, 1]
    label = (
        f"Reliability diagram of {name}: mean {words.claimed} {percent(means[0])}, {words.came} {percent(means[1])}, "
        f"ECE {percent(curve.expected_error())}. Arrow keys step through the bins; the table below holds the same."
    )
    return picture(
        _ABOVE.axes(x_ticks=(), y_ticks=ticks, y_label=words.came),
        below.axes(x_ticks=ticks, y_ticks=(), x_label=words.claimed),
        *_bins(curve, below, level, words),
        _ABOVE.line(0, 0, 1, 1, class_="ideal"),
        text(38, 304, count(float(curve.weight.max())), anchor="end"),
        below.line(means[0], 0, means[0], below.up[1], class_="mean claimed"),
        below.line(means[1], 0, means[1], below.up[1], class_="mean right"),
        width=320,
        height=394,
        label=label,
        class_="reliability",
        steps=True,
    )


def _bins(curve: ReliabilityCurve, below: Frame, level: float, words: Words) -> list[Markup]:
    lows, highs = curve.intervals(level=level)
    drawn = []
    for row, low, high in zip(curve.rows(), lows.tolist(), highs.tolist(), strict=True):
        if not row["weight"]:
            continue
        left, right, claimed, came = row["low"], row["high"], row["confidence"], row["frequency"]
        middle = (left + right) / 2
        drawn.append(
            tag(
                "g",
                _ABOVE.box(left, 0, right, 1, class_="hit"),
                below.box(left, 0, right, row["weight"], class_="rows"),
                _ABOVE.box(left, 0, right, came, class_="came"),
                _ABOVE.box(left, came, right, claimed, class_="over" if claimed > came else "under"),
                _ABOVE.line(left, came, right, came, class_="top"),
                _ABOVE.line(middle, low, middle, high, class_="whisker"),
                class_="mark",
                data_tip=_tip(row, low, high, words),
            )
        )
    return drawn


def _tip(row: dict[str, float], low: float, high: float, words: Words) -> str:
    gap = row["confidence"] - row["frequency"]
    return "\n".join(
        [
            f"{words.claimed[0].upper()}{words.claimed[1:]} {row['low']:.2f} to {row['high']:.2f}",
            f"{count(row['weight'])} rows",
            f"claimed {percent(row['confidence'])}",
            f"{words.right} {percent(row['frequency'])}  [{percent(low)}, {percent(high)}]",
            f"{'over' if gap > 0 else 'under'}-confident by {points(gap)}"
            if words.right == "right"
            else f"too {'high' if gap > 0 else 'low'} by {points(gap)}",
        ]
    )


def bin_table(curve: ReliabilityCurve, *, level: float, target: Target = TOP) -> Markup:
    """Return the same bins as a table, for those who cannot hover."""
    lows, highs = curve.intervals(level=level)
    words = words_of(target)
    head = (words.claimed, "rows", "claimed", words.right, "interval")
    rows = [
        tag(
            "tr",
            tag("th", f"{row['low']:.2f}–{row['high']:.2f}", scope="row"),
            tag("td", count(row["weight"])),
            tag("td", percent(row["confidence"])),
            tag("td", percent(row["frequency"])),
            tag("td", f"{100 * low:.0f} to {percent(high, 0)}"),
        )
        for row, low, high in zip(curve.rows(), lows, highs, strict=True)
        if row["weight"]
    ]
    cells = join(*(tag("th", word, scope="col") for word in head))
    table = tag("table", tag("thead", tag("tr", cells)), tag("tbody", *rows), class_="numbers")
    return tag("div", table, class_="narrow")
