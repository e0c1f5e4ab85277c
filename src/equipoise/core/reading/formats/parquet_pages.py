"""How large the columns of a Parquet file become, told by the headers of their pages before any is unpacked.

The table of contents of a Parquet file cannot be believed: a page of a few bytes may claim two billion values, or two
gigabytes. So the headers of the pages are read, as the reader of the pages will, and what they claim is added up.
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

#: Texts packed so that their lengths unfold without limit.
_ENDLESS = ("DELTA_LENGTH_BYTE_ARRAY", "DELTA_BYTE_ARRAY")

#: Where a page tells how many values it has, by its type: data, dictionary, data of the second version.
_COUNTED = {0: 5, 2: 7, 3: 8}
_DICTIONARY = 2

Take = Callable[[int, int], bytes]


def unfolded_size(metadata: Any, names: list[str], take: Take) -> int:
    """Return the bytes that some columns need in memory.

    Args:
        metadata: The file's metadata, as pyarrow reads it.
        names: Columns; a column of lists is meant by its name.
        take: Gives bytes of the file: from where, how many.

    Raises:
        ValueError: If pages do not fit into the file, or their headers are damaged.
    """
    schema = metadata.schema
    leaves = [
        place
        for place in range(len(schema.names))
        if any(
            schema.column(place).path == name or schema.column(place).path.startswith(f"{name}.")
            for name in names
        )
    ]
    total = 0
    for group in range(metadata.num_row_groups):
        row_group = metadata.row_group(group)
        for place in leaves:
            column = schema.column(place)
            width = _WIDTHS.get(column.physical_type, max(1, column.length))
            # Lists and missing values are told by two small numbers per value.
            width += 4 if column.max_definition_level else 0
            chunk = row_group.column(place)
            if set(chunk.encodings) & set(_ENDLESS):
                raise ValueError(f"`{column.path[:60]}` is packed as {_ENDLESS[0]}, write it without")
            total += sum(max(page.size, page.values * width) for page in _pages(chunk, take))
    return total


@dataclass(frozen=True)
class _Page:
    size: int
    values: int


def _pages(chunk: Any, take: Take) -> Iterator[_Page]:
    """Yield what the pages of one column of one row group claim."""
    place = chunk.data_page_offset
    if chunk.has_dictionary_page and 0 < chunk.dictionary_page_offset < place:
        place = chunk.dictionary_page_offset
    end, seen = place + chunk.total_compressed_size, 0
    while seen < chunk.num_values and place < end:
        header, length = _header(place, end, take)
        # The page's type says which of its parts counts, and dictionaries hold no rows.
        kind, size, packed = (_number(header, field) for field in (1, 2, 3))
        part = header.get(_COUNTED.get(kind, 0))
        values = _number(part, 1) if isinstance(part, dict) else 0
        place += length + packed
        if place > end:
            raise ValueError("a page is larger than its column")
        seen += 0 if kind == _DICTIONARY else values
        yield _Page(size, values)


def _number(fields: dict[int, Any], number: int) -> int:
    value = fields.get(number)
    if not isinstance(value, int) or value < 0:
        raise ValueError("the header of a page is damaged")
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
    """Reads Thrift's compact protocol; texts and lists are passed over."""

    def __init__(self, content: bytes) -> None:
        self._content = content
        self.place = 0

    def struct(self, depth: int = 0) -> dict[int, Any]:
        """Return the numbers and structures of a structure by the numbers of their fields."""
        if depth > _DEEPEST:
            raise ValueError("the header of a page is nested too deeply")
        fields: dict[int, Any] = {}
        number = 0
        while byte := self._byte():
            number = number + (byte >> 4) if byte >> 4 else self._integer()
            kind = byte & 15
            if number in fields:
                raise ValueError("the header of a page is damaged")
            # The truth of a field is told by its type.
            fields[number] = None if kind in (1, 2) else self._value(kind, depth)
        return fields

    def _value(self, kind: int, depth: int) -> Any:
        if kind in (4, 5, 6):
            value = self._integer()
            # Sizes and counts have 32 bits; a reader passes over others.
            return value if kind == 5 else None
        if kind == 12:
            return self.struct(depth + 1)
        if kind in (9, 10):
            byte = self._byte()
            count = self._unsigned() if byte >> 4 == 15 else byte >> 4
            self._skip_all([byte & 15] * min(count, len(self._content)), depth)
        elif kind == 11:
            count = self._unsigned()
            kinds = self._byte() if count else 0
            self._skip_all([kinds >> 4, kinds & 15] * min(count, len(self._content)), depth)
        else:
            self._skip({1: 1, 2: 1, 3: 1, 7: 8, 13: 16}.get(kind) if kind != 8 else self._unsigned())
        return None

    def _skip_all(self, kinds: list[int], depth: int) -> None:
        if depth >= _DEEPEST:
            raise ValueError("the header of a page is nested too deeply")
        for kind in kinds:
            self._value(kind, depth + 1)

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
