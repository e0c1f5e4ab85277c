"""Claims: a named class and its confidence, as the two-class problem of whether the claim is right."""

from __future__ import annotations

from typing import Any

from equipoise.core.predictions import Predictions

__all__ = ["ONE_CONFIDENCE", "as_claims", "is_claims"]

#: The number of classes of a map that knows one confidence and not whose it is.
ONE_CONFIDENCE = 1


def is_claims(predictions: Any) -> bool:
    """Say whether only the predicted class and its confidence are known.

    Example:
        >>> is_claims(Predictions(predicted=[3], confidence=[0.9], labels=[3]))
        True
    """
    return isinstance(predictions, Predictions) and predictions.kind == "top1"


def as_claims(predictions: Predictions) -> Predictions:
    """Return claims as predictions of two classes: wrong, and right with the confidence as its probability.

    Example:
        >>> claims = as_claims(Predictions(predicted=[3, 2], confidence=[0.9, 0.6], labels=[3, 1]))
        >>> claims.probs[:, 1].tolist(), claims.labels.tolist()
        ([0.9, 0.6], [1, 0])
    """
    claims = Predictions(
        probs=predictions.confidence,
        labels=predictions.correct.astype("int64") if predictions.has_labels else None,
        weights=predictions.weights,
        split=predictions.split,
        ids=predictions.rows,
        fitted_on=predictions.fitted_on,
    )
    return claims._copy(precision=predictions.precision)
