"""Watching without labels: has anything changed since the reference, and what would the accuracy be?"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any, final

import numpy as np
from scipy.stats import chi2_contingency, ks_2samp

from equipoise.core.arrays import Array
from equipoise.core.errors import DataError
from equipoise.core.predictions import Predictions
from equipoise.core.rows import check_disjoint

__all__ = ["ShiftReport", "compare_unlabelled"]

_WHERE = "compare_unlabelled"
#: Values of which fewer rows are expected in the smaller file are joined.
_FEWEST_EXPECTED = 10.0


@final
@dataclass(frozen=True)
class ShiftReport:
    """Differences between today's predictions and a reference, without labels.

    Attributes:
        n: Rows of today.
        n_reference: Rows of the reference.
        p_values: Corrected p-value of every test (Holm).
        level: Level of the tests together.
        shifted: Whether a test rejects.
        expected_accuracy: Mean confidence of today. It is the accuracy only if calibration still holds.
        reference_accuracy: Mean confidence of the reference.
        labels_needed: Random rows to label for the accuracy to about 2 points either way.
    """

    n: int
    n_reference: int
    p_values: dict[str, float]
    level: float
    shifted: bool
    expected_accuracy: float
    reference_accuracy: float
    labels_needed: int

    def as_dict(self) -> dict[str, Any]:
        """Return the fields as plain values, for JSON."""
        return asdict(self)

    def describe(self) -> str:
        """Return the result in a few lines."""
        tests = ", ".join(f"{name} p = {value:.2g}" for name, value in self.p_values.items())
        row = "row" if self.n == 1 else "rows"
        lines = [
            f"{self.n:,} {row} without labels and {self.n_reference:,} reference rows: {tests} (corrected).",
            f"Accuracy expected if calibration still holds: {100 * self.expected_accuracy:.1f}% (reference "
            f"{100 * self.reference_accuracy:.1f}%).",
        ]
        if self.shifted:
            lines.append(
                f"ALARM  The predictions have changed, so calibration may not hold. Label about {self.labels_needed:,} "
                "random rows to measure the accuracy to 2 points either way."
            )
        else:
            lines.append("No alarm: no difference is shown.")
        return "\n".join(lines)


def compare_unlabelled(
    predictions: Predictions, reference: Predictions, *, level: float = 0.05
) -> ShiftReport:
    """Test whether predictions without labels differ from reference predictions.

    Confidences are compared by a Kolmogorov-Smirnov test, predicted classes (if known) and every column of groups by
    chi-squared tests in which rare values are joined. P-values are corrected for the number of tests (Holm). This is
    one look at one day: for daily looks, use a smaller level.

    Args:
        predictions: Predictions of today; labels are not used.
        reference: Predictions of rows on which calibration was checked.
        level: Probability of a false alarm of all tests together.

    Raises:
        DataError: If a column of groups is missing in one of the two, they are of models with other classes, or a
            calibrator was applied to only one of them.
        SplitError: If rows are in both.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> old, new = (Predictions(probs=rng.dirichlet([a, 1, 1], 500)) for a in (1, 2))
        >>> compare_unlabelled(new, old).shifted
        True
    """
    if not 0 < level < 1:
        raise ValueError(f"{_WHERE}: `level` must be between 0 and 1, got {level}. 5% is 0.05.")
    _check_same_model(predictions, reference)
    found = {"confidence": float(ks_2samp(predictions.confidence, reference.confidence).pvalue)}
    if "confidence" not in (predictions.kind, reference.kind):
        found["predicted class"] = _frequencies(*_predicted(predictions, reference))
    if set(predictions.groups) != set(reference.groups):
        raise DataError(f"{_WHERE}: expected the same columns of groups in both, got different ones.")
    for name, column in predictions.groups.items():
        found[name] = _frequencies(column.astype(np.str_), reference.groups[name].astype(np.str_))
    corrected = _holm(found)
    accuracy = float(np.mean(predictions.confidence))
    return ShiftReport(
        n=len(predictions),
        n_reference=len(reference),
        p_values=corrected,
        level=level,
        shifted=min(corrected.values()) <= level,
        expected_accuracy=accuracy,
        reference_accuracy=float(np.mean(reference.confidence)),
        labels_needed=math.ceil(1.96**2 * max(accuracy * (1 - accuracy), 0.01) / 0.02**2),
    )


def _check_same_model(predictions: Predictions, reference: Predictions) -> None:
    """Raise if rows are in both, or if their predictions cannot be compared."""
    problem = "rows are in both files, so they would look the same. Leave them out of one of the two."
    new, old = predictions.rows_without_outcomes, reference.rows_without_outcomes
    check_disjoint(new, old, where=_WHERE, problem=problem)
    if (predictions.fitted_on is None) != (reference.fitted_on is None):
        raise DataError(
            f"{_WHERE}: a calibrator was applied to one of the two, so their confidences differ. Apply it to both."
        )
    kinds = (predictions.kind, reference.kind)
    if "confidence" in kinds:
        return
    mine, others = predictions.class_names, reference.class_names
    # Files of predicted classes have only those that occur, so that their numbers may differ if they have names.
    if mine is not None and others is not None:
        is_same = set(mine) == set(others) or ("top1" in kinds and not set(mine).isdisjoint(others))
    elif "top1" in kinds:
        is_same = mine is None and others is None
    else:
        is_same = predictions.n_classes == reference.n_classes
    if not is_same:
        raise DataError(
            f"{_WHERE}: expected predictions of one model, got the classes {_listed(predictions)} and "
            f"{_listed(reference)}. Name files with the same classes."
        )


def _listed(predictions: Predictions) -> str:
    names = predictions.class_names
    return f"0 to {(predictions.n_classes or 1) - 1}" if names is None else ", ".join(names[:10])


def _predicted(predictions: Predictions, reference: Predictions) -> tuple[Array, Array]:
    """Return predicted classes of both by name if both have names, which may be in another order, else by number."""
    mine, others = predictions.class_names, reference.class_names
    if mine is None or others is None:
        return predictions.predicted, reference.predicted
    return np.array(mine)[predictions.predicted], np.array(others)[reference.predicted]


def _frequencies(new: Array, old: Array) -> float:
    values, codes = np.unique(np.concatenate([new, old]), return_inverse=True)
    counts = np.stack(
        [np.bincount(part, minlength=len(values)) for part in (codes[: len(new)], codes[len(new) :])]
    )
    counts = counts[:, np.argsort(counts.sum(axis=0), kind="stable")]
    # Rare values count as one, with the next one if need be: the test's distribution needs some expected rows of each.
    expected = np.cumsum(counts.sum(axis=0)) * min(len(new), len(old)) / len(codes)
    rare = int(np.count_nonzero(np.diff(expected, prepend=0) < _FEWEST_EXPECTED))
    if rare:
        n_joined = max(rare, int(np.searchsorted(expected, _FEWEST_EXPECTED)) + 1)
        counts = np.column_stack([counts[:, :n_joined].sum(axis=1), counts[:, n_joined:]])
    return float(chi2_contingency(counts, correction=False).pvalue) if counts.shape[1] > 1 else 1.0


def _holm(p_values: dict[str, float]) -> dict[str, float]:
    ordered = sorted(p_values, key=lambda name: p_values[name])
    corrected, largest = {}, 0.0
    for place, name in enumerate(ordered):
        largest = max(largest, min(1.0, (len(ordered) - place) * p_values[name]))
        corrected[name] = largest
    return {name: corrected[name] for name in p_values}
