"""The charts of a report: reliability diagrams, lines, trends and scatter."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from equipoise.evaluate.scorecard import Score
from equipoise.evaluate.trend import Change, Trend
from equipoise.metrics.curve import ReliabilityCurve
from equipoise.metrics.facts import metric_facts
from equipoise.metrics.target import TOP, Target
from equipoise.report.numbers import count, interval, number, percent, points, title
from equipoise.report.records import MethodResult
from equipoise.report.svg import Chart, Frame, SvgElement, nice_ticks, svg_element, text

__all__ = [
    "AxisNames",
    "Series",
    "axis_names",
    "line_chart",
    "reliability_chart",
    "scatter_chart",
    "trend_chart",
]

#: Name, horizontal and vertical values.
Series = tuple[str, Sequence[float], Sequence[float]]
_STYLES = 8
_MARKS = 400
#: Outlines of points within a circle of radius one; the first is the circle itself.
_SHAPES: tuple[tuple[tuple[float, float], ...], ...] = (
    (),
    ((-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)),
    ((0, -1.2), (1.2, 0), (0, 1.2), (-1.2, 0)),
    ((0, -1.15), (1.1, 0.85), (-1.1, 0.85)),
    ((0, 1.15), (1.1, -0.85), (-1.1, -0.85)),
    ((-1.15, 0), (0.85, -1.1), (0.85, 1.1)),
    ((1.15, 0), (-0.85, -1.1), (-0.85, 1.1)),
)


def _legend(names: Sequence[str], *, points: bool = False) -> tuple[tuple[SvgElement, str], ...]:
    """Return a sample of each series with its name: a line, or a point where points are drawn."""
    return tuple(
        (
            _point(number, 13, 6, 5)
            if points
            else svg_element("line", x1=1, y1=6, x2=25, y2=6, class_=f"series s{number % _STYLES}"),
            name,
        )
        for number, name in enumerate(names)
    )


def _point(number: int, x: float, y: float, r: float) -> SvgElement:
    """Return the point of a method: colors repeat after eight and shapes after seven, so no two are alike."""
    outline = " ".join(f"{x + r * a:.2f},{y + r * b:.2f}" for a, b in _SHAPES[number % len(_SHAPES)])
    class_ = f"dot s{number % _STYLES}"
    if not outline:
        return svg_element("circle", cx=x, cy=y, r=r, class_=class_)
    return svg_element("polygon", points=outline, class_=class_)


def line_chart(
    series: Sequence[Series],
    *,
    x_label: str,
    y_label: str,
    label: str,
    percent_up: bool,
    extra: Callable[[Frame], Sequence[SvgElement]] | None = None,
) -> Chart | None:
    """Return lines over a common frame; points are marks to hover while they are few.

    Args:
        series: The lines.
        x_label: Name of the horizontal axis.
        y_label: Name of the vertical axis.
        label: A sentence for screen readers.
        percent_up: Whether vertical values are shares that are shown in percent.
        extra: Returns more shapes for a frame, which are drawn below the lines.
    """
    factor = 100.0 if percent_up else 1.0
    xs = [x for _, across, _ in series for x in across]
    ys = [factor * y for _, _, up in series for y in up if math.isfinite(y)]
    if not xs or not ys:
        return None
    x_ticks, y_ticks = nice_ticks(min(xs), max(xs), about=6), nice_ticks(min(0.0, *ys), max(ys))
    frame = Frame(
        left=52,
        top=10,
        width=456,
        height=230,
        across=(min(xs), max(*xs, min(xs) + 1e-9)),
        up=(y_ticks[0], y_ticks[-1]),
    )
    inside = [tick for tick in x_ticks if min(xs) - 1e-9 <= tick <= max(xs) + 1e-9]
    lines = [
        frame.path(across, [factor * y for y in up], class_=f"series s{number % _STYLES}")
        for number, (_, across, up) in enumerate(series)
    ]
    return Chart(
        shapes=(
            *frame.axes(x_ticks=inside, y_ticks=y_ticks, x_label=x_label, y_label=y_label),
            *(extra(frame) if extra is not None else ()),
            *lines,
            *_marks(series, frame, factor, x_label, y_label),
        ),
        width=526,  # the last tick is centered at the end of the axis
        height=284,
        label=label,
        kind="lines",
        steps=len(xs) <= _MARKS,
        legend=_legend([name for name, _, _ in series]) if len(series) > 1 else (),
    )


def _marks(
    series: Sequence[Series], frame: Frame, factor: float, x_label: str, y_label: str
) -> list[SvgElement]:
    if sum(len(across) for _, across, _ in series) > _MARKS:
        return []
    return [
        svg_element(
            "circle",
            cx=frame.x(x),
            cy=frame.y(factor * y),
            r=5,
            class_=f"mark dot s{number % _STYLES}",
            data_tip=f"{name}\n{x_label} {x:g}\n{y_label} {factor * y:.4g}",
        )
        for number, (name, across, up) in enumerate(series)
        for x, y in zip(across, up, strict=True)
        if math.isfinite(y)
    ]


def trend_chart(trend: Trend, change: Change, scores: Sequence[Score], *, label: str) -> Chart:
    """Return a metric over time: a point per state in the band of their intervals, and the run that is different."""
    facts, n = metric_facts(change.metric), len(scores)
    low, high = (
        facts.scale * f(getattr(score, end) for score in scores) for f, end in ((min, "low"), (max, "high"))
    )
    ticks = nice_ticks(min(low, 0.0) if facts.is_error else low, high)
    # Wide enough on the left for the first slanted name.
    frame = Frame(left=70, top=10, width=438, height=230, across=(-0.5, n - 0.5), up=(ticks[0], ticks[-1]))
    parts = frame.axes(
        x_ticks=(), y_ticks=ticks, y_label=f"{facts.short} (%)" if facts.percent else facts.short
    )
    if change.significant:
        start, stop = change.start - 0.5, change.stop - 0.5
        parts.append(frame.box(start, ticks[0], stop, ticks[-1], class_=f"changed {change.kind}"))
        for begin, end, value in (
            (-0.5, start, change.others),
            (start, stop, change.value),
            (stop, n - 0.5, change.others),
        ):
            if end > begin:
                parts.append(frame.line(begin, facts.scale * value, end, facts.scale * value, class_="usual"))
    values = [facts.scale * score.value for score in scores]
    lows, highs = ([facts.scale * getattr(score, end) for score in scores] for end in ("low", "high"))
    around = [*range(n), *reversed(range(n))]
    parts.append(frame.path(around, [*lows, *reversed(highs)], class_="band", closed=True))
    parts.append(frame.path(list(range(n)), values, class_="series s0 thin"))
    for place, (name, score) in enumerate(zip(trend.names, scores, strict=True)):
        tip = f"{name}\n{label} {number(change.metric, score.value)}  [{interval(change.metric, score)}]"
        ends = (facts.scale * score.low, facts.scale * score.high)
        parts.append(
            svg_element(
                "g",
                frame.line(place, ends[0], place, ends[1], class_="cross s0"),
                _point(0, frame.x(place), frame.y(values[place]), 4),
                class_="mark",
                data_tip=tip,
            )
        )
    parts += _state_names(frame, trend.names)
    words = f"{label} over {n} states, from {trend.names[0]} to {trend.names[-1]}."
    return Chart(shapes=tuple(parts), width=520, height=310, label=words, kind="lines", steps=n <= _MARKS)


def _state_names(frame: Frame, names: Sequence[str]) -> list[SvgElement]:
    """Return names below the axis, as many as fit; long ones slanted."""
    step = -(-len(names) // 12)
    shown = [name if len(name) <= 14 else f"{name[:11]}..." for name in names]
    slanted = max(map(len, shown[::step])) * 6 > frame.width / len(names) * step
    drawn = []
    for place in range(0, len(names), step):
        x, y = frame.x(place), frame.bottom + 14
        turn = f"rotate(-35 {x:g} {y:g})" if slanted else None
        anchor = "end" if slanted else "middle"
        drawn.append(
            svg_element(
                "text", text=shown[place], x=x, y=y, text_anchor=anchor, transform=turn, class_="tick"
            )
        )
    return drawn


def scatter_chart(methods: Sequence[MethodResult], *, key: str = "ece") -> Chart:
    """Return accuracy against an error, a cross of intervals per method; the best corner is above on the left."""
    found = [(method, method.score(key), method.score("accuracy")) for method in methods]
    facts = metric_facts(key)
    low, high = (
        facts.scale * f(f(0.0, across.low, across.high) for _, across, _ in found) for f in (min, max)
    )
    x_ticks = nice_ticks(low, high)
    y_ticks = nice_ticks(
        min(100 * up.low for _, _, up in found), min(100.0, max(100 * up.high for _, _, up in found))
    )
    frame = Frame(
        left=52, top=10, width=456, height=250, across=(x_ticks[0], x_ticks[-1]), up=(y_ticks[0], y_ticks[-1])
    )
    parts = []
    for place, (method, across, up) in enumerate(found):
        style = f"s{place % _STYLES}"
        x, y = facts.scale * across.value, 100 * up.value
        tip = "\n".join(
            [
                method.name,
                f"{title(key)} {number(key, across.value)}  [{interval(key, across)}]",
                f"accuracy {percent(up.value, 2)}  [{interval('accuracy', up)}]",
            ]
        )
        parts.append(
            svg_element(
                "g",
                frame.line(
                    max(facts.scale * across.low, x_ticks[0]),
                    y,
                    facts.scale * across.high,
                    y,
                    class_=f"cross {style}",
                ),
                frame.line(x, 100 * up.low, x, 100 * up.high, class_=f"cross {style}"),
                _point(place, frame.x(x), frame.y(y), 6),
                svg_element("circle", cx=frame.x(x), cy=frame.y(y), r=14, class_="hit"),
                class_="mark",
                data_tip=tip,
            )
        )
    x_label = f"{title(key)} (%)" if facts.percent else title(key)
    return Chart(
        shapes=(
            *frame.axes(x_ticks=x_ticks, y_ticks=y_ticks, x_label=x_label, y_label="accuracy (%)"),
            *parts,
        ),
        width=520,
        height=304,
        kind="scatter",
        steps=True,
        label=f"Accuracy against {title(key)} of {len(found)} methods; the table contains the same numbers.",
        legend=_legend([method.name for method in methods], points=True),
    )


_DIAGRAM = Frame(left=44, top=8, width=266, height=266)


class AxisNames(NamedTuple):
    """The names of a diagram's axes.

    Attributes:
        claimed: Name of the horizontal axis.
        came: Name of the vertical axis.
        right: Name of the event in a row.
    """

    claimed: str = "confidence"
    came: str = "accuracy"
    right: str = "right"


def axis_names(target: Target) -> AxisNames:
    """Return the names of the axes for a target.

    Example:
        >>> axis_names(Target("positive", 1, "fraud")).claimed
        'P(fraud)'
    """
    return {
        "top": AxisNames(),
        "positive": AxisNames(target.label, f"frequency of {target.event}", target.event),
        "classwise": AxisNames("probability of a class", "frequency", "of the class"),
    }[target.kind]


def reliability_chart(curve: ReliabilityCurve, *, level: float, name: str, target: Target = TOP) -> Chart:
    """Return bars of frequency by probability, gaps, intervals, and the histogram of probabilities underneath."""
    words = axis_names(target)
    below = Frame(left=44, top=300, width=266, height=58, up=(0.0, float(curve.weight.max())))
    means = [float(part.sum() / curve.weight.sum()) for part in (curve.confidence_sum, curve.outcome_sum)]
    ticks = [0, 0.2, 0.4, 0.6, 0.8, 1]
    label = (
        f"Reliability diagram of {name}: mean {words.claimed} {percent(means[0])}, {words.came} {percent(means[1])}, "
        f"ECE {percent(curve.expected_error())}. Arrow keys step through the bins; the table has the same numbers."
    )
    return Chart(
        shapes=(
            *_DIAGRAM.axes(x_ticks=(), y_ticks=ticks, y_label=words.came),
            *below.axes(x_ticks=ticks, y_ticks=(), x_label=words.claimed),
            *_bins(curve, below, level, words),
            _DIAGRAM.line(0, 0, 1, 1, class_="ideal"),
            text(38, 304, count(float(curve.weight.max())), anchor="end"),
            below.line(means[0], 0, means[0], below.up[1], class_="mean claimed"),
            below.line(means[1], 0, means[1], below.up[1], class_="mean right"),
        ),
        width=320,
        height=394,
        label=label,
        kind="reliability",
        steps=True,
    )


def _bins(curve: ReliabilityCurve, below: Frame, level: float, words: AxisNames) -> list[SvgElement]:
    lows, highs = curve.intervals(level=level)
    drawn = []
    for row, low, high in zip(curve.rows(), lows.tolist(), highs.tolist(), strict=True):
        if not row["weight"]:
            continue
        left, right, claimed, came = row["low"], row["high"], row["confidence"], row["frequency"]
        middle = (left + right) / 2
        drawn.append(
            svg_element(
                "g",
                _DIAGRAM.box(left, 0, right, 1, class_="hit"),
                below.box(left, 0, right, row["weight"], class_="rows"),
                _DIAGRAM.box(left, 0, right, came, class_="came"),
                _DIAGRAM.box(left, came, right, claimed, class_="over" if claimed > came else "under"),
                _DIAGRAM.line(left, came, right, came, class_="top"),
                _DIAGRAM.line(middle, low, middle, high, class_="whisker"),
                class_="mark",
                data_tip=_tip(row, low, high, words),
            )
        )
    return drawn


def _tip(row: dict[str, float], low: float, high: float, words: AxisNames) -> str:
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
