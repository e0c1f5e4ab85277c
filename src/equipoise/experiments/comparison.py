"""Do what is left of a comparison, and give what came out."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias, TypeVar, final

from equipoise.core.atomic_files import write_text
from equipoise.core.errors import DataError, SpecError
from equipoise.core.names import check_choice
from equipoise.experiments.build.data import data_of
from equipoise.experiments.build.preparation import prepare
from equipoise.experiments.engines import RunSummary, run_locally, run_on_ray
from equipoise.experiments.results.formatting import format_tables
from equipoise.experiments.results.groups import RunGroup, ShownOrder, group_runs, write_order
from equipoise.experiments.results.shift import format_shifts
from equipoise.experiments.results.tables import COLUMNS, ResultTable, tables_of_groups
from equipoise.experiments.runs.folder import RunFolder
from equipoise.experiments.runs.rows import write_rows
from equipoise.experiments.specs.calibrators import calibrator_key
from equipoise.experiments.specs.comparison import ComparisonSpec
from equipoise.experiments.specs.execution import Execution
from equipoise.experiments.specs.run import Spec
from equipoise.experiments.specs.scoring import ScoringOptions
from equipoise.experiments.tuning.choices import SeedChoice, read_earlier_choices, write_choices
from equipoise.experiments.tuning.samplers import first_settings
from equipoise.experiments.tuning.study import Study, choose_setting

__all__ = ["ComparisonResult", "Runs", "make_engine", "part_of", "run_comparison"]

T = TypeVar("T")
#: Does runs, and returns which are done and which failed.
Engine: TypeAlias = Callable[[Sequence[Spec], ScoringOptions, Execution], RunSummary]


class ComparisonResult(NamedTuple):
    """What came out of a comparison.

    Attributes:
        summary: Which runs are done, which failed.
        tables: One per dataset and network, of the runs that are done.
        results: The file of tidy rows.
        groups: The runs behind the tables.
        rows: The tidy rows.
        left: How many runs of the comparison other parts have yet to finish; nothing but the runs is written then.

    Example:
        >>> ComparisonResult(RunSummary(), [], Path("runs/mine.results.csv")).summary.is_whole
        True
    """

    summary: RunSummary
    tables: list[ResultTable]
    results: Path
    groups: Sequence[RunGroup] = ()
    rows: Sequence[Mapping[str, Any]] = ()
    left: int = 0

    def _repr_html_(self) -> str:
        return "".join(table._repr_html_() for table in self.tables)


def run_comparison(
    comparison: ComparisonSpec,
    folder: str | os.PathLike[str],
    *,
    scoring: ScoringOptions | None = None,
    execution: Execution | None = None,
    engine: str = "local",
    workers: int | None = None,
    address: str | None = None,
    margins: Mapping[str, float] | None = None,
    part: tuple[int, int] | None = None,
) -> ComparisonResult:
    """Do what is left of a comparison, and write its results and tables.

    With ``part``, only every n-th run is done here, so that several machines share a comparison; the part that
    finishes the last run writes the results. Parts may run at the same time, on a folder that all of them see.

    Args:
        comparison: What to run.
        folder: Where run folders and results go.
        scoring: Bins, level and resamples of the scores. Calibrators, metrics and additional test sets are those of the
            comparison.
        execution: How runs are executed.
        engine: ``"local"`` or ``"ray"``.
        workers: Processes of the local engine.
        address: Cluster of the Ray engine.
        margins: By metric: a difference that is shown to be smaller is called equivalent.
        part: ``(i, n)`` does the i-th of n parts, counted from 1.

    Returns:
        Which runs are done, the tables, and the file of tidy rows.

    Raises:
        DataError: If data are missing or wrong; this is reported before the first run.
        ValueError: If there is no such part.

    Example:
        >>> import tempfile
        >>> table = {"data": "digits", "model": "mlp", "method": "ce", "recipe": {"name": "quick", "epochs": 1}}
        >>> scoring, execution = ScoringOptions(n_resamples=20), Execution(quiet=True)
        >>> comparison = ComparisonSpec.from_table(table)
        >>> result = run_comparison(comparison, tempfile.mkdtemp(), scoring=scoring, execution=execution)
        >>> result.summary.is_whole, result.tables[0].rows[0].method
        (True, 'ce')
    """
    if part is not None and not 1 <= part[0] <= part[1]:
        raise ValueError(
            f"run_comparison: `part` must be (i, n) with i from 1 to n, got {part}. Count parts from 1."
        )
    base = Path(folder)
    runs = Runs(
        comparison,
        _scoring_of(comparison, scoring or ScoringOptions()),
        execution or Execution(),
        make_engine(base, engine=engine, workers=workers, address=address),
    )
    base.mkdir(parents=True, exist_ok=True)
    keys = [calibrator_key(one) for one in comparison.calibrators]
    order = ShownOrder(methods=comparison.methods, calibrators=tuple(keys), baseline=comparison.baseline)
    write_order(base, comparison.name, order)

    places = list(
        {(spec.data, spec.model, spec.recipe, spec.seed): spec for spec in comparison.specs}.values()
    )
    mine = part_of(places, part)
    studies = [
        Study(tuned, place)
        for tuned in comparison.tuned
        for place in places
        # A rehearsal tries settings on its first data and network only.
        if replace(place, method=tuned.method_at(first_settings(tuned)[0])) in runs.pinned
    ]
    searches = [one for one in studies if one.tuned.sampler != "grid"]
    runs.tune([one for one in searches if one.place in mine])
    if part is not None:
        runs.do(part_of(comparison.specs, part))
        left = [spec for spec in runs.pinned.values() if not RunFolder(base / spec.identity).is_finished()]
        # The trials of a search belong to other parts, too, and are not known here.
        if left or (searches and part[1] > 1):
            results = base / f"{comparison.name}.results.csv"
            return ComparisonResult(runs.summary(), [], results, left=len(left))
    runs.do(comparison.specs, quiet=part is not None)
    runs.tune([one for one in studies if one.tuned.sampler == "grid"])
    return _write_results(comparison, base, runs, studies, order, margins)


def make_engine(base: Path, *, engine: str, workers: int | None, address: str | None) -> Engine:
    """Return a function that does runs in a folder.

    Args:
        base: The folder of run folders.
        engine: ``"local"`` or ``"ray"``.
        workers: Processes of the local engine.
        address: Cluster of the Ray engine.

    Raises:
        ValueError: For another engine.
    """
    check_choice(engine, ("local", "ray"), where="run_comparison", name="engine")
    return lambda specs, scoring, execution: (
        run_on_ray(specs, base, scoring=scoring, execution=execution, address=address)
        if engine == "ray"
        else run_locally(specs, base, scoring=scoring, execution=execution, workers=workers)
    )


def _scoring_of(comparison: ComparisonSpec, scoring: ScoringOptions) -> ScoringOptions:
    """Return how runs are scored: what the comparison says, then the options of the command."""
    return replace(
        scoring,
        calibrators=comparison.calibrators,
        metrics=comparison.extra_metrics,
        shift=comparison.shift,
        history=comparison.history,
        closed=comparison.closed or scoring.closed,
    )


@final
class Runs:
    """The runs of a comparison: each is pinned and done once."""

    def __init__(
        self,
        comparison: ComparisonSpec,
        scoring: ScoringOptions,
        execution: Execution,
        engine: Engine,
    ) -> None:
        self._where, self._execution, self._engine = comparison.where, execution, engine
        self.done: dict[str, RunFolder] = {}
        self._failed: dict[str, str] = {}
        found = prepare(comparison.specs, where=comparison.where, execution=execution, scoring=scoring)
        _check_splits(found, comparison, execution)
        self._scoring = scoring.pinned()
        #: Specs with the digests of code and data, by the spec without them.
        self.pinned: dict[Spec, Spec] = dict(zip(comparison.specs, found, strict=True))

    def do(self, specs: Sequence[Spec], *, quiet: bool = False) -> list[RunFolder | None]:
        """Do runs that are not done yet, and return their folders; None for those that failed."""
        new = [spec for spec in dict.fromkeys(specs) if spec not in self.pinned]
        found = prepare(new, where=self._where, execution=self._execution)
        self.pinned |= dict(zip(new, found, strict=True))
        due = [
            one
            for one in dict.fromkeys(self.pinned[spec] for spec in specs)
            if one.identity not in self.done and one.label not in self._failed
        ]
        if due:
            execution = replace(self._execution, quiet=self._execution.quiet or quiet)
            summary = self._engine(due, self._scoring, execution)
            self.done |= {run.name: run for run in summary.done}
            self._failed |= summary.failed
        return [self.done.get(self.pinned[spec].identity) for spec in specs]

    def tune(self, studies: Sequence[Study]) -> None:
        """Do the runs that studies ask for, until they ask for no more."""
        while requests := [(study, spec) for study in studies for spec in study.ask()]:
            found = self.do([spec for _, spec in requests])
            for (study, spec), run in zip(requests, found, strict=True):
                study.tell(spec, run)

    def summary(self) -> RunSummary:
        """Return what is done, in the order of the specs, and what failed."""
        names = dict.fromkeys(spec.identity for spec in self.pinned.values())
        return RunSummary([self.done[name] for name in names if name in self.done], self._failed)


def _write_results(
    comparison: ComparisonSpec,
    base: Path,
    runs: Runs,
    studies: Sequence[Study],
    order: ShownOrder,
    margins: Mapping[str, float] | None,
) -> ComparisonResult:
    """Choose settings, make the tables, and write everything beside the runs."""
    summary, specs = runs.summary(), runs.pinned
    path = base / f"{comparison.name}.choices.json"
    listed = [spec.identity for spec in specs.values() if spec.method.label in comparison.methods]
    earlier = read_earlier_choices(path)
    choices: list[SeedChoice] = [
        choose_setting(one, [specs[spec].identity for spec in one.specs], runs.done, listed, earlier)
        for one in studies
    ]
    write_choices(path, choices)
    by_name = {spec.identity: spec for spec in specs.values()}
    found = group_runs(summary.done, choices, specs=by_name, orders=[order])
    groups = [group.select(calibrators=order.calibrators) for group in found]
    labels = {label for group in groups for label in group.methods}
    tables = tables_of_groups(
        groups,
        baseline=comparison.baseline if comparison.baseline in labels else None,
        metrics=comparison.metrics or COLUMNS,
        margins=margins,
    )
    differences = [row for table in tables for row in table.difference_records()]
    if differences:
        write_rows(base / f"{comparison.name}.differences.csv", differences)
    owners = {name: group for group in groups for name in group.specs}
    rows = [row for run in summary.done for row in owners[run.name].rows(run, order.calibrators)]
    results = base / f"{comparison.name}.results.csv"
    write_rows(results, rows)
    texts = [format_tables(tables, "markdown"), format_shifts(groups, "markdown")]
    write_text(base / f"{comparison.name}.table.md", "\n\n".join(filter(None, texts)) + "\n")
    return ComparisonResult(summary, tables, results, groups, rows)


def part_of(items: Sequence[T], part: tuple[int, int] | None) -> Sequence[T]:
    """Return every n-th item, from the i-th on; parts are disjoint, and together they are all items.

    Args:
        items: In the order of the spec, which is the same for every part.
        part: ``(i, n)``, counted from 1; None is all.

    Example:
        >>> [part_of("abcde", (number, 2)) for number in (1, 2)]
        ['ace', 'bd']
    """
    return items if part is None else items[part[0] - 1 :: part[1]]


def _check_splits(specs: Iterable[Spec], comparison: ComparisonSpec, execution: Execution) -> None:
    """Raise if calibrators are fitted, or settings chosen, on data that have no rows for it."""
    if len(comparison.calibrators) == 1 and not comparison.tuned:
        return
    for spec in {spec.data: spec for spec in specs}.values():
        data = data_of(spec, execution)
        split = spec.data.fit_split
        if len(comparison.calibrators) > 1 and not len(data.splits.get(split, ())):
            names = ", ".join(map(calibrator_key, comparison.calibrators[1:]))
            raise SpecError(
                f"{comparison.where}.calibrators: {data.name!r} has no {split!r} split to fit {names} on. "
                "Give it rows, or write calibrators = []."
            )
        if comparison.tuned and not len(data.splits.get("tune", ())):
            raise DataError(
                f"{comparison.where}.method: settings of {comparison.tuned[0].label} are chosen on the 'tune' split, "
                f"and the data have none: {data.name!r}. Keep rows for it."
            )
