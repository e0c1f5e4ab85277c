"""The section on further test sets: calibration by severity, and what is known from what is foreign."""

from __future__ import annotations

from equipoise.evaluate.scorecard import Score
from equipoise.evaluate.shift import DETECTION, ShiftScores, describe_missing_scores
from equipoise.metrics.facts import metric_facts, metrics_where
from equipoise.report.charts import Series, line_chart
from equipoise.report.markup import Markup, join, tag
from equipoise.report.records import Report
from equipoise.report.tables import PageCell, name_cell, sortable

__all__ = ["shift_section"]


def shift_section(report: Report) -> Markup | None:
    """Return charts and tables of further test sets, if there are any."""
    if not report.shifts:
        return None
    about = (
        "Further test sets, which nothing was fitted or chosen on; calibrators are those that clean rows gave. "
        f"{100 * report.base.first.level:g} % intervals in brackets."
    )
    families = dict.fromkeys(name for one in report.shifts for name in one.curves)
    foreign = dict.fromkeys(name for one in report.shifts for name in one.foreign)
    return join(
        tag("p", about, class_="lead"),
        *(_curves(report.shifts, name) for name in families),
        *(_foreign(report.shifts, name) for name in foreign),
    )


def _curves(shifts: tuple[ShiftScores, ...], family: str) -> Markup:
    known = [one for one in shifts if family in one.curves]
    series: list[Series] = [
        (one.name, list(one.curves[family]), [scores["ece"].value for scores in one.curves[family].values()])
        for one in known
    ]
    chart = line_chart(
        series,
        x_label="severity",
        y_label="ECE (%)",
        percent_up=True,
        label=f"ECE under {family} by severity.",
    )
    levels = sorted({level for one in known for level in one.curves[family]})
    rows = [
        (
            [name_cell(one.name), _words(metric_facts(key).head)]
            + [_cell(key, one.curves[family].get(level, {}).get(key)) for level in levels],
            "",
        )
        for key in metrics_where(is_main=True)
        for one in known
    ]
    head = ["method", "metric", *("clean" if level == 0 else f"severity {level}" for level in levels)]
    table = sortable(head, rows, caption=f"Scores under {family} by severity", words=[1])
    return join(tag("h3", tag("bdi", family)), tag("figure", chart), table)


def _foreign(shifts: tuple[ShiftScores, ...], name: str) -> Markup:
    rows = [
        ([name_cell(one.name), _words(score), *(_cell(key, numbers[key]) for key in DETECTION)], "")
        for one in shifts
        for score, numbers in one.foreign.get(name, {}).items()
    ]
    head = ["method", "score", *(facts.head for facts in DETECTION.values())]
    about = "Test rows told from foreign ones by how sure the network is; AUPR takes test rows for positive."
    table = sortable(head, rows, caption=f"Telling test rows from {name}", words=[1])
    missing = describe_missing_scores(shifts, name)
    return join(
        tag("h3", "Foreign rows: ", tag("bdi", name)),
        tag("p", about),
        table,
        tag("p", missing, class_="lead") if missing else None,
    )


def _words(text: str) -> PageCell:
    return PageCell(text, text)


def _cell(key: str, score: Score | None) -> PageCell:
    if score is None:
        return PageCell("–", "")
    facts = metric_facts(key)
    ends = f"[{facts.number(score.low)}, {facts.number(score.high)}]"
    return PageCell(f"{facts.number(score.value)} {ends}", f"{score.value}")
