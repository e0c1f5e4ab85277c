"""A report as Markdown, for a pull request or a README."""

from __future__ import annotations

from collections.abc import Sequence

from equipoise.core.escaping import markdown_text
from equipoise.evaluate.slices import slices_off
from equipoise.metrics.facts import FACTS, best_of, columns, metrics_where
from equipoise.report.conclusion import conclusion_of, kind_of
from equipoise.report.markup import clean
from equipoise.report.numbers import chance, count, interval, number, percent, short, title
from equipoise.report.records import MethodResult, Report

__all__ = ["to_markdown"]

_SIGNS = {"better": " ▲", "worse": " ▼", "tied": " =", None: ""}


def to_markdown(report: Report) -> str:
    """Return a report as Markdown: verdict, tables, worst slices, provenance.

    Args:
        report: What to tell.

    Returns:
        The text. Whatever a user supplied is escaped.

    Example:
        >>> from equipoise import Predictions
        >>> from equipoise.report import report_of
        >>> print(to_markdown(report_of(Predictions(probs=[0.9, 0.8, 0.3], labels=[1, 0, 0]))).splitlines()[0])
        # Calibration report
    """
    conclusion = conclusion_of(report)
    lines = [
        f"# {_text(report.title)}",
        "",
        f"**{_text(conclusion.headline)}.** {_text(' '.join(conclusion.sentences))}",
        "",
    ]
    lines += [f"- **{_text(one.name)}** ({one.kind}): {_text(one.words)}" for one in conclusion.judgements]
    if conclusion.judgements:
        lines.append("")
    lines += _comparison(report) if len(report.methods) > 1 else _scorecard(report.methods[0])
    lines += _calibrated(report)
    lines += _slices(report)
    lines += ["## Where the numbers come from", ""]
    lines += [f"- {_text(name)}: {_text(value)}" for name, value in report.provenance.facts]
    lines += [f"- Note: {_text(note)}" for note in (*report.notes, *(sweep.words for sweep in report.sweeps))]
    return "\n".join(lines) + "\n"


def _text(words: object) -> str:
    """Return words as they are: one line, no Markdown, no HTML."""
    return markdown_text(clean(words))


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    marks = [":---", *("---:" for _ in head[1:])]
    return [f"| {' | '.join(row)} |" for row in (head, marks, *rows)] + [""]


def _comparison(report: Report) -> list[str]:
    keys = [key for key in columns() if all(key in method.keys for method in report.methods)]
    best = {key: best_of(key, [method.score(key).value for method in report.methods]) for key in keys}
    rows, versus = [], report.versus()
    for method in report.methods:
        cells = [_text(method.name)]
        for key in keys:
            score = method.score(key)
            shown = number(key, score.value)
            shown = f"**{shown}**" if score.value == best[key] and not report.over_time else shown
            cells.append(f"{shown} ({interval(key, score)}){_SIGNS[kind_of(versus.get(method.name), key)]}")
        rows.append(cells)
    base = _text(report.base.name)
    signs = f"▲ better, ▼ worse than {base} on the same rows; = no significant difference."
    if report.is_of_networks:
        signs = f"▲, ▼: this network scores higher or lower than that of {base}; = no significant difference."
    heads = [short(key, report.base.first.target) for key in keys]
    if report.over_time:
        return _table(["state", *heads], rows)
    return [*_table(["method", *heads], rows), signs, ""]


def _scorecard(method: MethodResult) -> list[str]:
    scores = [(key, method.score(key)) for key in FACTS if key in method.keys]
    rows = [
        [title(key, method.first.target), number(key, one.value), interval(key, one), chance(one.p_value)]
        for key, one in scores
    ]
    return _table(["metric", "value", f"{100 * method.first.level:g} % interval", "by chance"], rows)


def _calibrated(report: Report) -> list[str]:
    keys = [key for key in metrics_where(is_main=True) if key in report.base.keys]
    gains = report.gains()
    rows = [
        [_text(method.name), _text(f"{one.name} {one.fitted}".strip())]
        + [
            number(key, one.score(key).value) + _SIGNS[kind_of(gains.get((method.name, one.name)), key)]
            for key in keys
        ]
        for method in report.methods
        for one in method.calibrated
    ]
    if not rows:
        return []
    warned = [
        f"- {_text(f'Warning, {method.name} + {one.name}: {text}.')}"
        for method in report.methods
        for one in method.calibrated
        for text in one.warnings
    ]
    return [
        "## After calibration",
        "",
        *_table(["method", "calibrator", *map(short, keys)], rows),
        *(([*warned, ""]) if warned else []),
    ]


def _slices(report: Report) -> list[str]:
    rows = [
        [_text(method.name), _text(f"{what} {part.name}"), count(part.n_samples), percent(part.confidence),
         percent(part.accuracy), chance(part.p_value)]
        for method in report.methods
        for what, slices in (("class", method.classes), *method.groups.items())
        for part in slices_off(slices, level=method.first.level)[:5]
    ]  # fmt: skip
    if not rows:
        return []
    head = ["state" if report.over_time else "method", "slice", "rows", "claimed", "came true", "corrected p"]
    return ["## Where it is off", "", *_table(head, rows)]
