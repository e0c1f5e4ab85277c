"""A report as Markdown, for a pull request or a README."""

from __future__ import annotations

from dataclasses import replace

from equipoise.core.escaping import markdown_text, without_controls
from equipoise.core.tables import Table, TableCell
from equipoise.evaluate.slices import slices_off
from equipoise.report.conclusion import conclusion_of
from equipoise.report.numbers import chance, count, percent
from equipoise.report.records import Report
from equipoise.report.result_tables import (
    calibrated_table,
    comparison_table,
    scorecard_table,
    threshold_table,
)

__all__ = ["to_markdown"]

_WORST = 5
#: Signs of comparisons where space is scarce.
_SHORT = {"better": "▲", "worse": "▼", "tied": "="}


def to_markdown(report: Report) -> str:
    """Return a report as Markdown: verdict, tables, worst slices, provenance.

    Args:
        report: The contents.

    Returns:
        The text. Texts of the user are escaped.

    Example:
        >>> from equipoise import Predictions
        >>> from equipoise.report import report_of
        >>> print(to_markdown(report_of(Predictions(probs=[0.9, 0.8, 0.3], labels=[1, 0, 0]))).splitlines()[0])
        # Calibration report
    """
    conclusion = conclusion_of(report)
    parts = [
        f"# {_text(report.title)}",
        f"**{_text(conclusion.headline)}.** {_text(' '.join(conclusion.sentences))}",
        "\n".join(
            f"- **{_text(one.name)}** ({one.kind}): {_text(one.words)}" for one in conclusion.judgments
        ),
        _table(comparison_table(report))
        if len(report.methods) > 1
        else _table(scorecard_table(report.methods[0], meaning=False)),
    ]
    if report.search:
        parts.append("## How it was found")
        parts += [_text(part) if isinstance(part, str) else _table(part) for part in report.search]
    calibrated = calibrated_table(report)
    if calibrated is not None:
        parts += ["## After calibration", _table(calibrated)]
    certified = [(one.name, one.details.certificates) for one in report.methods if one.details is not None]
    checked = report.decision
    if checked is not None or any(certificates for _, certificates in certified):
        parts.append("## If you act on it")
    if checked is not None:
        lines = [*checked.text.splitlines(), *checked.notes]
        parts += [f"**{'PASS' if checked.kept else 'FAIL'}** {_text(lines[0])}", *map(_text, lines[1:])]
    if any(certificates for _, certificates in certified):
        parts.append(_table(threshold_table(certified)))
    parts += _slices(report)
    facts = [f"- {_text(name)}: {_text(value)}" for name, value in report.provenance.facts]
    facts += [f"- Note: {_text(note)}" for note in (*report.notes, *(sweep.words for sweep in report.sweeps))]
    parts += ["## Where the numbers come from", "\n".join(facts)]
    return "\n\n".join(filter(None, parts)) + "\n"


def _text(words: object) -> str:
    """Return words as they are: one line, no Markdown, no HTML."""
    return markdown_text(without_controls(words))


def _table(table: Table) -> str:
    rows = tuple(tuple(_cell(cell) for cell in row) for row in table.rows)
    return replace(table, rows=rows).to_markdown()


def _cell(cell: TableCell) -> TableCell:
    return replace(
        cell, text=without_controls(cell.text), mark=_SHORT.get(cell.tone, "") if cell.text else cell.mark
    )


def _slices(report: Report) -> list[str]:
    rows = [
        (
            without_controls(method.name),
            without_controls(f"{what} {part.name}"),
            count(part.n_samples),
            percent(part.confidence),
            percent(part.accuracy),
            chance(part.p_value),
        )
        for method in report.methods
        for what, slices in (("class", method.classes), *method.groups.items())
        for part in slices_off(slices, level=method.first.level)[:_WORST]
    ]
    if not rows:
        return []
    heads = (
        "state" if report.over_time else "method",
        "slice",
        "rows",
        "claimed",
        "came true",
        "corrected p",
    )
    return ["## Where it is off", Table.of(heads, rows, align="llrrrr").to_markdown()]
