"""The data of a spec: loaded once in a process, and identified by their content."""

from __future__ import annotations

import hashlib
import inspect
import os
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from equipoise.catalogue import CATALOGUE, is_code
from equipoise.core.errors import DataError
from equipoise.data import Dataset, load
from equipoise.experiments.code.adapters import as_dataset, as_test_set, call_with, check_keywords
from equipoise.experiments.code.component import Component, number_keys, plain
from equipoise.experiments.specs.execution import Execution
from equipoise.experiments.specs.run import DataSpec, Spec

__all__ = ["content_digest", "data_of", "load_data"]


def data_of(spec: Spec, execution: Execution | None = None) -> Dataset:
    """Return the data of a spec, with images of the size its recipe asks for.

    Example:
        >>> data_of(Spec.from_table({"data": "digits", "model": "mlp"})).name
        'digits'
    """
    code = spec.component(spec.data.name) if is_code(spec.data.name) else None
    return load_data(_with_size(spec), execution, code=code)


def content_digest(data: Dataset) -> str | None:
    """Return a digest of the files that data come from, or of the data themselves if code made them.

    Example:
        >>> content_digest(load_data(DataSpec(name="digits"))) is None
        True
    """
    if data.provenance:
        contents = sorted(file.sha256 for file in data.provenance)
    elif is_code(data.name):
        contents = [f"{split} {mark}" for split, mark in sorted(data.fingerprints.items())]
    else:
        return None
    return hashlib.sha256("\n".join(contents).encode()).hexdigest()


def _with_size(spec: Spec) -> DataSpec:
    """Return the data with images of the recipe's size, unless their own options have another."""
    size = spec.training.size
    if is_code(spec.data.name):
        return spec.data
    known = inspect.signature(CATALOGUE["datasets"][spec.data.name].factory).parameters
    if not size or "size" not in known or "size" in spec.data.options:
        return spec.data
    # The center that is cut out keeps its usual share of seven eighths.
    fresh = {"size": size, **({"resize": round(size * 8 / 7)} if "resize" in known else {})}
    return replace(spec.data, options={**fresh, **spec.data.options})


def load_data(
    data: DataSpec,
    execution: Execution | None = None,
    *,
    code: Component | None = None,
    only_test: bool = False,
) -> Dataset:
    """Return a dataset; runs of one process share it.

    Args:
        data: Which data.
        execution: The data folder, and whether to download official files that are missing.
        code: The code that makes it, if it is not of the catalogue.
        only_test: Whether it is an additional test set, so that all rows that code gives are of ``test``.

    Raises:
        DataError: If its files are missing or wrong, or are not those that the spec was given for.

    Example:
        >>> load_data(DataSpec(name="digits")) is load_data(DataSpec(name="digits"))
        True
    """
    execution = execution or Execution()
    root, times = execution.root, _file_times(data, execution.root)
    found = _load(replace(data, digest=None), root, execution.download, times, code, only_test)
    if data.digest and data.digest != content_digest(found):
        raise DataError(
            f"{data.label}: its files are not the ones this run was begun with. Put those back, or give the command "
            "again: changed data are another run."
        )
    return found


def _file_times(data: DataSpec, root: str | None) -> tuple[Any, ...]:
    """Return inode, size and time of the files that a dataset is read from, as far as its folder shows them."""
    own, base = data.options.get("path"), root or os.environ.get("EQUIPOISE_DATA")
    if own is None and base is None:
        return ()
    place = Path(str(base if own is None else own)).expanduser()
    stats = [found.stat() for found in (place, *sorted(place.glob("*"))) if found.exists()]
    return tuple((stat.st_ino, stat.st_size, stat.st_mtime_ns) for stat in stats)


@lru_cache(maxsize=4)
def _load(
    data: DataSpec,
    root: str | None,
    download: bool,
    _times: tuple[Any, ...],
    code: Component | None,
    only_test: bool,
) -> Dataset:
    if code is None:
        options = {**CATALOGUE["datasets"][data.name].options, **plain(data.options)}
        return load(data.name, root=root, seed=data.seed, download=download, options=options)
    function, options = code.load(), number_keys(data.options)
    check_keywords(function, options, name=code.name)
    found = call_with(function, {"root": root, "seed": data.seed, "download": download}, options)
    if only_test:
        return as_test_set(found, name=code.name)
    return as_dataset(found, name=code.name, seed=data.seed)
