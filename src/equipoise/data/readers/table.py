"""Any CSV or Parquet file of features with a label column."""

from __future__ import annotations

import csv
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from equipoise.core.errors import DataError, require
from equipoise.core.names import nearest
from equipoise.data.arrays import column_statistics, from_arrays
from equipoise.data.dataset import Dataset
from equipoise.data.folders import file_record
from equipoise.data.row_splits import stratified_split

__all__ = ["table"]


def table(
    path: str | os.PathLike[str],
    *,
    label: str = "label",
    seed: int = 0,
    tune: float = 0.1,
    calib: float = 0.1,
    test: float = 0.2,
    standardize: bool = True,
) -> Dataset:
    r"""Read a table of numbers with one column of labels.

    Args:
        path: A file whose name ends in .csv or .parquet; a CSV file begins with a line of names.
        label: The column of labels: words or numbers, which become classes in sorted order.
        seed: Of the splits.
        tune: Size of ``tune``: an int counts rows, a float is a share.
        calib: Size of ``calib``.
        test: Size of ``test``.
        standardize: Subtract the mean of the training rows, and divide by their spread.

    Returns:
        Features: every column but the label.

    Raises:
        DataError: If the file, the column or a value is wrong; line and column are named.

    Example:
        >>> import tempfile
        >>> file = Path(tempfile.mkdtemp()) / "mine.csv"
        >>> _ = file.write_text("a,b,label\n" + "1,2,yes\n3,4,no\n" * 10)
        >>> table(file).class_names
        ('no', 'yes')
    """
    file = Path(path)
    if not file.is_file():
        raise DataError(f"table: {file} does not exist. Pass path=... of a .csv or .parquet file.")
    if file.suffix not in (".csv", ".parquet"):
        raise DataError(f"{file}: the name must end in .csv or .parquet. Rename or convert it.")
    columns = _read_csv(file) if file.suffix == ".csv" else _read_parquet(file)
    if label not in columns:
        guess = nearest(label, columns)
        remedy = f"Did you mean {guess!r}?" if guess else f"It has {', '.join(columns)}."
        raise DataError(f"{file}: there is no column {label!r}. {remedy}")
    words = columns.pop(label)
    if not columns or not len(words):
        raise DataError(f"{file}: expected at least one row and one column beside {label!r}. Add some.")
    names, numbers = np.unique(
        np.asarray(words).astype(str) if words.dtype.kind == "O" else words, return_inverse=True
    )
    features = torch.from_numpy(
        np.stack([_numbers(values, name, file) for name, values in columns.items()], axis=1)
    )
    labels = torch.from_numpy(numbers.astype(np.int64))
    splits = stratified_split(labels, {"tune": tune, "calib": calib, "test": test}, seed=seed)
    mean, std = column_statistics(features, splits["train"]) if standardize else (None, None)
    return from_arrays(
        features,
        labels,
        name=file.stem,
        class_names=[str(name) for name in names],
        splits=dict(splits),
        mean=mean,
        std=std,
        provenance=(file_record(file, file.parent),),
    )


def _read_csv(file: Path) -> dict[str, NDArray[Any]]:
    with file.open(newline="", encoding="utf-8") as stream:
        reader = csv.reader(stream)
        head = next(reader, [])
        if len(set(head)) != len(head) or not head:
            raise DataError(f"{file}: the first line must hold a different name for each column. Add them.")
        rows: list[Sequence[str]] = []
        for row in reader:
            if len(row) != len(head):
                raise DataError(
                    f"{file}: line {reader.line_num} must have {len(head)} values, got {len(row)}. Is it "
                    "cut off?"
                )
            rows.append(row)
    return {name: np.array([row[place] for row in rows], dtype=object) for place, name in enumerate(head)}


def _read_parquet(file: Path) -> dict[str, NDArray[Any]]:
    parquet = require("pyarrow.parquet", extra="parquet", purpose="read Parquet files")
    arrow = require("pyarrow", extra="parquet", purpose="read Parquet files")
    try:
        stored = parquet.read_table(file)
    except (arrow.ArrowException, OSError) as error:
        raise DataError(f"{file}: expected a Parquet file, but it cannot be read: {error}.") from error
    return {name: stored[name].to_numpy() for name in stored.column_names}


def _numbers(values: NDArray[Any], name: str, file: Path) -> NDArray[np.float32]:
    try:
        numbers: NDArray[np.float32] = values.astype(np.float32)
    except (ValueError, TypeError):
        row = next(place for place, value in enumerate(values) if not _is_number(value))
        raise DataError(
            f"{file}: column {name!r} must hold numbers, got {values[row]!r} in row {row + 1}. Encode or "
            "drop it."
        ) from None
    if not np.isfinite(numbers).all():
        row = int(np.flatnonzero(~np.isfinite(numbers))[0])
        raise DataError(
            f"{file}: column {name!r} must be finite, got {values[row]!r} in row {row + 1}. Fill the gap."
        )
    return numbers


def _is_number(value: object) -> bool:
    try:
        float(value)  # type: ignore[arg-type]
    except (ValueError, TypeError):
        return False
    return True
