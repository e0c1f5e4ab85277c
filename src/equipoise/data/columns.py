"""A user's own data as columns: a data frame, a dictionary of columns, or such by split, as `datasets` gives them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from equipoise.core.errors import DataError
from equipoise.core.frames import as_columns
from equipoise.core.names import nearest
from equipoise.core.splits import SPLITS
from equipoise.data.arrays import as_images, column_statistics, from_arrays
from equipoise.data.dataset import Dataset
from equipoise.data.row_splits import stratified_split

__all__ = ["from_columns", "is_columns"]

_INPUTS = ("x", "inputs", "input", "image", "images", "img", "pixel_values", "features")
_LABELS = ("label", "labels", "y", "target", "class")

#: What others call the split that training may look at.
_VALIDATION = ("validation", "valid", "val", "dev")

Columns = Mapping[str, Any]


def is_columns(found: Any) -> bool:
    """Say whether an object is a data frame, a dictionary of columns, a dataset of `datasets`, or such by split.

    Example:
        >>> is_columns({"x": [[1.0]], "label": [0]}), is_columns({"train": [(1.0, 0)]})
        (True, False)
    """
    if hasattr(found, "columns") or hasattr(found, "column_names"):
        return True
    if not isinstance(found, Mapping) or not found:
        return False
    known = any(str(name).lower() in _LABELS for name in found)
    return known or all(
        hasattr(part, "columns") or hasattr(part, "column_names") or isinstance(part, Mapping)
        for part in found.values()
    )


def from_columns(
    data: Any,
    *,
    name: str,
    inputs: str | None = None,
    label: str | None = None,
    seed: int = 0,
    tune: float = 0.1,
    calib: float = 0.1,
    test: float = 0.2,
    standardize: bool = True,
) -> Dataset:
    """Make a dataset from a data frame, a dictionary of columns, or either by split.

    The labels are a column ``label``, ``labels``, ``y``, ``target`` or ``class``: numbers, or words, which become
    classes in sorted order. The inputs are one column such as ``x``, ``image`` or ``features``, with an array, a list
    or an image in every row; without such a column all other columns are features.

    Args:
        data: A data frame; a mapping from column names to columns; an object of `datasets`; or a mapping from splits
            (``train``, ``tune``, ``calib``, ``test``; ``validation`` is ``tune``) to any of these.
        name: What to call it.
        inputs: The column of inputs, if it has another name.
        label: The column of labels, if it has another name.
        seed: Of the splits that are drawn.
        tune: Size of ``tune``, if it is drawn: an int counts rows, a float is a share.
        calib: Size of ``calib``, if it is drawn.
        test: Size of ``test``, if no splits are given.
        standardize: Subtract the mean of the training rows from features, and divide by their spread.

    Returns:
        A dataset; of splits that are given, ``tune`` and ``calib`` are drawn from ``train`` if they are missing.

    Raises:
        DataError: If a column or a split is missing or unknown, a value is missing, or images differ in size.

    Example:
        >>> rows = {"age": [30.0, 40.0] * 20, "label": ["no", "yes"] * 20}
        >>> from_columns(rows, name="mine")
        Dataset('mine', features (40, 1), 2 classes, train 24, tune 4, calib 4, test 8)
    """
    parts = _parts(data, name)
    read = {
        split: _read(part, f"{name}, split {split!r}" if split else name, inputs, label)
        for split, part in parts.items()
    }
    shapes = {values.shape[1:] for values, _ in read.values()}
    if len(shapes) > 1:
        raise DataError(
            f"{name}: inputs of all splits must have one shape, got {' and '.join(map(str, shapes))}."
        )
    values = np.concatenate([part for part, _ in read.values()])
    names, numbers = _classes([words for _, words in read.values()], _class_names(parts, label), name)
    tensor, labels = _as_inputs(values, name), torch.from_numpy(numbers)
    splits = _splits(
        {split: len(words) for split, (_, words) in read.items()}, labels, seed, tune, calib, test
    )
    mean, std = (None, None)
    if standardize and tensor.is_floating_point() and tensor.ndim == 2:
        mean, std = column_statistics(tensor, splits["train"])
    return from_arrays(tensor, labels, name=name, class_names=names, splits=dict(splits), mean=mean, std=std)


def _parts(data: Any, name: str) -> dict[str, Any]:
    """Return the tables by split; one without a split by the empty name."""
    by_split = isinstance(data, Mapping) and not any(str(key).lower() in _LABELS for key in data)
    if not by_split or hasattr(data, "columns"):
        return {"": data}
    if not any(str(key) in (*SPLITS, *_VALIDATION) for key in data):
        raise DataError(
            f"{name}: expected a column of labels ({', '.join(_LABELS)}), got {', '.join(map(str, data))}. Rename it."
        )
    found: dict[str, Any] = {}
    for key, part in data.items():
        split = "tune" if str(key) in _VALIDATION else str(key)
        if split not in SPLITS:
            raise DataError(
                f"{name}: expected the splits {', '.join(SPLITS)} (or validation), got {key!r}. Rename or drop it."
            )
        if split in found:
            raise DataError(f"{name}: {key!r} and another split would both be {split!r}. Keep one of them.")
        found[split] = part
    if "train" not in found or "test" not in found:
        raise DataError(f"{name}: expected the splits 'train' and 'test', got {', '.join(map(str, data))}.")
    return found


def _read(part: Any, where: str, inputs: str | None, label: str | None) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the inputs and labels of one table."""
    if hasattr(part, "column_names"):  # an object of `datasets`
        columns: dict[str, Any] = {str(one): part[one] for one in part.column_names}
    else:
        columns = {str(key): values for key, values in as_columns(part).items()}
    words = _labels(columns.pop(_find(columns, label, _LABELS, "labels", where)), where)
    alone = inputs or next((one for one in columns if one.lower() in _INPUTS), None)
    if alone is not None:
        values = _stacked(columns[_find(columns, alone, _INPUTS, "inputs", where)], where, alone)
    elif columns:
        values = np.stack([_numbers(column, where, one) for one, column in columns.items()], axis=1)
    else:
        raise DataError(f"{where}: expected a column of inputs beside the labels, got none.")
    if len(values) != len(words) or not len(words):
        raise DataError(f"{where}: expected as many inputs as labels, got {len(values)} and {len(words)}.")
    return values, words


def _find(columns: Columns, given: str | None, known: tuple[str, ...], role: str, where: str) -> str:
    if given is not None:
        if given in columns:
            return given
        guess = nearest(given, columns)
        remedy = f"Did you mean {guess!r}?" if guess else f"There are {', '.join(columns)}."
        raise DataError(f"{where}: there is no column {given!r} for {role}. {remedy}")
    found = [one for one in columns if one.lower() in known]
    if len(found) != 1:
        got = f"several: {', '.join(found)}" if found else ", ".join(columns) or "none"
        raise DataError(
            f"{where}: expected one column of {role} ({', '.join(known)}), got {got}. Name it with label=."
        )
    return found[0]


def _labels(column: Any, where: str) -> NDArray[Any]:
    values = np.asarray(column)
    if values.dtype.kind == "O":
        missing = [
            row for row, value in enumerate(values) if value is None or str(value) in ("nan", "<NA>", "NaT")
        ]
        if missing:
            raise DataError(
                f"{where}: the label of row {missing[0]} is missing. Drop such rows, or fill them."
            )
        whole = all(isinstance(value, (int, np.integer)) for value in values)
        values = values.astype(np.int64 if whole else np.str_)
    if values.dtype.kind == "f":
        if not np.isfinite(values).all():
            row = int(np.flatnonzero(~np.isfinite(values))[0])
            raise DataError(f"{where}: the label of row {row} is missing. Drop such rows, or fill them.")
        if (values != np.round(values)).any():
            raise DataError(f"{where}: labels must be class numbers or names, got fractions.")
        values = values.astype(np.int64)
    if values.ndim != 1 or values.dtype.kind not in "iubU":
        raise DataError(
            f"{where}: labels must be class numbers or names, one per row, got {values.dtype} of shape {values.shape}."
        )
    return values


def _stacked(column: Any, where: str, name: str) -> NDArray[Any]:
    rows = [np.asarray(row) for row in column] if not isinstance(column, np.ndarray | Tensor) else column
    if isinstance(rows, list):
        shapes = dict.fromkeys(row.shape for row in rows)
        if len(shapes) > 1:
            first, second = list(shapes)[:2]
            raise DataError(
                f"{where}: inputs must have one shape, got {first} and {second} in the column {name!r}. Resize the "
                "images to one size first."
            )
    stacked = np.stack(rows) if isinstance(rows, list) else np.asarray(rows)
    if stacked.dtype.kind not in "fiub":
        raise DataError(f"{where}: the column {name!r} must hold numbers or images, got {stacked.dtype}.")
    return stacked[:, None] if stacked.ndim == 1 else stacked


def _numbers(column: Any, where: str, name: str) -> NDArray[Any]:
    try:
        values = np.asarray(column).astype(np.float32)
    except (ValueError, TypeError):
        raise DataError(f"{where}: the column {name!r} must hold numbers. Encode or drop it.") from None
    if values.ndim != 1 or not np.isfinite(values).all():
        raise DataError(
            f"{where}: the column {name!r} must hold one finite number per row. Fill the gaps, or drop it."
        )
    return values


def _class_names(parts: Mapping[str, Any], label: str | None) -> tuple[str, ...] | None:
    """Return the names that an object of `datasets` gives its class numbers."""
    features = getattr(next(iter(parts.values())), "features", None)
    if not isinstance(features, Mapping):
        return None
    found = next((one for key, one in features.items() if key == label or key.lower() in _LABELS), None)
    names = getattr(found, "names", None)
    return None if names is None else tuple(map(str, names))


def _classes(
    parts: list[NDArray[Any]], names: tuple[str, ...] | None, where: str
) -> tuple[tuple[str, ...], NDArray[np.int64]]:
    if len({part.dtype.kind == "U" for part in parts}) > 1:
        raise DataError(f"{where}: labels must be numbers in all splits, or names in all splits.")
    words = np.concatenate(parts)
    if words.dtype.kind != "U" and (names is not None or (words.min() >= 0 and words.max() < len(words))):
        numbers = words.astype(np.int64)
        return names or tuple(map(str, range(int(numbers.max()) + 1))), numbers
    found, numbers = np.unique(words, return_inverse=True)
    return tuple(map(str, found)), numbers.astype(np.int64)


def _as_inputs(values: NDArray[Any], name: str) -> Tensor:
    if values.dtype == np.uint8 and values.ndim == 3:
        return as_images(values)
    if values.dtype == np.uint8 and values.ndim == 4:
        if values.shape[-1] in (1, 3, 4):
            return as_images(values)
        if values.shape[1] in (1, 3, 4):
            return torch.from_numpy(np.ascontiguousarray(values))
        raise DataError(f"{name}: images must have 1, 3 or 4 channels, got the shape {values.shape[1:]}.")
    return torch.from_numpy(np.ascontiguousarray(values, np.float32)).flatten(1)


def _splits(
    counts: Mapping[str, int], labels: Tensor, seed: int, tune: float, calib: float, test: float
) -> dict[str, Tensor]:
    if "" in counts:
        return dict(stratified_split(labels, {"tune": tune, "calib": calib, "test": test}, seed=seed))
    starts = dict(zip(counts, np.cumsum([0, *counts.values()]).tolist(), strict=False))
    found = {split: torch.arange(start, start + counts[split]) for split, start in starts.items()}
    sizes = {split: size for split, size in (("tune", tune), ("calib", calib)) if split not in found}
    drawn = stratified_split(labels, sizes, seed=seed, rows=found["train"]) if sizes else {}
    return {**found, **drawn}
