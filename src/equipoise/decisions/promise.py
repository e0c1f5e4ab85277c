"""Whether what a saved decision promised holds on new labelled rows."""

from __future__ import annotations

from typing import Any, NamedTuple

from equipoise.core.predictions import Predictions
from equipoise.decisions.accept_rule import AcceptRule
from equipoise.decisions.costs import CostRule
from equipoise.decisions.files import Decision

__all__ = ["DecisionCheck", "check_decision"]


class DecisionCheck(NamedTuple):
    """The result of a check.

    Attributes:
        kept: False if the rows show that the promise is broken.
        text: The result in words.
        details: The numbers, as plain values.
    """

    kept: bool
    text: str
    details: dict[str, Any]


def check_decision(decision: Decision, predictions: Predictions, *, level: float = 0.05) -> DecisionCheck:
    """Test on new labelled rows whether a decision keeps what it promised.

    An accept rule promised an error limit (exact binomial test), sets promised a coverage (exact beta-binomial test),
    and costs promised that the expected cost is the real one (interval of the difference).

    Args:
        decision: A saved decision.
        predictions: Labelled predictions of other rows than those that it was fitted on.
        level: Probability of a false alarm.

    Raises:
        SplitError: If the decision or its calibrator was fitted on some of these rows.

    Example:
        >>> import numpy as np
        >>> rows = Predictions(probs=np.full(50, 0.9), labels=np.zeros(50, int))
        >>> check_decision(CostRule(wrong=10, abstain=2), rows).kept
        False
    """
    if isinstance(decision, AcceptRule):
        checked = decision.check(predictions, level=level)
        return DecisionCheck(checked.kept, checked.describe(), checked.as_dict())
    if isinstance(decision, CostRule):
        costs = decision(predictions).summary(level=1 - level)
        kept = costs.gap_low is None or costs.gap_low <= 0
        return DecisionCheck(kept, costs.describe(), costs.as_dict() | {"kept": kept})
    report = decision(predictions).report()
    p_value = decision.coverage_p_value(round(report.coverage * report.n), report.n)
    kept = p_value > level
    verdict = "The promise is kept" if kept else "The promise is broken"
    text = f"{verdict} (exact test, p = {p_value:.2g}): {report.describe()}"
    return DecisionCheck(kept, text, report.as_dict() | {"kept": kept, "p_value": p_value})
