"""Results of many runs: tidy rows, and paired differences from a baseline."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from scipy.special import stdtr

from equipoise.core.predictions import Predictions
from equipoise.evaluate import compare
from equipoise.experiments.folder import RunFolder
from equipoise.experiments.scoring import calibrated_predictions

__all__ = ["Cell", "Contrast", "cells", "contrast", "gather_rows"]


def gather_rows(runs: Iterable[RunFolder]) -> list[dict[str, Any]]:
    """Return the tidy rows of all runs: one per run, split, calibrator and metric.

    Example:
        >>> gather_rows([])
        []
    """
    return [row for folder in runs for row in folder.scores()]


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


def cells(rows: Sequence[Mapping[str, Any]], *, split: str = "test") -> dict[tuple[str, str, str], Cell]:
    """Return a cell per (method, calibrator, metric) of runs on the same data with the same network.

    Example:
        >>> row = {"method": "ce", "calibrator": "identity", "metric": "ece", "seed": 0}
        >>> found = cells([{**row, "split": "test", "value": 0.1, "low": 0.0, "high": 0.2}])
        >>> found["ce", "identity", "ece"].mean
        0.1
    """
    groups: dict[tuple[str, str, str], list[Mapping[str, Any]]] = {}
    for row in rows:
        if row["split"] == split and row["value"] is not None and np.isfinite(row["value"]):
            key = (str(row["method"]), str(row["calibrator"]), str(row["metric"]))
            groups.setdefault(key, []).append(row)
    return {key: _cell(group) for key, group in groups.items()}


def _cell(group: Sequence[Mapping[str, Any]]) -> Cell:
    values = np.array([row["value"] for row in group], dtype=np.float64)
    widths = [row["high"] - row["low"] for row in group if None not in (row["low"], row["high"])]
    temperatures = [row["temperature"] for row in group if row.get("temperature") is not None]
    return Cell(
        mean=float(values.mean()),
        error=float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else None,
        spread=float(np.mean(widths) / (2 * 1.96)) if widths else 0.0,
        n_seeds=len(values),
        temperature=float(np.mean(temperatures)) if temperatures else None,
    )


@final
@dataclass(frozen=True, kw_only=True)
class Contrast:
    """How a method differs from the baseline, over seeds.

    Attributes:
        difference: Mean over seeds, method minus baseline.
        error: Its standard error, from rows and seeds together.
        p_value: Two-sided.
        paired: Whether rows were compared one by one.

    Example:
        >>> Contrast(difference=-0.1, error=0.01, p_value=0.0, paired=True).is_clear(0.05)
        True
    """

    difference: float
    error: float
    p_value: float
    paired: bool

    def is_clear(self, alpha: float = 0.05) -> bool:
        """Whether chance is an unlikely explanation."""
        return self.p_value < alpha


def contrast(
    baseline: Sequence[RunFolder],
    method: Sequence[RunFolder],
    *,
    calibrator: str = "identity",
    n_bins: int = 15,
) -> dict[str, Contrast]:
    """Compare two methods' runs on the same test rows, seed by seed.

    Every seed gives a paired difference with its bootstrap error. Seeds share their test rows, so that error does not
    shrink with their number; the scatter over seeds adds to it, and being known from few seeds makes the test milder.

    Args:
        baseline: Runs of the baseline, one per seed.
        method: Runs of the method, with the same seeds in the same order.
        calibrator: After which map.
        n_bins: Bins of the binned metrics.

    Returns:
        One contrast per metric.
    """
    found: dict[str, list[tuple[float, float]]] = {}
    for one, other in zip(baseline, method, strict=True):
        pair = [_test(folder, calibrator) for folder in (one, other)]
        for row in compare(*pair, n_bins=n_bins, n_resamples=400):
            found.setdefault(row.metric, []).append((row.difference, (row.high - row.low) / (2 * 1.96)))
    return {metric: _combine(np.array(values), paired=True) for metric, values in found.items()}


def _test(folder: RunFolder, calibrator: str) -> Predictions:
    return calibrated_predictions(folder, calibrator, "test").predictions


def _combine(values: Any, *, paired: bool) -> Contrast:
    differences, errors = values[:, 0], values[:, 1]
    n_seeds = len(differences)
    scatter = float(differences.std(ddof=1) / np.sqrt(n_seeds)) if n_seeds > 1 else 0.0
    return _contrast(float(differences.mean()), float(errors.mean()), [(scatter, n_seeds)], paired=paired)


def contrast_of_cells(baseline: Cell, method: Cell) -> Contrast:
    """Compare two cells by their intervals alone; wider than a paired test, so it calls more ties.

    Example:
        >>> one = Cell(mean=0.1, error=None, spread=0.01, n_seeds=1, temperature=None)
        >>> contrast_of_cells(one, one).p_value
        1.0
    """
    rows = float(np.hypot(baseline.spread, method.spread))
    scatters = [(cell.error or 0.0, cell.n_seeds) for cell in (baseline, method)]
    return _contrast(method.mean - baseline.mean, rows, scatters, paired=False)


def _contrast(mean: float, rows: float, scatters: Sequence[tuple[float, int]], *, paired: bool) -> Contrast:
    """Join the error from rows, of many degrees of freedom, with scatters over few seeds (Welch and Satterthwaite)."""
    error = float(np.hypot(rows, np.hypot.reduce([scatter for scatter, _ in scatters])))
    loose = sum(scatter**4 / (n_seeds - 1) for scatter, n_seeds in scatters if n_seeds > 1)
    freedom = error**4 / loose if loose > 0 else np.inf
    p_value = float(2 * stdtr(freedom, -abs(mean) / error)) if error > 0 else float(mean == 0)
    return Contrast(difference=mean, error=error, p_value=p_value, paired=paired)
