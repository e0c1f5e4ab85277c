"""Whether what a saved decision promised holds on new labelled rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from equipoise.core.escaping import listed, visible
from equipoise.core.predictions import Predictions
from equipoise.core.rows import unchecked_rows
from equipoise.decisions.accept_rule import AcceptRule
from equipoise.decisions.costs import CostRule
from equipoise.decisions.files import Decision
from equipoise.decisions.inputs import apply_calibrator, check_share
from equipoise.decisions.prediction_sets import PredictionSets

__all__ = ["DecisionCheck", "check_decision", "unchecked_calibrator_notes", "unchecked_notes"]

#: Classes or groups that are named where a promise is broken.
_SHOWN = 5


class DecisionCheck(NamedTuple):
    """The result of a check.

    Attributes:
        kept: False if the rows show that the promise is broken.
        text: The result in words.
        details: The numbers, as plain values.
        notes: What could not be checked, in sentences.
    """

    kept: bool
    text: str
    details: dict[str, Any]
    notes: tuple[str, ...] = ()


def check_decision(decision: Decision, predictions: Predictions, *, level: float = 0.05) -> DecisionCheck:
    """Test on new labelled rows whether a decision keeps what it promised.

    An accept rule promised an error limit (exact binomial test), sets promised a coverage (exact beta-binomial test;
    in every class or group, if the sets have such a condition), and costs promised that the expected cost is the real
    one (interval of the difference).

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
    if not isinstance(decision, AcceptRule | CostRule | PredictionSets):
        raise TypeError(
            f"check_decision: expected a decision, got {type(decision).__name__}. Use load_decision."
        )
    check_share(level, where="check_decision", name="level", example="5% is 0.05")
    notes = unchecked_notes(decision, predictions)
    if isinstance(decision, AcceptRule):
        checked = decision.check(predictions, level=level)
        return DecisionCheck(checked.kept, checked.describe(), checked.as_dict(), notes)
    if isinstance(decision, CostRule):
        costs = decision(predictions).summary(level=1 - level)
        kept = costs.gap_low is None or costs.gap_low <= 0
        return DecisionCheck(kept, costs.describe(), costs.as_dict() | {"kept": kept}, notes)
    sets = decision(predictions)
    report, p_values = sets.report(), sets.p_values()
    p_value = min(1.0, len(p_values) * min(p_values.values()))
    kept = p_value > level
    details = report.as_dict() | {"kept": kept, "p_value": p_value}
    if decision.conditional is not None:
        details["p_values"] = p_values
    text = f"{_verdict(decision, p_values, p_value, level)}: {report.describe()}"
    return DecisionCheck(kept, text, details, notes)


def _verdict(sets: PredictionSets, p_values: Mapping[str, float], p_value: float, level: float) -> str:
    """Return whether sets keep their promise, and where they do not."""
    verdict = f"The promise is {'kept' if p_value > level else 'broken'}"
    if sets.conditional is None:
        return f"{verdict} (exact test, p = {p_value:.2g})"
    broken = sorted((p, name) for name, p in p_values.items() if len(p_values) * p <= level)
    part = "class" if sets.conditional == "class" else visible(sets.by)
    where = f"in every {part}"
    if broken:
        names = listed([name for _, name in broken], _SHOWN)
        where = f"in {len(broken)} of {len(p_values)} ({part} {names})"
    return (
        f"{verdict} {where} (exact tests, least p = {p_value:.2g} after correction for {len(p_values)} tests)"
    )


def unchecked_notes(decision: Decision, predictions: Predictions) -> tuple[str, ...]:
    """Return why rows that a decision or its calibrator was fitted on could not be looked for, in sentences."""
    found = unchecked_calibrator_notes(decision.calibrator, predictions)
    if isinstance(decision, CostRule) or decision.rows is None:
        return found
    note = unchecked_rows(predictions.rows, decision.rows, purpose="make the decision")
    return (note, *found) if note else found


def unchecked_calibrator_notes(calibrator: Any, predictions: Predictions) -> tuple[str, ...]:
    """Return why rows that a calibrator was fitted on could not be looked for, in sentences."""
    fitted_on = apply_calibrator(calibrator, predictions, where="check_decision").fitted_on
    note = "" if fitted_on is None else unchecked_rows(predictions.rows, fitted_on)
    return (note,) if note else ()
