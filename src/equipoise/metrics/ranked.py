"""Errors over rows in order of confidence: bins of equal mass, and running sums."""

from __future__ import annotations

from typing import Any

import numpy as np

from equipoise.core.array_functions import search_rows
from equipoise.core.arrays import Array
from equipoise.core.bins import check_bins
from equipoise.core.names import check_choice
from equipoise.metrics.inputs import TopLabel, as_predictions, top_label
from equipoise.metrics.sums import running_sums

__all__ = [
    "adaptive_calibration_error",
    "adaptive_edges",
    "adaptive_error",
    "equal_mass_error",
    "error_of_running_sums",
    "kolmogorov_smirnov_error",
    "largest_gap",
    "sweep_calibration_error",
    "thresholded_adaptive_calibration_error",
]

_ADAPTIVE = "adaptive_calibration_error"


def adaptive_calibration_error(
    probs: Any,
    labels: Any = None,
    *,
    n_bins: int = 15,
    construction: str = "interpolated",
    keep_minimum: bool = True,
    sample_weight: Any = None,
) -> float:
    r"""Return the expected calibration error over bins of equal mass of the top-label confidence.

    Where most confidences lie in the last equal-width bin, equal mass still resolves them.

    .. math:: \sum_b \frac{n_b}{n} \left| \mathrm{conf}_b - \mathrm{acc}_b \right|

    Args:
        probs: Probabilities ``(n, k)`` or ``(n,)``; or Predictions alone.
        labels: True classes ``(n,)``.
        n_bins: Bins of equal mass.
        construction: ``"interpolated"``: edges interpolated between sorted confidences, as in the focal, AdaFocal,
            MbLS and CALS repositories; ties make bins unequal. ``"chunks"``: sorted rows cut into pieces of
            ``ceil(n / n_bins)``, as in Kumar et al. (2019); rows of equal confidence are shared out evenly.
        keep_minimum: Count the rows of lowest confidence (interpolated edges only).
        sample_weight: One weight per row.

    Returns:
        A number from 0 to 1.

    Example:
        >>> adaptive_calibration_error([[0.9, 0.1], [0.6, 0.4]], [0, 1], n_bins=1)
        0.25

    Reference:
        Mukhoti et al. (2020), Calibrating deep neural networks using focal loss; Nguyen and O'Connor (2015).

    Differs from the authors' code:
        Their first bin is open below, so every row of the lowest confidence is dropped; ``keep_minimum=False`` does
        the same.
    """
    check_bins(n_bins, "right", where=_ADAPTIVE)
    check_choice(construction, ("interpolated", "chunks"), where=_ADAPTIVE, name="construction")
    top = top_label(probs, labels, sample_weight, where=_ADAPTIVE)
    if construction == "chunks":
        return _chunked_error(top, n_bins)
    return adaptive_error(top, n_bins, keep_minimum=keep_minimum)


def adaptive_error(top: TopLabel, n_bins: int, *, keep_minimum: bool = True) -> float:
    """Return the error over bins whose edges are interpolated between sorted confidences."""
    bounds = np.searchsorted(top.confidence, _interpolated_edges(top, n_bins), side="right")
    if keep_minimum:
        bounds[0] = 0
    # Bins without rows begin where the next one does, and a sum from there would not be theirs.
    starts = bounds[:-1][np.diff(bounds) > 0]
    sums = np.add.reduceat(top.gaps[: bounds[-1]], starts) if len(starts) else np.zeros(1)
    return float(np.abs(sums).sum() / top.total)


def adaptive_edges(probs: Any, labels: Any = None, *, n_bins: int = 15, sample_weight: Any = None) -> Array:
    """Return the interpolated edges of the bins of equal mass, ``(n_bins + 1,)``.

    Example:
        >>> adaptive_edges([[0.9, 0.1], [0.6, 0.4]], [0, 1], n_bins=2)
        array([0.6, 0.9, 0.9])
    """
    check_bins(n_bins, "right", where="adaptive_edges")
    return _interpolated_edges(top_label(probs, labels, sample_weight, where="adaptive_edges"), n_bins)


def _interpolated_edges(top: TopLabel, n_bins: int) -> Array:
    confidence, weight = top.confidence, top.weight
    edges: Array
    if weight is None:
        n = len(confidence)
        position = np.linspace(0, n, n_bins + 1)
        left = np.minimum(position.astype(np.int64), n - 1)
        right = np.minimum(left + 1, n - 1)
        share = np.minimum(position, n - 1) - left
        # This form gives equal neighbors back exactly, so no edge falls just below the rows it should hold.
        edges = confidence[left] + (confidence[right] - confidence[left]) * share
        return edges
    # A row of weight w fills the positions from the weight before it to one less than the weight up to it.
    end = np.cumsum(weight)
    knots = np.stack([end - weight, np.maximum(end - weight, end - 1)], axis=1).reshape(-1)
    edges = np.interp(np.linspace(0, end[-1], n_bins + 1), knots, np.repeat(confidence, 2))
    return edges


def _chunked_error(top: TopLabel, n_bins: int) -> float:
    """Cut the running sum of gaps, straight between ties, at equal steps of weight."""
    cells = top.cells
    position = np.concatenate([[0.0], np.cumsum(cells.mass)])
    running = np.concatenate([[0.0], np.cumsum(cells.mass * cells.confidence - cells.right)])
    total = position[-1]
    step = np.ceil(total / n_bins)
    cuts = np.minimum(step * np.arange(n_bins + 1), total)
    return float(np.abs(np.diff(np.interp(cuts, position, running))).sum() / total)


def kolmogorov_smirnov_error(probs: Any, labels: Any = None, *, sample_weight: Any = None) -> float:
    r"""Return the largest difference of the running sums of confidence and correctness, in order of confidence.

    It needs no bins. A model that is overconfident everywhere scores its mean gap.

    .. math:: \max_t \frac1n \Big| \sum_{i : c_i \le t} (c_i - a_i) \Big|

    Args:
        probs: Probabilities ``(n, k)`` or ``(n,)``; or Predictions alone.
        labels: True classes ``(n,)``.
        sample_weight: One weight per row.

    Returns:
        A number from 0 to 1.

    Example:
        >>> round(kolmogorov_smirnov_error([[0.9, 0.1], [0.6, 0.4]], [0, 1]), 6)
        0.3

    Reference:
        Gupta et al. (2021), Calibration of neural networks using splines.

    Differs from the authors' code:
        The running sum is read where the confidence changes, so rows of equal confidence may come in any order.
    """
    return largest_gap(top_label(probs, labels, sample_weight, where="kolmogorov_smirnov_error"))


def largest_gap(top: TopLabel) -> float:
    """Return the largest running sum of gaps over the weight of all rows, where the confidence changes."""
    cells = top.cells
    is_distinct = len(cells.mass) == len(top.confidence)
    gaps = top.gaps if is_distinct else cells.mass * cells.confidence - cells.right
    running = running_sums(gaps, top.total)
    return float(max(running.max(), -running.min()) / top.total)


def sweep_calibration_error(
    probs: Any, labels: Any = None, *, norm: str = "l1", max_bins: int | None = None
) -> float:
    """Return the calibration error over bins of equal mass, their number chosen by the monotonic sweep.

    Bins are added as long as accuracy does not fall from one bin to the next; too many bins show noise, which breaks
    the order. This lowers the bias of a fixed number of bins.

    Args:
        probs: Probabilities ``(n, k)`` or ``(n,)``; or Predictions alone.
        labels: True classes ``(n,)``.
        norm: ``"l1"`` for mean absolute, ``"l2"`` for root mean square gaps.
        max_bins: Stop at this many bins; by default at one per row.

    Returns:
        A number from 0 to 1.

    Example:
        >>> round(sweep_calibration_error([[0.9, 0.1], [0.6, 0.4]], [0, 1]), 6)
        0.35

    Reference:
        Roelofs et al. (2022), Mitigating bias in calibration error estimation.

    Differs from the authors' code:
        Rows of equal confidence are put in order of correctness, so the result does not depend on their order. Sample
        weights are refused: the sweep is defined by counting rows.
    """
    where = "sweep_calibration_error"
    check_choice(norm, ("l1", "l2"), where=where, name="norm")
    top = top_label(probs, labels, where=where)
    if top.weight is not None:
        raise ValueError(f"{where}: sample weights are not defined here. Use expected_calibration_error.")
    confidence, correct = top.confidence, top.correct
    sums = np.concatenate([[[0.0, 0.0]], np.cumsum(np.stack([confidence, correct], axis=1), axis=0)])
    n, best = len(correct), 0.0
    most = min(n, max_bins or n)
    # If no right prediction stands below a wrong one, accuracy rises whatever the bins.
    fewest = most if (np.diff(correct) >= 0).all() else 1
    for n_bins in range(fewest, most + 1):
        bounds = np.linspace(0, n, n_bins + 1).round().astype(np.int64)
        count = np.diff(bounds)
        pieces = np.diff(sums[bounds], axis=0)
        if (np.diff(pieces[:, 1] / count) < 0).any():
            break
        best = _bin_error(pieces, count, norm)
    return best


def _bin_error(pieces: Array, count: Array, norm: str) -> float:
    gap = (pieces[:, 0] - pieces[:, 1]) / count
    share = count / count.sum()
    return float((share * np.abs(gap)).sum() if norm == "l1" else np.sqrt((share * gap**2).sum()))


_TACE = "thresholded_adaptive_calibration_error"
_ELEMENTS = 1 << 23


def thresholded_adaptive_calibration_error(
    probs: Any,
    labels: Any = None,
    *,
    n_bins: int = 15,
    threshold: float = 0.0,
    keep_minimum: bool = True,
) -> float:
    r"""Return the mean over classes of the calibration error over bins of equal mass (ACE; TACE with a threshold).

    With many classes nearly all probabilities are near zero and drown the rest; the threshold sets them to zero, so
    that they share one bin.

    .. math:: \frac{1}{K} \sum_k \sum_b \frac{n_{kb}}{n} \left| \bar p_{kb} - \mathrm{freq}_{kb} \right|

    Args:
        probs: Probabilities ``(n, k)`` or ``(n,)``; or Predictions alone.
        labels: True classes ``(n,)``.
        n_bins: Bins of equal mass per class.
        threshold: Probabilities below it count as zero: 0 gives ACE, 0.01 the TACE of the paper.
        keep_minimum: Count the rows with a class's lowest probability.

    Returns:
        A number from 0 to 1.

    Example:
        >>> round(thresholded_adaptive_calibration_error([[0.75, 0.25], [0.75, 0.25]], [0, 0], n_bins=2), 6)
        0.25

    Reference:
        Nixon et al. (2019), Measuring calibration in deep learning; edges as in the MDCA repository's metric.

    Differs from the authors' code:
        Their lowest bin is open below and drops each class's minimum; ``keep_minimum=False`` does the same. Sample
        weights are refused: neither construction defines them.
    """
    check_bins(n_bins, "right", where=_TACE)
    predictions = as_predictions(probs, labels, where=_TACE)
    if predictions.weights is not None:
        raise ValueError(f"{_TACE}: sample weights are not defined here. Use classwise_calibration_error.")
    table, n_classes = predictions.probs, predictions.probs.shape[1]
    step = max(1, _ELEMENTS // len(table))
    errors = [
        _class_errors(table[:, k : k + step], predictions.labels, k, n_bins, threshold, keep_minimum)
        for k in range(0, n_classes, step)
    ]
    return float(np.concatenate(errors).mean())


def _class_errors(
    block: Array, labels: Array, first: int, n_bins: int, threshold: float, keep_minimum: bool
) -> Array:
    """Return the errors of some classes at once, a class per row."""
    columns = np.array(block.T, dtype=np.float64, order="C")
    columns[columns < threshold] = 0.0
    hit = labels == first + np.arange(len(columns))[:, None]
    order = np.argsort(columns, axis=1, kind="stable")
    columns = np.take_along_axis(columns, order, axis=1)
    gaps = columns - np.take_along_axis(hit, order, axis=1)
    n = columns.shape[1]
    edges = np.ones((len(columns), n_bins + 1))
    edges[:, :-1] = columns[:, np.arange(n_bins) * (n // n_bins)]
    bounds = search_rows(columns, edges, right=True)
    if keep_minimum:
        bounds[:, 0] = 0
    running = np.concatenate([np.zeros((len(columns), 1)), np.cumsum(gaps, axis=1)], axis=1)
    pieces = np.diff(np.take_along_axis(running, bounds, axis=1), axis=1)
    result: Array = np.abs(pieces).sum(axis=1) / n
    return result


def equal_mass_error(mass: Array, gaps: Array, n_bins: int) -> Array:
    """Return the error over ``n_bins`` bins of equal mass cut from ascending cells, ``(..., m)``."""
    return error_of_running_sums(np.cumsum(mass, axis=-1), np.cumsum(gaps, axis=-1), n_bins)


def error_of_running_sums(position: Array, running: Array, n_bins: int) -> Array:
    """Return the same error from running sums of mass and gaps, ``(..., m)``; one row of mass may serve all of gaps.

    Example:
        >>> float(error_of_running_sums(np.array([1.0, 2.0]), np.array([0.5, 0.0]), 2))
        0.5
    """
    total = position[..., -1:]
    cuts = total * (np.arange(1, n_bins) / n_bins)
    # Shares of the mass, each row one above the row before, so that one search finds the cuts of all rows.
    shares = (position / total).reshape(-1, position.shape[-1])
    row = np.arange(len(shares))[:, None]
    place = np.searchsorted((shares + row).reshape(-1), np.arange(1, n_bins) / n_bins + row)
    cell = np.clip(place - row * shares.shape[-1], 0, shares.shape[-1] - 1).reshape(cuts.shape)
    # Within its cell, a running sum rises evenly.
    previous = np.maximum(cell - 1, 0)
    (low, high), (below, above) = (
        (
            np.where(cell > 0, np.take_along_axis(part, previous, axis=-1), 0.0),
            np.take_along_axis(part, cell, axis=-1),
        )
        for part in (position, running)
    )
    share = np.divide(cuts - low, high - low, out=np.ones_like(low), where=high > low)
    at_cuts = below + share * (above - below)
    ends = [np.zeros_like(running[..., -1:]), at_cuts, running[..., -1:]]
    result: Array = np.abs(np.diff(np.concatenate(ends, axis=-1), axis=-1)).sum(axis=-1) / total[..., 0]
    return result
