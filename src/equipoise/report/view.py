"""The view of a report that the page's template writes: sections made of blocks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from scipy.special import ndtri

from equipoise.core.escaping import without_controls
from equipoise.core.tables import Table
from equipoise.decisions import Certificate, DecisionCheck
from equipoise.decisions.certificate import threshold_text
from equipoise.evaluate.audits import off_words
from equipoise.evaluate.scorecard import Score, unknown_words
from equipoise.evaluate.shift import describe_missing_scores
from equipoise.metrics.curve import ReliabilityCurve
from equipoise.metrics.facts import metric_facts
from equipoise.metrics.target import TOP, Target
from equipoise.report.charts import (
    Series,
    axis_names,
    line_chart,
    reliability_chart,
    scatter_chart,
    trend_chart,
)
from equipoise.report.conclusion import Conclusion, conclusion_of, effect_sentence, judgments_of
from equipoise.report.numbers import interval, number, percent, title, typeset
from equipoise.report.records import MethodResult, Report, RunResult
from equipoise.report.result_tables import (
    advice_table,
    bin_table,
    calibrated_table,
    changed_table,
    comparison_table,
    ood_table,
    scorecard_table,
    sets_table,
    severity_table,
    sign_of,
    slice_table,
    sweep_table,
    threshold_table,
)
from equipoise.report.svg import Chart, Frame, SvgElement, svg_element, text

__all__ = ["Block", "Figure", "Section", "Tile", "judgment_lines", "sections_of", "summary_of", "tiles_of"]

_WORST = 10
_TILES = ("accuracy", "ece", "confidence_gap", "nll", "brier", "correct_nll", "correct_brier")
#: After two tiles about the probability of the positive class.
_TILES_OF_BOTH = ("ece", "accuracy", "nll")


class Block(NamedTuple):
    """A part of a section.

    Attributes:
        kind: The macro of the template that writes it.
        content: The macro's argument.
        title: A heading or a name.
    """

    kind: str
    content: Any
    title: str = ""


class Section(NamedTuple):
    """A section of the page."""

    anchor: str
    heading: str
    blocks: list[Block]


class Tile(NamedTuple):
    """A main number of a model."""

    name: str
    value: str
    interval: str


@dataclass(frozen=True)
class Figure:
    """A chart with its caption and the table of its numbers.

    Attributes:
        chart: The chart.
        name: The name of what it shows.
        detail: A number behind the name.
        table: The same numbers as a table.
        is_open: Whether the table is shown at once.
    """

    chart: Chart
    name: str = ""
    detail: str = ""
    table: Table | None = None
    is_open: bool = False


def summary_of(report: Report) -> str:
    """Return the line below the title: how many methods, rows and classes."""
    card = report.base.first
    facts = [f"{card.n_samples:,} rows"]
    if card.n_classes:
        facts.append(f"{card.n_classes} classes")
    if card.split:
        facts.append(f"split {card.split}")
    if report.trend is not None:
        facts[0] = f"{report.trend.card.n_samples:,} rows"
        facts.insert(
            0, f"{len(report.methods)} states, {report.methods[0].name} to {report.methods[-1].name}"
        )
    elif len(report.methods) > 1:
        facts.insert(0, f"{len(report.methods)} methods")
    elif len(report.base.runs) > 1:
        facts.insert(0, f"mean of {len(report.base.runs)} runs")
    return " · ".join(facts)


def judgment_lines(report: Report, conclusion: Conclusion) -> list[tuple[str, str, str, str]]:
    """Return name, kind, sign and words of every method that was compared with the baseline."""
    return [
        (one.name, one.kind, sign_of(one.kind, of_networks=report.is_of_networks), one.words)
        for one in conclusion.judgments
    ]


def tiles_of(report: Report) -> list[Tile]:
    """Return the main numbers of a single model; none for several."""
    if len(report.methods) > 1:
        return []
    method = report.methods[0]
    event, target = method.first.event, method.first.target
    found = []
    if event is not None:
        found += [(title(key, event.target), key, event[key]) for key in ("ece", "confidence_gap")]
    for key in (key for key in (_TILES if event is None else _TILES_OF_BOTH) if key in method.keys):
        of = " of the predicted class" if event is not None and key == "ece" else ""
        found.append((title(key, target) + of, key, method.score(key)))
    return [Tile(name, number(key, score.value), interval(key, score)) for name, key, score in found]


def sections_of(report: Report) -> list[Section]:
    """Return the sections after the verdict, those without content left out.

    A comparison begins with its table, a single model with its diagram, a trend with its figures.
    """
    several = len(report.methods) > 1
    numbers, diagram = ("numbers", "The numbers", _numbers), ("reliability", "Reliability", _reliability)
    drift = ("drift", "Over time", _drift)
    after: list[tuple[str, str, Callable[[Report], list[Block]]]] = [
        ("advice", "What to do", _advice),
        ("tradeoff", "Accuracy against calibration", _tradeoff),
        ("posthoc", "Effect of calibrators", _calibrated),
        ("slices", "Where it is off", _slices),
        ("selective", "If you act on it", _selective),
        ("shift", "Additional test sets", _shift),
        ("choices", "Settings that were chosen", _sweeps),
        ("training", "During training", _training),
    ]
    order = [numbers, diagram, *after] if several else [diagram, *after, numbers]
    if several and report.over_time:
        order = [drift, diagram, numbers, *after]
    order = [("search", "How it was found", _search), *order]
    order += [
        ("methods", "The methods", _cards),
        ("provenance", "Where the numbers come from", _provenance),
    ]
    made = [Section(anchor, heading, build(report)) for anchor, heading, build in order]
    return [section for section in made if section.blocks]


def _reliability(report: Report) -> list[Block]:
    """Return a reliability diagram per method, and after its calibrators."""
    several = len(report.methods) > 1
    methods = _curves_over_time(report) if report.over_time else report.methods
    figures = [figure for method in methods for figure in _diagrams(method, several=several)]
    names = axis_names(methods[0].first.target)
    about = (
        f"Each bar contains predictions of about the same {names.claimed}; its height is how often they were "
        f"{names.right}. A calibrated model follows the dashed diagonal. Bins without rows stay empty; the gray bars "
        "count rows."
    )
    return [
        Block("lead", about),
        *([Block("explorer", names)] if has_details(report) else []),
        Block("key", names),
        Block("figures", figures, "gallery" if len(figures) > 1 else "solo"),
    ]


def has_details(report: Report) -> bool:
    """Return whether the page can let its reader choose bins and thresholds."""
    return not report.over_time and any(method.details is not None for method in report.methods)


def _diagrams(method: MethodResult, *, several: bool) -> list[Figure]:
    """Return the diagram of a method, and those after its calibrators."""
    level, titled = method.first.level, several or bool(method.calibrated)
    before = method.name if several or not method.calibrated else "before"
    target, event = method.first.target, method.first.event
    if event is not None:
        # Both views: the event first, since the rare class matters most.
        drawn = [_diagram(event.target.label, event.curve, event["ece"], level, True, event.target)]
        before = f"{before}, predicted class" if several or method.calibrated else "predicted class"
        drawn.append(_diagram(before, method.curve(), method.score("ece"), level, True))
    else:
        drawn = [_diagram(before, method.curve(), method.score("ece"), level, titled, target)]
    for one in method.calibrated:
        name = f"{method.name} after {one.name}" if several else f"after {one.name}"
        drawn.append(_diagram(name, one.curve(), one.score("ece"), level, True, target))
    return drawn


def _diagram(
    name: str, curve: ReliabilityCurve, ece: Score, level: float, titled: bool, target: Target = TOP
) -> Figure:
    return Figure(
        reliability_chart(curve, level=level, name=name, target=target),
        name=name if titled else "",
        detail=f"{target.titled('ECE')} {number('ece', ece.value)}" if titled else "",
        table=bin_table(curve, level=level, target=target),
        is_open=not titled,
    )


def _curves_over_time(report: Report) -> tuple[MethodResult, ...]:
    """Return the states before and since a change, each as one; or all together if nothing changed."""
    trend = report.trend
    change = trend.found[0] if trend is not None and trend.found else None
    if change is None:
        return (_together(report.methods, "all states"),)
    inside, others = report.methods[change.start : change.stop], list(report.methods)
    del others[change.start : change.stop]
    since = change.stop == len(report.methods)
    names = (
        ("before", f"since {change.first}") if since else ("other states", f"{change.first} to {change.last}")
    )
    return tuple(_together(part, name) for part, name in zip((others, inside), names, strict=True))


def _together(methods: Sequence[MethodResult], name: str) -> MethodResult:
    """Return a result whose curve is that of all rows of some states."""
    cards = [method.first for method in methods]
    first = cards[0]
    weight, confidence, outcome = (
        np.sum([getattr(card.curve, part) for card in cards], axis=0)
        for part in ("weight", "confidence_sum", "outcome_sum")
    )
    curve = replace(first.curve, weight=weight, confidence_sum=confidence, outcome_sum=outcome)
    value = curve.expected_error()
    card = replace(first, curve=curve, scores={**first.scores, "ece": Score(value, value, value)})
    return MethodResult(name=name, runs=(RunResult(scores=card),))


def _numbers(report: Report) -> list[Block]:
    """Return methods by metrics for a comparison, and metrics with intervals for one model."""
    level = f"{100 * report.base.first.level:g}%"
    if len(report.methods) == 1:
        about = (
            f"Every metric with its {level} interval. For errors, the column by chance is how often a "
            "calibrated model with the same confidences would score as high on as many rows."
        )
        only = report.methods[0]
        unknown = [Block("lead", words) for words in unknown_words(only.first)]
        return [Block("lead", about), Block("table", scorecard_table(only)), *unknown, *_parts(only)]
    if report.over_time:
        about = f"One row per state, with {level} intervals. Choose a heading to sort."
    else:
        subject = "this network with that of " if report.is_of_networks else "with "
        about = (
            f"Values with {level} intervals. The sign compares {subject}{report.base.name} on the same rows, corrected "
            "for the number of methods; a tie is a difference that is not significant. Choose a heading to sort."
        )
    return [Block("lead", about), Block("table", comparison_table(report))]


def _parts(method: MethodResult) -> list[Block]:
    """Return the parts of the Brier score of the event that is scored, if the rows were in memory."""
    if method.details is None:
        return []
    split, event = method.details.split, axis_names(method.first.target).right
    words = (
        f"The Brier score of the event that a row is {event}, {split.score:.4f}, is miscalibration "
        f"{split.miscalibration:.4f} − discrimination {split.discrimination:.4f} + uncertainty "
        f"{split.uncertainty:.4f}, by isotonic regression (CORP)."
    )
    return [Block("lead", words)]


def _drift(report: Report) -> list[Block]:
    """Return calibration, log-loss and accuracy over time, with their intervals, where a change is marked."""
    if not report.over_time or report.trend is None:
        return []
    trend, cards = report.trend, [method.first for method in report.methods]
    figures = []
    for change in trend.changes:
        label = title(change.metric, trend.card.target)
        chart = trend_chart(trend, change, [card[change.metric] for card in cards], label=label)
        figures.append(Figure(chart, name=f"{label[0].upper()}{label[1:]}"))
    about = (
        "In the order of the files. Each point is one state; the band joins the intervals. A shaded run of states "
        "differs from the others by more than chance explains; dashed lines are the values in and outside of it."
    )
    blocks = [Block("lead", about), Block("figures", figures, "pair")]
    if trend.parts:
        blocks += [Block("heading", "Where it changed"), Block("table", changed_table(trend.parts))]
    return blocks


def _advice(report: Report) -> list[Block]:
    """Return the recommended calibrator, if one was chosen; otherwise how to choose one."""
    several = len(report.methods) > 1
    blocks = []
    for method in report.methods:
        if method.advice is None:
            continue
        advice = method.advice
        sentences = [typeset(advice.recommendation), effect_sentence(report, method)]
        blocks.append(
            Block("advice", (list(filter(None, sentences)), advice.code), method.name if several else "")
        )
        if advice.options:
            table = replace(advice_table(advice), caption="Cross-validated on held-out rows.")
            blocks.append(Block("fold" if several else "table", table, "Cross-validated on held-out rows"))
    if blocks or several or not report.hint or conclusion_of(report).tone == "good":
        return blocks
    about = (
        "A calibrator fitted afterwards may correct this without training again. It must be fitted on rows that are "
        "not scored here. With such rows, a calibrator is chosen, and the report shows its effect:"
    )
    return [Block("advice", ([about], report.hint))]


def _tradeoff(report: Report) -> list[Block]:
    """Return accuracy against ECE, if there is more than one method."""
    if len(report.methods) == 1 or report.over_time:
        return []
    about = "Above and to the left is better. The crosses are intervals."
    return [Block("lead", about), Block("figures", [Figure(scatter_chart(report.methods))], "plain")]


def _calibrated(report: Report) -> list[Block]:
    """Return the effect of calibrators, and how methods compare after each."""
    table = calibrated_table(report)
    if table is None:
        return []
    about = (
        "Fitted on held-out rows, scored on others. The sign compares with no calibrator, on the same rows."
    )
    blocks = [Block("lead", about), Block("table", table)]
    for name in report.shared_calibrators if report.others else ():
        lines = [
            (one.name, one.kind, sign_of(one.kind, of_networks=report.is_of_networks), one.words)
            for one in judgments_of(report, name)
        ]
        blocks.append(Block("judgments", lines, f"After {name}, compared with {report.base.name}"))
    return blocks


def _slices(report: Report) -> list[Block]:
    """Return the classes and groups that are off, worst first; folded where there are several methods."""
    several = len(report.methods) > 1
    blocks = []
    for method in report.methods:
        level, target = method.first.level, method.first.target
        what = "class" if target.kind == "classwise" else "predicted class"
        for column, slices in ((what, method.classes), *method.groups.items()):
            if len(slices) < 2:
                continue
            shown = "" if len(slices) <= _WORST else f"; the {_WORST} worst shown"
            found = typeset(off_words(slices, level=level)) + shown
            table = slice_table(slices[:_WORST], column, level=level, target=target)
            if several:
                blocks.append(Block("fold", table, f"{method.name} by {column}: {found}"))
            else:
                blocks += [Block("heading", f"By {column}: {found}"), Block("table", table)]
    if not blocks:
        return []
    about = (
        "A model can be calibrated on all rows and not on a part of them. p-values are corrected for the number of "
        "slices; a slice that chance explains is not a finding."
    )
    return [Block("lead", about), *blocks]


def _selective(report: Report) -> list[Block]:
    """Return errors by coverage, thresholds with a guarantee, and prediction sets."""
    series: list[Series] = []
    for method in report.methods:
        if method.risk is not None:
            thinned = method.risk.thinned(160)
            series.append((method.name, (100 * thinned.coverage).tolist(), thinned.risk.tolist()))
    certified = [(one.name, one.details.certificates) for one in report.methods if one.details is not None]
    certified = [(name, found) for name, found in certified if found]
    level = f"{100 * report.base.first.level:g}%"
    about = (
        "If only the most confident predictions are used and the rest go to a person, how many errors remain?"
    )
    blocks = [Block("lead", about), *_decision(report.decision)]
    if has_details(report):
        blocks.append(Block("threshold", None))
    if series:
        only = report.methods[0] if len(report.methods) == 1 else None
        chart = line_chart(
            series,
            x_label="accepted rows (%)",
            y_label="errors (%)",
            percent_up=True,
            label="Error rate among accepted rows, by the share of rows accepted, most confident first.",
            extra=None if only is None else lambda frame: _risk_extras(frame, only),
        )
        if chart is not None:
            blocks.append(Block("figures", [Figure(chart)], "plain"))
            if only is not None:
                marks = (
                    " Vertical lines: thresholds certified for these error rates."
                    if _n_certified(certified)
                    else ""
                )
                blocks.append(Block("lead", f"The band is the pointwise {level} interval.{marks}"))
    if certified:
        about = (
            f"Which error rate can be promised? With {level} confidence, accepted predictions are wrong at most as "
            "often as the limit, for new rows from the same source. Each line holds by itself, not all at once, and "
            "only at the threshold given."
        )
        blocks += [
            Block("heading", "Thresholds with a guarantee"),
            Block("lead", about),
            Block("table", threshold_table(certified)),
        ]
    for method in report.methods:
        if method.sets is not None:
            sets = method.sets
            about = (
                f"Sets of classes that contain the true class with probability {percent(sets.target, 0)}: "
                f"{percent(sets.coverage)} do ({100 * sets.coverage_low:.1f} to {100 * sets.coverage_high:.1f}), with "
                f"{sets.mean_size:.2f} classes on average."
            )
            if sets.sizes[0] and method.score("accuracy").value > sets.target:
                about += (
                    " Some sets are empty, since the most probable class alone is right more often. With a higher "
                    "coverage (equipoise decide --sets), sets have one class or more."
                )
            name = f"Prediction sets of {method.name}" if len(report.methods) > 1 else "Prediction sets"
            blocks += [
                Block("heading", name),
                Block("lead", about),
                Block("table", sets_table(sets)),
            ]
    return blocks if len(blocks) > 1 else []


def _decision(checked: DecisionCheck | None) -> list[Block]:
    """Return whether a saved decision keeps its promise on the rows of the report."""
    if checked is None:
        return []
    first, *more = map(without_controls, [*checked.text.splitlines(), *checked.notes])
    tone, sign = ("better", "pass") if checked.kept else ("worse", "fail")
    about = "The controls and tables below are about new thresholds on the scores of these rows."
    return [
        Block("judgments", [("Saved decision", tone, sign, first)], "The decision that was checked"),
        *(Block("text", line) for line in more),
        Block("lead", about),
    ]


def _n_certified(found: Sequence[tuple[str, Sequence[Certificate]]]) -> int:
    return sum(one.certified for _, certificates in found for one in certificates)


def _risk_extras(frame: Frame, method: MethodResult) -> list[SvgElement]:
    """Return the band of a risk-coverage curve, and its certified thresholds."""
    if method.risk is None:
        return []
    thinned = method.risk.thinned(160)
    z = float(ndtri((1 + method.first.level) / 2))
    n = np.maximum(thinned.coverage * method.first.n_samples, 1.0)
    center = (thinned.risk + z**2 / (2 * n)) / (1 + z**2 / n)
    half = z / (1 + z**2 / n) * np.sqrt(thinned.risk * (1 - thinned.risk) / n + z**2 / (4 * n**2))
    top = frame.up[1]
    low, high = np.clip(100 * (center - half), 0, top), np.clip(100 * (center + half), 0, top)
    across = (100 * thinned.coverage).tolist()
    band = frame.path(
        [*across, *reversed(across)], [*high.tolist(), *reversed(low.tolist())], class_="band", closed=True
    )
    certificates: Sequence[Certificate] = () if method.details is None else method.details.certificates
    marks = [
        svg_element(
            "g",
            frame.line(100 * one.coverage, 0, 100 * one.coverage, top, class_="certified"),
            text(
                frame.x(100 * one.coverage) - 3,
                frame.y(top) + 10 + 13 * place,  # a step lower each, so that close ones do not overlap
                percent(one.max_error or 0, 0),
                anchor="end",
                class_="tick promise",
            ),
            frame.line(100 * one.coverage - 1.2, 0, 100 * one.coverage - 1.2, top, class_="hit-line"),
            class_="mark",
            data_tip=f"At most {percent(one.max_error or 0, 0)} errors, certified\n"
            f"threshold {threshold_text(one.threshold)}\n"
            f"accepted {percent(one.coverage)}\nobserved errors {percent(one.observed_error or 0, 2)}",
        )
        for place, one in enumerate(certificates)
        if one.certified and one.threshold is not None and frame.across[0] <= 100 * one.coverage
    ]
    return [band, *marks]


def _shift(report: Report) -> list[Block]:
    """Return charts and tables of additional test sets, if there are any."""
    if not report.shifts:
        return []
    about = (
        "Additional test sets, which were not used to fit or choose anything; calibrators were fitted on clean rows. "
        f"With {100 * report.base.first.level:g}% intervals."
    )
    blocks = [Block("lead", about)]
    for family in dict.fromkeys(name for one in report.shifts for name in one.curves):
        known = [one for one in report.shifts if family in one.curves]
        series: list[Series] = [
            (one.name, list(one.curves[family]), [cell["ece"].value for cell in one.curves[family].values()])
            for one in known
        ]
        chart = line_chart(
            series,
            x_label="severity",
            y_label="ECE (%)",
            percent_up=True,
            label=f"ECE under {family} by severity.",
        )
        blocks.append(Block("heading", family))
        blocks += [Block("figures", [Figure(chart)], "plain")] if chart is not None else []
        blocks.append(Block("table", severity_table(known, family)))
    for name in dict.fromkeys(name for one in report.shifts for name in one.ood):
        blocks += [
            Block("heading", f"Out-of-distribution rows: {name}"),
            Block(
                "lead",
                "Test rows against these, by the score of the network. AUPR takes test rows for positive.",
            ),
            Block("table", ood_table(report.shifts, name)),
        ]
        missing = describe_missing_scores(report.shifts, name)
        blocks += [Block("lead", missing)] if missing else []
    return blocks


def _sweeps(report: Report) -> list[Block]:
    """Return the results of every setting where a setting was chosen."""
    if not report.sweeps:
        return []
    about = (
        "Settings were chosen on tune; test was not used, and is shown to tell what the choice was worth. "
        f"Values with {100 * report.base.first.level:g}% intervals."
    )
    blocks = [Block("lead", about)]
    for sweep in report.sweeps:
        facts = metric_facts(sweep.metric)
        positions = sweep.values or tuple(range(1, len(sweep.settings) + 1))
        series: list[Series] = [
            (name, [positions[k] for k in sweep.ascending], [scores[k].value for k in sweep.ascending])
            for name, scores in (("tune", sweep.tune), ("test", sweep.test))
        ]
        chart = line_chart(
            series,
            x_label=sweep.parameters if sweep.values else "setting",
            y_label=facts.head,
            percent_up=facts.percent,
            label=f"{facts.title} of {sweep.name} on tune and test, by setting.",
        )
        blocks += [Block("heading", sweep.name), Block("text", sweep.words)]
        blocks += [Block("figures", [Figure(chart)], "plain")] if chart is not None else []
        blocks.append(Block("table", sweep_table(sweep)))
    return blocks


def _search(report: Report) -> list[Block]:
    """Return how the model was found, for a report of `auto`."""
    return [Block("text" if isinstance(part, str) else "table", part) for part in report.search]


def _training(report: Report) -> list[Block]:
    """Return ECE and NLL over training, for methods with a history."""
    figures = []
    for column, label, in_percent in (
        ("tune_ece", "ECE on tune (%)", True),
        ("tune_nll", "NLL on tune", False),
    ):
        series: list[Series] = []
        for method in report.methods:
            history = method.runs[0].history
            if any(column in row for row in history):
                epochs = [row.get("epoch", number) + 1 for number, row in enumerate(history)]
                series.append((method.name, epochs, [row.get(column, float("nan")) for row in history]))
        chart = line_chart(
            series, x_label="epoch", y_label=label, percent_up=in_percent, label=f"{label} over epochs."
        )
        figures += [Figure(chart)] if chart is not None else []
    if not figures:
        return []
    about = "Measured on the validation split (tune), for the first seed of each method."
    return [Block("lead", about), Block("figures", figures, "pair")]


def _cards(report: Report) -> list[Block]:
    """Return the descriptions of the methods."""
    cards = [(method.name, method.card) for method in report.methods if method.card is not None]
    return [Block("cards", cards)] if cards else []


def _provenance(report: Report) -> list[Block]:
    """Return where the numbers come from, and how to get them again."""
    blocks = [Block("text", f"Note: {note}") for note in report.notes]
    blocks += [Block("facts", report.provenance.facts)] if report.provenance.facts else []
    if report.provenance.command:
        blocks.append(Block("code", report.provenance.command, "To make this report again:"))
    return blocks
