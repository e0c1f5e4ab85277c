"""Tables of the page that can be sorted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from equipoise.evaluate.compare import Comparison
from equipoise.evaluate.scorecard import Score
from equipoise.evaluate.values import TITLES
from equipoise.report.markup import Markup, join, name_markup, tag
from equipoise.report.numbers import better_of, chance, interval, number, short, title
from equipoise.report.records import MethodResult, Report
from equipoise.report.verdict import summarise

__all__ = ["COLUMNS", "Cell", "comparison_table", "name_cell", "score_cell", "scorecard_table", "sortable"]

#: Columns of a comparison, where all methods have them.
COLUMNS = ("accuracy", "ece", "smece", "classwise_ece", "nll", "brier")
_SIGNS = {"better": "▲ better", "tied": "= tie", "worse": "▼ worse"}
_MEANING = {
    "accuracy": "how often the most probable class is the true one",
    "top5_accuracy": "how often the true class is among the five most probable",
    "nll": "surprise at the truth, in nats; rewards calibration and sharpness together",
    "brier": "squared distance from the truth; bounded, and proper like the NLL",
    "brier_calibration": "what calibration could win back",
    "brier_refinement": "what only a better model could",
    "root_brier": "the same on the scale of probabilities",
    "ece": "mean gap between confidence and accuracy over bins",
    "debiased_ece": "the same with chance taken off",
    "ada_ece": "over bins with equally many rows",
    "classwise_ece": "over all classes, not the predicted one alone",
    "mce": "the worst bin, however small",
    "rms_ce": "gaps squared, so that large ones count more",
    "smece": "without bins",
    "ks": "largest gap up to any confidence",
    "confidence_gap": "above zero: over-confident on average",
    "over_confidence": "where claims exceed outcomes",
    "under_confidence": "where outcomes exceed claims",
    "auroc": "how well confidence tells right from wrong; 0.5 is chance",
    "aurc": "mistakes left when the least sure are withheld",
}


class Cell(NamedTuple):
    """A cell: what is shown, and what it is sorted by."""

    shown: object
    key: object = None


def sortable(
    head: Sequence[str],
    rows: Sequence[tuple[Sequence[Cell], str]],
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


def name_cell(name: str) -> Cell:
    """Return a name that a user gave, which may run from right to left."""
    return Cell(name_markup(name), name)


def score_cell(key: str, score: Score, versus: Comparison | None, *, best: bool = False) -> Cell:
    """Return a value, its interval and how it compares."""
    kind = summarise(versus, key)
    shown = join(
        tag("span", number(key, score.value), class_="best" if best else None),
        tag("span", interval(key, score), class_="range"),
        tag("span", _SIGNS[kind], class_=f"sign {kind}") if kind else None,
    )
    return Cell(shown, score.value)


def comparison_table(report: Report) -> Markup:
    """Return methods by metrics."""
    keys = [key for key in COLUMNS if all(key in method.keys for method in report.methods)]
    best = {key: better_of(key, [method.score(key).value for method in report.methods]) for key in keys}
    rows = []
    for method in report.methods:
        seeds = f" ({len(method.runs)} seeds)" if len(method.runs) > 1 else ""
        cells = [Cell(join(name_markup(method.name), seeds), method.name)]
        for key in keys:
            score = method.score(key)
            cells.append(score_cell(key, score, method.versus, best=score.value == best[key]))
        rows.append((cells, "baseline" if method is report.base else ""))
    return sortable(("method", *map(short, keys)), rows, caption="Methods by metrics")


def scorecard_table(method: MethodResult) -> Markup:
    """Return every metric of one model, with what it means."""
    rows = []
    for key in (key for key in TITLES if key in method.keys):
        score = method.score(key)
        rows.append(
            (
                [
                    Cell(title(key)),
                    Cell(number(key, score.value), score.value),
                    Cell(interval(key, score), score.low),
                    Cell(chance(score.p_value), score.p_value),
                    Cell(_MEANING.get(key, "")),
                ],
                "",
            )
        )
    level = f"{100 * method.first.level:g} % interval"
    return sortable(
        ("metric", "value", level, "chance", "what it says"), rows, caption="Scorecard", words=(4,)
    )
