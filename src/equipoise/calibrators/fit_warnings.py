"""Warnings about fits on probabilities: driven by exact zeros, or worse than no calibration on held-out rows."""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from itertools import permutations
from math import exp, sqrt
from typing import TYPE_CHECKING

import numpy as np

from equipoise.calibrators.one_vs_rest import row_weights
from equipoise.calibrators.zeros import floor_of, with_floor
from equipoise.core.arrays import Array
from equipoise.core.grid import grid_of
from equipoise.core.predictions import Predictions
from equipoise.core.probabilities import softmax
from equipoise.core.seeds import numpy_generator

if TYPE_CHECKING:
    from equipoise.calibrators.base import Calibrator

__all__ = ["fit_warnings", "mean_and_error"]

# How far the mean confidence of rows may move when zeros count as ten times more or less.
_MATERIAL = 0.02
_FACTOR = 10.0
_FOLDS = 5
# The 95% quantile of the normal distribution: one-sided tests at a level of 5%.
_QUANTILE = 1.645
_FEWEST_ROWS = 20
_ROWS_PER_PARAMETER = 10
_MOST_PARAMETERS = 10_000
# Scores that further fits look at; of more rows a regular sample is taken.
_MOST_SCORES = 1 << 18
_IMPOSSIBLE = 1e-38


def fit_warnings(calibrator: Calibrator, data: Predictions, *, claims: bool) -> tuple[str, ...]:
    """Return what further fits on the same rows show; nothing for logits, which have no exact zeros.

    Args:
        calibrator: Fitted on the rows.
        data: The rows, in the form of two or more classes.
        claims: Whether they are confidences of being right.
    """
    if data.kind == "logits" or not calibrator.needs_fit or calibrator.result.identity:
        return ()
    if data.weights is not None and not data.weights.all():
        data = data.take(data.weights > 0)
    sample = data.take(slice(None, None, max(1, data.probs.size // _MOST_SCORES)))
    if len(sample) < _FEWEST_ROWS:
        return ()
    return (
        *_driven_by_zeros(calibrator, data, sample, claims=claims),
        *_not_better_on_held_out_rows(calibrator, data, sample, claims=claims),
    )


def _refitted(
    calibrator: Calibrator, data: Predictions, floor: tuple[float, ...], *, claims: bool
) -> Calibrator:
    fresh = copy(calibrator)
    fresh._result = calibrator._learned(data, floor, claims=claims)
    return fresh


def _probs(calibrator: Calibrator, data: Predictions) -> Array:
    scores = calibrator._mapped_rows(data.logits.astype(np.float64), data)
    return softmax(scores) if calibrator.gives == "logits" else scores


def _driven_by_zeros(
    calibrator: Calibrator, data: Predictions, sample: Predictions, *, claims: bool
) -> Iterator[str]:
    """Warn if the rows without zeros depend on what a zero counts as, by a factor of ten either way."""
    floor = calibrator.result.floor
    if not floor or sample.scores is None:
        return
    zeros = (sample.probs <= 0).any(axis=1)
    others = ~zeros if (~zeros).sum() >= _FEWEST_ROWS else np.ones(len(sample), bool)
    weights = row_weights(sample.weights, len(sample))[others]
    largest = grid_of(data.scores, data.precision).half_steps  # type: ignore[arg-type]
    before = _probs(_refitted(calibrator, sample, floor, claims=claims), sample).max(axis=1)[others]
    for factor in (1 / _FACTOR, _FACTOR):
        moved = tuple(min(factor * one, half) for one, half in zip(floor, largest, strict=True))
        if moved == floor:
            continue
        after = _probs(_refitted(calibrator, sample, moved, claims=claims), sample).max(axis=1)[others]
        change = float(np.average(np.abs(after - before), weights=weights))
        if change > _MATERIAL:
            yield (
                f"the fit is driven by the {floor_of(data).n_rows:,} rows with a probability of exactly 0 or 1: if a 0 "
                f"counted as {moved[0]:.2g} instead of {floor[0]:.2g}, the confidence of "
                f"{'the other' if zeros.any() and not others.all() else 'all'} rows would change by "
                f"{100 * change:.1f} points on average; fit on logits or on probabilities that are not rounded, "
                "or use isotonic, which reads only their order"
            )
            return


def _not_better_on_held_out_rows(
    calibrator: Calibrator, data: Predictions, sample: Predictions, *, claims: bool
) -> Iterator[str]:
    """Warn if log-loss or Brier score rise by more than chance in a cross-validation, or if neither falls.

    If one falls and the estimate of the other rises, both are named: few rows cannot show a small rise. Also warn if
    the log-loss would have risen with one more row of the class whose probability was lowered most: the mean of such
    rare and large losses says little.
    """
    size = calibrator.n_parameters(sample.probs.shape[1])
    if size > _MOST_PARAMETERS or (len(sample) < len(data) and len(sample) < _ROWS_PER_PARAMETER * size):
        return
    floor = calibrator.result.floor
    weights = row_weights(sample.weights, len(sample))
    calibrated = np.empty(sample.probs.shape)
    fold = numpy_generator(0, "fit_warnings").permutation(len(sample)) % _FOLDS
    for part in range(_FOLDS):
        fitted = _refitted(calibrator, sample.take(fold != part), floor, claims=claims)
        calibrated[fold == part] = _probs(fitted, sample.take(fold == part))
    # Zeros count the same before and after, so that they alone do not speak for a calibrator.
    plain = with_floor(sample, floor).probs if floor else sample.probs
    losses = {
        "log-loss": (_log_loss(plain, sample.labels), _log_loss(calibrated, sample.labels)),
        "Brier score": (_brier(sample.probs, sample.labels), _brier(calibrated, sample.labels)),
    }
    found = {
        name: (mean_and_error(before, weights)[0], *mean_and_error(after - before, weights))
        for name, (before, after) in losses.items()
    }
    texts = {name: f"{name} {start:.4g} to {start + rise:.4g}" for name, (start, rise, _) in found.items()}
    worse = [texts[name] for name, (_, rise, error) in found.items() if rise > _QUANTILE * error]
    how = f"on held-out rows ({_FOLDS}-fold cross-validation)"
    if worse:
        yield f"{how} it is worse than none, {' and '.join(worse)}: fit on more rows, or use another calibrator"
    elif not any(rise < -_QUANTILE * error for _, rise, error in found.values()):
        yield f"{how} no improvement is shown, {' and '.join(texts.values())}: fit on more rows, or use no calibrator"
    else:
        for fallen, risen in permutations(found):
            if found[risen][1] > 0:
                yield f"{how} only one score falls: {texts[fallen]}, but {texts[risen]}"
        # Bins of few rows may answer 0 in the whole fit and in no fold, or the other way round.
        least = np.minimum(calibrated, _probs(calibrator, sample))
        surprise = float((_safe_log(plain) - _safe_log(least)).max())
        if surprise / len(sample) > -found["log-loss"][1]:
            impossible = int((least <= _IMPOSSIBLE).any(axis=1).sum())
            how_far = (
                f"answers exactly 0 for a class in {impossible:,} of {len(sample):,} rows"
                if impossible
                else f"divides the probability of some class by {exp(surprise):.3g}"
            )
            yield (
                f"it {how_far}: one more row of such a class would cost more log-loss than is gained; use another "
                "calibrator if log-loss matters"
            )


def _log_loss(probs: Array, labels: Array) -> Array:
    own: Array = probs[np.arange(len(labels)), labels]
    return -_safe_log(own)


def _safe_log(probs: Array) -> Array:
    return np.asarray(np.log(np.maximum(probs.astype(np.float64), _IMPOSSIBLE)))


def _brier(probs: Array, labels: Array) -> Array:
    wide = probs.astype(np.float64)
    return np.asarray((wide**2).sum(axis=1) - 2 * wide[np.arange(len(labels)), labels] + 1)


def mean_and_error(values: Array, weights: Array) -> tuple[float, float]:
    """Return the weighted mean and its standard error.

    Example:
        >>> mean_and_error(np.array([1.0, 3.0]), np.ones(2))
        (2.0, 0.7071067811865476)
    """
    total = float(weights.sum())
    mean = float(values @ weights) / total
    return mean, sqrt(float((values - mean) ** 2 @ weights) / total / total)
