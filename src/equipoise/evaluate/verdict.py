"""What a scorecard says, in words: written here for scorecards, audits and reports alike."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from equipoise.metrics.facts import metric_facts
from equipoise.metrics.target import Target, target_facts

if TYPE_CHECKING:
    from equipoise.evaluate.scorecard import Scorecard

__all__ = [
    "Verdict",
    "both_words",
    "p_number",
    "p_text",
    "verdict_of_card",
    "verdict_of_runs",
    "views_of_card",
]

Kind = Literal["calibrated", "over", "under", "both"]

_HEADLINES: Mapping[str, Mapping[Kind, str]] = {
    "top": {
        "calibrated": "Consistent with a calibrated model",
        "over": "Overconfident by {points}",
        "under": "Underconfident by {points}",
        "both": "Miscalibrated in both directions",
    },
    "positive": {
        "calibrated": "{label} is consistent with a calibrated model",
        "over": "{label} is too high by {points} on average",
        "under": "{label} is too low by {points} on average",
        "both": "{label} is off in both directions",
    },
    "classwise": {
        "calibrated": "Over all classes consistent with a calibrated model",
        "over": "Miscalibrated over the classes",
        "under": "Miscalibrated over the classes",
        "both": "Miscalibrated over the classes",
    },
}


class Verdict(NamedTuple):
    """Whether claims can be believed.

    Attributes:
        kind: ``"calibrated"`` if chance explains the error; else whether it is ``"over"``-confident, ``"under"``-
            confident, or off in ``"both"`` directions. For a positive class: whether its probability is too high, too
            low, or both.
        headline: A few words.
        claims: What it says on average, and how often it is right.
        worst: Where it matters most; empty if it is calibrated.
        chance: What chance explains.
    """

    kind: Kind
    headline: str
    claims: str
    worst: str
    chance: str

    @property
    def is_calibrated(self) -> bool:
        """True if chance alone may explain the ECE."""
        return self.kind == "calibrated"

    @property
    def sentences(self) -> tuple[str, ...]:
        """What the headline means."""
        return tuple(filter(None, (self.claims, self.worst, self.chance)))

    def __str__(self) -> str:
        return f"{self.headline}. {self.claims} {self.chance}"


def verdict_of_card(card: Scorecard) -> Verdict:
    """Return whether a scorecard's claims can be believed, at the level of its intervals.

    Example:
        >>> from equipoise import Predictions, score
        >>> print(verdict_of_card(score(Predictions(probs=[0.9] * 50, labels=[1] * 25 + [0] * 25))))
        Overconfident by 40.0 points. On average it claims 90.0% and is right 50.0% of the time. Chance does not...
    """
    ece, gap = card.scores["ece"], card.scores.get("confidence_gap")
    claims, title = _claims([card], "On average"), target_facts("ece", card.target).title
    if ece.p_value is None or ece.p_value > 1 - card.level:
        often = f"{100 * (ece.p_value or 1.0):.0f} of 100 samples"
        article = "a" if title.startswith("c") else "an"
        chance = (
            f"A calibrated model with the same {_claim_words(card.target)} would score {article} {title} of "
            f"{metric_facts('ece').text(ece.value)} or more in {often}."
        )
        return Verdict("calibrated", _headline("calibrated", card.target), claims, "", chance)
    kind: Kind = "both" if gap is None else "over" if gap.low > 0 else "under" if gap.high < 0 else "both"
    size = "" if gap is None else f"{100 * abs(gap.value):.1f} points"
    chance = f"Chance does not explain it ({p_text(ece.p_value)})."
    return Verdict(kind, _headline(kind, card.target, size), claims, _worst_bin(card), chance)


def views_of_card(card: Scorecard) -> tuple[Verdict, ...]:
    """Return the verdicts that are shown first: of the probability of class 1 too, where it is judged beside.

    The verdict about the predicted class then says so.

    Example:
        >>> from equipoise import Predictions, score
        >>> card = score(Predictions(probs=[0.4] * 100, labels=[1] * 5 + [0] * 95))
        >>> [verdict.headline for verdict in views_of_card(card)]
        ['P(1) is too high by 35.0 points on average', 'Predicted class: underconfident by 35.0 points']
    """
    own = verdict_of_card(card)
    if card.event is None:
        return (own,)
    headline = f"Predicted class: {own.headline[0].lower()}{own.headline[1:]}"
    return verdict_of_card(card.event), own._replace(headline=headline)


def both_words(card: Scorecard) -> str:
    """Return the errors of two views and why both are shown; empty if there is one.

    Example:
        >>> from equipoise import Predictions, score
        >>> both_words(score(Predictions(probs=[0.4] * 100, labels=[1] * 5 + [0] * 95)))
        'ECE of P(1): 35.00%; of the predicted class: 35.00%. As 1 is 5.0% of the rows, the predicted class says...
    """
    if card.event is None:
        return ""
    curve, target = card.event.curve, card.event.target
    share = curve.outcome_sum.sum() / curve.weight.sum()
    errors = [metric_facts("ece").text(one.scores["ece"].value) for one in (card.event, card)]
    return (
        f"ECE of {target.label}: {errors[0]}; of the predicted class: {errors[1]}. As {target.event} is "
        f"{100 * share:.1f}% of the rows, the predicted class says little about {target.label}. "
        "--target positive or --target top (target= in Python) judges one of them in every number."
    )


def _headline(kind: Kind, target: Target, size: str = "") -> str:
    return _HEADLINES[target.kind][kind].format(points=size, label=target.label)


def _claim_words(target: Target) -> str:
    return "confidences" if target.kind == "top" else "probabilities"


def verdict_of_runs(cards: Sequence[Scorecard]) -> Verdict:
    """Return the same of a method that was run several times: what holds in every run, or in how many.

    Example:
        >>> from equipoise import Predictions, score
        >>> card = score(Predictions(probs=[0.9] * 50, labels=[1] * 25 + [0] * 25))
        >>> verdict_of_runs([card, card]).headline
        'Overconfident by 40.0 points on average, in every run'
    """
    verdicts, n_runs = [verdict_of_card(card) for card in cards], len(cards)
    if n_runs == 1:
        return verdicts[0]
    kinds = Counter(verdict.kind for verdict in verdicts)
    n_calibrated = kinds.pop("calibrated", 0)
    often = {0: "no run", n_runs: "every run"}.get(n_calibrated, f"{n_calibrated} of {n_runs} runs")
    kind: Kind = next(iter(kinds), "calibrated") if len(kinds) < 2 else "both"
    if 0 < n_calibrated < n_runs:
        headline = f"Miscalibrated in {n_runs - n_calibrated} of {n_runs} runs"
    elif len(kinds) > 1:
        headline = "Miscalibrated in every run, not always in one direction"
    else:
        gap = abs(np.mean([_gap_of(card) for card in cards]))
        size, target = f"{100 * gap:.1f} points", cards[0].target
        shown = _headline(kind, target, size)
        headline = f"{shown}{' on average,' if kind in ('over', 'under') and target.kind == 'top' else ''} in every run"
    claims = _claims(cards, f"On average over {n_runs} runs")
    return Verdict(kind, headline, claims, "", f"Chance explains the ECE of {often}.")


def _gap_of(card: Scorecard) -> float:
    return card.scores["confidence_gap"].value if "confidence_gap" in card.scores else 0.0


def _claims(cards: Sequence[Scorecard], begin: str) -> str:
    """Return what is claimed and what is true, on average over runs."""
    target = cards[0].target
    if target.kind == "classwise":
        ece = float(np.mean([card.scores["ece"].value for card in cards]))
        return (
            f"{begin} the probability of a class and its frequency differ by {100 * ece:.1f} points over the bins of "
            "the classes."
        )
    gap = float(np.mean([card.scores["confidence_gap"].value for card in cards]))
    true = float(np.mean([card.curve.outcome_sum.sum() / card.curve.weight.sum() for card in cards]))
    if target.kind == "positive":
        return (
            f"{begin} {target.label} is {100 * (true + gap):.1f}%, and {100 * true:.1f}% of the rows are "
            f"{target.event}."
        )
    return f"{begin} it claims {100 * (true + gap):.1f}% and is right {100 * true:.1f}% of the time."


def _worst_bin(card: Scorecard) -> str:
    """Return a sentence about the bin that adds most to the error."""
    curve, target = card.curve, card.target
    place = int(np.argmax(np.abs(curve.confidence_sum - curve.outcome_sum)))
    low, high = 100 * curve.edges[place], 100 * curve.edges[place + 1]
    rows = float(curve.weight[place])
    where, truth = {
        "top": (f"between {low:.0f} and {high:.0f}% confidence", "are right"),
        "positive": (f"where {target.label} is between {low:.0f} and {high:.0f}%", f"are {target.event}"),
        "classwise": (f"where the probability of a class is between {low:.0f} and {high:.0f}%", "come true"),
    }[target.kind]
    what = "probabilities" if target.kind == "classwise" else "rows"
    return (
        f"It matters most {where}: of the {rows:,.{0 if rows.is_integer() else 1}f} {what} there, "
        f"{100 * curve.frequency[place]:.1f}% {truth}, where {100 * curve.confidence[place]:.1f}% are claimed."
    )


def p_text(p_value: float) -> str:
    """Return a p-value with as many digits as it deserves.

    Example:
        >>> p_text(0.0004), p_text(0.041)
        ('p < 0.001', 'p = 0.041')
    """
    number = p_number(p_value)
    return f"p < {number[1:]}" if number[0] == "<" else f"p = {number}"


def p_number(p_value: float) -> str:
    """Return the same for a column of p-values.

    Example:
        >>> p_number(0.0004), p_number(0.041)
        ('<0.001', '0.041')
        >>> p_number(0.04998), p_number(0.05)  # what is below the usual level is not shown as the level
        ('<0.05', '0.050')
    """
    if p_value < 0.001:
        return "<0.001"
    return "<0.05" if 0.0495 <= p_value < 0.05 else f"{p_value:.3f}"
