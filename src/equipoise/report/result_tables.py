"""The tables of a report, the same for the page and for Markdown."""

from __future__ import annotations

import math
from collections.abc import Sequence

from equipoise.core.tables import BOLD, Column, Table, TableCell
from equipoise.decisions import Certificate, SetReport
from equipoise.decisions.certificate import threshold_text
from equipoise.evaluate.audits import slice_heads
from equipoise.evaluate.comparison import PairedDifferences
from equipoise.evaluate.refit import Part
from equipoise.evaluate.scorecard import Score
from equipoise.evaluate.shift import DETECTION, ShiftScores
from equipoise.evaluate.slices import Slice, slices_off
from equipoise.evaluate.sweep import Sweep
from equipoise.metrics.curve import ReliabilityCurve
from equipoise.metrics.facts import FACTS, best_of, columns, metric_facts, metrics_where
from equipoise.metrics.target import TOP, Target, target_facts
from equipoise.report.charts import axis_names
from equipoise.report.conclusion import kind_of
from equipoise.report.numbers import chance, count, interval, number, percent, short
from equipoise.report.records import Advice, MethodResult, Report

__all__ = [
    "advice_table",
    "bin_table",
    "calibrated_table",
    "changed_table",
    "comparison_table",
    "ood_table",
    "scorecard_table",
    "sets_table",
    "severity_table",
    "sign_of",
    "slice_table",
    "sweep_table",
    "threshold_table",
]

_SIGNS = {"better": "▲ better", "tied": "= tie", "worse": "▼ worse", "unknown": "not compared"}
#: Methods were trained once: the sign is about two networks.
_NETWORK_SIGNS = {
    **_SIGNS,
    "better": "(▲) this network",
    "tied": "(=) these networks",
    "worse": "(▼) this network",
}
_AFTER = ("accuracy", "ece", "smece", "nll", "brier", "correct_nll", "correct_brier")


def sign_of(kind: str, *, of_networks: bool) -> str:
    """Return the sign of a comparison in words.

    Example:
        >>> sign_of("tied", of_networks=False)
        '= tie'
    """
    return (_NETWORK_SIGNS if of_networks else _SIGNS)[kind]


def _score_cell(
    key: str, score: Score, versus: PairedDifferences | None, *, best: bool = False, of_networks: bool = False
) -> TableCell:
    kind = kind_of(versus, key)
    return TableCell(
        number(key, score.value),
        bold=best,
        detail=interval(key, score),
        mark=sign_of(kind, of_networks=of_networks) if kind else "",
        tone=kind or "",
        key=score.value,
    )


def _number_cell(text: str, value: float) -> TableCell:
    return TableCell(text, key=value if math.isfinite(value) else "")


def comparison_table(report: Report) -> Table:
    """Return methods by metrics."""
    keys = [key for key in columns() if all(key in method.keys for method in report.methods)]
    target, first = report.base.first.target, "state" if report.over_time else "method"
    best = {key: best_of(key, [method.score(key).value for method in report.methods]) for key in keys}
    rows, versus = [], report.versus()
    for method in report.methods:
        seeds = f"{len(method.runs)} seeds" if len(method.runs) > 1 else ""
        is_base = method is report.base and not report.over_time
        cells = [TableCell(method.name, detail=seeds, tone="baseline" if is_base else "", key=method.name)]
        for key in keys:
            score = method.score(key)
            cells.append(
                _score_cell(
                    key,
                    score,
                    versus.get(method.name),
                    best=score.value == best[key] and not report.over_time,
                    of_networks=report.is_of_networks,
                )
            )
        rows.append(tuple(cells))
    subject = "the network of " if report.is_of_networks else ""
    legend = () if report.over_time else (
        (BOLD, "best of the column"),
        ("▲, ▼", f"better, worse than {subject}{report.base.name} on the same rows"),
        ("=", "no significant difference"),
    )  # fmt: skip
    return Table(
        columns=(Column(first, "left"), *(Column(short(key, target)) for key in keys)),
        rows=tuple(rows),
        legend=legend,
        label=f"{first.capitalize()}s by metrics",
    )


def scorecard_table(method: MethodResult, *, meaning: bool = True) -> Table:
    """Return every metric of one model, with its meaning if requested."""
    rows = []
    for key in (key for key in FACTS if key in method.keys):
        score, facts = method.score(key), target_facts(key, method.first.target)
        cells = [
            TableCell(facts.title),
            _number_cell(number(key, score.value), score.value),
            _number_cell(interval(key, score), score.low),
            TableCell(chance(score.p_value), key=score.p_value),
        ]
        rows.append((*cells, TableCell(facts.meaning)) if meaning else tuple(cells))
    heads = ("metric", "value", f"{100 * method.first.level:g}% interval", "by chance", "meaning")
    align = "lrrrw"
    n_columns = 5 if meaning else 4
    return Table.of(heads[:n_columns], rows, align=align[:n_columns], label="Scorecard")


def calibrated_table(report: Report) -> Table | None:
    """Return the scores before and after calibrators, if any were fitted."""
    scaled = [method for method in report.methods if method.calibrated]
    if not scaled:
        return None
    keys = [key for key in _AFTER if key in report.base.keys]
    several, gains = len(report.methods) > 1, report.gains()
    rows, notes = [], []
    for method in scaled:
        name = (TableCell(method.name, key=method.name),) if several else ()
        plain = (_score_cell(key, method.score(key), None) for key in keys)
        rows.append((*name, TableCell("none"), *plain))
        for one in method.calibrated:
            cells = (_score_cell(key, one.score(key), gains.get((method.name, one.name))) for key in keys)
            mark = " †" if one.warnings else ""
            rows.append(
                (
                    *name,
                    TableCell(one.name, detail=one.fitted, mark=mark, tone="worse" if mark else ""),
                    *cells,
                )
            )
            notes += [f"† Warning, {method.name} + {one.name}: {text}." for text in one.warnings]
    heads = (*(["method"] if several else []), "calibrator", *map(short, keys))
    align = "l" * (1 + several) + "r" * len(keys)
    return Table.of(heads, rows, align=align, notes=notes, label="After calibration", n_names=1 + several)


def slice_table(slices: Sequence[Slice], what: str, *, level: float, target: Target) -> Table:
    """Return some slices with what was claimed and what happened."""
    _, _, claimed, true, *_ = ("", "", "claimed", "right") if target.kind == "top" else slice_heads(target)
    rows = []
    for part in slices:
        ends = interval("confidence_gap", Score(part.gap, part.low, part.high))
        is_off = bool(slices_off([part], level=level))
        rows.append(
            (
                TableCell(part.name, key=part.name),
                _number_cell(count(part.n_samples), part.n_samples),
                _number_cell(percent(part.confidence), part.confidence),
                _number_cell(percent(part.accuracy), part.accuracy),
                TableCell(number("confidence_gap", part.gap), detail=ends, key=part.gap),
                TableCell(
                    "", mark=chance(part.p_value), tone="worse" if is_off else "tied", key=part.p_value
                ),
            )
        )
    return Table.of((what, "rows", claimed, true, "gap", "corrected p"), rows, label=f"By {what}")


def bin_table(curve: ReliabilityCurve, *, level: float, target: Target = TOP) -> Table:
    """Return the bins of a reliability diagram."""
    lows, highs = curve.intervals(level=level)
    names = axis_names(target)
    rows = [
        (
            f"{row['low']:.2f}–{row['high']:.2f}",
            count(row["weight"]),
            percent(row["confidence"]),
            percent(row["frequency"]),
            f"{100 * low:.0f} to {percent(high, 0)}",
        )
        for row, low, high in zip(curve.rows(), lows, highs, strict=True)
        if row["weight"]
    ]
    return Table.of((names.claimed, "rows", "claimed", names.right, "interval"), rows, label="Bins")


def changed_table(parts: Sequence[Part]) -> Table:
    """Return the bands of confidence and the groups whose calibration changed."""
    rows = [
        (
            TableCell(f"{part.column} {part.name}", key=number),
            _number_cell(count(part.n), part.n),
            _number_cell(percent(part.confidence), part.confidence),
            _number_cell(percent(part.accuracy), part.accuracy),
            _number_cell(f"{100 * part.gap:+.1f}", part.gap),
            _number_cell(f"{100 * part.gap_before:+.1f}", part.gap_before),
            _number_cell(chance(part.p_value), part.p_value),
        )
        for number, part in enumerate(parts)
    ]
    heads = ("where", "rows since", "claimed", "right", "gap (points)", "gap before", "by chance")
    return Table.of(heads, rows, caption="Corrected for the number of bands and groups.")


def threshold_table(found: Sequence[tuple[str, Sequence[Certificate]]]) -> Table:
    """Return which error limits can be promised, and from which threshold on.

    Args:
        found: Names of methods, and their certificates.
    """
    several = len(found) > 1
    rows = []
    for name, certificates in found:
        for one in certificates:
            limit = TableCell(percent(one.max_error or 0.0, 0), key=one.max_error)
            if one.certified and one.threshold is not None:
                cells = [
                    _number_cell(
                        "none" if one.threshold == 0 else threshold_text(one.threshold), one.threshold
                    ),
                    TableCell(
                        percent(one.coverage),
                        detail=f"{100 * one.coverage_low:.1f} to {100 * one.coverage_high:.1f}",
                        key=one.coverage,
                    ),
                    _number_cell(percent(one.observed_error or 0.0, 2), one.observed_error or 0.0),
                    _number_cell(count(one.n_accepted), one.n_accepted),
                    TableCell("", mark="certified", tone="better"),
                ]
            else:
                cells = [*(TableCell("–", key="") for _ in range(4)), TableCell(_shortfall(one))]
            rows.append((*((TableCell(name, key=name),) if several else ()), limit, *cells))
    heads = ("errors at most", "threshold", "accepted", "observed errors", "accepted rows", "guarantee")
    return Table.of(
        (*(["method"] if several else []), *heads),
        rows,
        align="l" * several + "rrrrrw",
        label="Thresholds",
        n_names=1 + several,
    )


def _shortfall(one: Certificate) -> str:
    """Return why nothing is certified, and how many rows might be enough."""
    short_of = one.shortfall
    if short_of is None:
        return "not certified"
    if one.n < short_of.fewest:
        return f"not certified: needs at least {short_of.fewest:,} rows"
    if short_of.n_needed is None:
        return "not certified: no threshold has so few errors"
    return f"not certified: about {short_of.about} rows might be enough"


def sets_table(sets: SetReport) -> Table:
    """Return prediction sets by their size."""
    rows = [
        (
            TableCell(row.name, key=float(row.name)),
            _number_cell(count(row.n), row.n),
            _number_cell(percent(row.n / sets.n), row.n / sets.n),
            TableCell(
                percent(row.coverage),
                detail=f"{100 * row.coverage_low:.1f} to {100 * row.coverage_high:.1f}",
                key=row.coverage,
            ),
        )
        for row in sets.by_size
    ]
    return Table.of(("classes in the set", "rows", "share", "contains the true class"), rows, label="Sets")


def advice_table(advice: Advice) -> Table:
    """Return the calibrators that were tried."""
    rows = []
    for option in advice.options:
        loss, gain = (
            _number_cell(f"{value:{sign}.4f}".replace("-", "−") if math.isfinite(value) else "–", value)
            for value, sign in ((option.log_loss, ""), (option.improvement, "+"))
        )
        rows.append(
            (
                TableCell(option.name, key=option.name),
                _number_cell(count(option.n_parameters), option.n_parameters),
                loss,
                gain,
                _number_cell(percent(option.ece, 2), option.ece),
                TableCell(option.note),
            )
        )
    heads = ("calibrator", "parameters", "log-loss", "gain", "ECE", "note")
    return Table.of(heads, rows, align="lrrrrw", label="Calibrators tried")


def sweep_table(sweep: Sweep) -> Table:
    """Return the settings that were tried."""
    facts = metric_facts(sweep.metric)
    rows: list[tuple[str | TableCell, ...]] = [
        (
            label,
            *(
                TableCell(number(facts.key, one.value), detail=interval(facts.key, one))
                for one in (tune, test)
            ),
            f"{chosen} of {sum(sweep.chosen)}",
        )
        for label, tune, test, chosen in zip(sweep.labels, sweep.tune, sweep.test, sweep.chosen, strict=True)
    ]
    heads = (sweep.parameters, f"{facts.short} on tune", f"{facts.short} on test", "seeds that chose it")
    return Table.of(heads, rows, label=f"Settings of {sweep.name}")


def severity_table(shifts: Sequence[ShiftScores], family: str) -> Table:
    """Return the scores under a corruption, by severity."""
    levels = sorted({level for one in shifts for level in one.curves[family]})
    rows = [
        (
            TableCell(one.name, key=one.name),
            TableCell(metric_facts(key).head),
            *(_shift_cell(key, one.curves[family].get(level, {}).get(key)) for level in levels),
        )
        for key in metrics_where(is_main=True)
        for one in shifts
    ]
    heads = ("method", "metric", *("clean" if level == 0 else f"severity {level}" for level in levels))
    return Table.of(heads, rows, align="ll" + "r" * len(levels), label=f"Scores under {family}", n_names=2)


def ood_table(shifts: Sequence[ShiftScores], name: str) -> Table:
    """Return how well test rows and out-of-distribution rows are separated."""
    rows = [
        (
            TableCell(one.name, key=one.name),
            TableCell(score),
            *(_shift_cell(key, numbers[key]) for key in DETECTION),
        )
        for one in shifts
        for score, numbers in one.ood.get(name, {}).items()
    ]
    heads = ("method", "score", *(facts.head for facts in DETECTION.values()))
    align = "ll" + "r" * len(DETECTION)
    return Table.of(heads, rows, align=align, label=f"Test rows against {name}", n_names=2)


def _shift_cell(key: str, score: Score | None) -> TableCell:
    if score is None:
        return TableCell("–", key="")
    facts = metric_facts(key)
    ends = f"{facts.number(score.low)} to {facts.number(score.high)}"
    return TableCell(facts.number(score.value), detail=ends, key=score.value)
