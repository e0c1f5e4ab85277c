"""AUROC: does a score tell right from wrong predictions, or known from unknown data?"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.special import logsumexp

from equipoise.core.arrays import Array, as_floats, as_numpy
from equipoise.core.checks import check_weights
from equipoise.core.errors import DataError
from equipoise.core.names import check_choice
from equipoise.core.predictions import Predictions
from equipoise.metrics.inputs import top_label

__all__ = [
    "NEED_LOGIT_SIZE",
    "OOD_SCORES",
    "DetectionCells",
    "area_under_roc",
    "detection_cells",
    "error_auroc",
    "ood_score",
    "out_of_distribution_auroc",
]


def area_under_roc(scores: Any, positives: Any, *, sample_weight: Any = None) -> float:
    """Return the probability that a positive row scores above a negative one; ties count one half.

    Args:
        scores: ``(n,)`` numbers.
        positives: ``(n,)`` truth values.
        sample_weight: One weight per row.

    Returns:
        A number from 0 to 1; NaN if one kind is missing.

    Raises:
        ValueError: If the lengths differ, or a score is not a number.

    Example:
        >>> area_under_roc([0.9, 0.5, 0.5], [True, True, False])
        0.75
    """
    where = "area_under_roc"
    values = as_floats(scores, where=where, name="scores").astype(np.float64)
    positive = as_numpy(positives).astype(bool)
    weight = np.ones(len(values)) if sample_weight is None else as_numpy(sample_weight).astype(np.float64)
    if values.ndim != 1 or len(values) == 0 or not values.shape == positive.shape == weight.shape:
        raise ValueError(
            f"{where}: `scores`, `positives` and weights must be as long as each other, one value per row, got "
            f"{values.shape}, {positive.shape} and {weight.shape}."
        )
    if np.isnan(values).any():
        raise DataError(
            f"{where}: `scores` must be numbers, got nan in row {int(np.isnan(values).argmax())}."
        )
    check_weights(weight, where=where)
    order = np.argsort(values)
    values, positive, weight = values[order], positive[order], weight[order]
    starts = np.flatnonzero(np.concatenate([[True], values[1:] != values[:-1]]))
    up = np.add.reduceat(weight * positive, starts)
    down = np.add.reduceat(weight * ~positive, starts)
    return float(auroc_of_cells(up, down))


def auroc_of_cells(up: Array, down: Array, *, above: Array | None = None) -> Array:
    """Return the area from the weights of positives and negatives in ascending cells, ``(..., m)``.

    The weights of negatives in each cell and all higher ones are computed unless they are given.

    Example:
        >>> float(auroc_of_cells(np.array([0.0, 1.0]), np.array([1.0, 0.0])))
        1.0
    """
    pairs = up.sum(axis=-1) * down.sum(axis=-1)
    if above is None:
        found = np.einsum("...i,...i->...", up, np.cumsum(down, axis=-1))
        found = found - np.einsum("...i,...i->...", up, down) / 2
    else:
        found = pairs - np.einsum("...i,...i->...", up, above) + np.einsum("...i,...i->...", up, down) / 2
    result: Array = np.divide(found, pairs, out=np.full(np.shape(pairs), np.nan), where=pairs > 0)
    return result


def error_auroc(probs: Any, labels: Any = None, *, sample_weight: Any = None) -> float:
    """Return how well confidence separates right from wrong predictions.

    Args:
        probs: Probabilities ``(n, k)`` or ``(n,)``; or Predictions alone.
        labels: True classes ``(n,)``.
        sample_weight: One weight per row.

    Returns:
        A number from 0 to 1; 0.5 is no separation. NaN if all predictions are right, or all wrong.

    Example:
        >>> error_auroc([[0.9, 0.1], [0.6, 0.4]], [0, 1])
        1.0
    """
    cells = top_label(probs, labels, sample_weight, where="error_auroc").cells
    return float(auroc_of_cells(cells.right, cells.wrong))


def out_of_distribution_auroc(
    known: Predictions, unknown: Predictions, *, score: str = "confidence"
) -> float:
    """Return how well confidence separates rows like the training data from rows unlike it.

    Args:
        known: Predictions on data of the training distribution.
        unknown: Predictions on other data; their labels are not used.
        score: ``"confidence"``, or ``"entropy"`` (its negative), which looks at all classes.

    Returns:
        A number from 0 to 1: the probability that a known row scores above an unknown one.

    Example:
        >>> known = Predictions(probs=[[0.9, 0.1]], labels=[0])
        >>> unknown = Predictions(probs=[[0.5, 0.5]], labels=[0])
        >>> out_of_distribution_auroc(known, unknown)
        1.0
    """
    check_choice(score, ("confidence", "entropy"), where="out_of_distribution_auroc", name="score")
    scores = [
        part.confidence if score == "confidence" else (part.probs * part.log_probs).sum(axis=1)
        for part in (known, unknown)
    ]
    weights = [np.ones(len(part)) if part.weights is None else part.weights for part in (known, unknown)]
    return area_under_roc(
        np.concatenate(scores),
        np.arange(len(known) + len(unknown)) < len(known),
        sample_weight=np.concatenate(weights),
    )


#: Scores that are high for rows like the training data.
OOD_SCORES = ("confidence", "entropy", "energy", "max_logit")
#: Those that read the size of the logits: a constant added to all logits of a row changes them.
NEED_LOGIT_SIZE = ("energy", "max_logit")


def ood_score(predictions: Predictions, score: str) -> Array:
    """Return a score of each row that is higher for rows like the training data.

    Args:
        predictions: Predictions; their labels are not used.
        score: ``"confidence"``; ``"entropy"``, its negative; ``"energy"``, the log of the summed exponentials of the
            logits, which is the negative free energy; or ``"max_logit"``.

    Raises:
        DataError: If a score needs logits and there are none.

    Example:
        >>> rows = Predictions(logits=[[3.0, 0.0], [0.0, 0.0]], labels=[0, 0])
        >>> ood_score(rows, "max_logit").tolist(), ood_score(rows, "energy").round(2).tolist()
        ([3.0, 0.0], [3.05, 0.69])

    Reference:
        Hendrycks and Gimpel (2017), A baseline for detecting misclassified and out-of-distribution examples.
        Liu et al. (2020), Energy-based out-of-distribution detection. Hendrycks et al. (2022), Scaling
        out-of-distribution detection for real-world settings.
    """
    check_choice(score, OOD_SCORES, where="ood_score", name="score")
    if score == "confidence":
        return np.asarray(predictions.confidence, dtype=np.float64)
    if score == "entropy":
        return np.asarray((predictions.probs * predictions.log_probs).sum(axis=1), dtype=np.float64)
    if predictions.kind != "logits":
        raise DataError(f"ood_score: {score!r} needs logits, got {predictions!r}. Save logits.")
    logits = np.asarray(predictions.logits, dtype=np.float64)
    return np.asarray(logits.max(axis=1) if score == "max_logit" else logsumexp(logits, axis=1))


class DetectionCells(NamedTuple):
    """Known and unknown rows in ascending cells of a score, ``(..., m)``; leading axes are resamples.

    Attributes:
        known: How many known rows are in each cell.
        unknown: How many unknown rows.

    Example:
        >>> cells = detection_cells(np.array([0.9, 0.8]), np.array([0.1, 0.85]))
        >>> float(cells.auroc()), float(cells.false_alarms()), round(float(cells.precision()), 3)
        (0.75, 0.5, 0.833)
    """

    known: Array
    unknown: Array

    def auroc(self) -> Array:
        """Return the probability that a known row scores above an unknown one."""
        return auroc_of_cells(self.known, self.unknown)

    def false_alarms(self, *, rate: float = 0.95) -> Array:
        """Return the share of unknown rows taken for known where so many of the known rows are."""
        kept, passed = (np.flip(part, -1).cumsum(-1) for part in self)
        total = kept[..., -1:]
        place = (kept < rate * total * (1 - 1e-12)).sum(-1, keepdims=True)
        result: Array = (np.take_along_axis(passed, place, -1) / passed[..., -1:])[..., 0]
        return result

    def precision(self) -> Array:
        """Return the average precision of finding known rows, the area under precision and recall."""
        hit, false = (np.flip(part, -1).cumsum(-1) for part in self)
        share = np.divide(hit, hit + false, out=np.zeros_like(hit, dtype=np.float64), where=hit + false > 0)
        result: Array = (share * np.flip(self.known, -1)).sum(-1) / hit[..., -1]
        return result


def detection_cells(known: Array, unknown: Array, *, most: int | None = None) -> DetectionCells:
    """Sort rows into one cell per score that occurs, or into at most so many of about equally many rows.

    Args:
        known: Scores of known rows.
        unknown: Scores of unknown rows.
        most: How many cells; None for all, which is exact.
    """
    values = np.unique(np.concatenate([known, unknown]))
    if most is not None and len(values) > most:
        values = np.unique(np.quantile(values, np.linspace(0, 1, most + 1)[:-1], method="lower"))
    places = [np.searchsorted(values, part, side="right") - 1 for part in (known, unknown)]
    counts = [np.bincount(place, minlength=len(values)).astype(np.float64) for place in places]
    return DetectionCells(*counts)
