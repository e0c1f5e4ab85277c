"""What a comparison is: methods x networks x data x seeds x calibrators in one file."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any, final

from equipoise.catalogue import is_code
from equipoise.core.errors import SpecError, located
from equipoise.core.names import check_choice, look_up
from equipoise.core.splits import HISTORIES
from equipoise.data.shift import Shift, read_shifts
from equipoise.experiments.code.component import Component
from equipoise.experiments.code.source import split_reference
from equipoise.experiments.specs.calibrators import calibrator_key, parse_calibrator
from equipoise.experiments.specs.checking import check_pair, read_data, read_method, read_model, read_recipe
from equipoise.experiments.specs.execution import Execution
from equipoise.experiments.specs.metrics import parse_metric
from equipoise.experiments.specs.parsing import as_list, check_keys, parse_value, set_key
from equipoise.experiments.specs.rehearsal import kept_in_rehearsal, rehearsal_table
from equipoise.experiments.specs.run import MethodSpec, Spec, check_name
from equipoise.experiments.specs.toml import parse_override, read_toml
from equipoise.experiments.specs.tuning import TunedMethod, is_tuned, parse_tuned_method
from equipoise.experiments.tuning.samplers import first_settings

__all__ = ["ComparisonSpec", "read_comparison"]

_LISTS = ("data", "model", "recipe", "method", "seed")
_KEYS = (*_LISTS, "name", "calibrators", "baseline", "shift", "metrics", "history", "closed", "execution")


@final
@dataclass(frozen=True, kw_only=True)
class ComparisonSpec:
    """Several runs whose results belong in one table.

    Attributes:
        name: A short name, for files.
        specs: Every run that is known in advance.
        calibrators: Calibrators to score, no calibration first.
        baseline: Label of the method that others are compared with.
        methods: Labels of the methods, in the order given; a tuned method is one.
        tuned: Methods whose setting is chosen on ``tune``; runs at the settings of a grid are among ``specs``.
        shift: Additional test sets.
        metrics: Columns of the table; None for the usual ones.
        extra_metrics: The columns that no scorecard has.
        history: ``"test"`` if scores on ``test`` of every epoch are recorded, for curves; nothing is chosen by them.
        closed: Side of a bin that belongs to it, in all binned metrics; None leaves it to the options of the command.
        where: The file it was read from.

    Example:
        >>> table = {"data": "digits", "model": "mlp", "method": ["ce", "focal"], "seed": [0, 1], "recipe": "quick"}
        >>> comparison = ComparisonSpec.from_table(table)
        >>> len(comparison.specs), comparison.baseline
        (4, 'ce')
    """

    name: str
    specs: tuple[Spec, ...]
    calibrators: tuple[Component, ...]
    baseline: str
    methods: tuple[str, ...]
    tuned: tuple[TunedMethod, ...] = ()
    shift: tuple[Shift, ...] = ()
    metrics: tuple[str, ...] | None = None
    extra_metrics: tuple[Component, ...] = ()
    history: str = "tune"
    closed: str | None = None
    where: str = "comparison"

    @classmethod
    def from_table(
        cls, table: Mapping[str, Any], *, where: str = "comparison", base_dir: str | None = None
    ) -> ComparisonSpec:
        """Return the comparison that a table describes.

        ``data``, ``model``, ``method``, ``recipe`` and ``seed`` may be lists; every combination is a run.

        Args:
            table: Plain values.
            where: File, for the message.
            base_dir: The folder that files of code are relative to; by default the current one.

        Raises:
            SpecError: With file, key and nearest valid name.
        """
        check_keys(table, _KEYS, where=where)
        for key in ("data", "model", "method"):
            if key not in table:
                raise SpecError(f"{where}: the key {key!r} is missing.")
        base_dir = base_dir or os.getcwd()
        methods = _read_methods(table["method"], where)
        specs = _every_run(table, methods, where, base_dir)
        labels = list(dict.fromkeys(one.label for one in methods))
        baseline = str(table.get("baseline", labels[0]))
        with located(f"{where}.baseline"):
            look_up(baseline, dict.fromkeys(labels), what="method of this comparison")
        shift = read_shifts(as_list(table.get("shift", [])), where=f"{where}.shift")
        for one in shift:
            if is_code(one.data):
                split_reference(one.data)
        metrics = _read_metrics(table["metrics"], where, base_dir) if "metrics" in table else {}
        with located(where):
            check_choice(table.get("history", "tune"), HISTORIES, where="comparison", name="history")
            check_choice(table.get("closed", "right"), ("right", "left"), where="comparison", name="closed")
        return cls(
            name=check_name(table.get("name", Path(where).stem), where=where),
            specs=specs,
            calibrators=_read_calibrators(
                table.get("calibrators", _usual_calibrators(specs)), where, base_dir
            ),
            baseline=baseline,
            methods=tuple(labels),
            tuned=tuple(one for one in methods if isinstance(one, TunedMethod)),
            shift=tuple(shift),
            metrics=tuple(metrics) or None,
            extra_metrics=tuple(one for one in metrics.values() if isinstance(one, Component)),
            history=table.get("history", "tune"),
            closed=table.get("closed"),
            where=where,
        )

    @property
    def extra_code(self) -> dict[str, list[Component]]:
        """The code that is named besides that of runs, by key: calibrators, metrics, additional test sets."""
        base_dir = self.specs[0].base_dir
        sets = [Component(name=one.data, base_dir=base_dir) for one in self.shift if is_code(one.data)]
        found = {"calibrators": self.calibrators, "metrics": self.extra_metrics, "shift": sets}
        return {key: [one for one in parts if one.is_code] for key, parts in found.items()}


def _read_methods(given: Any, where: str) -> list[MethodSpec | TunedMethod]:
    found: list[MethodSpec | TunedMethod] = []
    for index, one in enumerate(_filled_list(given, f"{where}.method")):
        place = f"{where}.method[{index}]" if isinstance(given, (list, tuple)) else f"{where}.method"
        found.append(parse_tuned_method(one, where=place) if is_tuned(one) else read_method(one, where=place))
    return found


def _every_run(
    table: Mapping[str, Any], methods: Sequence[MethodSpec | TunedMethod], where: str, base_dir: str
) -> tuple[Spec, ...]:
    """Return the spec of every run once; each part of them is parsed once.

    A run that a grid tries may be listed, too, and is then called as it is listed; but nothing is listed twice.
    """

    def given(key: str, default: Any) -> list[Any]:
        return _filled_list(table.get(key, default), f"{where}.{key}")

    data = [read_data(one, where=f"{where}.data") for one in given("data", [])]
    models = [read_model(one, where=f"{where}.model") for one in given("model", [])]
    recipes = [read_recipe(one, where=f"{where}.recipe") for one in given("recipe", {})]
    seeds = [parse_value(int, one, where=f"{where}.seed") for one in given("seed", 0)]
    candidates: list[tuple[MethodSpec, bool]] = []
    for one in methods:
        if isinstance(one, TunedMethod):
            with located(f"{where}.method"):
                candidates += [(one.method_at(setting), True) for setting in first_settings(one)]
        else:
            candidates.append((one, False))
    execution = Execution.from_table(table.get("execution", {}), where=f"{where}.execution")
    found: dict[Spec, tuple[Spec, bool]] = {}
    for rows, model, recipe, (method, is_candidate), seed in product(
        data, models, recipes, candidates, seeds
    ):
        spec = Spec(
            data=rows,
            model=model,
            method=method,
            recipe=recipe,
            seed=seed,
            base_dir=base_dir,
            execution=execution,
        )
        check_pair(spec, where=where)
        listed_before = spec in found and not found[spec][1]
        if listed_before and not is_candidate:
            raise SpecError(f"{where}: {spec.label!r} is listed twice. Leave one out.")
        if not listed_before:
            found[spec] = (spec, is_candidate)
    return tuple(spec for spec, _ in found.values())


def _usual_calibrators(specs: Sequence[Spec]) -> list[str]:
    """Return what is scored by default: temperature scaling, if any data keep rows to fit it on."""
    has_rows = any(spec.data.options.get(spec.data.fit_split) != 0 for spec in specs)
    return ["temperature"] if has_rows else []


def _filled_list(value: Any, where: str) -> list[Any]:
    found = as_list(value)
    if not found:
        raise SpecError(f"{where}: is an empty list. Give at least one, or leave the key out.")
    return found


def _read_metrics(given: Any, where: str, base_dir: str) -> dict[str, str | Component]:
    found = [
        parse_metric(one, where=f"{where}.metrics", base_dir=base_dir)
        for one in _filled_list(given, f"{where}.metrics")
    ]
    return {one if isinstance(one, str) else one.label: one for one in found}


def _read_calibrators(given: Any, where: str, base_dir: str) -> tuple[Component, ...]:
    chosen = [
        parse_calibrator(one, where=f"{where}.calibrators", base_dir=base_dir) for one in as_list(given)
    ]
    found = {calibrator_key(one): one for one in (Component(name="identity"), *chosen)}
    clash = next((one for one in chosen if found[calibrator_key(one)].name != one.name), None)
    if clash is not None:
        raise SpecError(f"{where}.calibrators: two would be called {calibrator_key(clash)!r}. Rename a file.")
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
    table = read_toml(path)
    for text in overrides:
        set_key(table, *parse_override(text))
    if rehearse:
        table = rehearsal_table(table)
    found = ComparisonSpec.from_table(table, where=str(path), base_dir=str(Path(path).resolve().parent))
    if not rehearse:
        return found
    kept = [spec for spec in found.specs if kept_in_rehearsal(spec, found.specs[0], found.baseline)]
    return replace(found, specs=tuple(kept))
