"""What a scorecard says, in words: written here for scorecards, audits and reports alike."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from equipoise.metrics.facts import metric_facts

if TYPE_CHECKING:
    from equipoise.evaluate.scorecard import Scorecard
    from equipoise.metrics.curve import ReliabilityCurve

__all__ = ["Verdict", "p_number", "p_text", "verdict_of_card", "verdict_of_runs"]

Kind = Literal["calibrated", "over", "under", "both"]

_HEADLINES: Mapping[Kind, str] = {
    "calibrated": "Consistent with a calibrated model",
    "over": "Over-confident by {points}",
    "under": "Under-confident by {points}",
    "both": "Miscalibrated in both directions",
}


class Verdict(NamedTuple):
    """Whether claims can be believed.

    Attributes:
        kind: ``"calibrated"`` if chance explains the error; else whether it is ``"over"``-confident, ``"under"``-
            confident, or off in ``"both"`` directions.
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
        Over-confident by 40.0 points. On average it claims 90.0 % and is right 50.0 % of the time. Chance does not...
    """
    ece, gap = card.scores["ece"], card.scores["confidence_gap"]
    claims = _claims([card], "On average")
    if ece.p_value is None or ece.p_value > 1 - card.level:
        often = f"{100 * (ece.p_value or 1.0):.0f} of 100 samples"
        chance = (
            f"A calibrated model with the same confidences would score an ECE of {metric_facts('ece').text(ece.value)} "
            f"or more in {often}."
        )
        return Verdict("calibrated", _HEADLINES["calibrated"], claims, "", chance)
    kind: Kind = "over" if gap.low > 0 else "under" if gap.high < 0 else "both"
    headline = _HEADLINES[kind].format(points=f"{100 * abs(gap.value):.1f} points")
    chance = f"Chance does not explain it ({p_text(ece.p_value)})."
    return Verdict(kind, headline, claims, _worst_bin(card.curve), chance)


def verdict_of_runs(cards: Sequence[Scorecard]) -> Verdict:
    """Return the same of a method that was run several times: what holds in every run, or in how many.

    Example:
        >>> from equipoise import Predictions, score
        >>> card = score(Predictions(probs=[0.9] * 50, labels=[1] * 25 + [0] * 25))
        >>> verdict_of_runs([card, card]).headline
        'Over-confident by 40.0 points on average, in every run'
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
        gap = abs(np.mean([card.scores["confidence_gap"].value for card in cards]))
        headline = f"{_HEADLINES[kind].format(points=f'{100 * gap:.1f} points on average,')} in every run"
    claims = _claims(cards, f"On average over {n_runs} runs")
    return Verdict(kind, headline, claims, "", f"Chance explains the ECE of {often}.")


def _claims(cards: Sequence[Scorecard], begin: str) -> str:
    """Tell what is claimed and what is true, on average over runs."""
    gap, accuracy = (
        float(np.mean([card.scores[key].value for card in cards])) for key in ("confidence_gap", "accuracy")
    )
    return (
        f"{begin} it claims {100 * (accuracy + gap):.1f} % and is right {100 * accuracy:.1f} % of the time."
    )


def _worst_bin(curve: ReliabilityCurve) -> str:
    """Tell of the bin that adds most to the error."""
    place = int(np.argmax(np.abs(curve.confidence_sum - curve.outcome_sum)))
    low, high = 100 * curve.edges[place], 100 * curve.edges[place + 1]
    rows = float(curve.weight[place])
    return (
        f"It matters most between {low:.0f} and {high:.0f} % confidence: of the "
        f"{rows:,.{0 if rows.is_integer() else 1}f} rows there, {100 * curve.frequency[place]:.1f} % are right, "
        f"where {100 * curve.confidence[place]:.1f} % are claimed."
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
