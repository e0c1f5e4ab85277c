"""A comparison from Python: functions and classes in place of names, with the guarantees of a spec."""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from equipoise.core.errors import SpecError
from equipoise.experiments.code.source import check_not_loading
from equipoise.experiments.comparison import ComparisonResult, run_comparison
from equipoise.experiments.specs.comparison import ComparisonSpec
from equipoise.experiments.specs.execution import Execution
from equipoise.experiments.specs.scoring import ScoringOptions

__all__ = ["compare_methods"]

Named = str | Mapping[str, Any] | Callable[..., Any]

_REMEDY = (
    "Runs are identified by their code, and may happen in other processes: define it with `def` or `class` at the top "
    "of a .py file, and give options by functools.partial."
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
    scoring: ScoringOptions | None = None,
    execution: Execution | None = None,
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
        calibrators: Calibrators to show: names, tables, or classes of your own.
        metrics: Columns of the table: names, or functions of predictions that give a number.
        baseline: The method others are compared with; by default the first.
        scoring: How runs are scored.
        execution: How they are executed.
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
        ...     scoring=ScoringOptions(n_resamples=20),
        ...     execution=Execution(quiet=True),
        ...     workers=1,
        ... )
        >>> [row.method for row in result.tables[0].rows][:2]
        ['ce', 'mild']
    """
    check_not_loading()
    named: dict[str, Named] = {f"methods[{label!r}]": one for label, one in methods.items()}
    named |= {"network": network, "data": data}
    named |= {f"calibrators[{index}]": one for index, one in enumerate(calibrators)}
    named |= {f"metrics[{index}]": one for index, one in enumerate(metrics or ())}
    base_dir = _base_dir(
        [one for where, given in named.items() if (one := _split(given, where)[0]) is not None]
    )
    tables = {where: _table(given, where, base_dir) for where, given in named.items()}
    table = {
        "name": "methods",
        "data": tables["data"],
        "model": tables["network"],
        "method": [{**tables[f"methods[{label!r}]"], "title": label} for label in methods],
        "seed": list(seeds),
        "recipe": recipe,
        "calibrators": [tables[f"calibrators[{index}]"] for index in range(len(calibrators))],
        "baseline": baseline if baseline is not None else next(iter(methods), ""),
    }
    if metrics is not None:
        table["metrics"] = [tables[f"metrics[{index}]"] for index in range(len(metrics))]
    comparison = ComparisonSpec.from_table(table, where="compare_methods", base_dir=base_dir)
    return run_comparison(
        comparison,
        folder,
        scoring=scoring,
        execution=execution,
        engine=engine,
        workers=workers,
        address=address,
    )


def _split(given: Named, where: str) -> tuple[Any, Mapping[str, Any]]:
    """Return a function or class and its options; None for a name or table."""
    if isinstance(given, (str, Mapping)):
        return None, {}
    value: Any = given
    options: Mapping[str, Any] = {}
    if isinstance(value, functools.partial):
        if value.args or isinstance(value.func, functools.partial):
            raise SpecError(
                f"compare_methods: {where} is a partial with positional arguments. Give them by keyword."
            )
        value, options = value.func, value.keywords
    inner = getattr(value, "__qualname__", None)
    if not callable(value) or inner is None:
        raise SpecError(
            f"compare_methods: {where}: expected a name, a table, or a function or class, got "
            f"{type(value).__name__}. {_REMEDY}"
        )
    if "<" in inner:
        raise SpecError(f"compare_methods: {where}: {inner!r} cannot be found again by name. {_REMEDY}")
    if _file_of(value) is None:
        raise SpecError(f"compare_methods: {where}: {inner!r} is not defined in a file. {_REMEDY}")
    return value, options


def _file_of(value: Any) -> Path | None:
    place = getattr(sys.modules.get(str(value.__module__)), "__file__", None)
    return Path(place).resolve() if place is not None and Path(place).is_file() else None


def _in_package(value: Any) -> bool:
    """Whether it is in a module of a package, which is named by its dotted name: it may import its neighbors by it."""
    return "." in str(value.__module__)


def _table(given: Named, where: str, base_dir: str | None) -> dict[str, Any]:
    """Return what stands in a spec for a name, a table or an object."""
    if isinstance(given, str):
        return {"name": given}
    if isinstance(given, Mapping):
        return dict(given)
    value, options = _split(given, where)
    source = str(value.__module__) if _in_package(value) else os.path.relpath(str(_file_of(value)), base_dir)
    return {"name": f"{source}:{value.__qualname__}", **({"options": dict(options)} if options else {})}


def _base_dir(values: Sequence[Any]) -> str | None:
    """Return the folder that files are relative to: that of the first file, or else of the first package."""
    for value in values:
        if not _in_package(value):
            return str(getattr(_file_of(value), "parent", None))
    for value in values:
        file = _file_of(value)
        if file is not None:
            depth = str(value.__module__).count(".") + (file.name == "__init__.py")
            return str(file.parents[depth])
    return None
