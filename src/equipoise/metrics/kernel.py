"""Errors with a kernel estimate of the accuracy near each prediction: KDE-ECE and SECE."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.special import gammaln, logsumexp

from equipoise.core.arrays import Array
from equipoise.core.names import check_choice
from equipoise.core.predictions import Predictions
from equipoise.metrics.inputs import as_predictions, check_bandwidth, top_label

__all__ = ["choose_bandwidth", "gaussian_calibration_error", "kernel_calibration_error"]

_ELEMENTS = 1 << 22
_FLOOR = 1e-12


def kernel_calibration_error(
    probs: Any,
    labels: Any = None,
    *,
    bandwidth: float | None = None,
    target: str = "canonical",
    power: int = 1,
) -> float:
    r"""Return the calibration error of the whole probability vector, estimated with a Dirichlet kernel.

    Each row's outcome is predicted from the other rows, weighted by a kernel that lives on the simplex; the error is
    the mean distance to what the row itself said. The canonical form sees errors that no single class shows. Time grows
    with the square of the rows; memory does not.

    .. math:: \frac1n \sum_i \Big\| \frac{\sum_{j \ne i} K_h(p_i; p_j)\, e_{y_j}}{\sum_{j \ne i} K_h(p_i; p_j)} - p_i
        \Big\|_q^q

    Args:
        probs: Probabilities ``(n, k)`` or ``(n,)``; or Predictions alone.
        labels: True classes ``(n,)``.
        bandwidth: Width *h* of the kernel; by default :func:`choose_bandwidth` picks it.
        target: ``"canonical"``: the whole vector; ``"top_label"``: confidence against correctness; ``"classwise"``:
            the sum over classes of one-against-rest errors; ``"positive"``: class 1 of two.
        power: The power *q* of the distance; no root is taken.

    Returns:
        A number from 0 up.

    Example:
        >>> rows = [[0.7, 0.3], [0.6, 0.4], [0.2, 0.8]]
        >>> round(kernel_calibration_error(rows, [0, 0, 1], bandwidth=0.1), 4)
        0.9638

    Reference:
        Popordanoska, Sayer and Blaschko (2022), A consistent and differentiable Lp canonical calibration error
        estimator.

    Differs from the authors' code:
        Kernels are summed in log space, so isolated rows keep their nearest neighbor where theirs clamp the sum at
        1e-10; probabilities are kept above 1e-12. A single probability column is not counted twice.
    """
    where = "kernel_calibration_error"
    check_choice(target, ("canonical", "top_label", "classwise", "positive"), where=where, name="target")
    predictions = as_predictions(probs, labels, where=where)
    if len(predictions) < 2:
        raise ValueError(f"{where}: needs at least two rows, got {len(predictions)}.")
    if predictions.weights is not None:
        raise ValueError(f"{where}: sample weights are not defined here. Use expected_calibration_error.")
    if target == "positive" and predictions.n_classes != 2:
        raise ValueError(
            f"{where}: target='positive' is for two classes, got {predictions.n_classes}. Use 'classwise'."
        )
    points, outcomes = _points(predictions, target)
    width = choose_bandwidth(points[:, 0]) if bandwidth is None else float(bandwidth)
    check_bandwidth(width, where=where)
    columns = (0,) if target in ("top_label", "positive") else slice(None)
    errors = [
        _error(points[:, k], outcomes[:, k], width, power, columns if points.shape[1] == 1 else (0,))
        for k in range(points.shape[1])
    ]
    return float(np.sum(errors))


def _points(predictions: Predictions, target: str) -> tuple[Array, Array]:
    """Return points on simplices and one-hot outcomes, ``(n, problems, classes)``."""
    if target == "canonical":
        probs = predictions.probs.astype(np.float64)
        return probs[:, None], np.eye(probs.shape[1])[predictions.labels][:, None]
    if target == "top_label":
        value, hit = predictions.confidence.astype(np.float64)[:, None], predictions.correct[:, None]
    else:
        value = predictions.probs.astype(np.float64)
        hit = predictions.labels[:, None] == np.arange(value.shape[1])
        if target == "positive":
            value, hit = value[:, 1:2], hit[:, 1:2]
    return np.stack([value, 1 - value], axis=-1), np.stack([hit, ~hit], axis=-1).astype(np.float64)


@np.errstate(under="ignore")
def _error(points: Array, outcomes: Array, width: float, power: int, columns: Any) -> float:
    total = 0.0
    for rows, kernel in _log_kernels(points, width):
        share = np.exp(kernel - logsumexp(kernel, axis=1, keepdims=True))
        distance = np.abs(share @ outcomes - points[rows])[:, columns]
        total += float((distance**power).sum())
    return total / len(points)


def _log_kernels(points: Array, width: float) -> Any:
    """Yield blocks of rows and their log kernels to all points; a point is no neighbor of itself."""
    safe = np.clip(points, _FLOOR, 1.0)
    safe /= safe.sum(axis=1, keepdims=True)
    alpha = safe / width
    norm = gammaln(alpha + 1).sum(axis=1) - gammaln(1 / width + safe.shape[1])
    logs = np.log(safe)
    step = max(1, _ELEMENTS // len(safe))
    for start in range(0, len(safe), step):
        rows = np.arange(start, min(start + step, len(safe)))
        kernel = logs[rows] @ alpha.T - norm
        kernel[np.arange(len(rows)), rows] = -np.inf
        yield rows, kernel


@np.errstate(under="ignore")
def choose_bandwidth(
    probs: Array, *, candidates: Sequence[float] | None = None, normalizer: str = "density"
) -> float:
    """Return the bandwidth under which every row is most likely given the others.

    Args:
        probs: Points on the simplex ``(n, k)``.
        candidates: Widths to try; by default 15 from 1e-5 to 0.1 and 0.2, 0.4, 0.6, 0.8, 1.
        normalizer: ``"density"``: leave-one-out likelihood; ``"published"``: the authors' criterion, which divides
            by the width once more and so prefers smaller ones.

    Returns:
        The best candidate.

    Example:
        >>> choose_bandwidth(np.array([[0.7, 0.3], [0.6, 0.4], [0.2, 0.8]]), candidates=[0.01, 0.1])
        0.1

    Differs from the authors' code:
        Theirs starts the search at likelihood one and returns -1 if no candidate beats it.
    """
    check_choice(normalizer, ("density", "published"), where="choose_bandwidth", name="normalizer")
    widths = [*np.logspace(-5, -1, 15), 0.2, 0.4, 0.6, 0.8, 1.0] if candidates is None else list(candidates)
    extra = -np.log(widths) if normalizer == "published" else np.zeros(len(widths))
    likelihood = [_log_likelihood(probs, float(width)) for width in widths]
    return float(widths[int(np.argmax(np.array(likelihood) + len(probs) * extra))])


def _log_likelihood(points: Array, width: float) -> float:
    return sum(
        float((logsumexp(kernel, axis=1) - np.log(len(points) - 1)).sum())
        for _, kernel in _log_kernels(points.astype(np.float64), width)
    )


@np.errstate(under="ignore")
def gaussian_calibration_error(
    probs: Any,
    labels: Any = None,
    *,
    bandwidth: float = 0.01,
    include_self: bool = True,
    power: int = 1,
    sample_weight: Any = None,
) -> float:
    r"""Return the mean distance between confidence and the accuracy of rows with similar confidence.

    .. math:: \frac1n \sum_i \Big| \frac{\sum_j K_h(c_i - c_j) a_j}{\sum_j K_h(c_i - c_j)} - c_i \Big|^q, \quad
        K_h(u) = e^{-u^2 / 2 h^2}

    Args:
        probs: Probabilities ``(n, k)`` or ``(n,)``; or Predictions alone.
        labels: True classes ``(n,)``.
        bandwidth: Width *h*; the paper uses 0.01.
        include_self: Let a row be its own neighbor. Where neighbors are few this pulls every accuracy to 0 or 1 and
            the error up; without it, the nearest other row decides.
        power: The power *q*; no root is taken.
        sample_weight: One weight per row.

    Returns:
        A number from 0 to 1.

    Example:
        >>> round(gaussian_calibration_error([[0.9, 0.1], [0.9, 0.1]], [0, 1]), 6)
        0.4

    Reference:
        Wang and Golebiowski (2024), Towards unbiased calibration using meta-regularization. Reconstruction: no code is
        public, and whether a row counts itself is not said.
    """
    where = "gaussian_calibration_error"
    check_bandwidth(bandwidth, where=where)
    top = top_label(probs, labels, sample_weight, where=where)
    confidence, correct = top.confidence, top.correct
    weight = np.ones(len(correct)) if top.weight is None else top.weight
    if not include_self and len(correct) < 2:
        raise ValueError(f"{where}: include_self=False needs at least two rows, got {len(correct)}.")
    total, step = 0.0, max(1, _ELEMENTS // len(correct))
    for start in range(0, len(correct), step):
        rows = np.arange(start, min(start + step, len(correct)))
        log_kernel = -0.5 * ((confidence[rows, None] - confidence) / bandwidth) ** 2
        if not include_self:
            log_kernel[np.arange(len(rows)), rows] = -np.inf
        # Shifting by the nearest neighbor keeps isolated rows from dividing zero by zero.
        kernel = np.exp(log_kernel - log_kernel.max(axis=1, keepdims=True)) * weight
        smooth = kernel @ correct / kernel.sum(axis=1)
        total += float(weight[rows] @ np.abs(smooth - confidence[rows]) ** power)
    return total / float(weight.sum())
