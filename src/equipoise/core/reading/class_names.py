"""Class names in files: labels that are text become class numbers, the same in every chunk."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from equipoise.core.arrays import Array, as_numpy
from equipoise.core.errors import EquipoiseError
from equipoise.core.names import nearest
from equipoise.core.reading.formats.base import Chunk, ColumnReader, Reading
from equipoise.core.reading.layout import Layout

__all__ = ["class_numbers", "labels_are_text", "seen_classes"]

#: More distinct labels than this are no classes; most likely the column holds ids.
_MOST_CLASSES = 1 << 16


def labels_are_text(reader: ColumnReader, layout: Layout) -> bool:
    """Say whether a file's labels, or the classes it names as predicted, are text."""
    return any(reader.is_text(name) for name in (layout.labels, layout.predicted) if name is not None)


def seen_classes(readers: Iterable[tuple[ColumnReader, Layout]]) -> tuple[str, ...]:
    """Return every class that occurs as a label or a prediction, sorted; one pass over those columns only.

    Raises:
        DataError: If there are too many for classes.
    """
    seen: set[str] = set()
    for reader, layout in readers:
        names = [name for name in (layout.labels, layout.predicted) if name is not None]
        readings: dict[str, Reading] = dict.fromkeys(names, "name")
        for chunk in reader.chunks(readings, n_rows=reader.chunk_rows(readings)):
            for name in names if chunk.columns else ():
                seen.update(str(value) for value in np.unique(as_numpy(chunk.columns[name])))
            if len(seen) > _MOST_CLASSES:
                raise reader.fail(
                    f"`{layout.labels}` holds more than {_MOST_CLASSES} different texts. Are these ids?"
                )
    return tuple(sorted(seen))


def class_numbers(reader: ColumnReader, chunk: Chunk, column: str, names: Sequence[str] | None) -> Array:
    """Return the class numbers of a column of class names.

    Raises:
        DataError: If the names of the classes are not known, or a label is none of them.
    """
    texts = as_numpy(chunk.columns[column])
    if texts.dtype.kind != "U":
        raise reader.fail(
            f"`{column}` must hold class names like the other labels, its type is {texts.dtype}."
        )
    if names is None:
        raise reader.fail(
            f"`{column}` holds class names, but their order is not known. Pass {{class_names}}.",
            arguments={"class_names": "[...]"},
        )
    numbers = {name: number for number, name in enumerate(names)}
    if len(numbers) < len(names):
        raise reader.fail(
            "two classes have the same name, so labels cannot be told apart. Use class numbers."
        )
    found, inverse = np.unique(texts, return_inverse=True)
    codes = np.array([numbers.get(str(text), -1) for text in found], dtype=np.int64)[inverse]
    if (codes < 0).any():
        raise _unknown(reader, chunk, column, int(np.argmax(codes < 0)), names)
    return codes.reshape(texts.shape)


def _unknown(
    reader: ColumnReader, chunk: Chunk, column: str, row: int, names: Sequence[str]
) -> EquipoiseError:
    text = str(as_numpy(chunk.columns[column]).reshape(-1)[row])
    guess = nearest(text[:100], names[:1000])
    remedy = f"Did you mean {guess!r}?" if guess else f"Known: {', '.join(map(repr, names[:8]))}."
    error = reader.fail(f"`{column}` must name a class, got {text[:60]!r} in {{row}}. {remedy}")
    return chunk.locate(error, row)
