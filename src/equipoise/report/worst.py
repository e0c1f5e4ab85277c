"""Which classes and groups are off."""

from __future__ import annotations

from collections.abc import Sequence

from equipoise.evaluate.audits import off_words, slice_heads
from equipoise.evaluate.scorecard import Score
from equipoise.evaluate.slices import Slice, slices_off
from equipoise.metrics.target import Target
from equipoise.report.markup import Markup, join, tag
from equipoise.report.numbers import chance, count, interval, number, percent, typeset
from equipoise.report.records import MethodResult, Report
from equipoise.report.tables import PageCell, name_cell, sortable

__all__ = ["slices_section"]

_WORST = 10


def slices_section(report: Report) -> Markup | None:
    """Return the classes and groups that are off, worst first; folded where there are several methods."""
    several = len(report.methods) > 1
    parts = [
        (_folded if several else _open)(method, what, slices)
        for method in report.methods
        for what, slices in ((_classes(method), method.classes), *method.groups.items())
        if len(slices) > 1
    ]
    if not parts:
        return None
    about = (
        "Rows that are judged together must be believable together. p-values are corrected for the number of slices "
        "looked at; a slice that chance explains is not a finding."
    )
    return join(tag("p", about, class_="lead"), *parts)


def _classes(method: MethodResult) -> str:
    return "class" if method.first.target.kind == "classwise" else "predicted class"


def _open(method: MethodResult, what: str, slices: Sequence[Slice]) -> Markup:
    level = method.first.level
    heading = tag("h3", "By ", tag("bdi", what), ": ", _found(slices, level))
    return join(heading, _table(what, slices, level, method.first.target))


def _folded(method: MethodResult, what: str, slices: Sequence[Slice]) -> Markup:
    level = method.first.level
    summary = tag(
        "summary", tag("b", tag("bdi", method.name)), " by ", tag("bdi", what), ": ", _found(slices, level)
    )
    table = _table(what, slices, level, method.first.target)
    return tag("details", summary, table, data_print="no", class_="fold")


def _found(slices: Sequence[Slice], level: float) -> str:
    """Say how many are off, and how many of them stand below."""
    shown = "" if len(slices) <= _WORST else f"; the {_WORST} worst shown"
    return typeset(off_words(slices, level=level)) + shown


def _table(what: str, slices: Sequence[Slice], level: float, target: Target) -> Markup:
    shown = slices[:_WORST]
    caption = f"The {len(shown)} worst by {what}" if len(shown) < len(slices) else f"By {what}"
    _, _, said, true, *_ = ("", "", "claimed", "right") if target.kind == "top" else slice_heads(target)
    head = (what, "rows", said, true, "gap", "corrected p")
    return sortable(head, [(_row(part, level), "") for part in shown], caption=caption)


def _row(part: Slice, level: float) -> list[PageCell]:
    ends = interval("confidence_gap", Score(part.gap, part.low, part.high))
    gap = join(number("confidence_gap", part.gap), tag("span", ends, class_="range"))
    chances = tag("span", chance(part.p_value), class_="worse" if slices_off([part], level=level) else "tied")
    return [
        name_cell(part.name),
        PageCell(count(part.n_samples), part.n_samples),
        PageCell(percent(part.confidence), part.confidence),
        PageCell(percent(part.accuracy), part.accuracy),
        PageCell(gap, part.gap),
        PageCell(chances, part.p_value),
    ]
