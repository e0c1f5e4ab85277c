"""Scores of acting on a confidence, with intervals from influence values.

The influence of a row is how much a score changes with its weight. It depends on the row's confidence and on whether
its prediction is right, so a table by distinct confidence has it. Its variance gives a standard error without
resampling, and its sums over rows give paired differences and errors of clusters.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy.optimize import isotonic_regression
from scipy.special import gammaincinv, ndtri, xlog1py, xlogy

from equipoise.core.arrays import Array
from equipoise.metrics.inputs import ConfidenceCells
from equipoise.metrics.intervals import Interval
from equipoise.metrics.selective import augrc_of_cells, aurc_of_cells

__all__ = ["COMPARED_KEYS", "CORP_KEYS", "SELECTIVE_KEYS", "InfluenceTable", "influence_table"]

#: Scores of withholding the least confident predictions.
SELECTIVE_KEYS = ("eaurc", "augrc", "risk_at_80", "coverage_at_5")
#: Parts of the Brier score and the log-loss of being right, by isotonic recalibration.
CORP_KEYS = tuple(
    f"corp_{score}{part}"
    for score in ("", "log_")
    for part in ("miscalibration", "discrimination", "uncertainty")
)
#: What two models are compared in; the uncertainty is about the rows.
COMPARED_KEYS = (*SELECTIVE_KEYS, *(key for key in CORP_KEYS if not key.endswith("uncertainty")))
#: Coverage and risk of the two numbers on a scorecard.
_COVERAGE, _RISK = 0.8, 0.05
#: A confidence this close to 0 or 1 counts as no closer in the log-loss, as in all losses of a state.
_LEAST = float(np.finfo(np.float32).tiny)


class _Entry(NamedTuple):
    """One score.

    Attributes:
        value: The score.
        right: Influence of a right row of each distinct confidence, ``(m,)``.
        wrong: That of a wrong one.
        optimism: What fitting the isotonic curve to the same rows adds to the value.
        curvature: Half the second derivative times the variance of one row, for scores that are squares near zero.
    """

    value: float
    right: Array
    wrong: Array
    optimism: float = 0.0
    curvature: float = 0.0


class InfluenceTable(NamedTuple):
    """Scores and influences of rows in ascending order of confidence.

    Attributes:
        cells: Rows of equal confidence together.
        entries: What is known about each score, by key.
        rate: Isotonic fit of being right, ``(m,)``.
    """

    cells: ConfidenceCells
    entries: dict[str, _Entry]
    rate: Array

    @property
    def values(self) -> dict[str, float]:
        """The scores by key."""
        return {key: entry.value for key, entry in self.entries.items()}

    def of_rows(self, key: str, confidence: Array, correct: Array, n_rows: float) -> Array:
        """Return the influence of every row ``(n,)``, for errors of differences.

        Args:
            key: The score.
            confidence: Confidences ``(n,)``, each of them one of the table's unless its weight is zero.
            correct: Whether the prediction is right ``(n,)``.
            n_rows: How many rows of equal weight know as much as these.
        """
        entry, place = self.entries[key], np.searchsorted(self.cells.confidence, confidence)
        place = np.minimum(place, len(self.cells.confidence) - 1)
        result: Array = np.where(correct, entry.right[place], entry.wrong[place])
        if key != "coverage_at_5":
            return result
        # This one is far from linear: its error is half of its interval, on the wider side.
        low, high = self.interval(key, n_rows)
        error = max(high - entry.value, entry.value - low) / float(ndtri(0.975))
        return result * (error / max(self._error(entry, n_rows), _LEAST))

    def _error(self, entry: _Entry, n_rows: float) -> float:
        """Return the standard error to first order."""
        squares = sum(
            float(np.einsum("m,m,m->", part, one, one))
            for part, one in ((self.cells.right, entry.right), (self.cells.wrong, entry.wrong))
        )
        return math.sqrt(squares / float(self.cells.mass.sum()) / n_rows)

    def interval(self, key: str, n_rows: float, *, level: float = 0.95) -> Interval:
        """Return the interval of a score.

        Args:
            key: The score.
            n_rows: How many independent rows know as much as these.
            level: How often the interval contains the true score.
        """
        z = float(ndtri((1 + level) / 2))
        if key == "risk_at_80":
            return self._risk_interval(n_rows, z)
        if key == "coverage_at_5":
            return self._coverage_interval(n_rows, z)
        if key.endswith("uncertainty"):
            return self._uncertainty_interval(key, n_rows, z)
        entry = self.entries[key]
        half, value = z * self._error(entry, n_rows), entry.value
        if key in CORP_KEYS:
            optimism, curvature = entry.optimism / n_rows, z * z * entry.curvature / n_rows
            return Interval(
                max(0.0, min(value, value - 2 * optimism - half)),
                max(value, value - optimism + half + curvature),
            )
        return _interval_of_sum(value, (half / z) ** 2, 1 / n_rows, level)

    def _risk_interval(self, n_rows: float, z: float) -> Interval:
        """Solve for the risks at which so low or high an observed one is not unlikely (a score test)."""
        value, local = self.entries["risk_at_80"].value, self._local_risk(_COVERAGE)
        scale = z * z / n_rows
        # (value - r)^2 <= scale * (a + b r - r^2)
        a = local**2 / _COVERAGE - local**2
        b = (1 - 2 * local) / _COVERAGE + 2 * local
        low, high = _between(1 + scale, -2 * value - scale * b, value**2 - scale * a)
        return Interval(max(0.0, min(low, value)), min(1.0, max(high, value)))

    def _coverage_interval(self, n_rows: float, z: float) -> Interval:
        """Return the largest coverages at which the risk is clearly, or not clearly not, at most the limit."""
        cells, r = self.cells, _RISK
        accepted, local = cells.accepted, 1 - self.rate[::-1]
        share, risk = accepted / accepted[-1], cells.mistakes / accepted
        variance = ((r * (1 - 2 * local) + local**2) / share - (r - local) ** 2) / n_rows
        half = z * np.sqrt(np.maximum(variance, r * (1 - r) / (share * n_rows)))
        value = self.entries["coverage_at_5"].value
        low, high = (int(np.flatnonzero(part <= r).max(initial=-1)) for part in (risk + half, risk - half))
        # Where many rows have one confidence, the share at a threshold varies by chance, too.
        edges = np.concatenate([[0.0, 0.0], share, [1.0]])

        def end(place: int, sign: int) -> float:
            at = float(edges[place + 2])
            moved = at + sign * z * math.sqrt(at * (1 - at) / n_rows)
            neighbor = float(edges[place + 2 + sign]) if place >= 0 else at
            return max(moved, neighbor) if sign < 0 else min(moved, neighbor)

        return Interval(min(end(low, -1), value), max(end(high, 1), value))

    def _uncertainty_interval(self, key: str, n_rows: float, z: float) -> Interval:
        """Return the uncertainties of the accuracies in Wilson's interval."""
        accuracy = float(self.cells.right.sum() / self.cells.mass.sum())
        scale = z * z / n_rows
        low, high = _between(1 + scale, -2 * accuracy - scale, accuracy**2)
        ends = [_uncertainty(end, log="log" in key) for end in (low, high)]
        top = _uncertainty(0.5, log="log" in key) if low <= 0.5 <= high else max(ends)
        return Interval(min(ends), top)

    def _local_risk(self, coverage: float) -> float:
        """Return the isotonic error rate of the row at which so many are accepted."""
        accepted = self.cells.accepted
        place = int(np.searchsorted(accepted, coverage * accepted[-1] * (1 - 1e-12)))
        return float(1 - self.rate[::-1][min(place, len(accepted) - 1)])


def influence_table(cells: ConfidenceCells) -> InfluenceTable:
    """Return every score of acting on a confidence, and the influence of rows on it.

    Args:
        cells: Rows of equal confidence together, in ascending order; none without rows.

    Example:
        >>> cells = ConfidenceCells(np.array([0.6, 0.9]), np.array([1.0, 1.0]), np.array([0.0, 1.0]))
        >>> influence_table(cells).values["augrc"]
        0.25
    """
    fitted = isotonic_regression(cells.right / cells.mass, weights=cells.mass)
    rate = np.clip(fitted.x, 0.0, 1.0)
    steps = rate[fitted.blocks[:-1]]
    entries = {**_areas(cells), **_points(cells, rate)}
    for name in ("", "log_"):
        entries.update(_corp(cells, rate, steps, name))
    return InfluenceTable(cells, entries, rate)


def _areas(cells: ConfidenceCells) -> dict[str, _Entry]:
    mass, wrong = cells.mass[::-1], cells.wrong[::-1]
    total = float(cells.accepted[-1])
    # Share of more confident rows, and of wrong ones among them; rows of equal confidence count half.
    above = (cells.accepted - mass / 2) / total
    missed = (cells.mistakes - wrong / 2) / total
    n_wrong = float(cells.mistakes[-1])
    error = n_wrong / total
    augrc = float(augrc_of_cells(mass, wrong))
    area = float(aurc_of_cells(mass, wrong))
    least = float(aurc_of_cells(np.array([total - n_wrong, n_wrong]), np.array([0.0, n_wrong])))
    slope = math.log1p(-error) if error < 1 else 0.0
    by_mass, by_wrong = _area_slopes(cells)
    common = by_mass - area
    eaurc = _Entry(
        max(0.0, area - least),
        (common - slope * error)[::-1],
        (common + by_wrong + slope * (1 - error))[::-1],
    )
    shared = missed - 2 * augrc
    return {
        "eaurc": eaurc,
        "augrc": _Entry(augrc, shared[::-1], (shared + 1 - above)[::-1]),
    }


def _area_slopes(cells: ConfidenceCells) -> tuple[Array, Array]:
    """Return the derivatives of AURC by the mass and by the mistakes of every cell, most confident first.

    The area is the sum of ``wrong + (before - start * rate) * log(end / start)`` over cells, within which mistakes come
    evenly.
    """
    total = cells.accepted[-1]
    mass, wrong, end = cells.mass[::-1] / total, cells.wrong[::-1] / total, cells.accepted / total
    rate, start, before = wrong / mass, end - mass, cells.mistakes / total - wrong
    start[0] = 0.0
    stretch = np.zeros(len(mass))
    stretch[1:] = np.log1p(mass[1:] / start[1:])
    excess = before - start * rate
    # Mass in earlier cells moves the start and the end of all later ones.
    moved = -rate * stretch
    moved[1:] -= excess[1:] * mass[1:] / (start[1:] * end[1:])
    later = np.cumsum(moved[::-1])[::-1] - moved
    by_mass: Array = start * rate * stretch / mass + excess / end + later
    by_wrong: Array = 1 - start * stretch / mass - np.log(end)
    return by_mass, by_wrong


def _points(cells: ConfidenceCells, rate: Array) -> dict[str, _Entry]:
    mass, wrong = cells.mass[::-1], cells.wrong[::-1]
    accepted, mistakes = cells.accepted, cells.mistakes
    total = float(accepted[-1])

    def risk(coverage: float) -> tuple[float, Array, Array]:
        """Return the risk at a coverage, and the influences of right and wrong rows on it."""
        taken = coverage * total
        place = min(int(np.searchsorted(accepted, taken * (1 - 1e-12))), len(mass) - 1)
        local = float(1 - rate[::-1][place])
        before = float(mistakes[place] - wrong[place])
        rest = (taken - float(accepted[place] - mass[place])) / float(mass[place])
        value = (before + min(max(rest, 0.0), 1.0) * float(wrong[place])) / taken
        inside = np.clip((taken - (accepted - mass)) / mass, 0.0, 1.0)
        base = local - value
        right, wrong_rows = base - inside * local / coverage, base + inside * (1 - local) / coverage
        return value, right[::-1], wrong_rows[::-1]

    entries = {"risk_at_80": _Entry(*risk(_COVERAGE))}
    kept = np.flatnonzero(mistakes <= (_RISK + 1e-12) * accepted)
    share = float(accepted[kept[-1]]) / total if len(kept) else 0.0
    # The coverage falls as the risk there rises; by how much, only its interval can say.
    _, right, wrong_rows = risk(max(share, _RISK))
    return {**entries, "coverage_at_5": _Entry(share, -right, -wrong_rows)}


def _corp(cells: ConfidenceCells, rate: Array, steps: Array, name: str) -> dict[str, _Entry]:
    """Return the parts of a score; recalibration and base rate minimize it, so that they add no influence."""
    base = float(cells.right.sum() / cells.mass.sum())
    given, fitted, constant = (
        _losses(forecast, log=bool(name)) for forecast in (cells.confidence, rate, np.array([base]))
    )
    total, wrong = float(cells.mass.sum()), cells.wrong

    def mean(losses: tuple[Array, Array]) -> float:
        return (float(np.sum(cells.right * losses[0])) + float(np.sum(wrong * losses[1]))) / total

    unc, recalibrated = mean(constant), mean(fitted)
    mcb, dsc = max(0.0, mean(given) - recalibrated), max(0.0, unc - recalibrated)
    # Each step of the fit adds the variance of one row, for the log-loss half of its square over its variance.
    noise, size = 0.5 * len(steps) if name else float(np.sum(steps * (1 - steps))), len(rate)
    one = noise / len(steps)
    return {
        f"corp_{name}miscalibration": _Entry(
            mcb,
            given[0] - fitted[0] - mcb,
            given[1] - fitted[1] - mcb,
            optimism=noise,
            curvature=one,
        ),
        f"corp_{name}discrimination": _Entry(
            dsc,
            constant[0] - fitted[0] - dsc,
            constant[1] - fitted[1] - dsc,
            optimism=noise - one,
            curvature=one,
        ),
        f"corp_{name}uncertainty": _Entry(
            unc, np.full(size, float(constant[0][0]) - unc), np.full(size, float(constant[1][0]) - unc)
        ),
    }


def _interval_of_sum(value: float, variance: float, step: float, level: float) -> Interval:
    """Return the interval of a sum over rare mistakes: gamma quantiles (Fay and Feuer, 1997).

    Args:
        value: The sum.
        variance: Its variance.
        step: What one more mistake would add.
        level: Level of the interval.
    """
    low = 0.0
    if value > 0 and variance > 0:
        low = float(gammaincinv(value**2 / variance, (1 - level) / 2)) * variance / value
    more, spread = value + step, variance + step**2
    high = float(gammaincinv(more**2 / spread, (1 + level) / 2)) * spread / more
    return Interval(min(low, value), max(high, value))


def _losses(forecast: Array, *, log: bool) -> tuple[Array, Array]:
    """Return the loss of a right and of a wrong row at each forecast."""
    if not log:
        return (1 - forecast) ** 2, forecast**2
    return -np.log(np.maximum(forecast, _LEAST)), -np.log(np.maximum(1 - forecast, _LEAST))


def _uncertainty(rate: float, *, log: bool) -> float:
    if not log:
        return rate * (1 - rate)
    return float(-xlogy(rate, rate) - xlog1py(1 - rate, -rate))


def _between(a: float, b: float, c: float) -> tuple[float, float]:
    """Return the roots of a quadratic."""
    root = math.sqrt(max(0.0, b * b - 4 * a * c))
    return (-b - root) / (2 * a), (-b + root) / (2 * a)
