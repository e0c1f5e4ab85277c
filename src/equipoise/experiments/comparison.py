"""A comparison: methods x networks x data x seeds x calibrators in one file, run, and what came out."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple, final

from equipoise.core.errors import SpecError
from equipoise.core.files import write_text
from equipoise.core.names import check_choice, nearest
from equipoise.experiments.engines import RunSummary, run_locally, run_on_ray
from equipoise.experiments.formatting import format_tables
from equipoise.experiments.maps import MapSpec, as_map
from equipoise.experiments.preparation import prepare
from equipoise.experiments.rows import write_rows
from equipoise.experiments.run import RunOptions
from equipoise.experiments.run_groups import group_runs
from equipoise.experiments.spec import Spec, current_keys
from equipoise.experiments.spec_data import data_of
from equipoise.experiments.spec_parsing import set_key
from equipoise.experiments.table import ResultTable, tables_of_groups
from equipoise.experiments.toml import parse_override, read_toml

__all__ = ["ComparisonResult", "ComparisonSpec", "read_comparison", "run_comparison"]

_LISTS = ("data", "model", "recipe", "method", "seed")
_NAME = re.compile(r"[^./\\\x00-\x1f][^/\\\x00-\x1f]*")
_LONGEST = 100
_KEYS = (*_LISTS, "name", "calibrators", "baseline")


@final
@dataclass(frozen=True, kw_only=True)
class ComparisonSpec:
    """Several runs whose results belong in one table.

    Attributes:
        name: A short name, for files.
        specs: Every run.
        calibrators: Post-hoc maps to score, no calibration first.
        baseline: Label of the method that others are compared with.
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
        for key in table:
            if key not in _KEYS:
                guess = nearest(key, _KEYS)
                remedy = f"did you mean {guess!r}?" if guess else f"known: {', '.join(_KEYS)}."
                raise SpecError(f"{where}: no key {key!r}; {remedy}")
        for key in ("data", "model", "method"):
            if key not in table:
                raise SpecError(f"{where}: the key {key!r} is missing.")
        choices = {key: _as_list(table[key]) for key in _LISTS if key in table}
        for key, values in choices.items():
            if not values:
                raise SpecError(f"{where}.{key}: is an empty list. Give at least one, or leave the key out.")
        specs = tuple(
            Spec.from_table(dict(zip(choices, chosen, strict=True)), where=where, home=home)
            for chosen in product(*choices.values())
        )
        _check_distinct(specs, where)
        labels = list(dict.fromkeys(spec.method.label for spec in specs))
        baseline = str(table.get("baseline", labels[0]))
        if baseline not in labels:
            guess = nearest(baseline, labels)
            remedy = f"did you mean {guess!r}?" if guess else f"there are {', '.join(labels)}."
            raise SpecError(f"{where}.baseline: no method {baseline!r} here; {remedy}")
        return cls(
            name=_name(table.get("name", Path(where).stem), where),
            specs=specs,
            calibrators=_calibrators(table.get("calibrators", ["temperature"]), where),
            baseline=baseline,
            where=where,
        )

    @property
    def methods(self) -> list[str]:
        """Labels of the methods, in the order given."""
        return list(dict.fromkeys(spec.method.label for spec in self.specs))


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


def _check_distinct(specs: Iterable[Spec], where: str) -> None:
    seen: dict[str, str] = {}
    for spec in specs:
        if spec.identity in seen:
            raise SpecError(f"{where}: {spec.label!r} is listed twice. Leave one out.")
        seen[spec.identity] = spec.label


def _calibrators(given: Any, where: str) -> tuple[MapSpec, ...]:
    chosen = [as_map(one, where=f"{where}.calibrators") for one in _as_list(given)]
    return tuple({one.key: one for one in (MapSpec(name="identity"), *chosen)}.values())


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

    Example:
        >>> ComparisonResult(RunSummary(), [], Path("runs/mine.results.csv")).summary.is_whole
        True
    """

    summary: RunSummary
    tables: list[ResultTable]
    results: Path


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
    chosen = replace(options or RunOptions(), calibrators=comparison.calibrators)
    specs = prepare(comparison.specs, where=comparison.where, root=chosen.root, download=chosen.download)
    _check_calib(specs, comparison, chosen)
    base = Path(folder)
    base.mkdir(parents=True, exist_ok=True)
    if engine == "ray":
        summary = run_on_ray(specs, base, options=chosen, address=address)
    else:
        summary = run_locally(specs, base, options=chosen, workers=workers)
    order = {spec.identity: number for number, spec in enumerate(specs)}
    summary.done.sort(key=lambda run: order[run.name])
    groups = group_runs(summary.done, specs={spec.identity: spec for spec in specs})
    results = base / f"{comparison.name}.results.csv"
    places = {run.name: group for group in groups for run in group.runs}
    keys = [one.key for one in comparison.calibrators]
    rows = [row for run in summary.done for row in places[run.name].rows(run, keys)]
    write_rows(results, rows)
    labels = {label for group in groups for label in group.methods}
    tables = tables_of_groups(groups, baseline=comparison.baseline if comparison.baseline in labels else None)
    write_text(base / f"{comparison.name}.table.md", format_tables(tables, "markdown") + "\n")
    return ComparisonResult(summary, tables, results)


def _check_calib(specs: Iterable[Spec], comparison: ComparisonSpec, options: RunOptions) -> None:
    """Raise if maps shall be fitted on data that have no rows for it."""
    for spec in {spec.data.label: spec for spec in specs}.values() if len(comparison.calibrators) > 1 else ():
        data = data_of(spec, root=options.root, download=options.download)
        if not len(data.splits.get("calib", ())):
            names = ", ".join(one.key for one in comparison.calibrators[1:])
            raise SpecError(
                f"{comparison.where}.calibrators: {data.name!r} has no 'calib' split to fit {names} on. "
                "Give it rows, or write calibrators = []."
            )
