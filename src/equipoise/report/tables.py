"""Tables of the page that can be sorted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from equipoise.evaluate.comparison import PairedDifferences
from equipoise.evaluate.scorecard import Score
from equipoise.metrics.facts import FACTS, best_of, columns
from equipoise.metrics.target import target_facts
from equipoise.report.conclusion import Judgement, kind_of
from equipoise.report.markup import Markup, join, name_markup, tag
from equipoise.report.numbers import chance, interval, number, short
from equipoise.report.records import MethodResult, Report

__all__ = [
    "PageCell",
    "comparison_table",
    "judgement_list",
    "name_cell",
    "score_cell",
    "scorecard_table",
    "sortable",
]

_SIGNS = {"better": "▲ better", "tied": "= tie", "worse": "▼ worse", "unknown": "not compared"}
# One training of each method: a sign is about two networks.
_NETWORK_SIGNS = {
    **_SIGNS,
    "better": "(▲) this network",
    "tied": "(=) these networks",
    "worse": "(▼) this network",
}


class PageCell(NamedTuple):
    """A cell: what is shown, and what it is sorted by."""

    shown: object
    key: object = None


def sortable(
    head: Sequence[str],
    rows: Sequence[tuple[Sequence[PageCell], str]],
    *,
    caption: str,
    words: Sequence[int] = (),
) -> Markup:
    """Return a table whose headings sort it; it scrolls by itself where the page is narrow.

    Args:
        head: Headings.
        rows: Cells of each row, and the row's class.
        caption: What a screen reader says it is.
        words: Columns of text, beside the first.
    """
    style = dict.fromkeys(words, "words")
    heads = [
        tag("th", tag("button", word, type="button"), scope="col", class_=style.get(place))
        for place, word in enumerate(head)
    ]
    body = []
    for cells, class_ in rows:
        first, *rest = cells
        body.append(
            tag(
                "tr",
                tag("th", first.shown, scope="row", data_sort=first.key),
                *(
                    tag("td", cell.shown, data_sort=cell.key, class_=style.get(place))
                    for place, cell in enumerate(rest, start=1)
                ),
                class_=class_ or None,
            )
        )
    table = tag(
        "table",
        tag("caption", caption, class_="hidden"),
        tag("thead", tag("tr", *heads)),
        tag("tbody", *body),
        data_sortable=True,
    )
    return tag("div", table, class_="wide", tabindex="0", role="region", aria_label=caption)


def judgement_list(judgements: Sequence[Judgement], *, of_networks: bool) -> Markup:
    """Return how methods, or single networks of theirs, stand against the baseline, one line each."""
    signs = _NETWORK_SIGNS if of_networks else _SIGNS
    lines = [
        tag(
            "li",
            tag("b", tag("bdi", one.name)),
            tag("span", signs[one.kind], class_=f"sign {one.kind}"),
            " ",
            one.words,
        )
        for one in judgements
    ]
    return tag("ul", *lines, class_="judgements")


def name_cell(name: str) -> PageCell:
    """Return a name that a user gave, which may run from right to left."""
    return PageCell(name_markup(name), name)


def score_cell(
    key: str, score: Score, versus: PairedDifferences | None, *, best: bool = False, of_networks: bool = False
) -> PageCell:
    """Return a value, its interval and how it compares."""
    kind = kind_of(versus, key)
    signs = _NETWORK_SIGNS if of_networks else _SIGNS
    shown = join(
        tag("span", number(key, score.value), class_="best" if best else None),
        tag("span", interval(key, score), class_="range"),
        tag("span", signs[kind], class_=f"sign {kind}") if kind else None,
    )
    return PageCell(shown, score.value)


def comparison_table(report: Report) -> Markup:
    """Return methods by metrics."""
    keys = [key for key in columns() if all(key in method.keys for method in report.methods)]
    target, first = report.base.first.target, "state" if report.over_time else "method"
    best = {key: best_of(key, [method.score(key).value for method in report.methods]) for key in keys}
    rows, versus = [], report.versus()
    for method in report.methods:
        seeds = f" ({len(method.runs)} seeds)" if len(method.runs) > 1 else ""
        cells = [PageCell(join(name_markup(method.name), seeds), method.name)]
        for key in keys:
            score = method.score(key)
            is_best = score.value == best[key] and not report.over_time
            cells.append(
                score_cell(
                    key, score, versus.get(method.name), best=is_best, of_networks=report.is_of_networks
                )
            )
        rows.append((cells, "baseline" if method is report.base and not report.over_time else ""))
    heads = (first, *(short(key, target) for key in keys))
    return sortable(heads, rows, caption=f"{first.capitalize()}s by metrics")


def scorecard_table(method: MethodResult) -> Markup:
    """Return every metric of one model, with what it means."""
    rows = []
    for key in (key for key in FACTS if key in method.keys):
        score = method.score(key)
        facts = target_facts(key, method.first.target)
        rows.append(
            (
                [
                    PageCell(facts.title),
                    PageCell(number(key, score.value), score.value),
                    PageCell(interval(key, score), score.low),
                    PageCell(chance(score.p_value), score.p_value),
                    PageCell(facts.meaning),
                ],
                "",
            )
        )
    level = f"{100 * method.first.level:g} % interval"
    return sortable(
        ("metric", "value", level, "chance", "what it says"), rows, caption="Scorecard", words=(4,)
    )
