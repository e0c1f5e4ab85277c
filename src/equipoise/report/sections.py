"""The sections of the page, from verdict to provenance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from equipoise.evaluate.scorecard import Score, unknown_words
from equipoise.evaluate.sweep import Sweep
from equipoise.metrics.curve import ReliabilityCurve
from equipoise.metrics.facts import metric_facts
from equipoise.metrics.target import TOP, Target
from equipoise.report.charts import Series, line_chart, risk_series, scatter_chart, trend_chart
from equipoise.report.conclusion import conclusion_of
from equipoise.report.formula import formula_markup
from equipoise.report.markup import Markup, join, tag
from equipoise.report.numbers import interval, number, title
from equipoise.report.records import MethodCard, MethodResult, Report, RunResult
from equipoise.report.reliability_chart import bin_table, reliability_chart, words_of
from equipoise.report.remedies import advice_section, posthoc_section
from equipoise.report.tables import comparison_table, judgement_list, scorecard_table
from equipoise.report.under_shift import shift_section
from equipoise.report.worst import slices_section

__all__ = ["sections_of", "verdict_section"]

_TILES = ("accuracy", "ece", "confidence_gap", "nll", "brier", "correct_nll", "correct_brier")
#: After two tiles about the probability of the positive class.
_TILES_OF_BOTH = ("ece", "accuracy", "nll")


def verdict_section(report: Report) -> Markup:
    """Return the verdict in words, and for one model its main numbers."""
    conclusion = conclusion_of(report)
    parts = [
        tag("h2", conclusion.headline, id="verdict-title"),
        *(tag("p", sentence) for sentence in conclusion.sentences),
        tag("p", f"Without a calibrator, against {report.base.name}:", class_="lead")
        if conclusion.judgements and report.shared_calibrators
        else None,
        judgement_list(conclusion.judgements, of_networks=report.is_of_networks)
        if conclusion.judgements
        else None,
    ]
    section = tag("section", *parts, id="verdict", class_=conclusion.tone, aria_labelledby="verdict-title")
    return join(section, _tiles(report.methods[0]) if len(report.methods) == 1 else None)


def _tiles(method: MethodResult) -> Markup:
    event, target = method.first.event, method.first.target
    found = []
    if event is not None:
        found += [(title(key, event.target), key, event[key]) for key in ("ece", "confidence_gap")]
    for key in (key for key in (_TILES if event is None else _TILES_OF_BOTH) if key in method.keys):
        of = " of the predicted class" if event is not None and key == "ece" else ""
        found.append((title(key, target) + of, key, method.score(key)))
    tiles = [
        tag(
            "div",
            tag("dt", name),
            tag("dd", number(key, score.value), class_="value"),
            tag("dd", interval(key, score), class_="range"),
        )
        for name, key, score in found
    ]
    return tag("dl", *tiles, class_="tiles", aria_label="Main numbers with their intervals")


def reliability_section(report: Report) -> Markup:
    """Return a reliability diagram per method, and after its calibrators."""
    several = len(report.methods) > 1
    methods = _curves_over_time(report) if report.over_time else report.methods
    figures = [figure for method in methods for figure in _diagrams(method, several=several)]
    words = words_of(methods[0].first.target)
    key = tag(
        "ul",
        tag("li", tag("i", class_="k-came"), "came true"),
        tag("li", tag("i", class_="k-gap"), "gap to what was claimed"),
        tag("li", tag("i", class_="k-claimed"), f"mean {words.claimed}"),
        tag("li", tag("i", class_="k-right"), words.came),
        class_="key",
    )
    about = (
        f"Each bar gathers predictions of about the same {words.claimed}; its height is how often they were "
        f"{words.right}. "
        "On the dashed diagonal claims come true. Bins without rows stay empty; the grey bars count rows."
    )
    return join(
        tag("p", about, class_="lead"),
        key,
        tag("div", *figures, class_="gallery" if len(figures) > 1 else "solo"),
    )


def _diagrams(method: MethodResult, *, several: bool) -> list[Markup]:
    """Return the diagram of a method, and those after its calibrators."""
    level, titled = method.first.level, several or bool(method.calibrated)
    before = method.name if several or not method.calibrated else "before"
    target, event = method.first.target, method.first.event
    if event is not None:
        # Both views: the event first, since that is what the rare class is about.
        drawn = [
            _diagram(
                event.target.label, event.curve, event["ece"], level=level, titled=True, target=event.target
            )
        ]
        before = f"{before}, predicted class" if several or method.calibrated else "predicted class"
        drawn.append(_diagram(before, method.curve(), method.score("ece"), level=level, titled=True))
    else:
        drawn = [
            _diagram(before, method.curve(), method.score("ece"), level=level, titled=titled, target=target)
        ]
    for one in method.calibrated:
        name = f"{method.name} after {one.name}" if several else f"after {one.name}"
        drawn.append(_diagram(name, one.curve(), one.score("ece"), level=level, titled=True, target=target))
    return drawn


def _diagram(
    name: str, curve: ReliabilityCurve, ece: Score, *, level: float, titled: bool, target: Target = TOP
) -> Markup:
    shown = f"  {target.titled('ECE')} {number('ece', ece.value)}"
    caption = tag("figcaption", tag("bdi", name), tag("span", shown))
    table = tag(
        "details",
        tag("summary", "Bins as a table"),
        bin_table(curve, level=level, target=target),
        data_print="no",
        open=not titled,
    )
    drawn = reliability_chart(curve, level=level, name=name, target=target)
    return tag("figure", caption if titled else None, drawn, table)


def table_section(report: Report) -> Markup:
    """Return the table: methods by metrics for a comparison, metrics with intervals for one model."""
    if len(report.methods) == 1:
        about = (
            "Every number with its interval. For errors, the chance says how often a calibrated model with the same "
            "confidences would score as high on as many rows."
        )
        only = report.methods[0]
        unknown = (tag("p", words, class_="lead") for words in unknown_words(only.first))
        return join(tag("p", about, class_="lead"), scorecard_table(only), *unknown)
    if report.over_time:
        about = (
            f"One row per state, with {100 * report.base.first.level:g}% intervals. Choose a heading to sort."
        )
        return join(tag("p", about, class_="lead"), comparison_table(report))
    subject = "this network with that of " if report.is_of_networks else "with "
    about = (
        f"Values with {100 * report.base.first.level:g}% intervals. The sign compares {subject}"
        f"{report.base.name} on the same rows, corrected for the number of methods; a tie is a difference that is not "
        "significant. The best value of a column is bold. Choose a heading to sort."
    )
    return join(tag("p", about, class_="lead"), comparison_table(report))


def _curves_over_time(report: Report) -> tuple[MethodResult, ...]:
    """Return what is worth a diagram of its own over time: the states before and since a change, or all together."""
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


def drift_section(report: Report) -> Markup | None:
    """Return calibration, log-loss and accuracy over time, with their intervals, where a change is marked."""
    if not report.over_time or report.trend is None:
        return None
    trend = report.trend
    cards = [method.first for method in report.methods]
    figures = []
    for change in trend.changes:
        label = title(change.metric, trend.card.target)
        scores = [card[change.metric] for card in cards]
        caption = tag("figcaption", f"{label[0].upper()}{label[1:]}")
        figures.append(tag("figure", caption, trend_chart(trend, change, scores, label=label)))
    about = (
        "In the order in which the files were named. Each point is one state with its interval; a shaded run of states "
        "differs from the others by more than chance explains, and dashed lines are the values in and outside of it."
    )
    return join(tag("p", about, class_="lead"), tag("div", *figures, class_="pair"))


def scatter_section(report: Report) -> Markup | None:
    """Return accuracy against ECE, if there is more than one method."""
    if len(report.methods) == 1 or report.over_time:
        return None
    about = "Above and to the left is better. The crosses are intervals."
    return join(tag("p", about, class_="lead"), tag("figure", scatter_chart(report.methods)))


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


def sweeps_section(report: Report) -> Markup | None:
    """Return what each setting gave where a setting was chosen."""
    if not report.sweeps:
        return None
    about = (
        "Settings were chosen on tune; test took no part, and is shown to tell what the choice was worth. "
        f"Values with {100 * report.base.first.level:g} % intervals."
    )
    return join(tag("p", about, class_="lead"), *map(_sweep, report.sweeps))


def _sweep(sweep: Sweep) -> Markup:
    facts, places = metric_facts(sweep.metric), sweep.values or tuple(range(1, len(sweep.settings) + 1))
    series: list[Series] = [
        (name, [places[k] for k in sweep.ascending], [scores[k].value for k in sweep.ascending])
        for name, scores in (("tune", sweep.tune), ("test", sweep.test))
    ]
    chart = line_chart(
        series,
        x_label=sweep.parameters if sweep.values else "setting",
        y_label=facts.head,
        percent_up=facts.percent,
        label=f"{facts.title} of {sweep.name} on tune and test, by setting.",
    )
    rows = [
        tag(
            "tr",
            tag("th", label, scope="row"),
            *(
                tag("td", f"{number(facts.key, one.value)} ({interval(facts.key, one)})")
                for one in (tune, test)
            ),
            tag("td", f"{chosen} of {sum(sweep.chosen)}"),
        )
        for label, tune, test, chosen in zip(sweep.labels, sweep.tune, sweep.test, sweep.chosen, strict=True)
    ]
    heads = (sweep.parameters, f"{facts.short} on tune", f"{facts.short} on test", "seeds that chose it")
    head = tag("thead", tag("tr", *(tag("th", text, scope="col") for text in heads)))
    table = tag(
        "div",
        tag("table", head, tag("tbody", *rows)),
        class_="wide",
        tabindex="0",
        role="region",
        aria_label=f"Settings of {sweep.name}",
    )
    return join(tag("h3", tag("bdi", sweep.name)), tag("p", sweep.words), tag("figure", chart), table)


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
_AFTER = (
    ("drift", "Over time", drift_section),
    ("advice", "What to do", advice_section),
    ("tradeoff", "Accuracy against calibration", scatter_section),
    ("posthoc", "What calibration afterwards adds", posthoc_section),
    ("slices", "Where it is off", slices_section),
    ("selective", "Using only the surest predictions", risk_section),
    ("shift", "Away from the test set", shift_section),
    ("choices", "Settings that were chosen", sweeps_section),
    ("training", "While training", training_section),
)
_NUMBERS = ("numbers", "The numbers", table_section)
_DIAGRAM = ("reliability", "Claims against outcomes", reliability_section)
_LAST = (
    ("methods", "The methods", cards_section),
    ("provenance", "Where the numbers come from", provenance_section),
)


def sections_of(report: Report) -> list[tuple[str, str, Markup]]:
    """Return anchor, heading and content of the sections after the verdict, those without content left out.

    A comparison begins with its table, a single model with its diagram, a trend with its figures.
    """
    several = len(report.methods) > 1
    order = [_NUMBERS, _DIAGRAM, *_AFTER] if several else [_DIAGRAM, *_AFTER, _NUMBERS]
    if several and report.over_time:
        drift, *after = _AFTER
        order = [drift, _DIAGRAM, _NUMBERS, *after]
    made = [(anchor, heading, build(report)) for anchor, heading, build in (*order, *_LAST)]
    return [(anchor, heading, content) for anchor, heading, content in made if content]
