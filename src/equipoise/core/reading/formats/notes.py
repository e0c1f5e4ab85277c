"""Metadata of a file of rows: class names, split, and what a calibrator was fitted on."""

from __future__ import annotations

import json
import reprlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from equipoise.core.errors import DataError
from equipoise.core.rows import Rows

__all__ = ["Notes", "side_file"]


@dataclass(frozen=True)
class Notes:
    """Facts about a whole file.

    Attributes:
        class_names: One name per class.
        split: The split the rows are from.
        n_classes: The number of classes, where no columns tell it.
        fitted_on: The rows a calibrator behind the scores was fitted on.
        rows: The identity of every row before that calibrator, in order, if some of them are among ``fitted_on``.
        calibrator: The calibrator in words.
        calibrated: The columns that it made; the notes on it do not concern other scores. None concerns all.
        has_originals: Whether the scores before it are in the file too.

    Example:
        >>> Notes.from_json(Notes(split="test").to_json(), where="a.csv").split
        'test'
    """

    class_names: tuple[str, ...] | None = None
    split: str | None = None
    n_classes: int | None = None
    fitted_on: Rows | None = None
    rows: Rows | None = None
    calibrator: str | None = None
    calibrated: tuple[str, ...] | None = None
    has_originals: bool = False

    def to_json(self, extra: Mapping[str, Any] | None = None) -> str:
        """Return the notes as text; empty if there is nothing to note.

        Args:
            extra: A format's own notes.
        """
        content: dict[str, Any] = {
            "class_names": self.class_names and list(self.class_names),
            "split": self.split,
            "n_classes": self.n_classes,
            "calibrator": self.calibrator,
            "calibrated": self.calibrated and list(self.calibrated),
            "has_originals": self.has_originals,
            **(extra or {}),
        }
        for name, rows in (("fitted_on", self.fitted_on), ("rows", self.rows)):
            if rows is not None:
                content[name] = rows.packed()
        kept = {name: value for name, value in content.items() if value}
        return json.dumps(kept, ensure_ascii=False) if kept else ""

    @classmethod
    def from_json(cls, text: str, *, where: str) -> Notes:
        """Read what :meth:`to_json` wrote.

        Raises:
            DataError: If it is damaged.
        """
        content = parse(text, where=where)
        try:
            fitted_on, rows = (
                None if content.get(name) is None else Rows.unpacked(content[name])
                for name in ("fitted_on", "rows")
            )
            return cls(
                class_names=_texts(content.get("class_names")),
                split=_optional(str, content.get("split")),
                n_classes=_optional(int, content.get("n_classes")),
                fitted_on=fitted_on,
                rows=rows,
                calibrator=_optional(str, content.get("calibrator")),
                calibrated=_texts(content.get("calibrated")),
                has_originals=content.get("has_originals") is True,
            )
        except (ValueError, TypeError) as error:
            raise DataError(
                f"{where}: the notes under `equipoise` are damaged ({error}). Remove them."
            ) from None


def parse(text: str, *, where: str) -> dict[str, Any]:
    """Return the notes as a dictionary.

    Raises:
        DataError: If they are no JSON object.

    Example:
        >>> parse('{"split": "test"}', where="a.csv")
        {'split': 'test'}
    """
    if not text.strip():
        return {}
    try:
        content = json.loads(text)
    except (ValueError, RecursionError):
        content = None
    if not isinstance(content, dict):
        raise DataError(f"{where}: the notes under `equipoise` must be a JSON object. Remove them.")
    return content


def side_file(path: Path) -> Path:
    """Return where the notes of a file stand whose format has no place for them.

    Example:
        >>> side_file(Path("rows/a.csv")).as_posix()
        'rows/a.csv.equipoise.json'
    """
    return path.with_name(f"{path.name}.equipoise.json")


def _texts(value: Any) -> tuple[str, ...] | None:
    found = _optional(list, value)
    return None if found is None else tuple(_required(str, one) for one in found)


def _optional(kind: type, value: Any) -> Any:
    return None if value is None else _required(kind, value)


def _required(kind: type, value: Any) -> Any:
    if not isinstance(value, kind) or isinstance(value, bool):
        raise TypeError(f"{reprlib.repr(value)} is not a {kind.__name__}")
    return value
