"""Exact zeros among probabilities: what they count as when a calibrator takes logarithms."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import log
from typing import final
from weakref import WeakKeyDictionary

import numpy as np

from equipoise.calibrators.one_vs_rest import row_weights
from equipoise.calibrators.temperature_search import fit_beta
from equipoise.core.array_functions import AnyArray, log_softmax, logsumexp, softmax
from equipoise.core.arrays import Array, array_namespace
from equipoise.core.grid import grid_of
from equipoise.core.predictions import Predictions

__all__ = ["Floor", "floor_of", "floored", "with_floor"]

# Parts of the half step that are tried, half a decade apart.
_PARTS = tuple(float(part) for part in np.logspace(0, -6, 13))
# Scores that decide on the floor; of more rows a regular sample is taken.
_MOST_SCORES = 1 << 19

_known: WeakKeyDictionary[Predictions, Floor] = WeakKeyDictionary()


@final
@dataclass(frozen=True, slots=True)
class Floor:
    """What an exact zero counts as.

    Attributes:
        values: One probability for every class; or one for each of two classes.
        note: What was found and done, as a sentence; empty if nothing was.
        n_rows: Number of rows with a zero.
    """

    values: tuple[float, ...] = ()
    note: str = ""
    n_rows: int = 0


def floor_of(data: Predictions) -> Floor:
    """Return what zeros count as in a fit on these rows; nothing if there are none.

    An exact zero is a probability below half of the least step of the grid (:func:`equipoise.core.grid.grid_of`).
    How far below differs: most probabilities that a network rounds to zero are far smaller, and of 25 trees none
    agrees on what happens in one of fifty rows. Its value is the part of the half step with the highest likelihood
    under temperature scaling, as if one more row had its label among the zeros; so that zeros that are never wrong
    do not count as impossible.

    Args:
        data: Labelled predictions, not in the top-1 form.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> votes = rng.binomial(25, 0.1, size=500) / 25
        >>> floor_of(Predictions(probs=votes, labels=rng.random(500) < votes)).note
        'probabilities are multiples of 0.04; an exact 0 or 1 counts as ... away from it, in ... of 500 rows'
    """
    if data not in _known:
        _known[data] = _found(data)
    return _known[data]


def _found(data: Predictions) -> Floor:
    if data.kind != "probs" or data.scores is None:
        return Floor()
    zeros = data.probs <= 0
    if not zeros.any():
        return Floor()
    grid = grid_of(data.scores, data.precision)
    rows = np.flatnonzero(zeros.any(axis=1))
    part = _likeliest_part(data, zeros, grid.half_steps)
    values = tuple(max(part * half, float(np.finfo(np.float32).tiny)) for half in grid.half_steps)
    counted = " and ".join(f"{value:.2g}" for value in dict.fromkeys(values))
    rule = f"an exact 0 counts as {counted}"
    if data.one_column:
        rule = f"an exact 0 or 1 counts as {counted} away from it"
    note = f"probabilities are {grid.words}; {rule}, in {len(rows):,} of {len(data):,} rows"
    return Floor(values, note, len(rows))


def floored(logits: AnyArray, floor: Sequence[float]) -> AnyArray:
    """Return logarithms of probabilities, of which none is below the floor.

    Args:
        logits: ``(m, k)``.
        floor: One probability, or two for two classes.

    Example:
        >>> np.exp(floored(np.array([[0.0, -80.0]]), [0.01])).round(4)
        array([[0.99, 0.01]])
    """
    xp, log_probs = array_namespace(logits), log_softmax(logits)
    least = xp.zeros_like(log_probs) + log(floor[0])
    if len(floor) > 1:
        columns = [xp.zeros_like(log_probs[..., j]) + log(one) for j, one in enumerate(floor)]
        least = xp.stack(columns, axis=-1)
    low = log_probs < least
    # The other classes are lowered, so that a zero counts the same in every row and equal scores stay equal.
    added = xp.sum(xp.where(low, xp.exp(least), 0.0), axis=-1, keepdims=True)
    rest = xp.sum(xp.where(low, 0.0, xp.exp(log_probs)), axis=-1, keepdims=True)
    shift = xp.log(xp.clip(1 - added, 0.5, None)) - xp.log(rest)
    return xp.where(low, least, xp.maximum(log_probs + shift, least))


def with_floor(data: Predictions, floor: Sequence[float]) -> Predictions:
    """Return predictions as a calibrator with a floor reads them; rows without a zero stay exactly as they are."""
    probs = data.probs.astype(np.float64)
    low = (probs < np.array(floor)).any(axis=1)
    probs[low] = softmax(floored(data.logits.astype(np.float64, copy=False), floor))[low]
    changed = data.with_scores(probs=probs[:, 1] if data.one_column else probs)
    return changed._copy(precision=data.precision)


def _likeliest_part(data: Predictions, zeros: Array, half: Sequence[float]) -> float:
    step = max(1, zeros.size // _MOST_SCORES)
    rows, zeros = data.take(slice(None, None, step)), zeros[::step]
    logits = rows.logits.astype(np.float64, copy=False)
    weights = row_weights(rows.weights, len(rows))
    inside = zeros.any(axis=1)

    def loss(part: float) -> float:
        scores = floored(logits, [part * value for value in half])
        found = fit_beta(scores, rows.labels, rows.weights)
        some = log_softmax(found.beta * scores[inside])
        surprise = logsumexp(np.where(zeros[inside], some, -np.inf))[:, 0]
        return found.nll * float(weights.sum()) - float(np.average(surprise, weights=weights[inside]))

    return min(_PARTS, key=loss)
