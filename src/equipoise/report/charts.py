"""Scatter and lines of the page."""

from __future__ import annotations

import math
from collections.abc import Sequence

from equipoise.evaluate.scorecard import Score
from equipoise.evaluate.trend import Change, Trend
from equipoise.metrics.facts import metric_facts
from equipoise.report.markup import Markup, join, tag
from equipoise.report.numbers import interval, number, percent, title
from equipoise.report.records import MethodResult
from equipoise.report.svg import Frame, nice_ticks, picture

__all__ = ["Series", "legend", "line_chart", "risk_series", "scatter_chart", "trend_chart"]

#: Name, horizontal and vertical values.
Series = tuple[str, Sequence[float], Sequence[float]]
_STYLES = 8
_MARKS = 400
_POINTS = 160
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


def legend(names: Sequence[str], *, shapes: bool = False) -> Markup:
    """Return a key of colours and dashes; or of colours and shapes, where points are drawn."""
    items = (
        tag(
            "li",
            tag(
                "svg",
                _point(place, 13, 6, 5)
                if shapes
                else tag("line", x1=1, y1=6, x2=25, y2=6, class_=f"series s{place % _STYLES}"),
                viewBox="0 0 26 12",
                aria_hidden="true",
            ),
            tag("bdi", name),
        )
        for place, name in enumerate(names)
    )
    return tag("ul", *items, class_="legend")


def _point(place: int, x: float, y: float, r: float) -> Markup:
    """Return the point of a method: colours come back after eight, shapes after seven, so no two are alike."""
    outline = " ".join(f"{x + r * a:.2f},{y + r * b:.2f}" for a, b in _SHAPES[place % len(_SHAPES)])
    class_ = f"dot s{place % _STYLES}"
    if not outline:
        return tag("circle", cx=x, cy=y, r=r, class_=class_)
    return tag("polygon", points=outline, class_=class_)


def line_chart(
    series: Sequence[Series], *, x_label: str, y_label: str, label: str, percent_up: bool
) -> Markup:
    """Return lines over a common frame, with their key; points are marks to hover while they are few."""
    factor = 100.0 if percent_up else 1.0
    xs = [x for _, across, _ in series for x in across]
    ys = [factor * y for _, _, up in series for y in up if math.isfinite(y)]
    if not xs or not ys:
        return Markup("")
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
        frame.path(across, [factor * y for y in up], class_=f"series s{place % _STYLES}")
        for place, (_, across, up) in enumerate(series)
    ]
    drawn = picture(
        frame.axes(x_ticks=inside, y_ticks=y_ticks, x_label=x_label, y_label=y_label),
        *lines,
        *_marks(series, frame, factor, x_label, y_label),
        width=520,
        height=284,
        label=label,
        class_="lines",
        steps=len(xs) <= _MARKS,
    )
    return join(drawn, legend([name for name, _, _ in series]) if len(series) > 1 else None)


def _marks(series: Sequence[Series], frame: Frame, factor: float, x_label: str, y_label: str) -> list[Markup]:
    if sum(len(across) for _, across, _ in series) > _MARKS:
        return []
    return [
        tag(
            "circle",
            cx=frame.x(x),
            cy=frame.y(factor * y),
            r=5,
            class_=f"mark dot s{place % _STYLES}",
            data_tip=f"{name}\n{x_label} {x:g}\n{y_label} {factor * y:.4g}",
        )
        for place, (name, across, up) in enumerate(series)
        for x, y in zip(across, up, strict=True)
        if math.isfinite(y)
    ]


def trend_chart(trend: Trend, change: Change, scores: Sequence[Score], *, label: str) -> Markup:
    """Return a metric over time: a point with its interval per state, and the run of states that is different."""
    facts, n = metric_facts(change.metric), len(scores)
    low, high = (
        facts.scale * f(getattr(score, end) for score in scores) for f, end in ((min, "low"), (max, "high"))
    )
    ticks = nice_ticks(min(low, 0.0) if facts.is_error else low, high)
    frame = Frame(left=52, top=10, width=456, height=230, across=(-0.5, n - 0.5), up=(ticks[0], ticks[-1]))
    parts = [
        frame.axes(x_ticks=(), y_ticks=ticks, y_label=f"{facts.short} (%)" if facts.percent else facts.short)
    ]
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
    parts.append(frame.path(list(range(n)), values, class_="series s0 thin"))
    for place, (name, score) in enumerate(zip(trend.names, scores, strict=True)):
        tip = f"{name}\n{label} {number(change.metric, score.value)}  [{interval(change.metric, score)}]"
        ends = (facts.scale * score.low, facts.scale * score.high)
        parts.append(
            tag(
                "g",
                frame.line(place, ends[0], place, ends[1], class_="cross s0"),
                _point(0, frame.x(place), frame.y(values[place]), 4),
                class_="mark",
                data_tip=tip,
            )
        )
    parts += _state_names(frame, trend.names)
    words = f"{label} over {n} states, from {trend.names[0]} to {trend.names[-1]}."
    return picture(*parts, width=520, height=310, label=words, class_="lines", steps=n <= _MARKS)


def _state_names(frame: Frame, names: Sequence[str]) -> list[Markup]:
    """Return names below the axis, as many as have room; long ones slanted."""
    step = -(-len(names) // 12)
    shown = [name if len(name) <= 14 else f"{name[:11]}..." for name in names]
    slanted = max(map(len, shown[::step])) * 6 > frame.width / len(names) * step
    drawn = []
    for place in range(0, len(names), step):
        x, y = frame.x(place), frame.bottom + 14
        turn = f"rotate(-35 {x:g} {y:g})" if slanted else None
        anchor = "end" if slanted else "middle"
        drawn.append(tag("text", shown[place], x=x, y=y, text_anchor=anchor, transform=turn, class_="tick"))
    return drawn


def risk_series(method: MethodResult) -> Series | None:
    """Return error rate by coverage, in percent of rows, thinned to what a line can show."""
    if method.risk is None:
        return None
    thinned = method.risk.thinned(_POINTS)
    return method.name, (100 * thinned.coverage).tolist(), thinned.risk.tolist()


def scatter_chart(methods: Sequence[MethodResult], *, key: str = "ece") -> Markup:
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
            tag(
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
                tag("circle", cx=frame.x(x), cy=frame.y(y), r=14, class_="hit"),
                class_="mark",
                data_tip=tip,
            )
        )
    x_label = f"{title(key)} (%)" if facts.percent else title(key)
    drawn = picture(
        frame.axes(x_ticks=x_ticks, y_ticks=y_ticks, x_label=x_label, y_label="accuracy (%)"),
        *parts,
        width=520,
        height=304,
        class_="scatter",
        steps=True,
        label=f"Accuracy against {title(key)} of {len(found)} methods; the table holds the same numbers.",
    )
    return join(drawn, legend([method.name for method in methods], shapes=True))
