"""Cells of text become columns of numbers or text, or an error with the line."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np

from equipoise.core.arrays import Array
from equipoise.core.errors import DataError
from equipoise.core.reading.formats.base import LONGEST_TEXT, Reading, WrittenColumns, as_text

__all__ = ["Cells", "is_integer", "is_missing", "unusual_types"]

#: A class number with a decimal point is a mistake; it must not become the name of a class.
_DECIMAL = re.compile(r"[+-]?(\d+\.\d*|\.\d+)([eE][+-]?\d+)?|[+-]?\d+[eE][+-]?\d+")

#: How files spell a missing number.
_MISSING = frozenset({"", "nan", "na", "n/a", "null", "none"})

#: A class number, also as pandas writes it where others of its column are missing.
_WHOLE = re.compile(r"[+-]?[0-9]+(\.0*)?")
_DECIMAL_COMMA = re.compile(r"\s*[+-]?[0-9]*,[0-9]+([eE][+-]?[0-9]+)?\s*")

_OUTCOMES = {"true": True, "1": True, "1.0": True, "false": False, "0": False, "0.0": False}

_NUMBER_TYPE = re.compile(r"\|b1|[<>|=]?[iuf][1248]")


def is_integer(cell: str) -> bool:
    """Say whether a cell is a whole number.

    Example:
        >>> is_integer("-100"), is_integer("3.0"), is_integer("3.5"), is_integer("cat")
        (True, True, False, False)
    """
    return _WHOLE.fullmatch(cell.strip()) is not None


def unusual_types(columns: WrittenColumns) -> dict[str, str]:
    """Return the types of columns that their text would not be read as, for the notes of a file.

    Example:
        >>> unusual_types({"confidence": np.zeros(1, np.float32), "labels": np.zeros(1, np.int64)})
        {'confidence': '<f4'}
    """
    return {name: column.dtype.str for name, column in columns.items() if _is_unusual(name, column)}


def _is_unusual(name: str, column: Array) -> bool:
    if name.startswith("group_"):
        return column.dtype.kind != "U"
    return column.dtype.kind not in "Uiub" and column.dtype != np.float64


def is_missing(cell: str, reading: Reading) -> bool:
    """Say whether a cell holds nothing: it is empty or, where a number belongs, says so.

    Example:
        >>> is_missing("", "name"), is_missing("NA", "number"), is_missing("NA", "name")
        (True, True, False)
    """
    if reading in ("group", "hash"):
        return False
    text = cell.strip().lower()
    return text in _MISSING if reading in ("number", "label", "correct") else not text


class Cells:
    """The columns of some lines of a file.

    Args:
        where: The file, for messages.
        lines: The number of each line.
        marks: The decimal marks of the file so far; None if a comma cannot be one.
        percent: Whether numbers may be followed by a percent sign.
        empty: What messages call a cell without content.
        column: What messages call a column.

    Example:
        >>> cells = Cells("a.csv", [2, 3])
        >>> cells.add("confidence", ["0.5", "1"], "number")
        >>> cells.columns["confidence"]
        array([0.5, 1. ])
        >>> cells.add("confidence", ["0.5", "high"], "number")
        Traceback (most recent call last):
        ...
        equipoise.core.errors.DataError: a.csv: line 3, column 'confidence' must hold a number, got 'high'.
    """

    def __init__(
        self,
        where: str,
        lines: list[int],
        *,
        marks: set[str] | None = None,
        percent: bool = False,
        empty: str = "an empty cell",
        column: str = "column",
    ) -> None:
        self.lines = np.array(lines)
        self.columns: dict[str, Array] = {}
        self.rows = np.arange(len(lines))
        self.n_dropped = 0
        self._where, self._marks, self._percent = where, marks, percent
        self._empty, self._column = empty, column

    def add(self, name: str, cells: list[str], reading: Reading, dtype: Any = None) -> None:
        """Turn cells into a column.

        Args:
            name: The column.
            cells: Its text, a cell per line.
            reading: Meaning of the column.
            dtype: The type it had before it was written, if the file tells.
        """
        if reading == "number":
            column = self._numbers(name, cells)
            self.columns[name] = column.astype(np.float32) if dtype == "<f4" else column
        elif reading == "label":
            self.columns[name] = self._convert(name, cells, _int, np.int64, "class numbers, integers")
        elif reading == "correct":
            self.columns[name] = self._convert(name, cells, _outcome, np.bool_, "true or false, or 1 or 0")
        elif reading == "name":
            self.columns[name] = self._convert(name, cells, _class_name, np.str_, "class names or integers")
        elif reading == "hash":
            self.columns[name] = self._convert(name, cells, _int, np.uint64, "a row's hash")
        else:
            text = self._text(name, cells)
            self.columns[name] = self._typed(name, text, dtype) if reading == "group" else text

    def _numbers(self, name: str, cells: list[str]) -> Array:
        if self._percent:
            cells = [cell.strip().removesuffix("%") for cell in cells]
        cells = self._with_points(name, cells)
        try:
            numbers = np.array(list(map(float, cells)))
        except ValueError:
            return self._convert(name, cells, _float, np.float64, "a number")
        # Python takes 1_000 for a number; in a file it is a mistake.
        return (
            self._convert(name, cells, _float, np.float64, "a number") if "_" in "".join(cells) else numbers
        )

    def _with_points(self, name: str, cells: list[str]) -> list[str]:
        """Return numbers with points for decimal commas, where commas do not separate cells.

        Raises:
            DataError: If the file has both marks, so that a comma may separate thousands.
        """
        if self._marks is None:
            return cells
        text = "".join(cells)
        self._marks |= {mark for mark in ".," if mark in text}
        if "," not in self._marks:
            return cells
        if len(self._marks) > 1:
            row = next((row for row, cell in enumerate(cells) if "," in cell or "." in cell), 0)
            raise DataError(
                f"{{row}}, column {name!r}: the file has numbers with a comma and numbers with a point, got "
                f"{cells[row][:40]!r}. Write all numbers with a point.",
                where=self._where,
                line=int(self.lines[row]),
            )
        return [cell.replace(",", ".") if _DECIMAL_COMMA.fullmatch(cell) else cell for cell in cells]

    def _convert(
        self, name: str, cells: list[str], convert: Callable[[str], Any], dtype: Any, expected: str
    ) -> Array:
        try:
            return np.array([convert(cell) for cell in cells], dtype=dtype)
        except (ValueError, OverflowError):
            row = next(row for row, cell in enumerate(cells) if not _fits(cell, convert, dtype))
            raise self._failed(name, row, expected, cells[row]) from None

    def _text(self, name: str, cells: list[str]) -> Array:
        longest = max(range(len(cells)), key=lambda row: len(cells[row]))
        if len(cells[longest]) > LONGEST_TEXT:
            raise self._failed(name, longest, f"at most {LONGEST_TEXT} characters", cells[longest])
        return as_text(cells, where=f"{self._where}: {self._column} {name!r}")

    def _typed(self, name: str, text: Array, dtype: Any) -> Array:
        if not isinstance(dtype, str) or not _NUMBER_TYPE.fullmatch(dtype):
            return text
        try:
            return np.char.lower(text) == "true" if "b" in dtype else text.astype(np.dtype(dtype))
        except (ValueError, TypeError, OverflowError):
            raise self._failed(name, 0, f"values of type {dtype}, as the notes say", str(text[0])) from None

    def _failed(self, name: str, row: int, expected: str, cell: str) -> DataError:
        shown = repr(cell if len(cell) <= 40 else cell[:37] + "...") if cell.strip() else self._empty
        remedy = ""
        if cell.strip().lower() in _MISSING:
            remedy = " To leave such rows out, pass {drop_missing}."
        elif cell.strip().endswith("%") and expected == "a number":
            remedy = " Percentages are read with {percent}."
        return DataError(
            f"{{row}}, {self._column} {name!r} must hold {expected}, got {shown}.{remedy}",
            where=self._where,
            line=int(self.lines[row]),
            arguments={"drop_missing": "True", "percent": "True"},
        )


def _float(cell: str) -> float:
    if "_" in cell:
        raise ValueError(cell)
    return float(cell)


def _class_name(cell: str) -> str:
    text = cell.strip()
    if not text or len(text) > LONGEST_TEXT or text.endswith("\0") or _DECIMAL.fullmatch(text):
        raise ValueError(cell)
    return text


def _int(cell: str) -> int:
    if not is_integer(cell):
        raise ValueError(cell)
    return int(cell.strip().partition(".")[0])


def _outcome(cell: str) -> bool:
    try:
        return _OUTCOMES[cell.strip().lower()]
    except KeyError:
        raise ValueError(cell) from None


def _fits(cell: str, convert: Callable[[str], Any], dtype: Any) -> bool:
    try:
        np.array([convert(cell)], dtype=dtype)
    except (ValueError, OverflowError):
        return False
    return True
