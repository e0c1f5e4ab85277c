"""How well a score tells rows like the training data from rows unlike it: area, false alarms, precision."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp

from equipoise.core.arrays import Array
from equipoise.core.errors import DataError
from equipoise.core.names import check_choice
from equipoise.core.predictions import Predictions
from equipoise.metrics.area_under_roc import auroc_of_cells

__all__ = ["NEED_LOGIT_LEVEL", "SURENESS", "DetectionCells", "detection_cells", "sureness"]

#: Scores that are high for rows a network knows.
SURENESS = ("confidence", "entropy", "energy", "max_logit")
#: Those that read the size of the logits: a constant added to all logits of a row changes them.
NEED_LOGIT_LEVEL = ("energy", "max_logit")


def sureness(predictions: Predictions, score: str) -> Array:
    """Return how sure a network is of each row; higher is surer.

    Args:
        predictions: Predictions; their labels are not used.
        score: ``"confidence"``; ``"entropy"``, its negative; ``"energy"``, the log of the summed exponentials of the
            logits, which is the negative free energy; or ``"max_logit"``.

    Raises:
        DataError: If a score needs logits and there are none.

    Example:
        >>> rows = Predictions(logits=[[3.0, 0.0], [0.0, 0.0]], labels=[0, 0])
        >>> sureness(rows, "max_logit").tolist(), sureness(rows, "energy").round(2).tolist()
        ([3.0, 0.0], [3.05, 0.69])

    Reference:
        Hendrycks and Gimpel (2017), A baseline for detecting misclassified and out-of-distribution examples.
        Liu et al. (2020), Energy-based out-of-distribution detection. Hendrycks et al. (2022), Scaling
        out-of-distribution detection for real-world settings.
    """
    check_choice(score, SURENESS, where="sureness", name="score")
    if score == "confidence":
        return np.asarray(predictions.confidence, dtype=np.float64)
    if score == "entropy":
        return np.asarray((predictions.probs * predictions.log_probs).sum(axis=1), dtype=np.float64)
    if predictions.kind != "logits":
        raise DataError(f"sureness: {score!r} needs logits, got {predictions!r}. Save logits.")
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
