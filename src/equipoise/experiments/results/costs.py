"""What methods cost: time to train, numbers learned, and calibration gained for the extra time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from equipoise.evaluate.standard_error import seed_error
from equipoise.experiments.results.groups import RunGroup
from equipoise.experiments.results.means import Cell
from equipoise.experiments.runs.folder import RunFolder
from equipoise.metrics.facts import COST_FACTS

__all__ = ["COST_NOTE", "Cost", "asks_for_costs", "cost_cells", "costs_of"]

#: What a table with costs says below.
COST_NOTE = (
    "Seconds are those of training with its scoring on tune, on the machine that ran it; of a setting that was chosen, "
    "those of all runs that were tried. Parameters are all that is learned, helpers included. The gain is the ECE that "
    "is lower than the baseline's, divided by the extra time in trainings of the baseline; there is none where the "
    "extra is below a twentieth of one."
)
# Less extra time than this, in trainings of the baseline, is noise of the clock.
_LEAST = 0.05


class Cost(NamedTuple):
    """What one seed of a method took.

    Attributes:
        seconds: Of training.
        parameters: Numbers that were learned; None if an earlier version trained it and did not write it down.
    """

    seconds: float
    parameters: float | None


def costs_of(group: RunGroup) -> dict[str, dict[int, Cost]]:
    """Return what each method took, by seed.

    Args:
        group: Runs of the same data, network and recipe.
    """
    tried = {(label, one.run): one.runs for label, seeds in group.choices.items() for one in seeds}
    return {
        label: {
            group.specs[run.name].seed: Cost(
                sum(
                    _seconds(RunFolder(run.path.parent / name))
                    for name in tried.get((label, run.name), [run.name])
                ),
                (run.record("trained") or {}).get("parameters"),
            )
            for run in runs
        }
        for label, runs in group.methods.items()
    }


def _seconds(run: RunFolder) -> float:
    return float(sum(row.get("seconds") or 0.0 for row in run.history()))


def cost_cells(
    costs: Mapping[str, Mapping[int, Cost]], *, label: str, baseline: str, ece: Mapping[str, Cell]
) -> dict[str, Cell]:
    """Return the columns of cost of one method; those that are not known are left out.

    Args:
        costs: By method and seed.
        label: The method.
        baseline: The method that gains are measured from.
        ece: Calibration error after the same calibrator, by method.

    Example:
        >>> costs = {"ce": {0: Cost(10.0, 100)}, "two": {0: Cost(20.0, 200)}}
        >>> error = {"ce": 0.05, "two": 0.02}
        >>> ece = {key: Cell(mean=value) for key, value in error.items()}
        >>> found = cost_cells(costs, label="two", baseline="ce", ece=ece)
        >>> found["seconds"].mean, found["parameters"].mean, round(found["ece_gain"].mean, 3)
        (20.0, 200.0, 0.03)
    """
    own = costs[label].values()
    found = {"seconds": _cell([cost.seconds for cost in own])}
    numbers = [cost.parameters for cost in own if cost.parameters is not None]
    if numbers:
        found["parameters"] = _cell(numbers)
    if label != baseline and baseline in costs and {label, baseline} <= ece.keys():
        usual = float(np.mean([cost.seconds for cost in costs[baseline].values()]))
        extra = found["seconds"].mean / usual - 1 if usual else 0.0
        if extra >= _LEAST:
            gain = (ece[baseline].mean - ece[label].mean) / extra
            found["ece_gain"] = Cell(mean=gain, n_seeds=len(own))
    return found


def _cell(values: Sequence[float]) -> Cell:
    error = seed_error(values) if len(values) > 1 else None
    return Cell(mean=float(np.mean(values)), error=error, n_seeds=len(values))


def asks_for_costs(metrics: Iterable[str]) -> bool:
    """Return whether columns of cost are among some metrics.

    Example:
        >>> asks_for_costs(["ece", "seconds"])
        True
    """
    return any(metric in COST_FACTS for metric in metrics)
