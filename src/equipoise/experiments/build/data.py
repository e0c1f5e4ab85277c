"""The data that a spec names: loaded once in a process, and known by their content."""

from __future__ import annotations

import hashlib
import inspect
import json
import os
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from equipoise.catalogue import CATALOGUE
from equipoise.core.errors import DataError
from equipoise.data import Dataset, load
from equipoise.experiments.code.adapters import Code, as_dataset, as_test_set, call_with, check_keywords
from equipoise.experiments.specs.methods import code_of
from equipoise.experiments.code.names import is_code
from equipoise.experiments.specs.run import DataSpec, Spec
from equipoise.experiments.specs.parsing import number_keys, plain

__all__ = ["content_digest", "data_of", "fit_split", "load_data"]


def data_of(spec: Spec, *, root: str | None = None, download: bool = False) -> Dataset:
    """Return the data of a spec, with images of the size its recipe asks for.

    Example:
        >>> data_of(Spec.from_table({"data": "digits", "model": "mlp"})).name
        'digits'
    """
    code = code_of(spec.data.name, spec) if is_code(spec.data.name) else None
    return load_data(_sized(spec), root=root, download=download, code=code)


def fit_split(data: DataSpec) -> str:
    """Return the split that post-hoc calibrators are fitted on: ``tune`` for the whole validation set, else ``calib``.

    Example:
        >>> fit_split(DataSpec(name="digits")), fit_split(DataSpec(name="digits", options={"validation": "whole"}))
        ('calib', 'tune')
    """
    return "tune" if data.options.get("validation") == "whole" else "calib"


def content_digest(data: Dataset) -> str:
    """Return a digest of the files that data come from, or of the data themselves if code made them.

    Example:
        >>> content_digest(load_data(DataSpec(name="digits")))
        ''
    """
    if data.provenance:
        contents = sorted(file.sha256 for file in data.provenance)
    elif is_code(data.name):
        contents = [f"{split} {mark}" for split, mark in sorted(data.fingerprints.items())]
    else:
        return ""
    return hashlib.sha256("\n".join(contents).encode()).hexdigest()


def _sized(spec: Spec) -> DataSpec:
    """Return the data with images of the recipe's size, unless their own options say another."""
    size = spec.training.size
    if is_code(spec.data.name):
        return spec.data
    known = inspect.signature(CATALOGUE["datasets"][spec.data.name].factory).parameters
    if not size or "size" not in known or "size" in spec.data.options:
        return spec.data
    # The centre that is cut out keeps its usual share of seven eighths.
    fresh = {"size": size, **({"resize": round(size * 8 / 7)} if "resize" in known else {})}
    return replace(spec.data, options={**fresh, **spec.data.options})


def load_data(
    data: DataSpec,
    *,
    root: str | None = None,
    download: bool = False,
    code: Code | None = None,
    only_judges: bool = False,
) -> Dataset:
    """Return a dataset; runs of one process share it.

    Args:
        data: Which.
        root: The data folder.
        download: Bring the official files if they are not there.
        code: What makes it, if it is not of the catalogue.
        only_judges: Whether it is a further test set, so that all rows that code gives are of ``test``.

    Raises:
        DataError: If its files are not there, are wrong, or are not the ones that the spec was given for.

    Example:
        >>> load_data(DataSpec(name="digits")) is load_data(DataSpec(name="digits"))
        True
    """
    nameless = replace(data, digest="")
    content = json.dumps(plain(nameless), sort_keys=True)
    found = _load(content, root, download, _stamp(data, root), code, only_judges)
    if data.digest and data.digest != content_digest(found):
        raise DataError(
            f"{data.label}: its files are not the ones this run was begun with. Put those back, or give the command "
            "again: changed data are another run."
        )
    return found


def _stamp(data: DataSpec, root: str | None) -> tuple[Any, ...]:
    """Tell when what a dataset is read from was last changed, as far as its folder shows."""
    own, base = data.options.get("path"), root or os.environ.get("EQUIPOISE_DATA")
    if own is None and base is None:
        return ()
    place = Path(str(base if own is None else own)).expanduser()
    stats = [found.stat() for found in (place, *sorted(place.glob("*"))) if found.exists()]
    return tuple((stat.st_ino, stat.st_size, stat.st_mtime_ns) for stat in stats)


@lru_cache(maxsize=4)
def _load(
    content: str,
    root: str | None,
    download: bool,
    stamp: tuple[Any, ...],
    code: Code | None,
    only_judges: bool,
) -> Dataset:
    table = json.loads(content)
    if code is not None:
        function, options = code.load(), number_keys(table.get("options", {}))
        check_keywords(function, options, name=code.name)
        offered = {"root": root, "seed": table["seed"], "download": download}
        found = call_with(function, offered, options)
        if only_judges:
            return as_test_set(found, name=code.name)
        return as_dataset(found, name=code.name, seed=table["seed"])
    options = {**CATALOGUE["datasets"][table["name"]].options, **table.get("options", {})}
    return load(table["name"], root=root, seed=table["seed"], download=download, options=options)
