"""Cells of text become columns of numbers or text, or an error with the line."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np

from equipoise.core.arrays import Array
from equipoise.core.errors import DataError
from equipoise.core.reading.formats.base import LONGEST_TEXT, Reading, as_text

__all__ = ["Cells", "is_integer"]

#: A class number with a decimal point is a slip; it must not become the name of a class.
_DECIMAL = re.compile(r"[+-]?(\d+\.\d*|\.\d+)([eE][+-]?\d+)?|[+-]?\d+[eE][+-]?\d+")

_NUMBER_TYPE = re.compile(r"\|b1|[<>|=]?[iuf][1248]")


def is_integer(cell: str) -> bool:
    """Say whether a cell is an integer.

    Example:
        >>> is_integer("-100"), is_integer("3.0"), is_integer("cat")
        (True, False, False)
    """
    text = cell.strip()
    digits = text[1:] if text[:1] in ("-", "+") else text
    return digits.isascii() and digits.isdigit()


class Cells:
    """The columns of some lines of a file.

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

    def __init__(self, where: str, lines: list[int]) -> None:
        self.lines = np.array(lines)
        self.columns: dict[str, Array] = {}
        self._where = where

    def add(self, name: str, cells: list[str], reading: Reading, dtype: Any = None) -> None:
        """Turn cells into a column.

        Args:
            name: The column.
            cells: Its text, a cell per line.
            reading: How it is wanted.
            dtype: The type it had before it was written, if the file tells.
        """
        if reading == "number":
            column = self._numbers(name, cells)
            self.columns[name] = column.astype(np.float32) if dtype == "<f4" else column
        elif reading == "label":
            self.columns[name] = self._convert(name, cells, _int, np.int64, "class numbers, integers")
        elif reading == "name":
            self.columns[name] = self._convert(name, cells, _class_name, np.str_, "class names or integers")
        elif reading == "hash":
            self.columns[name] = self._convert(name, cells, _int, np.uint64, "a row's hash")
        else:
            text = self._text(name, cells)
            self.columns[name] = self._typed(name, text, dtype) if reading == "group" else text

    def _numbers(self, name: str, cells: list[str]) -> Array:
        try:
            numbers = np.array(list(map(float, cells)))
        except ValueError:
            return self._convert(name, cells, _float, np.float64, "a number")
        # Python takes 1_000 for a number; in a file it is a slip.
        return (
            self._convert(name, cells, _float, np.float64, "a number") if "_" in "".join(cells) else numbers
        )

    def _convert(
        self, name: str, cells: list[str], convert: Callable[[str], Any], dtype: Any, wanted: str
    ) -> Array:
        try:
            return np.array([convert(cell) for cell in cells], dtype=dtype)
        except (ValueError, OverflowError):
            row = next(row for row, cell in enumerate(cells) if not _fits(cell, convert, dtype))
            raise self._failed(name, row, wanted, cells[row]) from None

    def _text(self, name: str, cells: list[str]) -> Array:
        longest = max(range(len(cells)), key=lambda row: len(cells[row]))
        if len(cells[longest]) > LONGEST_TEXT:
            raise self._failed(name, longest, f"at most {LONGEST_TEXT} characters", cells[longest])
        return as_text(cells, where=f"{self._where}: column {name!r}")

    def _typed(self, name: str, text: Array, dtype: Any) -> Array:
        if not isinstance(dtype, str) or not _NUMBER_TYPE.fullmatch(dtype):
            return text
        try:
            return text == "True" if "b" in dtype else text.astype(np.dtype(dtype))
        except (ValueError, TypeError, OverflowError):
            raise self._failed(name, 0, f"values of type {dtype}, as the notes say", str(text[0])) from None

    def _failed(self, name: str, row: int, wanted: str, cell: str) -> DataError:
        shown = repr(cell if len(cell) <= 40 else cell[:37] + "...") if cell.strip() else "an empty cell"
        return DataError(
            f"{self._where}: line {self.lines[row]}, column {name!r} must hold {wanted}, got {shown}."
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
    return int(cell)


def _fits(cell: str, convert: Callable[[str], Any], dtype: Any) -> bool:
    try:
        np.array([convert(cell)], dtype=dtype)
    except (ValueError, OverflowError):
        return False
    return True
