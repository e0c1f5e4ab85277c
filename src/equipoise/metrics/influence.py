"""Scores of acting on a confidence, with intervals from influence values.

The influence of a row is how much a score changes with its weight. It depends on the row's confidence and on whether
its prediction is right, so a table by distinct confidence has it. Its variance gives a standard error without
resampling, and its sums over rows give paired differences and errors of clusters.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple, final

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
#: Cells in a block. Arrays of this size stay in the processor's cache, and the memory allocator keeps them instead of
#: returning them to the system after every operation.
_BLOCK = 1 << 13


@final
@dataclass(frozen=True, eq=False)
class _Entry:
    """One score.

    Attributes:
        value: The score.
        influences: Returns the influences of a right and of a wrong row of each confidence of a slice of the cells.
        optimism: What fitting the isotonic curve to the same rows adds to the value.
        curvature: Half the second derivative times the variance of one row, for scores that are squares near zero.
        squares: Sum of the squared influences of all rows, if it is known already.
    """

    value: float
    influences: Callable[[slice], tuple[Array, Array]]
    optimism: float = 0.0
    curvature: float = 0.0
    squares: float | None = None

    @property
    def right(self) -> Array:
        """Influence of a right row of each distinct confidence, ``(m,)``."""
        return self.influences(slice(None))[0]

    @property
    def wrong(self) -> Array:
        """Influence of a wrong row of each distinct confidence, ``(m,)``."""
        return self.influences(slice(None))[1]


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
        right, wrong = entry.influences(slice(None))
        result: Array = np.where(correct, right[place], wrong[place])
        if key != "coverage_at_5":
            return result
        # This one is far from linear: its error is half of its interval, on the wider side.
        low, high = self.interval(key, n_rows)
        error = max(high - entry.value, entry.value - low) / float(ndtri(0.975))
        return result * (error / max(self._error(entry, n_rows), _LEAST))

    def _error(self, entry: _Entry, n_rows: float) -> float:
        """Return the standard error to first order."""
        cells, squares = self.cells, entry.squares
        if squares is None:
            squares = 0.0
            for block in _blocks(len(cells.mass)):
                for mass, influence in zip((cells.right, cells.wrong), entry.influences(block), strict=True):
                    squares += float((mass[block] * influence) @ influence)
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
        accepted, mistakes, r = self.cells.accepted, self.cells.mistakes, _RISK
        total, low, high = float(accepted[-1]), -1, -1
        for part in _blocks(len(accepted)):
            risk, share = mistakes[part] / accepted[part], accepted[part] / total
            if risk.min() - z * math.sqrt((1 - r) / (share[0] * n_rows)) > r:
                continue  # no variance is large enough to reach the limit
            local = 1 - self.rate[::-1][part]
            variance = ((r * (1 - 2 * local) + local**2) / share - (r - local) ** 2) / n_rows
            half = z * np.sqrt(np.maximum(variance, r * (1 - r) / (share * n_rows)))
            low, high = (
                int(np.flatnonzero(bound <= r).max(initial=last - part.start)) + part.start
                for bound, last in ((risk + half, low), (risk - half, high))
            )
        value = self.entries["coverage_at_5"].value

        def edge(place: int) -> float:
            """Return the share of rows down to a cell: none before the first, all after the last."""
            return 0.0 if place < 0 else 1.0 if place >= len(accepted) else float(accepted[place]) / total

        def end(place: int, sign: int) -> float:
            # Where many rows have one confidence, the share at a threshold varies by chance, too.
            at = edge(place)
            moved = at + sign * z * math.sqrt(at * (1 - at) / n_rows)
            neighbor = edge(place + sign) if place >= 0 else at
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


def influence_table(cells: ConfidenceCells, *, area: float | None = None) -> InfluenceTable:
    """Return every score of acting on a confidence, and the influence of rows on it.

    Args:
        cells: Rows of equal confidence together, in ascending order; none without rows.
        area: Their area under the risk-coverage curve, if it is known already.

    Example:
        >>> cells = ConfidenceCells(np.array([0.6, 0.9]), np.array([1.0, 1.0]), np.array([0.0, 1.0]))
        >>> influence_table(cells).values["augrc"]
        0.25
    """
    fitted = isotonic_regression(cells.right / cells.mass, weights=cells.mass)
    rate, ends = np.clip(fitted.x, 0.0, 1.0, out=fitted.x), fitted.blocks.copy()
    del fitted  # its other columns are as long as the cells
    starts = ends[:-1]
    right, wrong = (np.add.reduceat(part, starts) for part in (cells.right, cells.wrong))
    pooled = ConfidenceCells(rate[starts], right + wrong, right)
    entries = {**_areas(cells, area), **_points(cells, rate)}
    for name in ("", "log_"):
        entries.update(_corp(cells, pooled, ends, name))
    return InfluenceTable(cells, entries, rate)


def _blocks(n_cells: int) -> Iterator[slice]:
    """Return slices of cells, few enough that arrays of them stay in a processor's cache."""
    return (slice(start, start + _BLOCK) for start in range(0, n_cells, _BLOCK))


def _areas(cells: ConfidenceCells, area: float | None) -> dict[str, _Entry]:
    mass, wrong = cells.mass[::-1], cells.wrong[::-1]
    accepted, mistakes = cells.accepted[::-1], cells.mistakes[::-1]
    total, n_wrong = float(cells.accepted[-1]), float(cells.mistakes[-1])
    error = n_wrong / total
    sums = cells.accepted, cells.mistakes
    augrc = float(augrc_of_cells(mass, wrong, missed=sums[1]))
    area = float(aurc_of_cells(mass, wrong, sums=sums)) if area is None else area
    least = float(aurc_of_cells(np.array([total - n_wrong, n_wrong]), np.array([0.0, n_wrong])))
    slope = math.log1p(-error) if error < 1 else 0.0
    by_mass, by_wrong = _area_slopes(cells)

    def of_eaurc(part: slice) -> tuple[Array, Array]:
        common = by_mass[part] - area
        return common - slope * error, common + by_wrong[part] + slope * (1 - error)

    def of_augrc(part: slice) -> tuple[Array, Array]:
        # Share of more confident rows, and of wrong ones among them; rows of equal confidence count half.
        above = (accepted[part].copy() - cells.mass[part] / 2) / total
        shared = (mistakes[part].copy() - cells.wrong[part] / 2) / total - 2 * augrc
        return shared, shared + 1 - above

    return {"eaurc": _Entry(max(0.0, area - least), of_eaurc), "augrc": _Entry(augrc, of_augrc)}


def _area_slopes(cells: ConfidenceCells) -> tuple[Array, Array]:
    """Return the derivatives of AURC by the mass and by the mistakes of every cell.

    The area is the sum of ``wrong + (before - start * rate) * log(end / start)`` over cells, within which mistakes come
    evenly.
    """
    accepted, mistakes, whole = cells.accepted[::-1], cells.mistakes[::-1], math.log(cells.accepted[-1])
    by_mass, by_wrong, later = np.empty(len(accepted)), np.empty(len(accepted)), 0.0
    for part in _blocks(len(accepted)):
        mass, wrong = cells.mass[part], cells.wrong[part]
        ends = accepted[part.start : part.stop + 1].copy()  # a reversed view would be slower in what follows
        end, rate = ends[: len(mass)], wrong / mass
        start, before = end - mass, mistakes[part] - wrong
        if part.stop >= len(accepted):
            start[-1] = 0.0
        ratio = np.divide(mass, start, out=np.zeros(len(mass)), where=start > 0)
        # A cell starts where the next one ends; the last one starts at no rows, where its factor is zero.
        logs = np.log(ends)
        stretch = np.append(logs[:-1] - logs[1:], 0.0)[: len(mass)]
        excess = (before - start * rate) / end
        # Mass in earlier cells moves the start and the end of all later ones, which are less confident.
        moved = -rate * stretch - excess * ratio
        running = np.cumsum(moved)
        stretch *= start / mass
        by_mass[part] = rate * stretch + excess + (running - moved + later)
        by_wrong[part] = 1 - stretch + (whole - logs[: len(mass)])
        later += float(running[-1])
    return by_mass, by_wrong


def _points(cells: ConfidenceCells, rate: Array) -> dict[str, _Entry]:
    accepted, mistakes = cells.accepted, cells.mistakes
    total = float(accepted[-1])

    def risk(coverage: float, sign: float) -> tuple[float, Callable[[slice], tuple[Array, Array]]]:
        """Return the risk at a coverage, and the influences of right and wrong rows on it, times a sign."""
        taken = coverage * total
        place = min(int(np.searchsorted(accepted, taken * (1 - 1e-12))), len(accepted) - 1)
        cell = len(accepted) - 1 - place
        mass, wrong, local = float(cells.mass[cell]), float(cells.wrong[cell]), float(1 - rate[cell])
        rest = (taken - float(accepted[place] - mass)) / mass
        value = (float(mistakes[place] - wrong) + min(max(rest, 0.0), 1.0) * wrong) / taken
        base = local - value

        def influences(part: slice) -> tuple[Array, Array]:
            inside = (taken - (accepted[::-1][part] - cells.mass[part])) / cells.mass[part]
            inside = np.clip(inside, 0.0, 1.0, out=inside)
            inside *= sign / coverage
            return sign * base - inside * local, sign * base + inside * (1 - local)

        return value, influences

    # The coverage falls as the risk there rises; by how much, only its interval can say.
    kept = np.flatnonzero(mistakes <= (_RISK + 1e-12) * accepted)
    share = float(accepted[kept[-1]]) / total if len(kept) else 0.0
    _, influences = risk(max(share, _RISK), -1.0)
    return {"risk_at_80": _Entry(*risk(_COVERAGE, 1.0)), "coverage_at_5": _Entry(share, influences)}


def _corp(cells: ConfidenceCells, pooled: ConfidenceCells, ends: Array, name: str) -> dict[str, _Entry]:
    """Return the parts of a score; recalibration and base rate minimize it, so that they add no influence.

    Args:
        cells: Rows of equal confidence together.
        pooled: The cells of each step of the isotonic fit together, with its rate as their confidence.
        ends: Where each of them begins among the cells, and where the last one ends.
        name: ``"log_"`` for the log-loss.
    """
    total, base, steps = (
        float(cells.mass.sum()),
        float(cells.right.sum() / cells.mass.sum()),
        pooled.confidence,
    )
    fitted, constant = (_losses(forecast, log=bool(name)) for forecast in (steps, np.array([base])))

    def fitted_in(part: slice) -> list[Array]:
        """Return the losses of the fit, cell by cell."""
        sizes = np.diff(np.clip(ends, *part.indices(int(ends[-1]))[:2]))
        return [np.repeat(best, sizes) for best in fitted]

    given = gained = 0.0
    for part in _blocks(int(ends[-1])):
        for mass, loss, best in zip(
            (cells.right[part], cells.wrong[part]),
            _losses(cells.confidence[part], log=bool(name)),
            fitted_in(part),
            strict=True,
        ):
            given += float(mass @ loss)
            gain = loss - best
            gained += float((mass * gain) @ gain)
    unc = base * float(constant[0][0]) + (1 - base) * float(constant[1][0])
    least = float(pooled.right @ fitted[0] + pooled.wrong @ fitted[1]) / total
    mcb, dsc = max(0.0, given / total - least), max(0.0, unc - least)
    # Each step of the fit adds the variance of one row, for the log-loss half of its square over its variance.
    noise = 0.5 * len(steps) if name else float(np.sum(steps * (1 - steps)))
    one = noise / len(steps)
    squares = float(
        pooled.right @ (constant[0] - fitted[0] - dsc) ** 2
        + pooled.wrong @ (constant[1] - fitted[1] - dsc) ** 2
    )

    def of_miscalibration(part: slice) -> tuple[Array, Array]:
        (right, wrong), best = _losses(cells.confidence[part], log=bool(name)), fitted_in(part)
        return right - best[0] - mcb, wrong - best[1] - mcb

    def of_discrimination(part: slice) -> tuple[Array, Array]:
        best = fitted_in(part)
        return constant[0] - best[0] - dsc, constant[1] - best[1] - dsc

    def of_uncertainty(part: slice) -> tuple[Array, Array]:
        size = len(cells.mass[part])
        return np.full(size, float(constant[0][0]) - unc), np.full(size, float(constant[1][0]) - unc)

    return {
        f"corp_{name}miscalibration": _Entry(
            mcb,
            of_miscalibration,
            optimism=noise,
            curvature=one,
            squares=max(0.0, gained - total * mcb**2),
        ),
        f"corp_{name}discrimination": _Entry(
            dsc, of_discrimination, optimism=noise - one, curvature=one, squares=squares
        ),
        f"corp_{name}uncertainty": _Entry(unc, of_uncertainty),
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
