"""Accuracy from few labels: which rows to label, and intervals that use the rows without labels."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any, final

import numpy as np
from scipy.stats import norm

from equipoise.core.arrays import Array
from equipoise.core.errors import DataError, SplitError
from equipoise.core.predictions import Predictions
from equipoise.core.rows import check_disjoint
from equipoise.core.seeds import numpy_generator

__all__ = ["LabelPlan", "PoweredRate", "plan_labels", "powered_rate"]

_N_STRATA = 10
#: Least standard deviation of a stratum: confidences of 1 are not always right.
_LEAST_SPREAD = 0.1


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
    z = float(norm.ppf(0.975))
    needed = math.ceil((2 * z * total / width) ** 2)
    overall = float(np.mean(confidence))
    n_random = math.ceil((2 * z / width) ** 2 * max(overall * (1 - overall), _LEAST_SPREAD**2))
    if needed > n:
        raise DataError(
            f"plan_labels: an interval {100 * width:.3g} points wide needs about {needed:,} labels, got {n:,} rows. "
            "Ask for a wider interval."
        )
    share = np.maximum(np.round(needed * size * spread / (size * spread).sum()), 1)
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
        classical_low: Lower end of the interval from the labelled rows alone (Wilson).
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
        SplitError: If rows are in both.

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
    n, big = len(labelled), len(unlabelled)
    if n < 10:
        raise DataError(f"powered_rate: expected at least 10 labelled rows, got {n}. Label more rows.")
    try:
        check_disjoint(labelled.rows, unlabelled.rows, where="powered_rate")
    except SplitError as error:
        shared = str(error).split(" rows were used")[0]
        raise SplitError(
            f"{shared} labelled rows are among the unlabelled rows, too. Leave them out of one of the two; if equal "
            "rows are different samples, identify them by ids."
        ) from None
    y, f = labelled.correct.astype(np.float64), labelled.confidence.astype(np.float64)
    other = unlabelled.confidence.astype(np.float64)
    spread = float(np.var(np.concatenate([f, other])))
    covariance = float(np.mean((y - y.mean()) * (f - f.mean())))
    weight = 0.0 if spread == 0 else float(np.clip(covariance / (spread * (1 + n / big)), 0.0, 1.0))
    value = weight * float(other.mean()) + float(np.mean(y - weight * f))
    tail = float(norm.ppf((1 + level) / 2))
    classical = _wilson(float(y.mean()), n, tail)
    plain = float(y.mean() * (1 - y.mean()))
    residual = float(np.var(y - weight * f)) + weight**2 * float(np.var(other)) * n / big
    # The gain in variance is the gain of an effective number of labels, and the interval is Wilson's for that many.
    gain = 1.0 if plain == 0 or residual <= 0 else min(1.0, residual / plain * n / (n - 2))
    low, high = _wilson(float(np.clip(value, 0.0, 1.0)), n / gain, tail)
    return PoweredRate(
        float(np.clip(value, 0, 1)), low, high, *classical, n=n, n_unlabelled=big, weight=weight
    )


def _wilson(rate: float, n: float, tail: float) -> tuple[float, float]:
    middle = (rate + tail**2 / (2 * n)) / (1 + tail**2 / n)
    reach = tail / (1 + tail**2 / n) * math.sqrt(rate * (1 - rate) / n + tail**2 / (4 * n**2))
    return max(0.0, middle - reach), min(1.0, middle + reach)
