"""Records on disk: plain values and arrays in one file, versioned, with a digest, never a pickle."""

from __future__ import annotations

import io
import json
import struct
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from equipoise.core.arrays import Array
from equipoise.core.atomic_files import write_bytes
from equipoise.core.checksums import content_checksum
from equipoise.core.errors import DataError, first_line
from equipoise.core.reading.files import AnyPath
from equipoise.core.reading.formats.immutable_file import check_growth
from equipoise.core.reading.formats.npy import read_header

__all__ = [
    "RECORD_ENDINGS",
    "Record",
    "check_record_ending",
    "digest_of",
    "is_record",
    "read_record",
    "write_record",
]

#: Endings of records: an archive of arrays, as NumPy reads it too, under two names; or text.
RECORD_ENDINGS = (".state", ".npz", ".json")
_HEAD = "equipoise.json"
_LARGEST_TEXT = 1 << 28
_TYPES = ("<f8", "<i8")
#: The same content gives the same bytes on every day.
_DATE = (1980, 1, 1, 0, 0, 0)
_DAMAGE = (
    ValueError, TypeError, KeyError, AttributeError, IndexError, OverflowError, RecursionError, EOFError,
    NotImplementedError, RuntimeError, MemoryError, struct.error, zlib.error, zipfile.BadZipFile,
)  # fmt: skip


class Record(NamedTuple):
    """What a file holds.

    Attributes:
        plain: Values that JSON can hold.
        arrays: Arrays of 64-bit numbers, by name.
    """

    plain: Mapping[str, Any]
    arrays: Mapping[str, Array]


def digest_of(kind: str, version: int, record: Record) -> str:
    """Return a digest over everything in a record.

    Example:
        >>> len(digest_of("doc", 1, Record({"a": 1}, {"b": np.zeros(2)})))
        64
    """
    return content_checksum([kind, version, record.plain, record.arrays])


def write_record(path: AnyPath, kind: str, version: int, record: Record) -> None:
    """Write a record, whole or not at all; the ending of the name decides the form.

    Args:
        path: Where to: ``.state`` or ``.npz`` for an archive, ``.json`` for text.
        kind: What it is, as in ``"equipoise.audit"``.
        version: The version of its layout.
        record: What to write; arrays are 64-bit floats or integers.

    Raises:
        DataError: For another ending.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "a.json"
        >>> write_record(path, "doc", 1, Record({"a": 1}, {"b": np.array([0.1, 0.2])}))
        >>> read_record(path, "doc", 1).arrays["b"]
        array([0.1, 0.2])
    """
    target = Path(path)
    check_record_ending(target)
    head = {"format": kind, "version": version, "plain": record.plain}
    head["digest"] = digest_of(kind, version, record)
    if target.suffix.lower() == ".json":
        head["arrays"] = {
            name: {"type": array.dtype.str, "shape": list(array.shape), "values": array.ravel().tolist()}
            for name, array in record.arrays.items()
        }
        write_bytes(target, (json.dumps(head, allow_nan=False) + "\n").encode())
        return
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(_entry(_HEAD), json.dumps(head, allow_nan=False))
        for name, array in record.arrays.items():
            stream = io.BytesIO()
            np.lib.format.write_array(stream, np.ascontiguousarray(array), allow_pickle=False)
            archive.writestr(_entry(f"{name}.npy"), stream.getvalue())
    write_bytes(target, content.getvalue())


def _entry(name: str) -> zipfile.ZipInfo:
    entry = zipfile.ZipInfo(name, _DATE)
    entry.compress_type = zipfile.ZIP_DEFLATED
    return entry


def check_record_ending(path: Path) -> None:
    """Raise unless a file of this name can hold a record.

    Raises:
        DataError: With the endings that can.

    Example:
        >>> check_record_ending(Path("monday.state"))
    """
    if path.suffix.lower() not in RECORD_ENDINGS:
        raise DataError(
            f"{path.name}: the ending must be {', '.join(RECORD_ENDINGS[:-1])} or {RECORD_ENDINGS[-1]}, "
            f"got {path.suffix or 'none'}. Rename it."
        )


def is_record(path: AnyPath) -> bool:
    """Say whether a file is a record of ours rather than a table: by its ending, an .npz by what is in it.

    Example:
        >>> is_record("monday.state"), is_record("rows.csv")
        (True, False)
    """
    target = Path(path)
    ending = target.suffix.lower()
    if ending != ".npz":
        return ending in RECORD_ENDINGS
    try:
        with zipfile.ZipFile(target) as archive:
            return _HEAD in archive.namelist()
    except (OSError, *_DAMAGE):
        return False  # whoever reads it as a table says what is wrong with it


def read_record(path: AnyPath, kind: str, version: int, *, remedy: str = "Write it again.") -> Record:
    """Read a record and check that it is whole and of the expected kind.

    Args:
        path: The file.
        kind: What it must be.
        version: The newest version that is known.
        remedy: What to do about a damaged file; the last sentence of the message.

    Raises:
        DataError: If it cannot be read, is something else, is newer, or was changed since it was written.

    Example:
        >>> read_record("missing.state", "doc", 1)
        Traceback (most recent call last):
        ...
        equipoise.core.errors.DataError: missing.state: cannot be read (No such file or directory).
    """
    target = Path(path)
    check_record_ending(target)
    try:
        head, arrays = _content(target)
        return _checked(head, arrays, target.name, kind, version, remedy)
    except DataError:
        raise
    except OSError as error:
        raise DataError(f"{target.name}: cannot be read ({error.strerror or error}).") from None
    except _DAMAGE as error:
        raise DataError(
            f"{target.name}: is cut off, damaged, or no saved state ({first_line(error)}). {remedy}"
        ) from None


def _content(path: Path) -> tuple[Mapping[str, Any], dict[str, Array]]:
    size = path.stat().st_size
    if path.suffix.lower() == ".json":
        check_growth(size, size=size, max_bytes=_LARGEST_TEXT, where=path.name)
        head = json.loads(path.read_bytes())
        listed = head.pop("arrays")
        return head, {
            name: np.array(one["values"], _type(one["type"])).reshape(one["shape"])
            for name, one in listed.items()
        }
    with zipfile.ZipFile(path) as archive:
        check_growth(
            sum(entry.file_size for entry in archive.infolist()), size=size, max_bytes=None, where=path.name
        )
        head = json.loads(archive.read(_HEAD))
        arrays = {}
        for name in archive.namelist():
            if name != _HEAD:
                arrays[name.removesuffix(".npy")] = _array(archive.read(name), f"{path.name}: `{name[:60]}`")
    return head, arrays


def _array(content: bytes, where: str) -> Array:
    """Return the array that some bytes hold; its shape is compared with their number before memory is allocated."""
    header = read_header(io.BytesIO(content), where=where)
    _type(header.dtype.str)
    held = len(content) - header.offset
    if held != header.n_bytes:
        raise DataError(
            f"{where} is damaged: expected {header.n_bytes} bytes of numbers for the shape {header.shape}, got {held}. "
            "Write it again."
        )
    values = np.frombuffer(content, header.dtype, offset=header.offset).copy()
    return values.reshape(header.shape, order="F" if header.fortran_order else "C")


def _type(name: str) -> str:
    if name not in _TYPES:
        raise ValueError(f"numbers of type {name!r} are not kept in records")
    return name


def _checked(
    head: Mapping[str, Any], arrays: Mapping[str, Array], where: str, kind: str, version: int, remedy: str
) -> Record:
    if head["format"] != kind:
        raise DataError(f"{where}: expected {kind!r}, got {str(head['format'])[:60]!r}. Name another file.")
    if type(head["version"]) is not int or not 0 < head["version"] <= version:
        raise DataError(
            f"{where}: has version {str(head['version'])[:20]}, this package reads up to {version}. "
            "Upgrade equipoise."
        )
    record = Record(head["plain"], arrays)
    if not isinstance(record.plain, dict) or head["digest"] != digest_of(kind, head["version"], record):
        raise DataError(
            f"{where}: was changed or damaged since it was written: its content does not match its digest. "
            f"{remedy}"
        )
    return record
