"""After a change: where it is, and what a refitted calibrator would gain. Read from states, without rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, final

import numpy as np
from scipy.special import expit, logit, ndtr, ndtri

from equipoise.core.arrays import Array
from equipoise.evaluate.chance import holm
from equipoise.evaluate.slices import SliceSums
from equipoise.evaluate.verdict import p_text
from equipoise.metrics.state import CalibrationState

__all__ = ["Part", "Refit", "changed_parts", "refit_gain"]

#: Lower ends of the bands of confidence.
_BANDS = np.array([0.0, 0.1, 0.2, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95])
#: A part is looked at, and a refit is judged, with so many rows.
_FEWEST_ROWS = 100


class Part(NamedTuple):
    """A band of confidence, or a group, before and since a change.

    Attributes:
        column: ``"confidence"``, or the column of groups.
        name: The band or group.
        n: Rows since the change.
        confidence: Mean confidence since the change.
        accuracy: How many are right since.
        gap_before: Confidence minus accuracy in the other states.
        p_value: How often chance alone changes the gap so much, by Holm's rule over all bands and groups.
    """

    column: str
    name: str
    n: int
    confidence: float
    accuracy: float
    gap_before: float
    p_value: float

    @property
    def gap(self) -> float:
        """Confidence minus accuracy since the change."""
        return self.confidence - self.accuracy

    def __str__(self) -> str:
        return (
            f"{self.column} {self.name}: {100 * self.accuracy:.1f}% of {self.n:,} rows are right where "
            f"{100 * self.confidence:.1f}% are claimed, {100 * self.gap:+.1f} points instead of "
            f"{100 * self.gap_before:+.1f} ({p_text(self.p_value)})"
        )


def changed_parts(
    states: Sequence[CalibrationState],
    groups: Sequence[dict[str, SliceSums]],
    place: tuple[int, int],
    *,
    level: float = 0.95,
) -> tuple[Part, ...]:
    """Return bands of confidence and groups whose gap differs between a run of states and all others.

    Args:
        states: In the order of time.
        groups: Sums by group of each state.
        place: Numbers of the first state of the run and of that after its last.
        level: One minus the probability that any part is returned although none changed.

    Returns:
        Those that chance does not explain, the widest change first.

    Example:
        >>> def day(share):
        ...     state = CalibrationState(2)
        ...     state.update(probs=[0.85] * 400, labels=[1] * round(400 * share) + [0] * round(400 * (1 - share)))
        ...     return state
        >>> [part.name for part in changed_parts([day(0.85), day(0.86), day(0.7)], [{}] * 3, (2, 3))]
        ['0.8 to 0.9']
    """
    n_fine = len(states[0].arrays.sketch)
    band = np.searchsorted(_BANDS, (np.arange(n_fine) + 0.5) / n_fine, side="right") - 1
    starts = np.searchsorted(band, np.arange(len(_BANDS)))
    ends = [*_BANDS[1:].tolist(), 1.0]
    names = [("confidence", f"{low:g} to {high:g}") for low, high in zip(_BANDS, ends, strict=True)]
    sums = [np.stack([np.add.reduceat(state.arrays.sketch, starts, axis=0) for state in states])]
    for column in {name: None for one in groups for name in one}:
        parts = [
            one[column].parts() if column in one else ([], {"bins": np.zeros((0, 1, 3))}) for one in groups
        ]
        values = sorted({value for found, _ in parts for value in found})
        table = np.zeros((len(states), len(values), 3))
        for number, (found, content) in enumerate(parts):
            table[number, [values.index(value) for value in found]] = content["bins"].sum(axis=1)
        sums.append(table)
        names += [(column, value) for value in values]
    scale = np.array([state.effective_samples / max(state.total_weight, 1e-300) for state in states])
    return _tested(np.concatenate(sums, axis=1) * scale[:, None, None], names, place, level)


def _tested(
    sums: Array, names: Sequence[tuple[str, str]], place: tuple[int, int], level: float
) -> tuple[Part, ...]:
    """Return the parts whose gap changed, from weight, confidence and hits by state and part."""
    inside = sums[place[0] : place[1]].sum(axis=0)
    outside = sums.sum(axis=0) - inside
    kept = np.flatnonzero(np.minimum(inside[:, 0], outside[:, 0]) >= _FEWEST_ROWS)
    if not len(kept):
        return ()
    (confidence, accuracy, variance), (old_confidence, old_accuracy, old_variance) = (
        _rates(one[kept]) for one in (inside, outside)
    )
    before, now = old_confidence - old_accuracy, confidence - accuracy
    p_values = holm(2 * ndtr(-np.abs(now - before) / np.sqrt(variance + old_variance)))
    order = np.argsort(-np.abs(now - before))
    return tuple(
        Part(
            column=names[kept[one]][0],
            name=names[kept[one]][1],
            n=round(inside[kept[one], 0]),
            confidence=float(confidence[one]),
            accuracy=float(accuracy[one]),
            gap_before=float(before[one]),
            p_value=float(p_values[one]),
        )
        for one in order
        if p_values[one] < 1 - level
    )


def _rates(sums: Array) -> tuple[Array, Array, Array]:
    """Return mean confidence, accuracy and its variance; one right and one wrong row are added to the variance."""
    weight, confidence, hits = sums.T
    rate = (hits + 1) / (weight + 2)
    return confidence / weight, hits / weight, rate * (1 - rate) / weight


@final
@dataclass(frozen=True)
class Refit:
    """What a calibrator fitted on recent states would gain on the most recent one.

    Attributes:
        first: The first state that it is fitted on.
        last: The last one.
        judged: The state that it is judged on.
        n_fitted: Rows of the states that it is fitted on.
        n_judged: Rows of the state that it is judged on.
        loss: Log-loss of being right, before.
        loss_after: The same after refitting.
        gain: Difference of the two.
        low: Lower end of its interval.
        high: Upper end.
        ece: Calibration error before.
        ece_after: The same after refitting.
    """

    first: str
    last: str
    judged: str
    n_fitted: int
    n_judged: int
    loss: float
    loss_after: float
    gain: float
    low: float
    high: float
    ece: float
    ece_after: float

    @property
    def is_worthwhile(self) -> bool:
        """Whether chance does not explain the gain."""
        return self.low > 0

    def __str__(self) -> str:
        fitted = self.first if self.first == self.last else f"{self.first} to {self.last}"
        advice = "Refit the calibrator" if self.is_worthwhile else "Refitting is not worth it now"
        return (
            f"{advice}: fitted on {fitted} ({self.n_fitted:,} rows), the log-loss of the confidence on "
            f"{self.judged} goes from {self.loss:.3f} to {self.loss_after:.3f} (gain {self.gain:.3f}, interval "
            f"{self.low:.3f} to {self.high:.3f}), its ECE from {100 * self.ece:.1f}% to {100 * self.ece_after:.1f}%"
        )


def refit_gain(
    states: Sequence[CalibrationState], names: Sequence[str], start: int, *, level: float = 0.95
) -> Refit | None:
    """Fit a logistic map of confidence on recent states, and judge it on the most recent one.

    The map has a slope and an offset (Platt's, on log-odds), read from the sketches of confidence. A calibrator that is
    fitted on rows, with scores of every class, can gain more.

    Args:
        states: In the order of time.
        names: Their names.
        start: The first state to fit on.
        level: Level of the interval of the gain.

    Returns:
        The gain; None if there is no state, or are fewer than 100 rows, to fit on or to judge on.

    Example:
        >>> def day(share):
        ...     state = CalibrationState(2)
        ...     state.update(probs=[0.9] * 400, labels=[1] * round(400 * share) + [0] * round(400 * (1 - share)))
        ...     return state
        >>> found = refit_gain([day(0.9), day(0.7), day(0.7)], ["mon", "tue", "wed"], 1)
        >>> found.first, found.judged, found.is_worthwhile, round(found.ece_after, 2)
        ('tue', 'wed', True, 0.0)
    """
    recent, judged = states[start:-1], states[-1]
    n_fitted = sum(state.effective_samples for state in recent)
    if min(n_fitted, judged.effective_samples) < _FEWEST_ROWS:
        return None
    odds, right, wrong = _sketch(recent)
    slope, offset = _logistic(odds, right, wrong)
    odds, right, wrong = _sketch([judged])
    fresh = slope * odds + offset
    n = float((right + wrong).sum())
    # Gains of a row that is right, and of one that is wrong.
    if_right, if_wrong = (np.log(expit(sign * fresh)) - np.log(expit(sign * odds)) for sign in (1, -1))
    gain = float((right @ if_right + wrong @ if_wrong) / n)
    # Where few rows are wrong, their number decides the gain and its variance: also look at what is expected of both.
    is_right = expit(fresh)
    margin = float(ndtri((1 + level) / 2)) * max(
        _standard_error(if_right, if_wrong, *rows)
        for rows in ((right, wrong), ((right + wrong) * is_right, (right + wrong) * (1 - is_right)))
    )
    loss = -float((right @ np.log(expit(odds)) + wrong @ np.log(expit(-odds))) / n)
    return Refit(
        first=names[start],
        last=names[-2],
        judged=names[-1],
        n_fitted=round(n_fitted),
        n_judged=round(n),
        loss=loss,
        loss_after=loss - gain,
        gain=gain,
        low=gain - margin,
        high=gain + margin,
        ece=_ece(expit(odds), right, wrong, judged.n_bins),
        ece_after=_ece(expit(fresh), right, wrong, judged.n_bins),
    )


def _standard_error(if_right: Array, if_wrong: Array, right: Array, wrong: Array) -> float:
    """Return the standard error of the mean of what right and wrong rows gain."""
    n = float((right + wrong).sum())
    mean = (right @ if_right + wrong @ if_wrong) / n
    return float(((right @ (if_right - mean) ** 2 + wrong @ (if_wrong - mean) ** 2) / n / (n - 1)) ** 0.5)


def _sketch(states: Sequence[CalibrationState]) -> tuple[Array, Array, Array]:
    """Return log-odds of confidence with right and wrong rows, of as many rows as the weights are worth."""
    total = sum(
        state.arrays.sketch * (state.effective_samples / max(state.total_weight, 1e-300)) for state in states
    )
    weight, confidence, right = total[total[:, 0] > 0].T
    least = 0.5 / len(total)
    return logit(np.clip(confidence / weight, least, 1 - least)), right, np.maximum(weight - right, 0.0)


def _logistic(odds: Array, right: Array, wrong: Array) -> tuple[float, float]:
    """Return slope and offset of the log-odds by Newton steps; a weak penalty holds them at 1 and 0."""
    features = np.stack([odds, np.ones_like(odds)])
    found = start = np.array([1.0, 0.0])
    for _ in range(50):
        probs = expit(found @ features)
        slope = features @ (right - (right + wrong) * probs) - (found - start)
        curvature = (features * ((right + wrong) * probs * (1 - probs))) @ features.T + np.eye(2)
        step = np.linalg.solve(curvature, slope)
        found = found + step / max(1.0, float(np.abs(step).max()))
        if np.abs(step).max() < 1e-10:
            break
    return float(found[0]), float(found[1])


def _ece(confidence: Array, right: Array, wrong: Array, n_bins: int) -> float:
    places = np.clip(np.ceil(confidence * n_bins).astype(int) - 1, 0, n_bins - 1)
    gaps = np.bincount(places, (right + wrong) * confidence - right, n_bins)
    return float(np.abs(gaps).sum() / (right + wrong).sum())
