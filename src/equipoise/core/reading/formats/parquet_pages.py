"""How large the columns of a Parquet file become, told by the headers of their pages before any is unpacked.

The table of contents of a Parquet file cannot be believed: a page of a few bytes may claim two billion values, or two
gigabytes. So the headers of the pages are read, as the reader of the pages will, and what they claim is added up.

Where the pages are is read from the table of contents here, and not asked of pyarrow: of some damaged tables its
answer is the end of the process.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

__all__ = ["unfolded_size"]

_LONGEST_HEADER = 1 << 20
_FIRST_LOOK = 1 << 10
_DEEPEST = 16

#: The bytes of a value in memory; texts are read as numbers of a dictionary, whose own bytes are counted by its page.
_WIDTHS = {"BOOLEAN": 1, "INT32": 4, "INT64": 8, "INT96": 12, "FLOAT": 4, "DOUBLE": 8, "BYTE_ARRAY": 16}

#: Texts packed so that their lengths unfold without limit, by the numbers of their encodings.
_ENDLESS = {6: "DELTA_LENGTH_BYTE_ARRAY", 7: "DELTA_BYTE_ARRAY"}

#: Kinds of values in Thrift's compact protocol.
_INT32, _INT64, _LIST, _STRUCT = 5, 6, 9, 12
#: Length of the table of contents and the last mark, at the end of a file.
_TAIL = 8

#: Where a page tells how many values it has, by its type: data, dictionary, data of the second version.
_COUNTED = {0: 5, 2: 7, 3: 8}
_DICTIONARY = 2

Take = Callable[[int, int], bytes]


def unfolded_size(metadata: Any, names: list[str], take: Take, size: int) -> int:
    """Return the bytes that some columns need in memory.

    Args:
        metadata: The file's metadata, as pyarrow reads it.
        names: Columns; a column of lists is meant by its name.
        take: Gives bytes of the file: from where, how many.
        size: Bytes of the file.

    Raises:
        ValueError: If pages do not fit into the file, or the table of contents or their headers are damaged.
    """
    schema, wanted = metadata.schema, set(names)
    leaves = {
        place: column
        for place, column in enumerate(map(schema.column, range(len(schema.names))))
        if not wanted.isdisjoint(_parents(column.path))
    }
    total = 0
    for columns in _row_groups(take, size):
        for place, column in leaves.items():
            width = _WIDTHS.get(column.physical_type, max(1, column.length))
            # Lists and missing values are told by two small numbers per value.
            width += 4 if column.max_definition_level else 0
            chunk = _chunk(columns, place)
            for encoding in chunk.encodings & set(_ENDLESS):
                raise ValueError(f"`{column.path[:60]}` is packed as {_ENDLESS[encoding]}, write it without")
            total += sum(max(page.size, page.values * width) for page in _pages(chunk, take))
    return total


def _parents(path: str) -> list[str]:
    """Return a path of a leaf and those above it: ``a``, ``a.list`` and ``a.list.element``; names may have dots too."""
    parts = path.rsplit(".", _DEEPEST)
    return [".".join(parts[:stop]) for stop in range(1, len(parts) + 1)]


def _row_groups(take: Take, size: int) -> list[list[Any]]:
    """Return the columns of every row group, as the table of contents tells them."""
    length = int.from_bytes(take(size - _TAIL, 4), "little")
    if not 0 < length <= size - _TAIL:
        raise ValueError("the table of contents does not fit into the file")
    try:
        content = _Compact(take(size - _TAIL - length, length)).struct()
    except IndexError:
        raise ValueError("the table of contents does not end") from None
    return [_part(group, 1, _LIST) for group in _part(content, 4, _LIST)]


@dataclass(frozen=True)
class _Chunk:
    """One column of one row group: where its pages begin and end, and what it says of them."""

    start: int
    end: int
    values: int
    encodings: set[int]


def _chunk(columns: list[Any], place: int) -> _Chunk:
    if place >= len(columns):
        raise ValueError("the table of contents is damaged")
    facts = _part(columns[place], 3, _STRUCT)
    values, packed, start = (_number(facts, field, _INT64) for field in (5, 7, 9))
    first = _number(facts, 11, _INT64) if 11 in facts else 0
    start = first if 0 < first < start else start
    return _Chunk(start, start + packed, values, set(_part(facts, 2, _LIST)))


@dataclass(frozen=True)
class _Page:
    size: int
    values: int


def _pages(chunk: _Chunk, take: Take) -> Iterator[_Page]:
    """Yield what the pages of one column of one row group claim."""
    place, seen = chunk.start, 0
    while seen < chunk.values and place < chunk.end:
        header, length = _header(place, chunk.end, take)
        # The page's type says which of its parts counts, and dictionaries hold no rows.
        kind, size, packed = (_number(header, field) for field in (1, 2, 3))
        counted = _COUNTED.get(kind, 0)
        values = _number(_part(header, counted, _STRUCT), 1) if counted in header else 0
        place += length + packed
        if place > chunk.end:
            raise ValueError("a page is larger than its column")
        seen += 0 if kind == _DICTIONARY else values
        yield _Page(size, values)


def _part(fields: Any, number: int, kind: int) -> Any:
    """Return a field of a structure, which must be there and of its kind, as a reader passes over others."""
    found, value = fields.get(number, (None, None)) if isinstance(fields, dict) else (None, None)
    if found != kind:
        raise ValueError("the table of contents, or the header of a page, is damaged")
    return value


def _number(fields: dict[int, Any], number: int, kind: int = _INT32) -> int:
    value: int = _part(fields, number, kind)
    if value < 0:
        raise ValueError("the table of contents, or the header of a page, is damaged")
    return value


def _header(place: int, end: int, take: Take) -> tuple[dict[int, Any], int]:
    look = _FIRST_LOOK
    while True:
        reader = _Compact(take(place, min(look, end - place)))
        try:
            return reader.struct(), reader.place
        except IndexError:
            if look >= min(_LONGEST_HEADER, end - place):
                raise ValueError("the header of a page does not end") from None
            look *= 16


class _Compact:
    """Reads Thrift's compact protocol; texts are passed over."""

    def __init__(self, content: bytes) -> None:
        self._content = content
        self.place = 0

    def struct(self, depth: int = 0) -> dict[int, Any]:
        """Return kinds and values of a structure by the numbers of its fields."""
        if depth > _DEEPEST:
            raise ValueError("the table of contents, or the header of a page, is nested too deeply")
        fields: dict[int, Any] = {}
        number = 0
        while byte := self._byte():
            number = number + (byte >> 4) if byte >> 4 else self._integer()
            kind = byte & 15
            if number in fields:
                raise ValueError("the table of contents, or the header of a page, is damaged")
            # The truth of a field is told by its type.
            fields[number] = (kind, None if kind in (1, 2) else self._value(kind, depth))
        return fields

    def _value(self, kind: int, depth: int) -> Any:
        if kind in (4, _INT32, _INT64):
            return self._integer()
        if kind == _STRUCT:
            return self.struct(depth + 1)
        if kind in (_LIST, 10):
            byte = self._byte()
            count = self._unsigned() if byte >> 4 == 15 else byte >> 4
            return self._all([byte & 15] * min(count, len(self._content)), depth)
        if kind == 11:
            count = self._unsigned()
            kinds = self._byte() if count else 0
            self._all([kinds >> 4, kinds & 15] * min(count, len(self._content)), depth)
        else:
            self._skip({1: 1, 2: 1, 3: 1, 7: 8, 13: 16}.get(kind) if kind != 8 else self._unsigned())
        return None

    def _all(self, kinds: list[int], depth: int) -> list[Any]:
        if depth >= _DEEPEST:
            raise ValueError("the table of contents, or the header of a page, is nested too deeply")
        return [self._value(kind, depth + 1) for kind in kinds]

    def _skip(self, count: int | None) -> None:
        if count is None:
            raise ValueError("the header of a page is damaged")
        self.place += count
        if self.place > len(self._content):
            raise IndexError

    def _byte(self) -> int:
        self.place += 1
        return self._content[self.place - 1]

    def _unsigned(self) -> int:
        result, shift = 0, 0
        while True:
            byte = self._byte()
            result |= (byte & 127) << shift
            shift += 7
            if not byte & 128:
                return result
            if shift > 63:
                raise ValueError("the header of a page is damaged")

    def _integer(self) -> int:
        value = self._unsigned()
        return (value >> 1) ^ -(value & 1)
