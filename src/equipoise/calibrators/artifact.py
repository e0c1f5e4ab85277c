"""Calibrators on disk: versioned JSON or safetensors with a checksum, never a pickle."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from equipoise.calibrators.artifact_checks import check_content
from equipoise.calibrators.result import FitResult
from equipoise.core.arrays import Array
from equipoise.core.atomic_files import atomic_path, save_tensors, write_text
from equipoise.core.checksums import content_checksum
from equipoise.core.errors import DataError, first_line, require
from equipoise.core.rows import Rows

__all__ = ["FORMAT", "VERSION", "pack", "read", "unpack_result", "write"]

FORMAT = "equipoise.calibrator"
VERSION = 3
_LARGEST_JSON = 100_000
_LARGEST_FILE = 1 << 24
_MOST_ROWS = 1 << 14


def pack(
    *,
    kind: str,
    settings: Mapping[str, Any],
    n_classes: int | None,
    fingerprint: str | None,
    result: FitResult,
    rows: Rows | None = None,
    frequencies: Array | None = None,
) -> dict[str, Any]:
    """Return a fitted calibrator as plain numbers and text, with a checksum over all of it.

    The rows it was fitted on are kept by their hashes, eight bytes each; above 16,384 rows a sketch of that size.

    Example:
        >>> content = pack(kind="temperature", settings={}, n_classes=2, fingerprint=None,
        ...                result=FitResult(parameters={"temperature": 2.0}, words=""))
        >>> content["format"], content["version"], content["parameters"]["temperature"]
        ('equipoise.calibrator', 1, {'shape': [], 'values': [2.0]})
    """
    content: dict[str, Any] = {
        "format": FORMAT,
        # Version 2 added what counts as zero, version 3 groups; everything else can be read by earlier packages.
        "version": 3 if kind == "by_group" else 2 if result.floor else 1,
        "kind": kind,
        "settings": dict(settings),
        "n_classes": n_classes,
        "fitted_on": fingerprint,
        "result": _pack_result(result),
        "parameters": {
            name: {"shape": list(value.shape), "values": value.ravel().tolist()}
            for name, value in result.parameters.items()
        },
    }
    if rows is not None:
        content["rows"] = rows.sketch(_MOST_ROWS).packed()
    if frequencies is not None:
        content["frequencies"] = frequencies.tolist()
    content["checksum"] = _checksum(content)
    return content


def unpack_result(content: Mapping[str, Any]) -> FitResult:
    """Return the fit result inside an artifact.

    Example:
        >>> content = pack(kind="t", settings={}, n_classes=2, fingerprint=None,
        ...                result=FitResult(parameters={"a": 2.0}, words="so"))
        >>> unpack_result(content).words
        'so'
    """
    parameters = {
        name: np.array(entry["values"], np.float64).reshape(entry["shape"])
        for name, entry in content["parameters"].items()
    }
    fields = dict(content["result"])
    fields |= {
        name: tuple(fields[name]) for name in ("warnings", "notes", "floor", "groups") if name in fields
    }
    return FitResult(parameters=parameters, **fields)


def write(path: str | os.PathLike[str], content: Mapping[str, Any]) -> None:
    """Write an artifact; the ending of the name decides the form.

    Raises:
        ValueError: For another ending, or a calibrator too large for JSON.

    Example:
        >>> import tempfile
        >>> content = pack(kind="t", settings={}, n_classes=2, fingerprint=None,
        ...                result=FitResult(parameters={"a": 2.0}, words="so", nll_before=1.0, nll_after=0.5))
        >>> target = Path(tempfile.mkdtemp()) / "map.json"
        >>> write(target, content)
        >>> read(target) == content
        True
    """
    ending = Path(path).suffix
    size = sum(len(entry["values"]) for entry in content["parameters"].values())
    if ending == ".safetensors":
        _write_safetensors(path, content)
    elif ending != ".json":
        raise ValueError(
            f"save: the name must end in .json or .safetensors, got {str(path)!r}. Calibrators are never pickled."
        )
    elif size > _LARGEST_JSON:
        raise ValueError(f"save: {size} numbers are too many for JSON. Save it as .safetensors.")
    else:
        write_text(path, json.dumps(content, indent=1) + "\n")


def read(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Read an artifact and check that it is whole.

    Raises:
        DataError: If it is no such file, is from a newer version, or was changed since it was written.

    Example:
        >>> import tempfile
        >>> target = Path(tempfile.mkdtemp()) / "other.json"
        >>> _ = target.write_text("{}")
        >>> read(target)
        Traceback (most recent call last):
        ...
        equipoise.core.errors.DataError: load: ...other.json is not a saved calibrator...
    """
    try:
        if Path(path).suffix == ".safetensors":
            content = _read_safetensors(path)
        else:
            content = json.loads(_small_text(Path(path)))
        return _checked(content, str(path))
    except OSError as error:
        raise DataError(f"load: {path} cannot be read ({error.strerror or error}).") from error
    except DataError:
        raise
    except (
        ValueError,
        TypeError,
        KeyError,
        AttributeError,
        RecursionError,
        OverflowError,
        MemoryError,
    ) as error:
        # Whatever stands where the content should be, there is one answer; only what we wrote can be trusted.
        raise DataError(
            f"load: {path} is not a saved calibrator, or is damaged: {_reason(error)}."
        ) from error


def _small_text(path: Path) -> str:
    if path.stat().st_size > _LARGEST_FILE:
        raise DataError(f"load: {path} is too large for a saved calibrator.")
    return path.read_text("utf-8")


def _reason(error: Exception) -> str:
    if isinstance(error, json.JSONDecodeError):
        return f"it is not valid JSON (line {error.lineno}, column {error.colno})"
    return f"{type(error).__name__} {first_line(error) if str(error) else ''}".strip()


def _checked(content: Any, where: str) -> dict[str, Any]:
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise DataError(
            f"load: {where} is not a saved calibrator. Write one with `equipoise calibrate` or calibrator.save(path)."
        )
    check_content(content, where=f"load: {where}")
    version = content.get("version")
    if type(version) is not int or not version > 0:
        raise DataError(f"load: {where} is damaged: `version` must be a number, got {repr(version)[:60]}.")
    if version > VERSION:
        raise DataError(
            f"load: {where} has version {version}, this package reads up to {VERSION}. Upgrade equipoise."
        )
    if content.get("checksum") != _checksum(content):
        raise DataError(
            f"load: {where} was changed or damaged since it was written: its content does not match its checksum. "
            "Fit and save the calibrator again."
        )
    return content


def _checksum(content: Mapping[str, Any]) -> str:
    """Return the checksum of everything but the checksum; parameters as arrays, so that both forms agree."""
    rest = {name: value for name, value in content.items() if name not in ("checksum", "parameters")}
    parameters = {
        name: np.array(entry["values"], np.float64).reshape(entry["shape"])
        for name, entry in content["parameters"].items()
    }
    return content_checksum([rest, parameters])


def _pack_result(result: FitResult) -> dict[str, Any]:
    packed: dict[str, Any] = {
        "words": result.words,
        "converged": bool(result.converged),
        "iterations": int(result.iterations),
        "certificate": {name: float(value) for name, value in result.certificate.items()},
        "warnings": list(result.warnings),
        "nll_before": float(result.nll_before),
        "nll_after": float(result.nll_after),
        "identity": bool(result.identity),
    }
    if result.floor:
        packed |= {"notes": list(result.notes), "floor": list(map(float, result.floor))}
    if result.groups:
        packed["groups"] = list(result.groups)
    return packed


def _write_safetensors(path: str | os.PathLike[str], content: Mapping[str, Any]) -> None:
    tensors = {
        name: np.array(entry["values"], np.float64).reshape(entry["shape"])
        for name, entry in content["parameters"].items()
    }
    rest = {name: value for name, value in content.items() if name != "parameters"}
    metadata, purpose = {FORMAT: json.dumps(rest)}, "save a calibrator as .safetensors"
    with atomic_path(path) as temporary:
        save_tensors(temporary, tensors, metadata=metadata, framework="numpy", purpose=purpose)


def _read_safetensors(path: str | os.PathLike[str]) -> Any:
    tensors = require("safetensors", extra="safetensors", purpose="load a calibrator from .safetensors")
    try:
        with tensors.safe_open(path, framework="numpy") as stream:
            content = json.loads((stream.metadata() or {}).get(FORMAT, "{}"))
            arrays = {name: stream.get_tensor(name) for name in stream.keys()}  # noqa: SIM118
    except tensors.SafetensorError as error:
        raise DataError(f"load: {path} is not a safetensors file: {error}.") from error
    content["parameters"] = {
        name: {"shape": list(value.shape), "values": value.ravel().tolist()} for name, value in arrays.items()
    }
    return content
