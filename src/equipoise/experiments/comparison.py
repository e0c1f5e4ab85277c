"""Do what is left of a comparison, and give what came out."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from equipoise.core.atomic_files import write_text
from equipoise.core.errors import DataError, SpecError
from equipoise.core.names import check_choice
from equipoise.experiments.build.data import data_of, fit_split
from equipoise.experiments.build.preparation import pinned, prepare
from equipoise.experiments.engines import RunSummary, run_locally, run_on_ray
from equipoise.experiments.results.formatting import format_tables
from equipoise.experiments.results.groups import RunGroup, group_runs
from equipoise.experiments.results.shift import format_shifts
from equipoise.experiments.results.shown_order import ShownOrder, write_order
from equipoise.experiments.results.tables import COLUMNS, ResultTable, tables_of_groups
from equipoise.experiments.runs.folder import RunFolder
from equipoise.experiments.runs.rows import write_rows
from equipoise.experiments.runs.stages import RunOptions
from equipoise.experiments.specs.comparison import ComparisonSpec
from equipoise.experiments.specs.run import Spec
from equipoise.experiments.tuning.outcome import SeedChoice, choices_before, choose_setting, write_choices
from equipoise.experiments.tuning.search import Sought, search_settings

__all__ = ["ComparisonResult", "part_of", "run_comparison"]

T = TypeVar("T")


class ComparisonResult(NamedTuple):
    """What a comparison came to.

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
    options: RunOptions | None = None,
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
        options: What does not change results.
        engine: ``"local"`` or ``"ray"``.
        workers: Processes of the local engine.
        address: Cluster of the Ray engine.
        margins: By metric: a difference that is shown to be smaller is called equivalent.
        part: ``(i, n)`` does the i-th of n parts, counted from 1.

    Returns:
        Which runs are done, the tables, and the file of tidy rows.

    Raises:
        DataError: If data are missing or wrong; this is said before the first run.
        ValueError: If there is no such part.

    Example:
        >>> import tempfile
        >>> table = {"data": "digits", "model": "mlp", "method": "ce", "recipe": {"name": "quick", "epochs": 1}}
        >>> options = RunOptions(n_resamples=20, quiet=True)
        >>> result = run_comparison(ComparisonSpec.from_table(table), tempfile.mkdtemp(), options=options)
        >>> result.summary.is_whole, result.tables[0].rows[0].method
        (True, 'ce')
    """
    check_choice(engine, ("local", "ray"), where="run_comparison", name="engine")
    if part is not None and not 1 <= part[0] <= part[1]:
        raise ValueError(
            f"run_comparison: `part` must be (i, n) with i from 1 to n, got {part}. Count parts from 1."
        )
    specs, chosen = _ready(comparison, options or RunOptions())
    base = Path(folder)
    base.mkdir(parents=True, exist_ok=True)

    def run_all(runs: Sequence[Spec], *, quiet: bool = False) -> RunSummary:
        told = replace(chosen, quiet=chosen.quiet or quiet)
        if engine == "ray":
            return run_on_ray(runs, base, options=told, address=address)
        return run_locally(runs, base, options=told, workers=workers)

    def ready(runs: Sequence[Spec]) -> Sequence[Spec]:
        return prepare(runs, where=comparison.where, root=chosen.root, download=chosen.download)

    keys = [one.key for one in comparison.calibrators]
    order = ShownOrder(methods=comparison.methods, calibrators=tuple(keys), baseline=comparison.baseline)
    write_order(base, comparison.name, order)
    mine = dict(part_of(list(_places(comparison).items()), part))
    sought = search_settings(comparison.choices, mine, ready, run_all)
    if part is not None:
        summary = run_all(part_of(specs, part))
        left = [spec for spec in specs if not RunFolder(base / spec.identity).is_finished()]
        # The trials of a search belong to other parts, too, and are not known here.
        is_searching = any(choice.search is not None for choice in comparison.choices)
        if left or (is_searching and part[1] > 1):
            return ComparisonResult(summary, [], base / f"{comparison.name}.results.csv", left=len(left))
    known = {spec.identity for spec in specs}
    tried = {
        spec.identity: spec for one in sought.values() for spec in one.specs if spec.identity not in known
    }
    specs = [*specs, *tried.values()]
    summary = run_all(specs, quiet=part is not None)
    positions = {spec.identity: number for number, spec in enumerate(specs)}
    summary.done.sort(key=lambda run: positions[run.name])
    kept = base / f"{comparison.name}.choices.json"
    choices = _choose(comparison, specs, summary.done, sought, choices_before(kept))
    write_choices(kept, choices)
    found = group_runs(summary.done, choices, specs={spec.identity: spec for spec in specs}, orders=[order])
    groups = [group.select(calibrators=keys) for group in found]
    tables = _tables(comparison, groups, margins)
    differences = [row for table in tables for row in table.difference_records()]
    if differences:
        write_rows(base / f"{comparison.name}.differences.csv", differences)
    results = base / f"{comparison.name}.results.csv"
    places = {name: group for group in groups for name in group.specs}
    rows = [row for run in summary.done for row in places[run.name].rows(run, keys)]
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


def _ready(comparison: ComparisonSpec, options: RunOptions) -> tuple[Sequence[Spec], RunOptions]:
    """Return the runs and how they are judged, with the digests of code and data; raise if anything is wrong."""
    specs = prepare(
        comparison.specs,
        where=comparison.where,
        root=options.root,
        download=options.download,
        maps=comparison.calibrators,
        metrics=comparison.measures,
        shift=comparison.shift,
    )
    _check_splits(specs, comparison, options)
    maps, metrics = map(pinned, comparison.calibrators), map(pinned, comparison.measures)
    return specs, replace(
        options,
        calibrators=tuple(maps),
        metrics=tuple(metrics),
        shift=comparison.shift,
        history=comparison.history,
        closed=comparison.closed or options.closed,
    )


def _tables(
    comparison: ComparisonSpec, groups: Sequence[RunGroup], margins: Mapping[str, float] | None
) -> list[ResultTable]:
    labels = {label for group in groups for label in group.methods}
    return tables_of_groups(
        groups,
        baseline=comparison.baseline if comparison.baseline in labels else None,
        metrics=comparison.metrics or COLUMNS,
        margins=margins,
    )


def _check_splits(specs: Iterable[Spec], comparison: ComparisonSpec, options: RunOptions) -> None:
    """Raise if maps shall be fitted, or settings chosen, on data that have no rows for it."""
    if len(comparison.calibrators) == 1 and not comparison.choices:
        return
    for spec in {spec.data.label: spec for spec in specs}.values():
        data = data_of(spec, root=options.root, download=options.download)
        split = fit_split(spec.data)
        if len(comparison.calibrators) > 1 and not len(data.splits.get(split, ())):
            names = ", ".join(one.key for one in comparison.calibrators[1:])
            raise SpecError(
                f"{comparison.where}.calibrators: {data.name!r} has no {split!r} split to fit {names} on. "
                "Give it rows, or write calibrators = []."
            )
        if comparison.choices and not len(data.splits.get("tune", ())):
            raise DataError(
                f"{comparison.where}.method: settings of {comparison.choices[0].label} are chosen on the 'tune' split, "
                f"and the data have none: {data.name!r}. Keep rows for it."
            )


def _places(comparison: ComparisonSpec) -> dict[str, Spec]:
    """Return one spec of each dataset, network, recipe and seed, by a name."""
    first = comparison.specs[0].method
    return {replace(spec, method=first).identity: spec for spec in comparison.specs}


def _choose(
    comparison: ComparisonSpec,
    specs: Sequence[Spec],
    done: Sequence[RunFolder],
    sought: Mapping[tuple[str, str], Sought],
    known: Sequence[SeedChoice],
) -> list[SeedChoice]:
    """Choose settings, for every dataset, network, recipe and seed on its own."""
    runs = {run.name: run for run in done}
    # Pinning gives a spec another identity, by its own code; candidates are found by what was asked for.
    names = {asked.identity: spec.identity for asked, spec in zip(comparison.specs, specs, strict=False)}
    listed = [spec.identity for spec in specs if spec.method.label in comparison.methods]
    found = []
    for choice in comparison.choices:
        for name, place in _places(comparison).items():
            if (one := sought.get((choice.label, name))) is not None:
                tried = [spec.identity for spec in one.specs]
                found.append(choose_setting(one.choice, place.seed, runs, tried, listed, known))
                continue
            asked = [replace(place, method=candidate).identity for candidate in choice.candidates]
            if not names.keys() >= set(asked):
                continue  # a rehearsal tries settings on its first data and network only
            tried = [names[identity] for identity in asked]
            found.append(choose_setting(choice, place.seed, runs, tried, listed, known))
    return found
