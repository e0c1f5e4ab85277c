"""Results over seeds: means with their errors, and paired differences between methods."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias, final

import numpy as np
from scipy.special import ndtri, stdtr

from equipoise.core.predictions import Predictions
from equipoise.evaluate import Difference, compare
from equipoise.evaluate.differences import verdict_of
from equipoise.experiments.judged import ComparedPair, Judged, JudgedGroup
from equipoise.experiments.scores import RunScores
from equipoise.experiments.seed_scatter import (
    Scatter,
    half_width,
    joint_scatter,
    scatter_of,
    usual_scatter,
)

__all__ = [
    "Cell",
    "SeedDifferences",
    "cell_of",
    "combine",
    "combine_family",
    "difference_of_cells",
    "paired_differences",
    "seed_differences",
]

#: Differences of two methods by seed, one per metric.
SeedDifferences: TypeAlias = Mapping[ComparedPair, Mapping[int, Sequence[Difference]]]
#: Difference of two methods that chance explains with less than this probability is called one.
_ALPHA = 0.05
#: Bytes of predictions that are kept in memory while methods are compared with each other.
_KEPT = 2 << 30


@final
@dataclass(frozen=True, kw_only=True)
class Cell:
    """One number of a table: a metric over seeds.

    Attributes:
        mean: Over seeds.
        error: Standard error over seeds; None for one seed.
        spread: Standard error from the rows, averaged over seeds.
        n_seeds: How many seeds.
        temperature: Mean temperature, for maps that have one.

    Example:
        >>> Cell(mean=0.5, error=None, spread=0.1, n_seeds=1, temperature=None).mean
        0.5
    """

    mean: float
    error: float | None
    spread: float
    n_seeds: int
    temperature: float | None


def cell_of(scores: Sequence[RunScores], metric: str) -> Cell | None:
    """Return a metric of ``test`` over the seeds of a method; None if no seed has it.

    Example:
        >>> cell_of([], "ece") is None
        True
    """
    numbers = [({**part.test.scores, **part.extras}, _width(part.test.level)) for part in scores]
    found = [(known[metric], width) for known, width in numbers if metric in known]
    finite = [(score, width) for score, width in found if np.isfinite(score.value)]
    if not finite:
        return None
    values = np.array([score.value for score, _ in finite])
    temperatures = [part.temperature for part in scores if part.temperature is not None]
    return Cell(
        mean=float(values.mean()),
        error=float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else None,
        spread=float(np.mean([(score.high - score.low) / width for score, width in finite])),
        n_seeds=len(values),
        temperature=float(np.mean(temperatures)) if temperatures else None,
    )


def _width(level: float) -> float:
    """Return how many standard errors an interval is wide."""
    return 2 * float(ndtri((1 + level) / 2))


def seed_differences(group: JudgedGroup, pairs: Iterable[ComparedPair]) -> SeedDifferences:
    """Compare methods on the same test rows, seed by seed.

    What was written down about two seeds is taken from there. Two methods that are asked about both ways are compared
    once: the second answer is the first one turned, so a table cannot call a method better than another that it ties
    with. Predictions and maps are read once for all pairs, as far as memory goes.

    Args:
        group: Runs of the same data, network and recipe.
        pairs: Calibrator, first method, second method.

    Returns:
        For each pair and seed that both methods have, one difference per metric, second minus first.
    """
    found: dict[ComparedPair, dict[int, Sequence[Difference]]] = {pair: {} for pair in sorted(set(pairs))}
    reader = _Reader()
    for seed in group.known_seeds:
        for pair, seeds in found.items():
            calibrator, *labels = pair
            runs = [group.seeds(label, calibrator).get(seed) for label in labels]
            if None not in runs:
                turned = found.get((calibrator, labels[1], labels[0]), {}).get(seed, ())
                known = [row.turned() for row in turned] or group.kept(pair, seed)
                seeds[seed] = known or _compare(group, runs, calibrator, reader)
    return found


def paired_differences(by_seed: SeedDifferences) -> dict[ComparedPair, dict[str, Difference]]:
    """Put the differences of seeds together.

    Every seed gives a paired difference with its bootstrap error. Seeds share their test rows, so that error does not
    shrink with their number; the scatter over seeds adds to it, and being known from few seeds makes the test milder.
    Pairs that are compared after the same calibrator tell each other what scatter is usual.

    Returns:
        For each pair one difference per metric, second minus first.

    Example:
        >>> one = Difference("ece", 0.2, 0.1, -0.1, -0.12, -0.08, 0.001, "second better")
        >>> pair = ("identity", "ce", "focal")
        >>> paired_differences({pair: {0: [one], 1: [one]}})[pair]["ece"].verdict
        'second better'
    """
    families: dict[tuple[str, str], dict[ComparedPair, Sequence[Difference]]] = {}
    for pair, seeds in by_seed.items():
        for row in zip(*seeds.values(), strict=True):
            families.setdefault((pair[0], row[0].metric), {})[pair] = row
    result: dict[ComparedPair, dict[str, Difference]] = {pair: {} for pair in by_seed}
    for (_, metric), family in families.items():
        for pair, one in zip(family, combine_family(list(family.values())), strict=True):
            result[pair][metric] = one
    return result


def _compare(
    group: JudgedGroup, runs: Sequence[Judged | None], calibrator: str, reader: _Reader
) -> list[Difference]:
    first, second = (run for run in runs if run is not None)
    card = group.scores[first.name][calibrator].test
    return list(
        compare(
            reader.read(first, calibrator),
            reader.read(second, calibrator),
            n_bins=card.n_bins,
            closed=card.closed,
            n_resamples=card.n_resamples,
            seed=card.seed,
        )
    )


@final
class _Reader:
    """Test predictions of runs; those used last are kept as long as memory allows."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str], Predictions] = {}

    def read(self, run: Judged, calibrator: str) -> Predictions:
        """Return a run's predictions after a calibrator."""
        key = (run.name, calibrator)
        if key in self._known:
            found = self._known.pop(key)
        elif calibrator == "identity":
            found = run.predictions("test")
        else:
            found = run.mapped(calibrator, self.read(run, "identity"))
        self._known[key] = found
        while len(self._known) > 2 and sum(map(_bytes, self._known.values())) > _KEPT:
            del self._known[next(iter(self._known))]
        return found


def _bytes(predictions: Predictions) -> int:
    return 8 * len(predictions) * (predictions.n_classes or 2)


def combine_family(family: Sequence[Sequence[Difference]]) -> list[Difference]:
    """Return one difference over seeds for each of the pairs of methods that are asked about together.

    Args:
        family: The differences of each pair in one metric, one per seed.

    Example:
        >>> one = Difference("ece", 0.2, 0.1, -0.1, -0.12, -0.08, 0.001, "second better")
        >>> [both.verdict for both in combine_family([[one, one], [one]])]
        ['second better', 'second better']
    """
    apart = [
        [row.difference for row in seeds] for seeds in family if any(row.high > row.low for row in seeds)
    ]
    usual = usual_scatter(apart)
    return [combine(seeds, usual=usual) for seeds in family]


def combine(seeds: Sequence[Difference], *, level: float = 0.95, usual: float | None = None) -> Difference:
    """Return one difference over seeds.

    Args:
        seeds: One per seed.
        level: Of their intervals.
        usual: The variance over seeds that is usual among the differences asked about together; without it that of
            these seeds stands alone.

    Example:
        >>> one = Difference("ece", 0.2, 0.1, -0.1, -0.12, -0.08, 0.001, "second better")
        >>> combine([one, one]).verdict
        'second better'
    """
    values = [row.difference for row in seeds]
    rows = float(np.mean([(row.high - row.low) / _width(level) for row in seeds]))
    # Where no row tells two methods apart they are the same networks, and have no scatter between them.
    scatter = scatter_of(values, usual if rows > 0 else None)
    means = [float(np.mean([getattr(row, name) for row in seeds])) for name in ("first", "second")]
    of_mean = scatter._replace(variance=scatter.variance / len(values))
    return _difference(seeds[0].metric, means[0], means[1], rows, [of_mean])


def difference_of_cells(metric: str, first: Cell, second: Cell) -> Difference:
    """Compare two cells by their intervals alone; wider than a paired test, so it calls more ties.

    Example:
        >>> one = Cell(mean=0.1, error=None, spread=0.01, n_seeds=1, temperature=None)
        >>> difference_of_cells("ece", one, one).verdict
        'tie'
    """
    rows = float(np.hypot(first.spread, second.spread))
    scatters = [
        Scatter(cell.error**2, cell.n_seeds - 1.0) for cell in (first, second) if cell.error is not None
    ]
    return _difference(metric, first.mean, second.mean, rows, scatters)


def _difference(
    metric: str, first: float, second: float, rows: float, scatters: Sequence[Scatter]
) -> Difference:
    """Say how far two numbers are apart, and whether chance explains it."""
    mean = second - first
    joint = joint_scatter(rows, scatters)
    error = float(np.sqrt(joint.variance))
    p_value = float(2 * stdtr(joint.freedom, -abs(mean) / error)) if error > 0 else float(mean == 0)
    verdict = verdict_of(metric, first, second, significant=p_value < _ALPHA)
    half = half_width(joint, alpha=_ALPHA)
    return Difference(metric, first, second, mean, mean - half, mean + half, p_value, verdict)
