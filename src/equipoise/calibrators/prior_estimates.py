"""Class frequencies of rows without labels: maximum likelihood, its correction by labeled rows, and intervals."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
from scipy.special import expit, logit, ndtri

from equipoise.calibrators.softmax_regression import Diagonal, QuadraticPenalty, fit_softmax
from equipoise.core.array_functions import softmax
from equipoise.core.arrays import Array
from equipoise.core.errors import DataError
from equipoise.core.escaping import visible
from equipoise.core.seeds import numpy_generator

__all__ = [
    "TAIL",
    "LabeledRows",
    "adapt_by_class",
    "bootstrap_interval",
    "class_text",
    "correct_by_labels",
    "effective_rows",
    "estimate_priors",
    "warn_of_few_rows",
    "with_mass",
]

#: Each end of an interval leaves out so much.
TAIL = 0.025
_TOLERANCE = 1e-9
_MOST_STEPS = 5000
# Changes of log-odds that are looked at, and how often a range is halved to find a value in it.
_MOST_TILT, _N_TILTS, _HALVINGS = 40.0, 25, 25
# Every row can be of every class, with so much probability.
_LEAST_SHARE = 1e-12
# Ridge that shrinks the scale of each class to 1, in units of the log-likelihood.
_RIDGE = 4.0
# For the scatter within classes, new rows count at most so many times as much as labeled ones.
_MOST_NEW = 2.0
# Intervals were simulated with so many reference rows of every class.
_FEW_ROWS = 40


def estimate_priors(probs: Array, trained_priors: Array, weights: Array | None = None) -> Array:
    r"""Estimate the class frequencies of unlabeled rows from calibrated probabilities, by maximum likelihood.

    .. math:: \pi' \leftarrow \operatorname{mean}_i p'_i, \qquad p'_{ik} \propto p_{ik} \pi'_k / \pi_k

    The likelihood is concave, so that the iteration has one end.

    Args:
        probs: ``(n, k)``, calibrated for rows with the frequencies ``trained_priors``.
        trained_priors: ``(k,)``, above 0, summing to 1.
        weights: ``(n,)``, or ``(n, b)`` for b estimates at once.

    Returns:
        ``(k,)`` or ``(k, b)``.

    Example:
        >>> probs = np.array([[0.9, 0.1]] * 9 + [[0.1, 0.9]])  # frequencies were even, and one row in ten is of class 1
        >>> estimate_priors(probs, np.array([0.5, 0.5])).round(3)
        array([1., 0.])

    Reference:
        Saerens, Latinne, Decaestecker (2002), Adjusting the outputs of a classifier to new a priori probabilities.
    """
    relative = probs / trained_priors
    share = np.ones((len(probs), 1)) if weights is None else weights.reshape(len(probs), -1)
    share = share / share.sum(axis=0)
    priors = np.repeat(trained_priors[:, None], share.shape[1], axis=1)
    for _ in range(_MOST_STEPS):
        fresh = priors * (relative.T @ (share / np.maximum(relative @ priors, 1e-300)))
        change = np.abs(fresh - priors).max()
        priors = fresh / fresh.sum(axis=0)
        if change < _TOLERANCE:
            break
    return priors if weights is not None and weights.ndim == 2 else priors[:, 0]


def bootstrap_interval(probs: Array, old: Array, weights: Array, n_resamples: int, seed: int) -> Array:
    """Return the 95% interval of each estimate by resampling rows, ``(2, k)``, as if the calibrator were exact."""
    draws = numpy_generator(seed, "prior_shift").multinomial(
        len(probs), weights / weights.sum(), size=n_resamples
    )
    resampled = estimate_priors(probs, old, draws.T.astype(np.float64))
    return np.quantile(resampled, [0.025, 0.975], axis=1)


class LabeledRows(NamedTuple):
    """Labeled rows with the old frequencies.

    Attributes:
        probs: Calibrated probabilities with the offsets, ``(n, k)``.
        weights: Row weights, ``(n,)``.
        shares: Share of each row in its class, ``(n, k)``; columns sum to 1.
        frequencies: Frequencies of the labels, ``(k,)``.
        offset: What the log-probabilities lack to have these frequencies, ``(k,)``.
        scales: A scale and an offset for the log-probabilities of each class, ``(2, k)``.
    """

    probs: Array
    weights: Array
    shares: Array
    frequencies: Array
    offset: Array
    scales: Array

    @classmethod
    def of(
        cls, log_probs: Array, labels: Array, weights: Array, class_names: Sequence[str] | None = None
    ) -> LabeledRows:
        """Return labeled rows from their calibrated log-probabilities; class names are for messages.

        Raises:
            DataError: If a class has fewer than two rows.
        """
        hits = np.equal(labels[:, None], np.arange(log_probs.shape[1])) * weights[:, None]
        counts = np.count_nonzero(hits, axis=0)
        fewest = int(np.argmin(counts))
        if counts[fewest] < 2:
            raise DataError(
                f"PriorShift.fit_unlabeled: `reference` must have at least two rows of every class, got "
                f"{counts[fewest]} of {class_text(fewest, class_names)}. Give more labeled rows."
            )
        frequencies = hits.sum(axis=0) / hits.sum()
        offset = np.zeros(log_probs.shape[1])
        # At the maximum of the likelihood, probabilities have the labels' frequencies.
        for _ in range(_MOST_STEPS):
            step = np.log(frequencies / np.average(softmax(log_probs + offset), axis=0, weights=weights))
            offset += step
            if np.abs(step).max() < _TOLERANCE:
                break
        scales = _scales_of_classes(log_probs, labels, weights)
        return cls(softmax(log_probs + offset), weights, hits / hits.sum(axis=0), frequencies, offset, scales)

    @property
    def n_rows(self) -> Array:
        """Effective number of rows of each class."""
        counts: Array = 1.0 / (self.shares**2).sum(axis=0)
        return counts


def adapt_by_class(log_probs: Array, weights: Array, labeled: LabeledRows) -> Array:
    """Return the probability that each new row is of each class, for estimates of scatter.

    Labeled rows correct the estimated frequencies, but not how rows are shared among classes. If one class is
    recognized better than others and one temperature serves all, too many rows are assigned to the wrong class where
    one class takes nearly all rows, and intervals are too wide. So each class has its own scale.
    """
    probs = softmax(np.maximum(log_probs, np.log(_LEAST_SHARE)) * labeled.scales[0] + labeled.scales[1])
    old, n_rows = labeled.frequencies, effective_rows(weights)
    new = n_rows * estimate_priors(probs, old, weights) + 1
    adapted = probs * (new / old) + _LEAST_SHARE
    result: Array = adapted / adapted.sum(axis=1, keepdims=True)
    return result


def correct_by_labels(
    probs: Array, adapted: Array, weights: Array, labeled: LabeledRows, start: Array
) -> tuple[Array, Callable[[float], Array]]:
    r"""Correct an estimate by labeled rows, and return it with the interval that leaves out so much at each end.

    Let :math:`h_k = (p_k / \pi_k) / \sum_j p_j \pi'_j / \pi_j`, the derivative of the log-likelihood at EM's estimate.
    Whatever the calibrator is worth, its mean over new rows is :math:`H \pi'`, where column :math:`y` of :math:`H` is
    the mean over labeled rows of class :math:`y`. So :math:`\psi = H^{-1} h` has the mean :math:`\pi'`, and mean 1 or 0
    within each class. The interval has all frequencies whose distance from the estimate is at most the normal quantile
    times the standard error *that they would have* (as Wilson's interval for a proportion, which it is for a perfect
    classifier).
    """
    old, n_rows = labeled.frequencies, effective_rows(weights)
    # One row more of each class: where EM finds none, the first would count too much.
    start = (n_rows * start + 1) / (n_rows + len(start))
    new_h, old_h = (one / old / (one @ (start / old))[:, None] for one in (probs, labeled.probs))
    inverse = np.linalg.pinv(labeled.shares.T @ old_h)
    new_psi, share = new_h @ inverse, weights / weights.sum()
    estimate = share @ new_psi
    held, scatter = _scatter(adapted, new_psi, share, n_rows, old_h @ inverse, labeled)
    return np.clip(estimate, 0, 1), partial(_ends, estimate, held, scatter, n_rows)


def _scatter(
    adapted: Array, psi: Array, share: Array, n_rows: float, old_psi: Array, labeled: LabeledRows
) -> tuple[Array, Array]:
    r"""Return the variance of the estimates from the scatter of :math:`\psi` within classes.

    Labeled rows alone know little about this scatter. If 2 of 50 rows look like another class, 5 could have as well:
    then the estimate for that class is too large just where its variance is too small. So new rows count, too. They are
    shared among the classes by their adapted probabilities, whose log-odds for one class are tilted, from rows of this
    class being rare among the new ones to their being frequent. These shares are as good as the calibrator, whose error
    does not fall with the number of new rows. So new rows of a class count at most twice as much as its labeled rows.

    Returns:
        For each tilt (rows) and class: its share of the new rows, and the variance.
    """
    log_odds, share = logit(adapted), share[:, None]
    few = 0.5 / n_rows
    middle = _tilt(log_odds, share, np.clip(share[:, 0] @ psi, few, 1 - few))
    n_labeled = labeled.n_rows[:, None]
    old_first, old_square = (labeled.shares.T @ old_psi**power for power in (1, 2))
    held, scatter = [], []
    for tilt in np.sinh(np.linspace(-1, 1, _N_TILTS) * np.arcsinh(_MOST_TILT)):
        own = share * expit(log_odds + middle + tilt)
        others = (share - own) / (1 - adapted)
        sums = []  # by class that has the rows, and class that is tilted
        for values in (np.ones_like(psi), psi, psi**2):
            found = adapted.T @ (others * values)
            np.fill_diagonal(found, (own * values).sum(axis=0))
            sums.append(found)
        frequency, first, square = sums
        n_new = n_rows * np.minimum(1, _MOST_NEW * n_labeled / np.maximum(n_rows * frequency, 1e-300))
        count = n_labeled + n_new * frequency
        mean = (n_labeled * old_first + n_new * first) / count
        variance = (n_labeled * old_square + n_new * square) / count - mean**2
        variance = np.maximum(variance, 0) * count / (count - 1)
        held.append(np.diag(frequency))
        scatter.append((variance * (frequency / n_rows + frequency**2 / n_labeled)).sum(axis=0))
    return np.stack(held), np.stack(scatter)


def _tilt(log_odds: Array, share: Array, frequency: Array) -> Array:
    """Return what the log-odds of each class lack to have a frequency."""
    low, high = np.full(len(frequency), -_MOST_TILT), np.full(len(frequency), _MOST_TILT)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        below = (share * expit(log_odds + middle)).sum(axis=0) < frequency
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    found: Array = (low + high) / 2
    return found


def _ends(estimate: Array, held: Array, scatter: Array, n_rows: float, tail: float) -> Array:
    """Return the lowest and the highest frequency that the estimates allow, ``(2, k)``."""
    quantile, columns = ndtri(tail) ** 2, np.arange(len(estimate))

    def allowed(frequency: Array) -> Array:
        drawn = frequency * (1 - frequency) / n_rows
        low, high = np.zeros(len(estimate)), np.full(len(estimate), len(held) - 1.0)
        for _ in range(_HALVINGS):
            position = (low + high) / 2
            before = np.minimum(position.astype(np.int64), len(held) - 2)
            part = position - before
            own, within = (
                one[before, columns] * (1 - part) + one[before + 1, columns] * part for one in (held, scatter)
            )
            # If so, so much of the difference is expected from the draw of rows, and the rest from scatter.
            expected = frequency + (estimate - frequency) * drawn / np.maximum(drawn + within, 1e-300)
            low, high = np.where(own < expected, position, low), np.where(own < expected, high, position)
        near: Array = (estimate - frequency) ** 2 <= quantile * (drawn + within)
        return near

    ends = []
    for bound in (np.zeros(len(estimate)), np.ones(len(estimate))):
        inside, outside = np.clip(estimate, 0, 1), bound
        reached = allowed(bound)
        for _ in range(_HALVINGS):
            middle = (inside + outside) / 2
            kept = allowed(middle)
            inside, outside = np.where(kept, middle, inside), np.where(kept, outside, middle)
        ends.append(np.where(reached, bound, inside))
    return np.stack(ends)


def _scales_of_classes(log_probs: Array, labels: Array, weights: Array) -> Array:
    """Fit a scale and an offset for the log-probabilities of each class, as vector scaling does."""
    start = np.stack([np.ones(log_probs.shape[1]), np.zeros(log_probs.shape[1])])
    strength = start * (_RIDGE / 2 / effective_rows(weights))
    features = np.maximum(log_probs, np.log(_LEAST_SHARE))
    penalty = QuadraticPenalty(strength, start)
    return fit_softmax(features, labels, weights, shape=Diagonal(), start=start, penalty=penalty).theta


def class_text(number: int, class_names: Sequence[str] | None) -> str:
    """Return what a message calls a class: its name, or its number.

    Example:
        >>> class_text(1, ("cat", "dog")), class_text(1, None)
        ("class 'dog'", 'class 1')
    """
    return f"class {number}" if class_names is None else f"class '{visible(class_names[number])}'"


def warn_of_few_rows(labeled: LabeledRows, class_names: Sequence[str] | None = None) -> tuple[str, ...]:
    """Return a warning if a class has too few labeled rows for the interval to be relied on."""
    fewest = int(np.argmin(labeled.n_rows))
    n_rows = labeled.n_rows[fewest]
    if n_rows >= _FEW_ROWS:
        return ()
    return (
        f"{class_text(fewest, class_names)} has {n_rows:.0f} reference rows; with fewer than {_FEW_ROWS} of every "
        "class the intervals may be too narrow",
    )


def with_mass(priors: Array, n_rows: float) -> Array:
    """Return frequencies of which none is below half a row."""
    raised = np.maximum(priors, 0.5 / max(n_rows, 1.0))
    frequencies: Array = raised / raised.sum()
    return frequencies


def effective_rows(weights: Array) -> float:
    """Return how many equal rows have as much information as weighted ones."""
    return float(weights.sum() ** 2 / (weights**2).sum())
