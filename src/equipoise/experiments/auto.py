"""The ladder of `auto`: trainings in the order of the evidence, within a budget, each a run folder."""

from __future__ import annotations

import math
import os
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple, final

from equipoise.calibrators.ensemble import average_predictions
from equipoise.core.errors import DataError, SpecError
from equipoise.core.predictions import Predictions
from equipoise.core.predictions.combine import concatenate
from equipoise.core.progress import clock_text
from equipoise.evaluate.final_test import FEWEST_ROWS, choosing_nll
from equipoise.experiments.build.data import data_of
from equipoise.experiments.comparison import Runs, make_engine
from equipoise.experiments.engines.local import usable_cores
from equipoise.experiments.runs.folder import RunFolder
from equipoise.experiments.runs.json_files import read_json, write_json
from equipoise.experiments.specs.comparison import ComparisonSpec
from equipoise.experiments.specs.execution import Execution
from equipoise.experiments.specs.run import MethodSpec, Spec
from equipoise.experiments.specs.scoring import ScoringOptions

__all__ = ["Budget", "Climb", "ShortTraining", "climb", "held_out_rows", "parse_budget"]

#: Members of the first ensemble, and the most that any ensemble gets.
_MEMBERS, _MOST_MEMBERS = 5, 10
#: What successive halving begins with: a quarter of the epochs for all four, half for two, all for one.
_ROUNDS = ((4, 0.25), (2, 0.5), (1, 1.0))
_HALVING_COST = sum(number * share for number, share in _ROUNDS)
#: A training is started only if this much of the time that is left is enough for it.
_CAREFUL = 0.9
_UNITS = {"s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}


@final
@dataclass(frozen=True, slots=True)
class Budget:
    """How much may be spent on trainings: a number of them, or seconds.

    Attributes:
        runs: Number of trainings; a training of half the epochs counts as half.
        seconds: Wall-clock time.
    """

    runs: int | None = None
    seconds: float | None = None

    def __str__(self) -> str:
        if self.seconds is not None:
            return clock_text(self.seconds)
        return f"{self.runs} training{'s' * (self.runs != 1)}"

    def left(self, trainings: float, seconds: float) -> str:
        """Return in words what is left after some trainings that took some seconds."""
        if self.runs is not None:
            return f"{max(0.0, self.runs - trainings):g} of {self}"
        return f"{clock_text(max(0.0, (self.seconds or 0.0) - seconds))} of {self}"


def parse_budget(given: str | int) -> Budget:
    """Return the budget that a text or number describes.

    Args:
        given: ``5`` or ``"5runs"`` for trainings; ``"90s"``, ``"30m"`` or ``"2h"`` for time.

    Raises:
        SpecError: If it is neither, or nothing.

    Example:
        >>> parse_budget("30m"), parse_budget(5)
        (Budget(runs=None, seconds=1800.0), Budget(runs=5, seconds=None))
    """
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([a-z]*)\s*", str(given).lower())
    number, unit = (float(found[1]), found[2]) if found else (0.0, "?")
    if found and number == 0:
        raise SpecError(
            "auto: the budget must be above 0: one training is the least. Use for example 5 or 30m."
        )
    if unit in _UNITS:
        return Budget(seconds=number * _UNITS[unit])
    if unit in ("", "run", "runs", "training", "trainings") and number == int(number):
        return Budget(runs=int(number))
    raise SpecError(f"auto: expected a budget such as 5, 5runs, 90s, 30m or 2h, got {str(given)!r}.")


class ShortTraining(NamedTuple):
    """A training with fewer epochs, which decides which methods go on.

    Attributes:
        method: The method.
        share: Share of the epochs.
        nll: After temperature scaling, on the choosing rows; nan if it failed.
    """

    method: str
    share: float
    nll: float


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Climb:
    """What was trained.

    Attributes:
        members: Runs behind each source of predictions, by name; the first is cross-entropy.
        planned: The source that was fixed before any held-out row was read: the first ensemble; None if there is none.
        short: Trainings with fewer epochs.
        failed: Label and sentence of each run that failed.
        trainings: How many trainings were done; short ones count as a part.
        seconds: How long they took, earlier calls included.
        left: What is left of the budget, in words.
    """

    members: Mapping[str, tuple[RunFolder, ...]]
    planned: str | None
    short: tuple[ShortTraining, ...]
    failed: Mapping[str, str]
    trainings: float
    seconds: float
    left: str


def climb(
    spec: Spec,
    folder: str | os.PathLike[str],
    *,
    budget: Budget,
    scoring: ScoringOptions | None = None,
    execution: Execution | None = None,
    engine: str = "local",
    workers: int | None = None,
    address: str | None = None,
    report: Callable[[str], None] = lambda _: None,
) -> Climb:
    """Train in the order of the evidence: cross-entropy, its EMA, members of ensembles, losses and augmentation.

    The first five trainings are planned: cross-entropy without and with EMA in turn, each with another seed. With more
    budget, losses and augmentations are compared by successive halving, and the best method gets more members.
    Finished runs are not repeated and half-finished ones go on, so that an interrupted call continues. Decisions on the
    way use only the choosing half of the held-out rows; the split ``test`` is not read.

    Args:
        spec: Data, network, recipe and the first seed; its method is not used.
        folder: Where run folders go.
        budget: When to stop.
        scoring: How runs are scored.
        execution: How runs are executed.
        engine: ``"local"`` or ``"ray"``.
        workers: Processes of the local engine.
        address: Cluster of the Ray engine.
        report: Gets a line about the best candidate so far and the budget that is left.

    Raises:
        DataError: If the first training failed, or there are too few held-out rows.
    """
    base = Path(folder)
    execution = execution or Execution()
    spec = replace(spec, method=MethodSpec(name="ce"))
    data = data_of(spec, execution)
    if data.kind == "segmentation":
        raise DataError(
            "auto: expected one label per row, got masks. Use `equipoise compare` for segmentation."
        )
    splits = _free_splits(spec)
    n_rows = sum(len(data.splits.get(split, ())) for split in splits)
    if n_rows < FEWEST_ROWS:
        raise DataError(
            f"auto: expected at least {FEWEST_ROWS} rows in {' and '.join(splits)}, got {n_rows}. Hold out more, for "
            "example with --set data.calib=0.3."
        )
    base.mkdir(parents=True, exist_ok=True)
    runs = Runs(
        ComparisonSpec(
            name="auto", specs=(spec,), calibrators=(), baseline="ce", methods=("ce",), where="auto"
        ),
        replace(scoring or ScoringOptions(n_resamples=100), calibrators=("identity",)),
        execution,
        make_engine(base, engine=engine, workers=workers, address=address),
    )
    side = 1 if engine == "ray" else min(workers or usable_cores(), usable_cores())
    ladder = _Ladder(runs, spec, budget, base / "progress.json", side, data.kind, report)
    ladder.climb()
    return Climb(
        members=ladder.members(),
        planned=f"ensemble of {len(ladder.planned)}" if len(ladder.planned) > 1 else None,
        short=tuple(ladder.short),
        failed=runs.summary().failed,
        trainings=ladder.count,
        seconds=ladder.seconds,
        left=ladder.left(),
    )


def held_out_rows(members: Sequence[RunFolder]) -> Predictions:
    """Return the mean prediction of runs on the rows that no training has used.

    These are the rows of ``calib``; and those of ``tune``, unless a training chose an epoch on them.

    Args:
        members: Finished runs of the same data.
    """
    splits = _free_splits(members[0].spec())
    parts = [
        [run.predictions(split).with_split("calib") for run in members]
        for split in splits
        if split in members[0].splits()
    ]
    return concatenate([one[0] if len(one) == 1 else average_predictions(one) for one in parts])


def _free_splits(spec: Spec) -> tuple[str, ...]:
    is_used = spec.training.keep == "best" or spec.training.patience > 0
    return ("calib",) if is_used else ("tune", "calib")


def _methods(kind: str) -> list[MethodSpec]:
    """Return the losses and augmentations that are tried, for images or other inputs."""
    mixing = {"cutmix": 1.0} if kind == "image" else {"mixup": 0.2}
    return [
        MethodSpec(name="label_smoothing"),
        MethodSpec(name="focal"),
        MethodSpec(name="ce", recipe=mixing, title=next(iter(mixing))),
        MethodSpec(name="ce", recipe={"regmixup": 10.0}, title="regmixup"),
    ]


@final
@dataclass(slots=True)
class _Ladder:
    """The trainings so far, and what they cost."""

    runs: Runs
    spec: Spec
    budget: Budget
    record: Path
    side: int
    kind: str
    report: Callable[[str], None]
    done: dict[str, list[RunFolder]] = field(default_factory=dict)
    short: list[ShortTraining] = field(default_factory=list)
    count: float = 0.0
    seconds: float = 0.0
    each: float = 0.0
    counted: list[str] = field(default_factory=list)
    seed: int = 0
    planned: tuple[RunFolder, ...] = ()

    def climb(self) -> None:
        """Go up the ladder until the budget or the ladder ends."""
        stored = read_json(self.record) if self.record.exists() else {}
        self.seconds, self.each = float(stored.get("seconds", 0)), float(stored.get("each", 0))
        self.counted = list(stored.get("runs", []))
        plain = MethodSpec(name="ce")
        averaged = MethodSpec(name="ce", recipe={"average": "ema"}, title="ema")
        first = [plain, *([] if self.spec.recipe.average else [averaged])]
        # Under a limit on time, the first training is what the others are estimated from.
        batches = [first] if self.budget.seconds is None else [[one] for one in first]
        for batch in batches:
            self.train(batch)
        if not self.done.get(plain.label):
            failed = "; ".join(self.runs.summary().failed.values())
            raise DataError(f"auto: the first training failed: {failed}")
        # The first ensemble is planned: which methods its members have does not depend on any row.
        self.train([first[place % len(first)] for place in range(len(first), _MEMBERS)])
        self.planned = tuple(run for runs in self.done.values() for run in runs)
        methods = {one.label: one for one in (*first, *_methods(self.kind))}
        if self.affordable(1.0) >= _HALVING_COST:
            self.halve(_methods(self.kind))
        while (missing := _MOST_MEMBERS - len(self.done[self.best()])) > 0 and self.affordable(1.0):
            if not self.train([methods[self.best()]] * min(missing, self.side)):
                break

    def train(self, methods: Sequence[MethodSpec]) -> list[RunFolder]:
        """Train as many methods as fit, each with the next seed, and return the finished runs."""
        fitting = methods[: self.affordable(1.0)] if self.count else methods[: max(1, self.affordable(1.0))]
        specs = []
        for method in fitting:
            specs.append(replace(self.spec, method=method, seed=self.spec.seed + self.seed))
            self.seed += 1
        found = self.run(specs, 1.0)
        for method, run in zip(fitting, found, strict=True):
            if run is not None:
                self.done.setdefault(method.label, []).append(run)
        if self.done:
            self.report(self.status())
        return [run for run in found if run is not None]

    def halve(self, methods: Sequence[MethodSpec]) -> None:
        """Train methods for a part of the epochs, continue with the better half, and train the best one whole."""
        for number, share in _ROUNDS[:-1]:
            if self.affordable(share) < number:
                return
            epochs = max(1, round(share * self.spec.recipe.epochs))
            recipe = replace(self.spec.recipe, epochs=epochs)
            specs = [
                replace(self.spec, method=one, recipe=recipe, seed=self.spec.seed + self.seed)
                for one in methods[:number]
            ]
            found = self.run(specs, share)
            values = [math.nan if run is None else self.nll([run]) for run in found]
            self.short += [
                ShortTraining(one.label, share, nll) for one, nll in zip(methods, values, strict=False)
            ]
            known = [place for place, nll in enumerate(values) if not math.isnan(nll)]
            methods = [methods[place] for place in sorted(known, key=values.__getitem__)][
                : max(1, number // 2)
            ]
        self.train(methods[:1])

    def run(self, specs: Sequence[Spec], share: float) -> list[RunFolder | None]:
        """Do runs, and record how long they took."""
        if not specs:
            return []
        began = time.monotonic()
        found = self.runs.do(specs)
        taken = time.monotonic() - began
        self.count += share * len(specs)
        fresh = [run for run in found if run is not None and run.name not in self.counted]
        if fresh or None in found:
            # A call that was stopped may have finished runs that it did not count: they take no time now.
            trained = sum(float((run.record("trained") or {}).get("seconds", 0.0)) for run in fresh)
            taken = max(taken, trained / self.side)
            self.seconds += taken
            self.each = taken / math.ceil(len(specs) / self.side) / share
            self.counted += [run.name for run in fresh]
            content = {"seconds": round(self.seconds, 3), "each": round(self.each, 3), "runs": self.counted}
            write_json(self.record, content)
        return found

    def affordable(self, share: float) -> int:
        """Return how many trainings of a share of the epochs fit into what is left."""
        if self.budget.runs is not None:
            return int((self.budget.runs - self.count) / share + 1e-9)
        left = _CAREFUL * ((self.budget.seconds or 0.0) - self.seconds)
        if not self.each:
            return 1
        return max(0, int(left / (self.each * share))) * self.side

    def nll(self, members: Sequence[RunFolder]) -> float:
        """Return the NLL of a source on the choosing rows."""
        return choosing_nll(held_out_rows(members))

    def best(self) -> str:
        """Return the method whose first network is best on the choosing rows."""
        return min(self.done, key=lambda name: self.nll(self.done[name][:1]))

    def members(self) -> dict[str, tuple[RunFolder, ...]]:
        """Return the sources of predictions: first networks, ensembles of a method, and one of everything."""
        every = tuple(run for runs in self.done.values() for run in runs)
        named: list[tuple[str, tuple[RunFolder, ...]]] = [
            (name, (runs[0],)) for name, runs in self.done.items()
        ]
        named += [(f"ensemble of {len(runs)}", runs) for runs in (self.planned, every)]
        named += [(f"{len(runs)} x {name}", tuple(runs)) for name, runs in self.done.items()]
        names: dict[tuple[RunFolder, ...], str] = {}
        for name, runs in named:
            if runs:
                names.setdefault(runs, name)
        return {name: runs for runs, name in names.items()}

    def left(self) -> str:
        """Return what is left of the budget."""
        return self.budget.left(self.count, self.seconds)

    def status(self) -> str:
        """Return the best source so far, and what is left of the budget."""
        values = {name: self.nll(runs) for name, runs in self.members().items()}
        name = min(values, key=values.__getitem__)
        trainings = f"{self.count:g} training{'s' * (self.count != 1)}"
        found = f"{name} + temperature, NLL {values[name]:.4f} on the choosing rows"
        if name != "ce":
            found += f" (ce + temperature {values['ce']:.4f})"
        return f"{trainings} done, {self.left()} left; best so far: {found}"
