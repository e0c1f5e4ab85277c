"""Accuracy from few labels: which rows to label, and intervals that use the rows without labels."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, replace
from typing import Any, final

import numpy as np
from scipy.stats import beta, norm

from equipoise.core.arrays import Array
from equipoise.core.errors import DataError
from equipoise.core.predictions import Predictions
from equipoise.core.rows import check_disjoint
from equipoise.core.seeds import numpy_generator
from equipoise.metrics.intervals import check_level

__all__ = [
    "LabelPlan",
    "PoweredRate",
    "plan_labels",
    "powered_interval",
    "powered_rate",
    "stratified_interval",
    "stratified_rate",
]

_N_STRATA = 5
#: Fewest rows of a stratum to label.
_FEWEST_ROWS = 10
#: Least standard deviation of a stratum: confidences of 1 are not always right.
_LEAST_SPREAD = 0.1
#: With fewer outcomes of one kind among the labels, intervals are exact instead of Wilson's.
_FEW_OUTCOMES = 5


@final
@dataclass(frozen=True, eq=False)
class LabelPlan:
    """Rows to label.

    Attributes:
        rows: Numbers of the rows, ascending.
        stratum: Stratum of confidence of each of them, from the lowest.
        weight: How many rows each of them stands for.
        width: Width of the 95% interval that was requested.
        n_random: Rows that a simple random sample would need.
    """

    rows: Array
    stratum: Array
    weight: Array
    width: float
    n_random: int

    def describe(self) -> str:
        """Return the plan in one sentence."""
        return (
            f"Label {len(self.rows):,} rows for a 95% interval of the accuracy that is {100 * self.width:.3g} points "
            f"wide, if the confidences are about right; a random sample would need {self.n_random:,}."
        )


def plan_labels(predictions: Predictions, *, width: float, seed: int = 0) -> LabelPlan:
    """Choose rows to label: stratified by confidence, more where predictions are uncertain (Neyman allocation).

    Args:
        predictions: Predictions; labels are not used.
        width: Width of the 95% interval of the accuracy, such as 0.02.
        seed: Random seed of the choice.

    Raises:
        DataError: If there are fewer rows than would have to be labelled.

    Example:
        >>> rows = Predictions(probs=np.random.default_rng(0).beta(8, 1, 20000))
        >>> plan = plan_labels(rows, width=0.02)
        >>> len(plan.rows) < plan.n_random
        True
    """
    if not 0 < width < 1:
        raise ValueError(f"plan_labels: `width` must be between 0 and 1, got {width}. 2% is 0.02.")
    confidence = predictions.confidence.astype(np.float64)
    n = len(confidence)
    order = np.argsort(confidence, kind="stable")
    stratum = np.empty(n, np.int64)
    stratum[order] = np.arange(n) * _N_STRATA // n
    size = np.bincount(stratum, minlength=_N_STRATA)
    mean = np.bincount(stratum, confidence, _N_STRATA) / np.maximum(size, 1)
    spread = np.maximum(np.sqrt(mean * (1 - mean)), _LEAST_SPREAD)
    total = float((size / n * spread).sum())
    overall = float(np.clip(np.mean(confidence), _LEAST_SPREAD**2, 1 - _LEAST_SPREAD**2))
    sizes = np.unique(np.geomspace(10, 1e9, 20_000).astype(np.int64))
    low, high = _interval(overall, sizes, sizes * overall, sizes * (1 - overall), 0.95)
    # Beyond the largest size the width of the request does not matter: no file has so many rows.
    n_random = int(sizes[min(int(np.count_nonzero(high - low > width)), len(sizes) - 1)])
    needed = max(math.ceil(n_random * total**2 / (overall * (1 - overall))), _N_STRATA * _FEWEST_ROWS)
    if needed > n:
        raise DataError(
            f"plan_labels: an interval {100 * width:.3g} points wide needs about {needed:,} labels, got {n:,} rows. "
            "Ask for a wider interval."
        )
    share = np.maximum(np.round(needed * size * spread / (size * spread).sum()), _FEWEST_ROWS)
    share = np.minimum(share, size).astype(np.int64)
    mixed = numpy_generator(seed, "labels").permutation(n)
    # The first rows of every stratum in a random order.
    by_stratum = mixed[np.argsort(stratum[mixed], kind="stable")]
    place = np.arange(n) - (np.cumsum(size) - size)[stratum[by_stratum]]
    rows = np.sort(by_stratum[place < share[stratum[by_stratum]]])
    return LabelPlan(rows, stratum[rows], (size / np.maximum(share, 1))[stratum[rows]], width, n_random)


@final
@dataclass(frozen=True)
class PoweredRate:
    """A rate from labelled and unlabelled rows.

    Attributes:
        value: The estimate.
        low: Lower end of its interval.
        high: Upper end.
        classical_low: Lower end of the interval of as many random rows, without confidences.
        classical_high: Upper end.
        n: Labelled rows.
        n_unlabelled: Unlabelled rows.
        weight: How much the confidences count, from 0 (not at all) to about 1.
    """

    value: float
    low: float
    high: float
    classical_low: float
    classical_high: float
    n: int
    n_unlabelled: int
    weight: float

    @property
    def width_ratio(self) -> float:
        """Width of the interval relative to the one from the labelled rows alone."""
        return (self.high - self.low) / (self.classical_high - self.classical_low)

    @property
    def of_errors(self) -> PoweredRate:
        """The rate of wrong predictions instead of right ones."""
        return replace(
            self,
            value=1 - self.value,
            low=1 - self.high,
            high=1 - self.low,
            classical_low=1 - self.classical_high,
            classical_high=1 - self.classical_low,
        )

    def as_dict(self) -> dict[str, Any]:
        """Return the fields as plain values, for JSON."""
        return asdict(self)


def powered_rate(labelled: Predictions, unlabelled: Predictions, *, level: float = 0.95) -> PoweredRate:
    r"""Estimate the accuracy from a random sample of labelled rows and many rows without labels.

    Prediction-powered inference with a weight :math:`\lambda` that minimizes the variance:
    :math:`\lambda \bar f_N + \overline{(y - \lambda f)}_n`, where :math:`f` is the confidence and :math:`y` whether the
    prediction is right. The interval holds whether the confidences are calibrated or not. The better they order the
    rows, the shorter it is. The labelled rows must be a random sample of the same source.

    Args:
        labelled: Labelled predictions.
        unlabelled: Predictions of other rows; labels are not used.
        level: Probability with which the interval contains the rate.

    Raises:
        DataError: If there are fewer than ten labelled rows.
        SplitError: If rows are in both, or labelled rows were used to fit the calibrator behind the confidences.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> p = rng.beta(4, 1, 10000)
        >>> right = (rng.random(10000) < p).astype(int)
        >>> rows = Predictions(predicted=np.ones(10000, int), confidence=p, labels=right)
        >>> found = powered_rate(rows.take(slice(0, 300)), rows.take(slice(300, 10000)))
        >>> bool(found.low < right.mean() < found.high), found.width_ratio < 1
        (True, True)

    Reference:
        Angelopoulos, Duchi, Zrnic (2023), PPI++: efficient prediction-powered inference.
    """
    check_level(level, where="powered_rate")
    n, big = len(labelled), len(unlabelled)
    if n < 10:
        raise DataError(f"powered_rate: expected at least 10 labelled rows, got {n}. Label more rows.")
    if labelled.weights is not None:
        raise DataError(
            "powered_rate: expected a random sample without weights, got weights. For rows that `plan` chose, give "
            "their strata to `stratified_rate` (--strata)."
        )
    problem = "labelled rows are among the unlabelled rows, too. Leave them out of one of the two."
    some, many = labelled.rows_without_outcomes, unlabelled.rows_without_outcomes
    check_disjoint(some, many, where="powered_rate", problem=problem)
    if labelled.fitted_on is not None:
        check_disjoint(labelled.rows, labelled.fitted_on, where="powered_rate")
    y, f = labelled.correct.astype(np.float64), labelled.confidence.astype(np.float64)
    other = unlabelled.confidence.astype(np.float64)
    value, low, high, weight = (
        float(one) for one in powered_interval(y, f, other.mean(), other.var(), big, level=level)
    )
    old_low, old_high = map(float, _interval(y.mean(), n, y.sum(), n - y.sum(), level))
    return PoweredRate(value, low, high, old_low, old_high, n=n, n_unlabelled=big, weight=weight)


def powered_interval(
    y: Array, f: Array, mean: Array | float, variance: Array | float, n_other: int, *, level: float = 0.95
) -> tuple[Array, Array, Array, Array]:
    """Return estimate, ends of its interval and weight of the confidences, for one sample or several at once.

    The gain in variance counts as a gain in labels: the interval is Wilson's for the effective number of labels, or
    Clopper and Pearson's if fewer than five labels are right, or wrong.

    Args:
        y: Whether labelled predictions are right, ``(..., n)``.
        f: Their confidences.
        mean: Mean confidence of the unlabelled rows.
        variance: Their variance.
        n_other: How many there are.
        level: Probability with which the interval contains the rate.

    Example:
        >>> y, f = np.array([1.0, 0.0] * 20), np.array([0.8, 0.3] * 20)
        >>> value, low, high, weight = powered_interval(y, f, 0.6, 0.06, 1000)
        >>> bool(value > 0.5), bool(low < value < high)
        (True, True)
    """
    n = y.shape[-1]
    right = y.sum(axis=-1)
    raw = right / n
    covariance = np.mean((y - raw[..., None]) * (f - f.mean(axis=-1, keepdims=True)), axis=-1)
    total = (n * f.var(axis=-1) + n_other * np.asarray(variance)) / (n + n_other)
    weight = np.clip(covariance / np.maximum(total * (1 + n / n_other), 1e-300), 0.0, 1.0)
    value = np.clip(raw + weight * (mean - f.mean(axis=-1)), 0.0, 1.0)
    residual = np.var(y - weight[..., None] * f, axis=-1) + weight**2 * variance * n / n_other
    plain = np.maximum(raw * (1 - raw), 1e-300)
    gain = np.where((raw == 0) | (raw == 1), 1.0, np.minimum(1.0, residual / plain * n / (n - 2)))
    low, high = _interval(value, n / np.maximum(gain, 1e-6), right, n - right, level)
    return value, low, high, weight


def stratified_rate(labelled: Predictions, strata: Array, *, level: float = 0.95) -> PoweredRate:
    """Estimate the accuracy from rows that :func:`plan_labels` chose.

    The interval is for the source of the predictions. For the accuracy of exactly these predictions it is too wide if
    the plan labels many of them.

    Args:
        labelled: The rows of the plan with labels, and the plan's weights.
        strata: The plan's stratum of each row.
        level: Probability with which the interval contains the rate.

    Raises:
        DataError: If there are no weights, a stratum has fewer than two rows, or its rows have different weights or
            weights below 1.
        SplitError: If the rows were used to fit the calibrator behind the confidences.

    Example:
        >>> p = np.random.default_rng(0).beta(4, 1, 20000)
        >>> plan = plan_labels(Predictions(predicted=np.ones(20000, int), confidence=p), width=0.05)
        >>> right = (np.random.default_rng(1).random(20000) < p).astype(int)
        >>> rows = Predictions(predicted=np.ones(len(plan.rows), int), confidence=p[plan.rows],
        ...     labels=right[plan.rows], weights=plan.weight)
        >>> found = stratified_rate(rows, plan.stratum)
        >>> bool(found.low < right.mean() < found.high), round(found.high - found.low, 2)
        (True, 0.05)
    """
    where = "stratified_rate"
    check_level(level, where=where)
    if labelled.weights is None:
        raise DataError(f"{where}: expected rows with weights, got none. Give the plan's column of weights.")
    if labelled.fitted_on is not None:
        check_disjoint(labelled.rows, labelled.fitted_on, where=where)
    codes = np.unique(strata, return_inverse=True)[1]
    n = np.bincount(codes).astype(np.float64)
    if len(codes) != len(labelled) or n.min() < 2:
        raise DataError(
            f"{where}: expected at least two rows of every stratum, got {n.min():.0f}. Label more."
        )
    y, weights = labelled.correct.astype(np.float64), labelled.weights
    share = np.bincount(codes, weights) / weights.sum()
    if weights.min() < 0.999 or not np.allclose(weights, (np.bincount(codes, weights) / n)[codes], rtol=1e-3):
        raise DataError(
            f"{where}: rows of one stratum must have one weight, at least 1. Use the weights of `plan_labels`."
        )
    right = np.bincount(codes, y)
    ends = stratified_interval(right, n, share, weights.sum(), level=level)
    value, low, high = (float(one) for one in ends)
    old_low, old_high = map(float, _interval(value, len(y), right.sum(), len(y) - right.sum(), level))
    return PoweredRate(value, low, high, old_low, old_high, n=len(y), n_unlabelled=0, weight=0.0)


def stratified_interval(
    right: Array, n: Array, share: Array, n_rows: float, *, level: float = 0.95
) -> tuple[Array, Array, Array]:
    """Return estimate and ends of its interval from counts by stratum, for one sample or several at once.

    The interval is Wilson's for the number of random rows that would have the same variance, or Clopper and Pearson's
    if fewer than five labels are right, or wrong. The variance includes that the rows of the plan are themselves a
    sample of their source.

    Args:
        right: Right rows of each stratum ``(..., s)``.
        n: Labelled rows of each stratum ``(s,)``.
        share: Share of each stratum among all rows ``(s,)``.
        n_rows: Number of all rows, labelled or not.
        level: Probability with which the interval contains the rate.

    Example:
        >>> value, low, high = stratified_interval(np.array([30, 48]), np.array([50, 50]), np.array([0.2, 0.8]), 5000)
        >>> round(float(value), 3), bool(low < value < high)
        (0.888, True)
    """
    value = right / n @ share
    n_right, total = right.sum(axis=-1), n.sum()
    # Half a row at about the estimated rate keeps strata without errors from counting as certain. A whole row, or one
    # at the mean rate of the labels, where uncertain rows are many, makes intervals too wide.
    middle = (value * total + 1) / (total + 2)
    rate = (right + middle[..., None] / 2) / (n + 0.5)
    middle = rate @ share
    variance = rate * (1 - rate) / (n - 1) @ share**2 + (rate - middle[..., None]) ** 2 @ share / n_rows
    low, high = _interval(value, middle * (1 - middle) / variance, n_right, total - n_right, level)
    return value, low, high


def _interval(
    rate: Array | float, n: Array | float, right: Array | float, wrong: Array | float, level: float
) -> tuple[Array, Array]:
    """Return Wilson's interval; the exact one where few labels are right, or wrong."""
    tail = float(norm.ppf((1 + level) / 2))
    middle = (rate + tail**2 / (2 * n)) / (1 + tail**2 / n)
    reach = tail / (1 + tail**2 / n) * np.sqrt(rate * (1 - rate) / n + tail**2 / (4 * n**2))
    hits = rate * n
    few = np.minimum(right, wrong) < _FEW_OUTCOMES
    exact_low = beta.ppf((1 - level) / 2, np.maximum(hits, 1e-9), n - hits + 1)
    exact_high = beta.ppf((1 + level) / 2, hits + 1, np.maximum(n - hits, 1e-9))
    return np.where(few, exact_low, middle - reach).clip(0, 1), np.where(
        few, exact_high, middle + reach
    ).clip(0, 1)
