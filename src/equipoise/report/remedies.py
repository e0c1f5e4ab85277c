"""What to do about it: calibrators fitted afterwards, and the advisor's recommendation."""

from __future__ import annotations

import math
from collections.abc import Sequence

from equipoise.report.conclusion import conclusion_of, judged_words, judgements_of
from equipoise.report.markup import Markup, join, tag
from equipoise.report.numbers import count, percent, short, typeset
from equipoise.report.records import Advice, Option, Report
from equipoise.report.tables import PageCell, judgement_list, name_cell, score_cell, sortable

__all__ = ["advice_section", "posthoc_section"]


def posthoc_section(report: Report) -> Markup | None:
    """Return what calibrators fitted afterwards add, if any were."""
    scaled = [method for method in report.methods if method.calibrated]
    if not scaled:
        return None
    keys = [
        key
        for key in ("accuracy", "ece", "smece", "nll", "brier", "correct_nll", "correct_brier")
        if key in report.base.keys
    ]
    several = len(report.methods) > 1
    gains = report.gains()
    rows: list[tuple[Sequence[PageCell], str]] = []
    for method in scaled:
        plain = [score_cell(key, method.score(key), None) for key in keys]
        rows.append(([*_method(method.name, several), PageCell("none"), *plain], ""))
        for one in method.calibrated:
            what = join(
                tag("bdi", one.name),
                tag("span", one.fitted, class_="fitted") if one.fitted else None,
                *(tag("span", f"Warning: {text}.", class_="fitted warning") for text in one.warnings),
            )
            after = [score_cell(key, one.score(key), gains.get((method.name, one.name))) for key in keys]
            rows.append(([*_method(method.name, several), PageCell(what, one.name), *after], ""))
    about = (
        "Fitted on held-out rows, judged on others. The sign compares with no calibrator, on the same rows."
    )
    head = (*(["method"] if several else []), "calibrator", *map(short, keys))
    words = (1,) if several else ()
    table = sortable(head, rows, caption="After calibration", words=words)
    return join(tag("p", about, class_="lead"), table, *_contests(report))


def _contests(report: Report) -> list[Markup]:
    """Return how the methods stand against the baseline after each calibrator that all of them have."""
    found = []
    for name in report.shared_calibrators if report.others else ():
        heading = tag("h3", "After ", tag("bdi", name), ", against ", tag("bdi", report.base.name))
        found += [heading, judgement_list(judgements_of(report, name), of_networks=report.is_of_networks)]
    return found


def _method(name: str, several: bool) -> list[PageCell]:
    return [name_cell(name)] if several else []


def advice_section(report: Report) -> Markup | None:
    """Return what the advisor recommends, if it was asked."""
    several = len(report.methods) > 1
    parts = [
        _advice(method.name if several else None, method.advice, judged_words(report, method))
        for method in report.methods
        if method.advice is not None
    ]
    if parts:
        return join(*parts)
    off = not several and conclusion_of(report).tone != "good"
    return _hint(report.hint) if off and report.hint else None


def _hint(command: str) -> Markup:
    """Return how to get advice: it needs rows that are not judged here."""
    return tag(
        "div",
        tag(
            "p",
            "A calibrator fitted afterwards may correct this without touching the network. It must be fitted on rows "
            "that are not judged here; with such rows the advisor chooses one, and the report shows what it adds:",
        ),
        tag("pre", tag("code", command)),
        class_="advice",
    )


def _advice(name: str | None, advice: Advice, judged: str) -> Markup:
    said = tag(
        "div",
        tag("h3", tag("bdi", name)) if name is not None else None,
        tag("p", typeset(advice.recommendation)),
        tag("p", judged) if judged else None,
        tag("pre", tag("code", advice.code)) if advice.code else None,
        class_="advice",
    )
    if not advice.options:
        return said
    head = ("calibrator", "numbers learnt", "log-loss", "gain", "ECE", "note")
    rows = [(_option(option), "") for option in advice.options]
    caption = "Cross-validated on held-out rows"
    table = sortable(head, rows, caption=caption, words=(5,))
    if name is None:
        return join(said, table)
    return join(said, tag("details", tag("summary", caption), table, data_print="no"))


def _option(option: Option) -> list[PageCell]:
    loss, gain = (
        PageCell(f"{value:{sign}.4f}".replace("-", "−") if math.isfinite(value) else "–", value)
        for value, sign in ((option.log_loss, ""), (option.improvement, "+"))
    )
    learnt = PageCell(count(option.n_parameters), option.n_parameters)
    return [
        name_cell(option.name),
        learnt,
        loss,
        gain,
        PageCell(percent(option.ece, 2), option.ece),
        PageCell(option.note),
    ]
