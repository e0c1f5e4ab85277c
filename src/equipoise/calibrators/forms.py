"""The forms that scores come in (columns, rows, dense outputs, one confidence; NumPy, torch) and the way back."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from equipoise.core.array_functions import AnyArray
from equipoise.core.arrays import array_namespace, as_floats, is_tensor
from equipoise.core.predictions import Predictions
from equipoise.core.predictions.arguments import labels_of
from equipoise.core.predictions.as_rows import score_rows
from equipoise.core.probabilities import positive_logits

__all__ = ["ONE_CONFIDENCE", "as_claims", "as_rows", "blocks", "is_claims", "one_column", "restore"]

#: The number of classes of a calibrator of one confidence, of whichever class it is.
ONE_CONFIDENCE = 1


def as_rows(scores: Any, *, where: str) -> AnyArray:
    """Return logits as rows ``(m, k)``; one column of log-odds becomes two.

    Args:
        scores: ``(n,)``, ``(n, 1)``, ``(n, k)`` or dense ``(n, k, d1, ...)``; NumPy or torch.
        where: The caller, for the message.

    Returns:
        Rows in float32 or float64, dense places in the order of ``labels.reshape(-1)``: a tensor on the device of the
        scores for a tensor, else an array.

    Example:
        >>> as_rows(np.zeros((2, 3, 4, 4)), where="doc").shape
        (32, 3)
        >>> as_rows([1.5], where="doc")
        array([[0. , 1.5]])
    """
    values = _tensor_of_floats(scores) if is_tensor(scores) else as_floats(scores, where=where, name="logits")
    if values.ndim == 0:
        raise ValueError(
            f"{where}: `logits` must have a row per sample, got a single number. Pass an array (n, k)."
        )
    if is_tensor(values):
        if values.ndim > 1:
            values = values.movedim(1, -1).reshape(-1, values.shape[1])
        if values.ndim == 1 or values.shape[1] == 1:
            column = values.reshape(-1)
            return array_namespace(column).stack([column * 0, column], axis=-1)
        return values
    rows = score_rows(values, labels_of(None, values, None), name="logits")
    return positive_logits(rows) if rows.ndim == 1 else rows


def _tensor_of_floats(scores: Any) -> AnyArray:
    scores = scores.detach()
    if not scores.is_floating_point():
        return scores.double()
    return scores.float() if scores.dtype.itemsize < 4 else scores


def one_column(rows: AnyArray, *, gives: str) -> AnyArray:
    """Return the positive class of two-column scores: log-odds, or its probability.

    Example:
        >>> one_column(np.array([[0.5, 2.0]]), gives="logits")
        array([1.5])
    """
    return rows[:, 1] - rows[:, 0] if gives == "logits" else rows[:, 1]


def restore(rows: AnyArray, like: Any, *, gives: str) -> Any:
    """Give calibrated rows the shape, type and precision that the scores came in.

    Example:
        >>> restore(np.zeros((32, 3)), np.zeros((2, 3, 4, 4), np.float32), gives="logits").shape
        (2, 3, 4, 4)
    """
    shape = tuple(np.shape(like))
    if len(shape) == 1 or shape[1] == 1:
        result = one_column(rows, gives=gives).reshape(shape)
    elif is_tensor(rows):
        result = rows.reshape(shape[0], *shape[2:], shape[1]).movedim(-1, 1).contiguous()
    else:
        result = np.moveaxis(rows.reshape(shape[0], *shape[2:], shape[1]), -1, 1)
    if is_tensor(like):
        return result.to(like.dtype) if like.is_floating_point() else result
    if isinstance(like, np.ndarray) and like.dtype.kind == "f":
        return result.astype(like.dtype, copy=False)
    return result


def blocks(n_rows: int, n_classes: int, *, size: int = 1 << 15) -> Iterator[slice]:
    """Yield slices of rows small enough that float64 copies of each stay in the cache.

    Args:
        n_rows: Number of rows.
        n_classes: Numbers in a row.
        size: Numbers in a slice.

    Example:
        >>> [block.stop for block in blocks(5, 1 << 14)]
        [2, 4, 5]
    """
    step = max(1, size // max(1, n_classes))
    for start in range(0, n_rows, step):
        yield slice(start, min(start + step, n_rows))


def is_claims(predictions: Any) -> bool:
    """Say whether only a confidence is known, not the scores of every class.

    Example:
        >>> is_claims(Predictions(predicted=[3], confidence=[0.9], labels=[3]))
        True
    """
    return isinstance(predictions, Predictions) and not predictions.has_scores


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
        groups=predictions.groups,
        split=predictions.split,
        ids=predictions.rows,
        fitted_on=predictions.fitted_on,
    )
    return claims._copy(precision=predictions.precision)
