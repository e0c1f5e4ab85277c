"""Files by address: on S3, Google Cloud Storage and whatever else pyarrow has a file system for."""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path, PurePath, PurePosixPath
from typing import Any, NamedTuple, TypeAlias, final
from urllib.parse import quote

from equipoise.core.errors import DataError, first_line, require
from equipoise.core.escaping import without_secrets

__all__ = ["Address", "File", "Found", "files_at", "is_address", "is_row_file"]

_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")
_PIECE = 8 << 20


def is_address(path: object) -> bool:
    """Say whether a text is an address rather than a path.

    Example:
        >>> is_address("s3://bucket/rows.parquet"), is_address("C:/rows.parquet"), is_address("rows.parquet")
        (True, False, False)
    """
    return isinstance(path, str) and _ADDRESS.match(path) is not None


@final
@dataclass(frozen=True)
class Address:
    """One file on a storage; it is opened like a :class:`pathlib.Path`, and may be sent to another process.

    Attributes:
        path: Its place on the storage.
        shown: Its address for messages, without secrets.
        system: The file system, one of pyarrow's.
    """

    path: str
    shown: str
    system: Any = field(repr=False)

    @property
    def name(self) -> str:
        """The last part of the address."""
        return PurePosixPath(self.path).name

    @property
    def suffix(self) -> str:
        """The ending of the name."""
        return PurePosixPath(self.path).suffix

    def open(self, mode: str = "rb", buffering: int = 0) -> Any:
        """Return a copy of the file on this machine, which is gone when it is closed.

        A file is read in many small pieces, forwards and back, each of which would be a request; and it must not
        change meanwhile. So it is fetched once, and what guards files guards the copy.

        Raises:
            DataError: If it cannot be fetched, changes meanwhile, or the disk is too full for it.
        """
        copy = tempfile.NamedTemporaryFile()  # noqa: SIM115 - whoever reads it closes it
        try:
            with _short_errors(self.shown):
                self._fetch(copy)
        except BaseException:
            copy.close()
            raise
        return copy

    def _fetch(self, copy: Any) -> None:
        before = self._look()
        free = shutil.disk_usage(tempfile.gettempdir()).free
        if before[0] > free:
            raise DataError(
                f"{self.shown}: has {before[0]} bytes, and {tempfile.gettempdir()} has {free} bytes free. "
                "Set TMPDIR to a folder with more."
            )
        with self.system.open_input_stream(self.path, compression=None) as stream:
            shutil.copyfileobj(stream, copy, _PIECE)
        if copy.tell() != before[0] or self._look() != before:
            raise DataError(f"{self.shown} has changed while it was read. Read it again when it is complete.")
        copy.seek(0)

    def _look(self) -> tuple[int, int | None]:
        found = self.system.get_file_info(self.path)
        if not found.is_file:
            raise DataError(f"{self.shown}: there is no such file.")
        return found.size, found.mtime_ns


#: A file on this machine, or elsewhere.
File: TypeAlias = Path | Address


class Found(NamedTuple):
    """A file under an address.

    Attributes:
        file: Where it is.
        below: Its path below what does not vary: the folder named, or the folders before a pattern.
    """

    file: Address
    below: PurePosixPath


def files_at(address: str) -> list[Found] | str:
    """Return the files that an address stands for, sorted; or the path or pattern, if it is one of this machine.

    Args:
        address: Of a file, of a folder of Parquet files, or with ``*`` and ``[...]`` in its path. What follows a ``?``
            are options of the file system, such as ``region=eu-west-1`` or ``endpoint_override=localhost:9000``.

    Raises:
        DataError: If there is nothing, or the storage cannot be reached.
        MissingExtraError: If pyarrow is not installed.
    """
    place, mark, options = address.partition("?")
    scheme, _, rest = place.partition("://")
    parts = rest.rstrip("/").split("/")
    fixed = next((n for n, part in enumerate(parts) if set("*[") & set(part)), len(parts))
    shown = without_secrets(place)
    if fixed == 0:
        raise DataError(f"{shown}: a pattern must begin with a name, such as a bucket's.")
    system, base = _resolved(f"{scheme}://{'/'.join(parts[:fixed])}{mark}{options}", shown)
    pattern = parts[fixed:]
    if system.type_name == "local":
        return "/".join([base.rstrip("/"), *pattern]) if pattern else base
    with _short_errors(shown):
        if not pattern and system.get_file_info(base).is_file:
            return [Found(Address(base, shown, system), PurePosixPath())]
        found = _listed(system, base, deep=len(pattern) != 1)
    root = "/".join(shown.split("/")[: len(shown.split("/")) - len(pattern)]).rstrip("/")
    kept = [
        Found(Address(path, f"{root}/{below}", system), below)
        for path, below in found
        if (_matches(below, pattern) if pattern else is_row_file(below))
    ]
    if not kept:
        what = "no file matches this pattern" if pattern else "there is no such file or folder"
        raise DataError(f"{shown}: {what}. Pass a file, a pattern, or a folder that holds .parquet files.")
    return sorted(kept, key=lambda one: one.below)


def _resolved(address: str, shown: str) -> tuple[Any, str]:
    fs = require("pyarrow.fs", extra="remote", purpose="read files by address")
    if address.startswith("fsspec+"):
        require("fsspec", extra="remote", purpose="read addresses that begin with fsspec+")
    with _short_errors(shown):
        system, base = fs.FileSystem.from_uri(quote(address, safe=":/?#[]@!$&'()*+,;=%~"))
    return system, str(base)


def _listed(system: Any, base: str, *, deep: bool) -> list[tuple[str, PurePosixPath]]:
    fs = require("pyarrow.fs", extra="remote", purpose="read files by address")
    infos = system.get_file_info(fs.FileSelector(base, allow_not_found=True, recursive=deep))
    inner = base.strip("/")
    return [
        (info.path, PurePosixPath(info.path.strip("/")[len(inner) :].strip("/")))
        for info in infos
        if info.is_file
    ]


def _matches(below: PurePosixPath, pattern: list[str]) -> bool:
    return len(below.parts) == len(pattern) and all(map(fnmatchcase, below.parts, pattern))


def is_row_file(below: PurePath) -> bool:
    """Say whether a file below a folder is a part of a table: Parquet, in folders called ``name=value`` or in none.

    Example:
        >>> [is_row_file(PurePosixPath(name)) for name in ("day=1/a.parquet", "old/a.parquet", "_SUCCESS")]
        [True, False, False]
    """
    in_table = all("=" in folder for folder in below.parts[:-1])
    return in_table and below.suffix.lower() == ".parquet" and not below.name.startswith(("_", "."))


@contextmanager
def _short_errors(shown: str) -> Iterator[None]:
    """Report errors of a file system in one line, without secrets that the address may contain."""
    try:
        yield
    except DataError:
        raise
    except (OSError, ValueError, NotImplementedError, ImportError) as error:
        reason = without_secrets(first_line(error, most=None))[:200]
        raise DataError(f"{shown}: cannot be read ({reason}).") from None
