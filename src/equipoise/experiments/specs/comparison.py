"""What a comparison is: methods x networks x data x seeds x calibrators in one file."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple, final

from equipoise.core.errors import SpecError, located
from equipoise.core.names import check_choice, look_up
from equipoise.core.splits import HISTORIES
from equipoise.data import read_shifts
from equipoise.experiments.build.data import fit_split
from equipoise.experiments.build.preparation import Beside
from equipoise.experiments.code.names import is_code, split_reference
from equipoise.experiments.specs.calibrators import MapSpec, as_map
from equipoise.experiments.specs.metrics import MetricSpec, as_metric
from equipoise.experiments.specs.parsing import check_keys, plain, set_key
from equipoise.experiments.specs.rehearsal import kept_in_rehearsal, rehearsal_table
from equipoise.experiments.specs.run import Spec, check_name, current_keys
from equipoise.experiments.specs.toml import parse_override, read_toml
from equipoise.experiments.specs.tuning import TunedMethod, is_tuned, read_tuned_method

__all__ = ["ComparisonSpec", "read_comparison"]

_LISTS = ("data", "model", "recipe", "method", "seed")
_KEYS = (*_LISTS, "name", "calibrators", "baseline", "shift", "metrics", "history", "closed", "execution")


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
        closed: Which side of a bin belongs to it, in all binned metrics; None leaves it to the options of the command.
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
    choices: tuple[TunedMethod, ...] = ()
    shift: tuple[Mapping[str, Any], ...] = ()
    metrics: tuple[str, ...] | None = None
    measures: tuple[MetricSpec, ...] = ()
    history: str = "tune"
    closed: str | None = None
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
        with located(f"{where}.baseline"):
            look_up(baseline, dict.fromkeys(labels), what="method of this comparison")
        shift = tuple(_as_list(table.get("shift", [])))
        for one in read_shifts(shift, where=f"{where}.shift"):
            if is_code(one.data):
                split_reference(one.data)
        metrics = _metrics(table["metrics"], where, home) if "metrics" in table else None
        return cls(
            name=check_name(table.get("name", Path(where).stem), where=where),
            specs=_distinct(runs),
            calibrators=_calibrators(table.get("calibrators", _usual_calibrators(runs)), where, home),
            baseline=baseline,
            methods=tuple(labels),
            shift=shift,
            metrics=None if metrics is None else tuple(metrics),
            measures=tuple(one for one in (metrics or {}).values() if isinstance(one, MetricSpec)),
            history=_choice(table.get("history", "tune"), HISTORIES, where, "history"),
            closed=_choice(table["closed"], ("right", "left"), where, "closed")
            if "closed" in table
            else None,
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
    choice: TunedMethod | None

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
    shared = {key: table[key] for key in ("execution",) if key in table}
    runs: dict[tuple[str | None, str], _Run] = {}
    for combination in product(*lists.values()):
        parts = dict(zip(lists, combination, strict=True))
        method, choice = parts["method"]
        given = {**parts, **shared, "method": method}
        run = _Run(Spec.from_table(given, where=where, home=home), choice)
        place = (choice and choice.label, run.spec.identity)
        if place in runs:
            raise SpecError(f"{where}: {run.spec.label!r} is listed twice. Leave one out.")
        runs[place] = run
    return list(runs.values())


def _every_method(given: Iterable[Any], where: str) -> list[tuple[Any, TunedMethod | None]]:
    """Return each method, and each candidate of a choice with its choice."""
    methods: list[tuple[Any, TunedMethod | None]] = []
    for place, one in enumerate(given):
        choice = read_tuned_method(one, where=f"{where}.method[{place}]") if is_tuned(one) else None
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
    has_rows = any(run.spec.data.options.get(fit_split(run.spec.data)) != 0 for run in runs)
    return ["temperature"] if has_rows else []


def _as_list(value: Any) -> list[Any]:
    return list(value) if isinstance(value, (list, tuple)) else [value]


def _metrics(given: Any, where: str, home: str | None) -> dict[str, str | MetricSpec]:
    chosen = [as_metric(one, where=f"{where}.metrics", home=home) for one in _as_list(given)]
    if not chosen:
        raise SpecError(f"{where}.metrics: is an empty list. Name some, or leave the key out.")
    return {one if isinstance(one, str) else one.key: one for one in chosen}


def _choice(given: Any, choices: Sequence[str], where: str, name: str) -> str:
    try:
        check_choice(given, choices, where=where, name=name)
    except ValueError as error:
        raise SpecError(str(error)) from error
    return str(given)


def _calibrators(given: Any, where: str, home: str | None) -> tuple[MapSpec, ...]:
    chosen = [as_map(one, where=f"{where}.calibrators", home=home) for one in _as_list(given)]
    found = {one.key: one for one in (MapSpec(name="identity"), *chosen)}
    clash = next((one for one in chosen if found[one.key] != one), None)
    if clash is not None:
        raise SpecError(f"{where}.calibrators: two would be called {clash.key!r}. Rename a file.")
    return tuple(found.values())


def read_comparison(
    path: str | os.PathLike[str], *, overrides: Iterable[str] = (), rehearse: bool = False
) -> ComparisonSpec:
    """Read a comparison from a TOML file, with ``key=value`` overrides.

    Args:
        path: The file.
        overrides: Keys with other values.
        rehearse: Return the same comparison on made-up data, cut down to minutes.

    Example:
        >>> read_comparison("nowhere.toml")
        Traceback (most recent call last):
        ...
        equipoise.core.errors.SpecError: nowhere.toml: no such file.
    """
    table = current_keys(read_toml(path), where=str(path))
    for text in overrides:
        set_key(table, *parse_override(text))
    if rehearse:
        table = rehearsal_table(table)
    found = ComparisonSpec.from_table(table, where=str(path), home=str(Path(path).resolve().parent))
    if not rehearse:
        return found
    kept = [spec for spec in found.specs if kept_in_rehearsal(spec, found.specs[0], found.baseline)]
    return replace(found, specs=tuple(kept))
