"""The conclusion of a report: whether models are calibrated, which one to use, and what to do next."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from equipoise.evaluate.comparison import PairedDifferences
from equipoise.evaluate.differences import Difference
from equipoise.evaluate.scorecard import Score
from equipoise.evaluate.trend import Trend
from equipoise.evaluate.verdict import both_words, verdict_of_card, views_of_card
from equipoise.metrics.facts import metric_facts
from equipoise.report.numbers import chance, number, points, typeset
from equipoise.report.records import AfterCalibrator, MethodResult, Report

__all__ = ["Conclusion", "Judgment", "conclusion_of", "effect_sentence", "judgments_of", "kind_of"]

#: An ECE up to the first is small, up to the second noticeable, above it large.
_SMALL, _NOTICEABLE = 0.02, 0.05

Kind = Literal["better", "tied", "worse", "unknown"]
Effect = Literal["helps", "hurts", "unclear"]


@dataclass(frozen=True)
class Judgment:
    """A method against the baseline.

    Attributes:
        name: The method.
        kind: ``"better"``, ``"tied"``, ``"worse"`` or ``"unknown"``, by ECE.
        words: Why, in one sentence.
    """

    name: str
    kind: Kind
    words: str


@dataclass(frozen=True)
class Conclusion:
    """The first part of a report.

    Attributes:
        tone: ``"good"``, ``"bad"`` or ``"mixed"``.
        headline: A few words.
        sentences: Their meaning, how good the best is, and what to do.
        judgments: One per method that was compared, before any calibrator.
    """

    tone: str
    headline: str
    sentences: tuple[str, ...]
    judgments: tuple[Judgment, ...] = ()


def conclusion_of(report: Report) -> Conclusion:
    """Return the conclusion of a report: on one model, or on several against a baseline."""
    if report.trend is not None:
        return _over_time(report.trend)
    return _on_one(report) if len(report.methods) == 1 else _on_several(report)


def _over_time(trend: Trend) -> Conclusion:
    """Return whether a model changed, and how good it is over all states."""
    whole = verdict_of_card(trend.card)
    sentences = [*trend.sentences, f"Over all states: {whole.headline}. {whole.claims}"]
    tone = "bad" if trend.is_worse else "good" if whole.is_calibrated and not trend.found else "mixed"
    return Conclusion(tone, typeset(trend.headline), tuple(map(typeset, sentences)))


def _on_one(report: Report) -> Conclusion:
    method = report.methods[0]
    verdict, others, why = method.verdict(), [], ""
    if len(method.runs) == 1 and method.first.event is not None:
        verdict, top = views_of_card(method.first)
        others, why = [f"{top.headline}.", *top.sentences], both_words(method.first)
    sentences = [*verdict.sentences, *others, why, *_after(report, method)]
    tone = "good" if verdict.is_calibrated and method.verdict().is_calibrated else "bad"
    return Conclusion(tone, typeset(verdict.headline), tuple(map(typeset, filter(None, sentences))))


def _after(report: Report, method: MethodResult) -> list[str]:
    """Return the effect of the best calibrator, if any were tried, on rows that it was not fitted on."""
    if not method.calibrated:
        return []
    key = _main_metric(report)
    best = _best(key, {one.name: one.score(key).value for one in method.calibrated})
    one = report.after(method, best)
    return [
        f"After {best} its ECE is {number('ece', one.score('ece').value)}.",
        effect_sentence(report, method, best),
        *_warnings(method, one),
    ]


def effect_sentence(report: Report, method: MethodResult, calibrator: str | None = None) -> str:
    """Return whether a calibrator helps on the rows of the report, which it was not fitted on; nothing if it does.

    Args:
        report: The report.
        method: The method.
        calibrator: The calibrator; by default the recommended one.
    """
    name = calibrator or (method.advice.chosen if method.advice is not None else "")
    if not any(one.name == name for one in method.calibrated):
        return ""
    effect, change = _effect(report, method, name)
    if effect == "hurts":
        return f"Do not use {name}: it makes the predictions scored here worse ({change})."
    if effect == "unclear":
        return f"The rows scored here do not show whether {name} helps ({change})."
    return ""


def _effect(report: Report, method: MethodResult, calibrator: str) -> tuple[Effect, str]:
    """Return the effect of a calibrator on rows that it was not fitted on, and the numbers that show it.

    The log-likelihood decides, and the ECE where the log-likelihood does not differ.
    """
    gains = report.gains().get((method.name, calibrator))
    for key in ("nll", "correct_nll", "ece"):
        kind = kind_of(gains, key)
        if kind in ("better", "worse"):
            return ("helps" if kind == "better" else "hurts"), _change(report, method, calibrator, key)
    return "unclear", _change(report, method, calibrator, _main_metric(report))


def _change(report: Report, method: MethodResult, calibrator: str, key: str) -> str:
    """Return a metric of a method before and after a calibrator, with the p-value of the difference."""
    gains = report.gains().get((method.name, calibrator), ())
    values = method.score(key).value, report.after(method, calibrator).score(key).value
    tested = [chance(row.p_value) for row in gains if row.metric == key]
    change = f"{metric_facts(key).short} {number(key, values[0])} → {number(key, values[1])}"
    return ", ".join([change, *filter(None, tested)])


def _warnings(method: MethodResult, one: AfterCalibrator) -> list[str]:
    return [f"The fit of {one.name} for {method.name} gave a warning: {text}." for text in one.warnings]


def _on_several(report: Report) -> Conclusion:
    judgments = judgments_of(report)
    last = _last_calibrator(report)
    total = len(judgments)
    if last is None:
        settled = judgments
        headline = re.sub("^none", "None", _headline(report, judgments))
        sentences = []
    else:
        settled = judgments_of(report, last)
        headline = f"After {last}, {_headline(report, settled, still=True)}"
        sentences = [f"Without a calibrator, {_headline(report, judgments)}."]
    if report.is_of_networks:
        sentences.append("Methods were trained once: one seed says nothing about the next training.")
    sentences += [*_unlike(report, last), *_detectable(report, last)]
    word, tone = _quality(*_lowest(report), level=report.base.first.level)
    sentences += [word, *_next_step(report, last)]
    kinds = [one.kind for one in settled]
    if tone == "good" and "better" not in kinds and "worse" in kinds:
        tone = "mixed"
    if total > 1:
        sentences.append(f"Intervals and p-values of differences are corrected for {total} comparisons.")
    return Conclusion(tone, headline, tuple(filter(None, sentences)), judgments)


def judgments_of(report: Report, calibrator: str | None = None) -> tuple[Judgment, ...]:
    """Return how every method stands against the baseline, both after the same calibrator or none."""
    versus = report.versus(calibrator)
    return tuple(_judge(method.name, versus.get(method.name), report.base.name) for method in report.others)


def _judge(name: str, versus: PairedDifferences | None, base: str) -> Judgment:
    if versus is None:
        return Judgment(name, "unknown", f"Not compared with {base} row by row.")
    rows = {row.metric: row for row in versus}
    ece = rows["ece"]
    words = [
        f"{ece.title} {number('ece', ece.after)} instead of {number('ece', ece.before)} ({chance(ece.p_value)})"
    ]
    if "nll" in rows:
        words.append(f"log-likelihood {_word(_kind(rows['nll']))} ({chance(rows['nll'].p_value)})")
    words.append(_cost(rows["accuracy"]))
    return Judgment(name, _kind(ece), "; ".join(words) + ".")


def _detectable(report: Report, calibrator: str | None) -> list[str]:
    """Return which differences ties could have shown, over seeds."""
    ties: dict[str, list[float]] = {"nll": [], "ece": []}
    for versus in report.versus(calibrator).values():
        for row in versus:
            if row.metric in ties and row.verdict == "tie" and np.isfinite(row.error.total):
                ties[row.metric].append(row.detectable(level=report.base.first.level))
    found = {key: float(np.median(values)) for key, values in ties.items() if values}
    if not found:
        return []
    shown = " and ".join(
        f"{points(value)} of ECE" if key == "ece" else f"{value:.4f} of NLL" for key, value in found.items()
    )
    return [
        f"A tie is not equality: differences below about {shown} would often have been missed (80% power)."
    ]


def _headline(report: Report, judgments: Sequence[Judgment], *, still: bool = False) -> str:
    """Return who is better calibrated than the baseline, without a capital."""
    total, base = len(judgments), report.base.name
    better = [one.name for one in judgments if one.kind == "better"]
    adverb = "still " if still else ""
    if report.is_of_networks:
        verb = "has" if len(better) == 1 else "have"
        return f"{len(better) or 'none'} of {total} networks {verb} a significantly lower ECE than that of {base}"
    if total == 1:
        only = judgments[0]
        word = {"better": f"is {adverb}better calibrated than", "worse": "is worse calibrated than"}
        return f"{only.name} {word.get(only.kind, 'is not shown to differ in calibration from')} {base}"
    if better:
        verb = "is" if len(better) == 1 else "are"
        return f"{len(better)} of {total} {verb} {adverb}better calibrated than {base}"
    if all(one.kind == "tied" for one in judgments):
        return f"none of {total} is shown to differ from {base} in calibration"
    return f"none of {total} is better calibrated than {base}"


def _last_calibrator(report: Report) -> str | None:
    """Return the calibrator after which methods are compared: of those that all have, the one with the best scores.

    None if there is none, or if the methods score better without any.
    """
    best, key = _best_calibrator(report), _main_metric(report)
    if best is None:
        return None
    sums = {
        "": sum(method.score(key).value for method in report.methods),
        best: sum(report.after(method, best).score(key).value for method in report.methods),
    }
    return _best(key, sums) or None


def _best_calibrator(report: Report) -> str | None:
    """Return the calibrator with the best scores of those that all methods have."""
    key = _main_metric(report)
    means = {
        name: sum(report.after(method, name).score(key).value for method in report.methods)
        for name in report.shared_calibrators
    }
    return _best(key, means) if means else None


def _main_metric(report: Report) -> str:
    """Return the metric that decides between calibrators and methods: the likelihood, if all have it."""
    return "nll" if all("nll" in method.keys for method in report.methods) else "ece"


def _best(key: str, values: Mapping[str, float]) -> str:
    """Return the name with the best value of a metric."""
    facts = metric_facts(key)
    return min(values, key=lambda name: facts.badness(values[name]))


def _unlike(report: Report, calibrator: str | None) -> list[str]:
    """Return which methods differ from the baseline in log-likelihood or accuracy."""
    found = []
    for key, title in (("nll", "log-likelihood"), ("accuracy", "accuracy")):
        kinds = {name: kind_of(versus, key) for name, versus in report.versus(calibrator).items()}
        parts = [
            f"{kind} with {_listed([name for name in kinds if kinds[name] == kind])}"
            for kind in ("better", "worse")
            if kind in kinds.values()
        ]
        if parts:
            found.append(f"The {title} is {', '.join(parts)}.")
    return found


def _lowest(report: Report) -> tuple[str, list[Score]]:
    """Return the lowest ECE of all, run by run, and whose it is."""
    found = {method.name: [run.scores["ece"] for run in method.runs] for method in report.methods}
    for method in report.methods:
        found |= {
            f"{method.name} with {one.name}": [card["ece"] for card in one.scores]
            for one in method.calibrated
        }
    best = _best("ece", {name: float(np.mean([run.value for run in runs])) for name, runs in found.items()})
    return best, found[best]


def _quality(name: str, runs: Sequence[Score], *, level: float) -> tuple[str, str]:
    """Return how good the best is in itself, and the tone that deserves."""
    value = float(np.mean([run.value for run in runs]))
    shown = f"The lowest ECE is that of {name}, {number('ece', value)}"
    # A mean over runs has no test of its own, but each run has: few rows alone give every run an ECE.
    if all(run.p_value is not None and run.p_value > 1 - level for run in runs):
        return f"{shown}, which chance explains{' in every run' if len(runs) > 1 else ''}.", "good"
    if value <= _SMALL:
        return f"{shown}, which is small.", "good"
    if value <= _NOTICEABLE:
        return f"{shown}: even the best is off by about {points(value)}.", "mixed"
    return f"{shown}, which is large: none of them is calibrated.", "bad"


def _next_step(report: Report, calibrator: str | None) -> list[str]:
    """Return what to do; a calibrator is recommended only if it helps on rows that it was not fitted on."""
    tried = calibrator or _best_calibrator(report)
    if tried is None:
        if all(method.verdict().is_calibrated for method in report.methods):
            return []
        return [
            "What to do: compare them again after a calibrator fitted on held-out rows; it may level them."
        ]
    if report.is_of_networks:
        return [
            f"What to do: {_for_networks(report, tried)}, and train several seeds before choosing a method.",
            *(text for method in report.methods for text in _warnings(method, report.after(method, tried))),
        ]
    versus = report.versus(calibrator)
    key = _main_metric(report)
    values = {
        method.name: (method if calibrator is None else report.after(method, calibrator)).score(key).value
        for method in report.others
        if method.name in versus and _adds(versus[method.name])
    }
    chosen = next(
        (method for method in report.others if values and method.name == _best(key, values)), report.base
    )
    effect, change = _effect(report, chosen, tried)
    use = {
        "helps": f"use {chosen.name} and fit {tried} on held-out rows",
        "hurts": f"use {chosen.name} without a calibrator, since {tried} makes it worse on the rows scored here "
        f"({change})",
        "unclear": f"use {chosen.name}; the rows scored here do not show whether {tried} helps it ({change})",
    }[effect]
    why = "nothing here shows that another method adds to it"
    if values:
        cost = _cost(versus[chosen.name].of("accuracy"))
        why = f"it {cost}" if cost.startswith(("gains", "costs")) else ""
    return [
        f"What to do: {'; '.join(filter(None, (use, why)))}.",
        *_warnings(chosen, report.after(chosen, tried)),
    ]


def _for_networks(report: Report, calibrator: str) -> str:
    """Return for which of the networks a calibrator is worth fitting."""
    found: dict[Effect, list[str]] = {"helps": [], "hurts": [], "unclear": []}
    for method in report.methods:
        found[_effect(report, method, calibrator)[0]].append(method.name)
    if len(found["helps"]) == len(report.methods):
        return f"fit {calibrator} on held-out rows"
    parts = [
        f"fit {calibrator} on held-out rows for {_listed(found['helps'])}" if found["helps"] else "",
        f"do not fit {calibrator} for {_listed(found['hurts'])}, which it makes worse on the rows scored here"
        if found["hurts"]
        else "",
        f"the rows scored here do not show whether {calibrator} helps {_listed(found['unclear'])}"
        if found["unclear"]
        else "",
    ]
    return "; ".join(filter(None, parts))


def _adds(versus: PairedDifferences) -> bool:
    """Return whether a method is better in calibration or likelihood, and worse in neither."""
    kinds = [kind_of(versus, key) for key in ("ece", "nll")]
    return "better" in kinds and "worse" not in kinds


def kind_of(versus: PairedDifferences | None, key: str) -> Kind | None:
    """Return ``"better"``, ``"tied"`` or ``"worse"`` for one metric, or None if it was not compared."""
    row = next((row for row in versus or () if row.metric == key), None)
    return None if row is None else _kind(row)


def _kind(row: Difference) -> Kind:
    return "tied" if row.verdict == "tie" else row.verdict


def _word(kind: str) -> str:
    return "a tie" if kind == "tied" else kind


def _cost(row: Difference) -> str:
    kind = _kind(row)
    if kind == "tied":
        return "accuracy a tie"
    return f"{'gains' if kind == 'better' else 'costs'} {points(row.difference)} of accuracy"


def _listed(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
