"""A comparison from Python: functions and classes in place of names, with the guarantees of a spec."""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from equipoise.core.errors import SpecError
from equipoise.experiments.code.source import check_not_loading
from equipoise.experiments.comparison import ComparisonResult, run_comparison
from equipoise.experiments.runs.stages import RunOptions
from equipoise.experiments.specs.comparison import ComparisonSpec

__all__ = ["compare_methods"]

Named = str | Mapping[str, Any] | Callable[..., Any]

_REMEDY = (
    "Runs are known by their code, and may happen in other processes: define it with `def` or `class` at the top of a "
    ".py file, and give settings by functools.partial."
)


def compare_methods(
    methods: Mapping[str, Named],
    *,
    network: Named,
    data: Named,
    folder: str | os.PathLike[str],
    seeds: Sequence[int] = (0,),
    recipe: str | Mapping[str, Any] = "quick",
    calibrators: Sequence[Named] = ("temperature",),
    metrics: Sequence[Named] | None = None,
    baseline: str | None = None,
    options: RunOptions | None = None,
    engine: str = "local",
    workers: int | None = None,
    address: str | None = None,
) -> ComparisonResult:
    """Train methods over seeds and compare them, resumably, as ``equipoise compare`` does.

    Methods, network and data are names of the catalogue, tables as in a spec, or functions and classes of your own
    (``functools.partial`` gives them settings). A function is known by the content of its file: change it, and it is
    another run. Call this under ``if __name__ == "__main__":`` in a script that defines them.

    Args:
        methods: By what tables call them: a loss, or a function of ``parts`` that gives an objective.
        network: Gives a torch module; gets ``n_classes``, ``in_channels`` and ``n_inputs`` if it asks for them.
        data: Gives a ``Dataset``, ``(inputs, labels)``, or map-style datasets by split; gets ``seed`` if it asks.
        folder: Where run folders and results go.
        seeds: Of the trainings.
        recipe: A recipe of the catalogue, or a table as in a spec.
        calibrators: Post-hoc maps to show: names, tables, or classes of your own.
        metrics: Columns of the table: names, or functions of predictions that give a number.
        baseline: The method others are compared with; by default the first.
        options: What does not change results.
        engine: ``"local"`` or ``"ray"``.
        workers: Processes of the local engine.
        address: Cluster of the Ray engine.

    Returns:
        Which runs are done, the tables, and the file of tidy rows.

    Raises:
        SpecError: If a function cannot be found again by name, or anything else is wrong; before the first run.

    Example:
        >>> import tempfile
        >>> from equipoise.losses import FocalLoss
        >>> result = compare_methods(
        ...     {"ce": "ce", "mild": functools.partial(FocalLoss, gamma=1.0)},
        ...     network="mlp",
        ...     data="digits",
        ...     folder=tempfile.mkdtemp(),
        ...     recipe={"name": "quick", "epochs": 1},
        ...     options=RunOptions(n_resamples=20, quiet=True),
        ...     workers=1,
        ... )
        >>> [row.method for row in result.tables[0].rows][:2]
        ['ce', 'mild']
    """
    check_not_loading()
    found = {label: _reference(value, f"methods[{label!r}]") for label, value in methods.items()}
    net, rows = _reference(network, "network"), _reference(data, "data")
    maps = [_reference(one, f"calibrators[{place}]") for place, one in enumerate(calibrators)]
    columns = [_reference(one, f"metrics[{place}]") for place, one in enumerate(metrics or ())]
    home = _home([*found.values(), net, rows, *maps, *columns])
    table = {
        "name": "methods",
        "data": rows.table(home, "options"),
        "model": net.table(home, "options"),
        "method": [{**one.table(home, "parameters"), "title": label} for label, one in found.items()],
        "seed": list(seeds),
        "recipe": recipe,
        "calibrators": [one.table(home, "options") for one in maps],
        **({"metrics": [one.table(home, "options") for one in columns]} if metrics is not None else {}),
        "baseline": baseline if baseline is not None else next(iter(methods), ""),
    }
    comparison = ComparisonSpec.from_table(table, where="compare_methods", home=home)
    return run_comparison(
        comparison, folder, options=options, engine=engine, workers=workers, address=address
    )


class _Reference(NamedTuple):
    """What stands in a spec for an object: a table, or a file or module and what is meant in it."""

    given: Mapping[str, Any]
    inner: str = ""
    file: Path | None = None
    module: str = ""

    def table(self, home: str | None, key: str) -> dict[str, Any]:
        if not self.inner:
            return dict(self.given)
        source = self.module or os.path.relpath(str(self.file), home)
        return {"name": f"{source}:{self.inner}", **({key: dict(self.given)} if self.given else {})}


def _reference(value: Any, where: str) -> _Reference:
    if isinstance(value, str):
        return _Reference({"name": value})
    if isinstance(value, Mapping):
        return _Reference(value)
    settings: Mapping[str, Any] = {}
    if isinstance(value, functools.partial):
        if value.args or isinstance(value.func, functools.partial):
            raise SpecError(
                f"compare_methods: {where} is a partial with positional arguments. Give them by keyword."
            )
        value, settings = value.func, value.keywords
    inner = getattr(value, "__qualname__", None)
    if not callable(value) or inner is None:
        raise SpecError(
            f"compare_methods: {where}: a name, a table, or a function or class was wanted, got "
            f"{type(value).__name__}. {_REMEDY}"
        )
    if "<" in inner:
        raise SpecError(f"compare_methods: {where}: {inner!r} cannot be found again by name. {_REMEDY}")
    return _located(value, inner, settings, where)


def _located(value: Any, inner: str, settings: Mapping[str, Any], where: str) -> _Reference:
    module = str(value.__module__)
    place = getattr(sys.modules.get(module), "__file__", None)
    if place is None or not Path(place).is_file():
        raise SpecError(f"compare_methods: {where}: {inner!r} is not defined in a file. {_REMEDY}")
    # A module of a package is known by its dotted name, since it may import its neighbours by it.
    return _Reference(settings, inner, Path(place).resolve(), module if "." in module else "")


def _home(references: Sequence[_Reference]) -> str | None:
    """Return the folder that files are relative to: that of the first file, or of the first package beside none."""
    for one in references:
        if one.file is not None and not one.module:
            return str(one.file.parent)
    for one in references:
        if one.file is not None:
            depth = one.module.count(".") + (one.file.name == "__init__.py")
            return str(one.file.parents[depth])
    return None
