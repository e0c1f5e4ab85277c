"""What the numbers say, in words, before any number is shown."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from equipoise.evaluate.compare import Difference, PairedDifferences
from equipoise.evaluate.scorecard import Scorecard
from equipoise.metrics.curve import ReliabilityCurve
from equipoise.report.numbers import chance, count, number, percent, points
from equipoise.report.records import MethodResult, Report

__all__ = ["Judgement", "Verdict", "is_calibrated", "judge", "summarise", "verdict_of"]

_SURE = 0.05


@dataclass(frozen=True)
class Judgement:
    """A method against the baseline.

    Attributes:
        name: The method.
        kind: ``"better"``, ``"tied"``, ``"worse"`` or ``"unknown"``, by ECE.
        words: Why, in one sentence.
    """

    name: str
    kind: str
    words: str


@dataclass(frozen=True)
class Verdict:
    """What a report says first.

    Attributes:
        tone: ``"good"``, ``"bad"`` or ``"mixed"``.
        headline: A few words.
        sentences: What they mean.
        judgements: One per method that was compared.
    """

    tone: str
    headline: str
    sentences: tuple[str, ...]
    judgements: tuple[Judgement, ...] = ()


def verdict_of(report: Report) -> Verdict:
    """Return the verdict of a report: on one model, or on several against a baseline."""
    return _on_one(report.methods[0]) if len(report.methods) == 1 else _on_several(report)


def _on_one(method: MethodResult) -> Verdict:
    card = method.first
    gap, ece = card.scores["confidence_gap"], card.scores["ece"]
    accuracy = method.score("accuracy").value
    claims = (
        f"On average it claims {percent(accuracy + gap.value)} and is right {percent(accuracy)} of the time."
    )
    if ece.p_value is None or ece.p_value > _SURE:
        same = (
            ""
            if ece.p_value is None
            else (
                f"A calibrated model with the same confidences would score an ECE of "
                f"{number('ece', ece.value)} or more in {100 * ece.p_value:.0f} of 100 samples."
            )
        )
        return Verdict("good", "Consistent with a calibrated model", tuple(filter(None, (claims, same))))
    if gap.low > 0:
        headline = f"Over-confident by {points(gap.value)}"
    elif gap.high < 0:
        headline = f"Under-confident by {points(gap.value)}"
    else:
        headline = "Miscalibrated in both directions"
    sentences = (claims, _worst_bin(method.curve()), f"Chance does not explain it ({chance(ece.p_value)}).")
    return Verdict("bad", headline, tuple(filter(None, sentences)))


def _worst_bin(curve: ReliabilityCurve) -> str:
    """Tell of the bin that adds most to the error."""
    place = int(np.argmax(np.abs(curve.confidence_sum - curve.outcome_sum)))
    low, high = 100 * curve.edges[place], 100 * curve.edges[place + 1]
    rows = count(float(curve.weight[place]))
    return (
        f"It matters most between {low:.0f} and {high:.0f}\u00a0% confidence: of the {rows} rows there, "
        f"{percent(float(curve.frequency[place]))} are right, where {percent(float(curve.confidence[place]))} "
        "are claimed."
    )


def _on_several(report: Report) -> Verdict:
    base = report.base.name
    judgements = tuple(judge(method, base) for method in report.others)
    by_kind = {kind: [j.name for j in judgements if j.kind == kind] for kind in ("better", "tied", "worse")}
    total = len(judgements)
    better = len(by_kind["better"])
    if total == 1:
        word = {"better": "is better calibrated than", "worse": "is worse calibrated than"}
        headline = f"{judgements[0].name} {word.get(judgements[0].kind, 'is as well calibrated as')} {base}"
    elif better:
        verb = "is" if better == 1 else "are"
        headline = f"{better} of {total} {verb} better calibrated than {base}"
    else:
        headline = f"None of {total} is better calibrated than {base}"
    sentences = [_best(report)]
    if by_kind["tied"]:
        sentences.append(f"Not to be told apart from {base} on these rows: {_listed(by_kind['tied'])}.")
    if by_kind["worse"]:
        sentences.append(f"Worse than {base}: {_listed(by_kind['worse'])}.")
    tone = "good" if better else "bad" if len(by_kind["worse"]) == total else "mixed"
    return Verdict(tone, headline, tuple(filter(None, sentences)), judgements)


def _best(report: Report) -> str:
    best = min(report.methods, key=lambda method: method.score("ece").value)
    return f"The lowest ECE is that of {best.name}, {number('ece', best.score('ece').value)}."


def judge(method: MethodResult, base: str) -> Judgement:
    """Return how a method stands against the baseline, from their paired comparison."""
    if method.versus is None:
        return Judgement(method.name, "unknown", f"Not compared with {base} row by row.")
    rows = {row.metric: row for row in method.versus}
    kind = _kind(rows["ece"])
    ece = rows["ece"]
    words = [f"ECE {number('ece', ece.second)} instead of {number('ece', ece.first)} ({chance(ece.p_value)})"]
    if "nll" in rows:
        words.append(f"log-likelihood {_word(_kind(rows['nll']))}")
    words.append(_cost(rows["accuracy"]))
    return Judgement(method.name, kind, "; ".join(words) + ".")


def _kind(row: Difference) -> str:
    return {"second better": "better", "first better": "worse"}.get(row.verdict, "tied")


def _word(kind: str) -> str:
    return "a tie" if kind == "tied" else kind


def _cost(row: Difference) -> str:
    kind = _kind(row)
    if kind == "tied":
        return "accuracy a tie"
    return f"{'gains' if kind == 'better' else 'costs'} {points(row.difference)} of accuracy"


def _listed(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def summarise(versus: PairedDifferences | None, key: str) -> str | None:
    """Return ``"better"``, ``"tied"`` or ``"worse"`` for one metric, or None if it was not compared."""
    row = next((row for row in versus or () if row.metric == key), None)
    return None if row is None else _kind(row)


def is_calibrated(card: Scorecard) -> bool:
    """True if chance alone may explain the ECE."""
    p_value = card.scores["ece"].p_value
    return p_value is None or p_value > _SURE
