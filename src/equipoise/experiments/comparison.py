"""A comparison: methods x networks x data x seeds x calibrators in one file, run, and what came out."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple, final

from equipoise.core.errors import DataError, SpecError
from equipoise.core.files import write_text
from equipoise.core.names import check_choice, nearest
from equipoise.data import read_shifts
from equipoise.experiments.choice import Choice, is_choice, read_choice
from equipoise.experiments.chosen import Chosen, choose, write_choices
from equipoise.experiments.engines import RunSummary, run_locally, run_on_ray
from equipoise.experiments.folder import RunFolder
from equipoise.experiments.formatting import format_tables
from equipoise.experiments.maps import MapSpec, as_map
from equipoise.experiments.measures import MetricSpec, as_metric
from equipoise.experiments.preparation import Beside, pinned, prepare
from equipoise.experiments.rows import write_rows
from equipoise.experiments.run_groups import RunGroup, group_runs
from equipoise.experiments.searching import Sought, search_settings
from equipoise.experiments.shift_scores import format_shifts
from equipoise.experiments.single_run import HISTORIES, RunOptions
from equipoise.experiments.spec import Spec, current_keys
from equipoise.experiments.spec_data import data_of
from equipoise.experiments.spec_parsing import check_keys, plain, set_key
from equipoise.experiments.table import ResultTable, tables_of_groups
from equipoise.experiments.toml import parse_override, read_toml
from equipoise.experiments.user_code import is_code, split_reference

__all__ = ["ComparisonResult", "ComparisonSpec", "read_comparison", "run_comparison"]

_LISTS = ("data", "model", "recipe", "method", "seed")
_NAME = re.compile(r"[^./\\\x00-\x1f][^/\\\x00-\x1f]*")
_LONGEST = 100
_KEYS = (*_LISTS, "name", "calibrators", "baseline", "shift", "metrics", "history")


@final
@dataclass(frozen=True, kw_only=True)
class ComparisonSpec:
    """Several runs whose results belong in one table.

    Attributes:
        name: A short name, for files.
        specs: Every run.
        calibrators: Post-hoc maps to score, no calibration first.
        baseline: Label of the method that others are compared with.
        methods: Labels of the methods, in the order given; a choice is one method.
        metrics: Columns of the table; None for the usual ones.
        measures: What of them is no part of a scorecard and is computed besides; metrics of one's own, too.
        history: ``"test"`` if scores on ``test`` of every epoch are wanted for curves; nothing is chosen by them.
        shift: Further test sets, as :func:`equipoise.data.read_shifts` takes them.
        choices: Methods whose setting is chosen on ``tune``; their candidates are among the runs.
        where: The file it was read from.

    Example:
        >>> table = {"data": "digits", "model": "mlp", "method": ["ce", "focal"], "seed": [0, 1], "recipe": "quick"}
        >>> comparison = ComparisonSpec.from_table(table)
        >>> len(comparison.specs), comparison.baseline
        (4, 'ce')
    """

    name: str
    specs: tuple[Spec, ...]
    calibrators: tuple[MapSpec, ...]
    baseline: str
    methods: tuple[str, ...]
    choices: tuple[Choice, ...] = ()
    shift: tuple[Mapping[str, Any], ...] = ()
    metrics: tuple[str, ...] | None = None
    measures: tuple[MetricSpec, ...] = ()
    history: str = "tune"
    where: str = "comparison"

    @classmethod
    def from_table(
        cls, table: Mapping[str, Any], *, where: str = "comparison", home: str | None = None
    ) -> ComparisonSpec:
        """Return the comparison that a table describes.

        ``data``, ``model``, ``method``, ``recipe`` and ``seed`` may be lists; every combination is a run.

        Args:
            table: Plain values.
            where: File, for the message.
            home: The folder that files of code are relative to; by default the current one.

        Raises:
            SpecError: With file, key and nearest valid name.
        """
        table = current_keys(table, where=where)
        check_keys(table, _KEYS, where=where)
        for key in ("data", "model", "method"):
            if key not in table:
                raise SpecError(f"{where}: the key {key!r} is missing.")
        runs = _every_run(table, where, home)
        labels = list(dict.fromkeys(run.label for run in runs))
        baseline = str(table.get("baseline", labels[0]))
        if baseline not in labels:
            guess = nearest(baseline, labels)
            remedy = f"did you mean {guess!r}?" if guess else f"there are {', '.join(labels)}."
            raise SpecError(f"{where}.baseline: no method {baseline!r} here; {remedy}")
        shift = tuple(_as_list(table.get("shift", [])))
        for one in read_shifts(shift, where=f"{where}.shift"):
            if is_code(one.data):
                split_reference(one.data)
        metrics = _metrics(table["metrics"], where, home) if "metrics" in table else None
        return cls(
            name=_name(table.get("name", Path(where).stem), where),
            specs=_distinct(runs),
            calibrators=_calibrators(table.get("calibrators", _usual_calibrators(runs)), where, home),
            baseline=baseline,
            methods=tuple(labels),
            shift=shift,
            metrics=None if metrics is None else tuple(metrics),
            measures=tuple(one for one in (metrics or {}).values() if isinstance(one, MetricSpec)),
            history=_history(table.get("history", "tune"), where),
            choices=tuple({run.choice.label: run.choice for run in runs if run.choice}.values()),
            where=where,
        )

    @property
    def beside(self) -> list[Beside]:
        """The code that is named beside runs: calibrators, metrics, further test sets."""
        named = [("calibrators", one.name, one.home) for one in self.calibrators]
        named += [("metrics", one.name, one.home) for one in self.measures]
        named += [("shift", one.data, self.specs[0].home) for one in read_shifts(self.shift)]
        return [Beside(name, key, home) for key, name, home in named if is_code(name)]


class _Run(NamedTuple):
    """One run, and the method of the comparison that it is of."""

    spec: Spec
    choice: Choice | None

    @property
    def label(self) -> str:
        return self.spec.method.label if self.choice is None else self.choice.label


def _every_run(table: Mapping[str, Any], where: str, home: str | None) -> list[_Run]:
    """Return all runs; one that a choice tries may be listed, too, but nothing is listed twice."""
    lists = {key: _as_list(table[key]) for key in _LISTS if key in table}
    for key, values in lists.items():
        if not values:
            raise SpecError(f"{where}.{key}: is an empty list. Give at least one, or leave the key out.")
    lists["method"] = _every_method(lists["method"], where)
    runs: dict[tuple[str | None, str], _Run] = {}
    for combination in product(*lists.values()):
        parts = dict(zip(lists, combination, strict=True))
        method, choice = parts["method"]
        run = _Run(Spec.from_table({**parts, "method": method}, where=where, home=home), choice)
        place = (choice and choice.label, run.spec.identity)
        if place in runs:
            raise SpecError(f"{where}: {run.spec.label!r} is listed twice. Leave one out.")
        runs[place] = run
    return list(runs.values())


def _every_method(given: Iterable[Any], where: str) -> list[tuple[Any, Choice | None]]:
    """Return each method, and each candidate of a choice with its choice."""
    methods: list[tuple[Any, Choice | None]] = []
    for place, one in enumerate(given):
        choice = read_choice(one, where=f"{where}.method[{place}]") if is_choice(one) else None
        tried = [one] if choice is None else map(plain, choice.candidates)
        methods += [(candidate, choice) for candidate in tried]
    return methods


def _distinct(runs: Iterable[_Run]) -> tuple[Spec, ...]:
    """Return the spec of every run once; of one that is listed and tried, the listed, which may have a title."""
    found: dict[str, Spec] = {}
    for run in runs:
        if run.choice is None or run.spec.identity not in found:
            found[run.spec.identity] = run.spec
    return tuple(found.values())


def _usual_calibrators(runs: Sequence[_Run]) -> list[str]:
    """Return what is scored unless the spec says: a temperature, if any data keep rows to fit it on."""
    return ["temperature"] if any(run.spec.data.options.get("calib") != 0 for run in runs) else []


def _name(name: Any, where: str) -> str:
    """Return a name that is one, and no way out of the folder."""
    if not isinstance(name, str) or not _NAME.fullmatch(name) or len(name) > _LONGEST:
        raise SpecError(
            f"{where}.name: must be a name for files, of at most {_LONGEST} letters, without slashes and not beginning "
            f"with a dot, got {name!r}. `--out` says where files go."
        )
    return name


def _as_list(value: Any) -> list[Any]:
    return list(value) if isinstance(value, (list, tuple)) else [value]


def _metrics(given: Any, where: str, home: str | None) -> dict[str, str | MetricSpec]:
    chosen = [as_metric(one, where=f"{where}.metrics", home=home) for one in _as_list(given)]
    if not chosen:
        raise SpecError(f"{where}.metrics: is an empty list. Name some, or leave the key out.")
    return {one if isinstance(one, str) else one.key: one for one in chosen}


def _history(split: Any, where: str) -> str:
    try:
        check_choice(split, HISTORIES, where=where, name="history")
    except ValueError as error:
        raise SpecError(str(error)) from error
    return str(split)


def _calibrators(given: Any, where: str, home: str | None) -> tuple[MapSpec, ...]:
    chosen = [as_map(one, where=f"{where}.calibrators", home=home) for one in _as_list(given)]
    found = {one.key: one for one in (MapSpec(name="identity"), *chosen)}
    clash = next((one for one in chosen if found[one.key] != one), None)
    if clash is not None:
        raise SpecError(f"{where}.calibrators: two would be called {clash.key!r}. Rename a file.")
    return tuple(found.values())


def read_comparison(path: str | os.PathLike[str], *, overrides: Iterable[str] = ()) -> ComparisonSpec:
    """Read a comparison from a TOML file, with ``key=value`` overrides.

    Example:
        >>> read_comparison("nowhere.toml")
        Traceback (most recent call last):
        ...
        equipoise.core.errors.SpecError: nowhere.toml: no such file.
    """
    table = current_keys(read_toml(path), where=str(path))
    for text in overrides:
        set_key(table, *parse_override(text))
    return ComparisonSpec.from_table(table, where=str(path), home=str(Path(path).resolve().parent))


class ComparisonResult(NamedTuple):
    """What a comparison came to.

    Attributes:
        summary: Which runs are done, which failed.
        tables: One per dataset and network, of the runs that are done.
        results: The file of tidy rows.
        groups: The runs behind the tables.

    Example:
        >>> ComparisonResult(RunSummary(), [], Path("runs/mine.results.csv")).summary.is_whole
        True
    """

    summary: RunSummary
    tables: list[ResultTable]
    results: Path
    groups: Sequence[RunGroup] = ()

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
) -> ComparisonResult:
    """Do what is left of a comparison, and write its results and tables.

    Args:
        comparison: What to run.
        folder: Where run folders and results go.
        options: What does not change results.
        engine: ``"local"`` or ``"ray"``.
        workers: Processes of the local engine.
        address: Cluster of the Ray engine.

    Returns:
        Which runs are done, the tables, and the file of tidy rows.

    Raises:
        DataError: If data are missing or wrong; this is said before the first run.

    Example:
        >>> import tempfile
        >>> table = {"data": "digits", "model": "mlp", "method": "ce", "recipe": {"name": "quick", "epochs": 1}}
        >>> options = RunOptions(n_resamples=20, quiet=True)
        >>> result = run_comparison(ComparisonSpec.from_table(table), tempfile.mkdtemp(), options=options)
        >>> result.summary.is_whole, result.tables[0].rows[0].method
        (True, 'ce')
    """
    check_choice(engine, ("local", "ray"), where="run_comparison", name="engine")
    specs, chosen = _ready(comparison, options or RunOptions())
    base = Path(folder)
    base.mkdir(parents=True, exist_ok=True)

    def run_all(runs: Sequence[Spec]) -> RunSummary:
        if engine == "ray":
            return run_on_ray(runs, base, options=chosen, address=address)
        return run_locally(runs, base, options=chosen, workers=workers)

    def ready(runs: Sequence[Spec]) -> Sequence[Spec]:
        return prepare(runs, where=comparison.where, root=chosen.root, download=chosen.download)

    sought = search_settings(comparison.choices, _places(comparison), ready, run_all)
    known = {spec.identity for spec in specs}
    tried = {
        spec.identity: spec for one in sought.values() for spec in one.specs if spec.identity not in known
    }
    specs = [*specs, *tried.values()]
    summary = run_all(specs)
    order = {spec.identity: number for number, spec in enumerate(specs)}
    summary.done.sort(key=lambda run: order[run.name])
    choices = _choose(comparison, specs, summary.done, sought)
    write_choices(base / f"{comparison.name}.choices.json", choices)
    groups = group_runs(summary.done, choices, specs={spec.identity: spec for spec in specs})
    tables = _tables(comparison, groups)
    results = base / f"{comparison.name}.results.csv"
    places = {name: group for group in groups for name in group.specs}
    keys = [one.key for one in comparison.calibrators]
    rows = [row for run in summary.done for row in places[run.name].rows(run, keys)]
    write_rows(results, rows)
    texts = [format_tables(tables, "markdown"), format_shifts(groups, "markdown")]
    write_text(base / f"{comparison.name}.table.md", "\n\n".join(filter(None, texts)) + "\n")
    return ComparisonResult(summary, tables, results, groups)


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
    )


def _tables(comparison: ComparisonSpec, groups: Sequence[RunGroup]) -> list[ResultTable]:
    labels = {label for group in groups for label in group.methods}
    return tables_of_groups(
        groups,
        baseline=comparison.baseline if comparison.baseline in labels else None,
        **({} if comparison.metrics is None else {"metrics": comparison.metrics}),
    )


def _check_splits(specs: Iterable[Spec], comparison: ComparisonSpec, options: RunOptions) -> None:
    """Raise if maps shall be fitted, or settings chosen, on data that have no rows for it."""
    if len(comparison.calibrators) == 1 and not comparison.choices:
        return
    for spec in {spec.data.label: spec for spec in specs}.values():
        data = data_of(spec, root=options.root, download=options.download)
        if len(comparison.calibrators) > 1 and not len(data.splits.get("calib", ())):
            names = ", ".join(one.key for one in comparison.calibrators[1:])
            raise SpecError(
                f"{comparison.where}.calibrators: {data.name!r} has no 'calib' split to fit {names} on. "
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
) -> list[Chosen]:
    """Choose settings, for every dataset, network, recipe and seed on its own."""
    runs = {run.name: run for run in done}
    # Pinning gives a spec another identity, by its own code; candidates are found by what was asked for.
    names = {asked.identity: spec.identity for asked, spec in zip(comparison.specs, specs, strict=False)}
    listed = [spec.identity for spec in specs if spec.method.label in comparison.methods]
    found = []
    for choice in comparison.choices:
        for name, place in _places(comparison).items():
            if (one := sought.get((choice.label, name))) is not None:
                found.append(choose(one.choice, place.seed, runs, [s.identity for s in one.specs], listed))
                continue
            tried = [names[replace(place, method=candidate).identity] for candidate in choice.candidates]
            found.append(choose(choice, place.seed, runs, tried, listed))
    return found
