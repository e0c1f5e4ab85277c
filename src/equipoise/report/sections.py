"""The sections of the page, from verdict to provenance."""

from __future__ import annotations

from collections.abc import Sequence

from equipoise.evaluate.scorecard import Score
from equipoise.evaluate.slices import Slice
from equipoise.report.charts import Series, line_chart, risk_series, scatter_chart
from equipoise.report.markup import Markup, join, tag
from equipoise.report.mathml import formula_markup
from equipoise.report.numbers import chance, count, interval, number, percent, title
from equipoise.report.records import MethodCard, MethodResult, Report
from equipoise.report.reliability_chart import bin_table, reliability_chart
from equipoise.report.tables import Cell, comparison_table, score_cell, scorecard_table, sortable
from equipoise.report.verdict import verdict_of

__all__ = ["SECTIONS"]

_TILES = ("accuracy", "ece", "confidence_gap", "nll", "brier")
_WORST = 10
_SURE = 0.05


def verdict_section(report: Report) -> Markup:
    """Return the verdict in words, and for one model its main numbers."""
    verdict = verdict_of(report)
    judged = [
        tag(
            "li",
            tag("b", tag("bdi", one.name)),
            tag("span", _SIGNS[one.kind], class_=f"sign {one.kind}"),
            " ",
            one.words,
        )
        for one in verdict.judgements
    ]
    parts = [
        tag("h2", verdict.headline, id="verdict-title"),
        *(tag("p", sentence) for sentence in verdict.sentences),
        tag("ul", *judged, class_="judgements") if judged else None,
    ]
    section = tag("section", *parts, id="verdict", class_=verdict.tone, aria_labelledby="verdict-title")
    return join(section, _tiles(report.methods[0]) if len(report.methods) == 1 else None)


_SIGNS = {"better": "▲ better", "tied": "= tie", "worse": "▼ worse", "unknown": "not compared"}


def _tiles(method: MethodResult) -> Markup:
    tiles = []
    for key in (key for key in _TILES if key in method.keys):
        score = method.score(key)
        tiles.append(
            tag(
                "div",
                tag("dt", title(key)),
                tag("dd", number(key, score.value), class_="value"),
                tag("dd", interval(key, score), class_="range"),
            )
        )
    return tag("dl", *tiles, class_="tiles", aria_label="Main numbers with their intervals")


def reliability_section(report: Report) -> Markup:
    """Return a reliability diagram per method, and after its calibrators."""
    figures = [_diagram(method) for method in report.methods]
    key = tag(
        "ul",
        tag("li", tag("i", class_="k-came"), "came true"),
        tag("li", tag("i", class_="k-gap"), "gap to what was claimed"),
        tag("li", tag("i", class_="k-claimed"), "mean confidence"),
        tag("li", tag("i", class_="k-right"), "accuracy"),
        class_="key",
    )
    about = (
        "Each bar gathers predictions of about the same confidence; its height is how often they were right. "
        "On the dashed diagonal claims come true. Bins without rows stay empty; the grey bars count rows."
    )
    return join(tag("p", about, class_="lead"), key, tag("div", *figures, class_="gallery"))


def _diagram(method: MethodResult) -> Markup:
    name, curve, level = method.name, method.curve(), method.first.level
    return tag(
        "figure",
        tag("figcaption", tag("bdi", name), tag("span", f"  ECE {number('ece', method.score('ece').value)}")),
        reliability_chart(curve, level=level, name=name),
        tag("details", tag("summary", "Bins as a table"), bin_table(curve, level=level), data_print="no"),
    )


def table_section(report: Report) -> Markup:
    """Return the table: methods by metrics for a comparison, metrics with intervals for one model."""
    if len(report.methods) == 1:
        return join(scorecard_table(report.methods[0]), _missing(report.methods[0]))
    about = (
        f"Values with {100 * report.base.first.level:g} % intervals. The sign compares with "
        f"{report.base.name} on the same rows, by a paired test; a difference that chance explains is a tie. "
        "The best value of a column is bold. Choose a heading to sort."
    )
    return join(tag("p", about, class_="lead"), comparison_table(report))


def _missing(method: MethodResult) -> Markup | None:
    missing = method.first.missing
    if not missing:
        return None
    names = ", ".join(title(key) for key in missing)
    return tag("p", f"Not known: {names} ({next(iter(missing.values()))}).", class_="lead")


def scatter_section(report: Report) -> Markup | None:
    """Return accuracy against ECE, if there is more than one method."""
    if len(report.methods) == 1:
        return None
    about = "Above and to the left is better. The crosses are intervals."
    return join(tag("p", about, class_="lead"), tag("figure", scatter_chart(report.methods)))


def posthoc_section(report: Report) -> Markup | None:
    """Return what calibrators fitted afterwards add, if any were."""
    if not any(method.calibrated for method in report.methods):
        return None
    keys = [key for key in ("accuracy", "ece", "smece", "nll", "brier") if key in report.base.keys]
    rows: list[tuple[Sequence[Cell], str]] = []
    for method in report.methods:
        rows.append(
            ([_name(method.name), Cell("none"), *(_score_cell(key, method.score(key)) for key in keys)], "")
        )
        for one in method.calibrated:
            what = f"{one.name}, {one.words}" if one.words else one.name
            rows.append(
                (
                    [
                        _name(method.name),
                        Cell(tag("bdi", what), one.name),
                        *(score_cell(key, one.score(key), one.versus) for key in keys),
                    ],
                    "",
                )
            )
    about = "Fitted on held-out rows and judged on the others. The sign compares with no calibrator, on the same rows."
    return join(
        tag("p", about, class_="lead"),
        sortable(
            ("method", "calibrator", *(title(key) for key in keys)),
            rows,
            caption="After calibration",
            words=(1,),
        ),
    )


def _name(name: str) -> Cell:
    return Cell(tag("bdi", name), name)


def _score_cell(key: str, score: Score) -> Cell:
    return score_cell(key, score, None)


def advice_section(report: Report) -> Markup | None:
    """Return what the advisor recommends, if it was asked."""
    found = [method for method in report.methods if method.advice is not None]
    if not found:
        return None
    parts = []
    for method in found:
        advice = method.advice
        assert advice is not None
        head = tag("h3", tag("bdi", method.name)) if len(report.methods) > 1 else None
        options = [
            (
                [
                    _name(option.name),
                    Cell(count(option.n_parameters), option.n_parameters),
                    Cell(
                        f"{option.log_loss:.4f}" if option.log_loss == option.log_loss else "–",
                        option.log_loss,
                    ),
                    Cell(
                        f"{option.improvement:+.4f}" if option.improvement == option.improvement else "–",
                        option.improvement,
                    ),
                    Cell(percent(option.ece, 2), option.ece),
                    Cell(option.note),
                ],
                "",
            )
            for option in advice.options
        ]
        head_row = ("calibrator", "numbers learnt", "log-loss", "gain", "ECE", "note")
        parts.append(
            join(
                tag(
                    "div",
                    head,
                    tag("p", advice.recommendation),
                    tag("pre", tag("code", advice.code)) if advice.code else None,
                    class_="advice",
                ),
                sortable(head_row, options, caption="Cross-validated on held-out rows", words=(5,))
                if options
                else None,
            )
        )
    return join(*parts)


def risk_section(report: Report) -> Markup | None:
    """Return error rate by coverage."""
    series = [one for one in map(risk_series, report.methods) if one is not None]
    if not series:
        return None
    about = "If only the surest predictions are used and the rest are passed to a person, how many mistakes remain?"
    chart = line_chart(
        series,
        x_label="rows kept (%)",
        y_label="errors (%)",
        percent_up=True,
        label="Error rate among the rows kept, by the share of rows kept, most confident first.",
    )
    return join(tag("p", about, class_="lead"), tag("figure", chart))


def training_section(report: Report) -> Markup | None:
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
                epochs = [row.get("epoch", place) + 1 for place, row in enumerate(history)]
                series.append((method.name, epochs, [row.get(column, float("nan")) for row in history]))
        if series:
            chart = line_chart(
                series, x_label="epoch", y_label=label, percent_up=in_percent, label=f"{label} over epochs."
            )
            figures.append(tag("figure", chart))
    if not figures:
        return None
    about = "Measured on the split that training may see. The first seed of each method."
    return join(tag("p", about, class_="lead"), tag("div", *figures, class_="pair"))


def slices_section(report: Report) -> Markup | None:
    """Return the classes and groups that are off, worst first."""
    parts = []
    for method in report.methods:
        for what, slices in (("predicted class", method.classes), *method.groups.items()):
            if len(slices) > 1:
                parts.append(_slices(method.name if len(report.methods) > 1 else "", what, slices))
    if not parts:
        return None
    about = (
        "Rows that are judged together must be believable together. p-values are corrected for the number of slices "
        "looked at; a slice that chance explains is not a finding."
    )
    return join(tag("p", about, class_="lead"), *parts)


def _slices(name: str, what: str, slices: Sequence[Slice]) -> Markup:
    surprising = [part for part in slices if part.p_value <= _SURE]
    shown = slices[:_WORST]
    rows = [
        (
            [
                _name(part.name),
                Cell(count(part.n_samples), part.n_samples),
                Cell(percent(part.confidence), part.confidence),
                Cell(percent(part.accuracy), part.accuracy),
                Cell(
                    join(
                        number("confidence_gap", part.gap),
                        tag(
                            "span",
                            interval("confidence_gap", Score(part.gap, part.low, part.high)),
                            class_="range",
                        ),
                    ),
                    part.gap,
                ),
                Cell(
                    tag("span", chance(part.p_value), class_="worse" if part.p_value <= _SURE else "tied"),
                    part.p_value,
                ),
            ],
            "",
        )
        for part in shown
    ]
    found = f"{len(surprising)} of {len(slices)} are off by more than chance"
    heading = join(tag("bdi", name), " · " if name else None, "by ", tag("bdi", what), ": ", found)
    table = sortable(
        (what, "rows", "claimed", "right", "gap", "corrected p"),
        rows,
        caption=f"Worst {len(shown)} by {what}",
    )
    return join(tag("h3", heading), table)


def cards_section(report: Report) -> Markup | None:
    """Return what the methods are."""
    cards = [_card(method.name, method.card) for method in report.methods if method.card is not None]
    return tag("div", *cards, class_="cards") if cards else None


def _card(name: str, card: MethodCard) -> Markup:
    settings = ", ".join(f"{key} = {value}" for key, value in card.parameters.items())
    return tag(
        "article",
        tag("h3", card.title, " ", tag("code", name)),
        tag("p", card.summary) if card.summary else None,
        tag("div", formula_markup(card.formula), class_="formula") if card.formula else None,
        tag("p", tag("b", "Parameters: "), settings) if settings else None,
        tag("p", tag("b", "Use when: "), card.use_when) if card.use_when else None,
        tag("p", tag("b", "Avoid when: "), card.avoid_when) if card.avoid_when else None,
        tag("p", card.paper, class_="lead") if card.paper else None,
        tag("span", card.fidelity, class_="tag") if card.fidelity else None,
        class_="card",
    )


def provenance_section(report: Report) -> Markup:
    """Return where the numbers come from, and how to get them again."""
    facts = [join(tag("dt", tag("bdi", name)), tag("dd", value)) for name, value in report.provenance.facts]
    notes = [tag("p", f"Note: {note}") for note in report.notes]
    command = report.provenance.command
    again = (
        join(tag("p", "To make this report again:"), tag("pre", tag("code", command))) if command else None
    )
    return join(*notes, tag("dl", *facts, class_="facts") if facts else None, again)


#: Anchor, heading and content of every section after the verdict; those without content are left out.
SECTIONS = (
    ("numbers", "The numbers", table_section),
    ("reliability", "Claims against outcomes", reliability_section),
    ("advice", "What to do", advice_section),
    ("tradeoff", "Accuracy against calibration", scatter_section),
    ("posthoc", "What calibration afterwards adds", posthoc_section),
    ("slices", "Where it is off", slices_section),
    ("selective", "Using only the surest predictions", risk_section),
    ("training", "While training", training_section),
    ("methods", "The methods", cards_section),
    ("provenance", "Where the numbers come from", provenance_section),
)
