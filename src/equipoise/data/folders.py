"""The data folder: where it is, what is in it, and what to say when something is not."""

from __future__ import annotations

import hashlib
import os
import zipfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from equipoise.core.checksums import file_checksum
from equipoise.core.errors import DataError
from equipoise.core.reading.formats.npy import NpyReader
from equipoise.core.reading.formats.npz import NpzReader
from equipoise.data.dataset import FileRecord
from equipoise.data.download import fetch
from equipoise.data.official import OFFICIAL

__all__ = [
    "check_count",
    "file_record",
    "listing_record",
    "missing",
    "open_root",
    "read_npy",
    "read_npz_arrays",
]


def open_root(
    root: str | os.PathLike[str] | None, *, name: str, download: bool = False, make: bool = False
) -> Path:
    """Return the data folder, with the dataset in it if a download is wanted.

    Args:
        root: The folder; by default the environment variable ``EQUIPOISE_DATA``.
        name: The dataset, for the message and the download.
        download: Bring what is missing.
        make: Make the folder if there is none.

    Returns:
        A folder that exists.

    Raises:
        DataError: If there is no folder.

    Example:
        >>> open_root(".", name="cifar10")
        PosixPath('.')
    """
    chosen = root if root is not None else os.environ.get("EQUIPOISE_DATA")
    if not chosen:
        raise DataError(
            "no data folder is given. Pass {root}, or set the environment variable EQUIPOISE_DATA.",
            where=name,
            arguments={"root": "FOLDER"},
        )
    folder = Path(chosen).expanduser()
    if download or make:
        folder.mkdir(parents=True, exist_ok=True)
    if download:
        fetch(name, folder)
    if not folder.is_dir():
        raise DataError(
            f"the data folder {folder} does not exist. Make it, or pass another {{root}}.",
            where=name,
            arguments={"root": ""},
        )
    return folder


def missing(name: str, root: Path) -> DataError:
    """Return the error for a dataset that is not in the data folder: what to put where.

    Example:
        >>> print(missing("svhn", Path("data")))
        svhn: not found in data. Put there svhn/train_32x32.mat and svhn/test_32x32.mat; or pass
            download=True.
    """
    entry = OFFICIAL[name]
    waiting = [remote.file for remote in entry.remotes if remote.unpacks_to and (root / remote.file).exists()]
    remedy = "; or pass download=True" if entry.remotes else f" ({entry.terms})" if entry.terms else ""
    if waiting:
        remedy = f"; or pass download=True to check and unpack {waiting[0]}, which is there"
    return DataError(f"{name}: not found in {root}. Put there {'; or '.join(entry.wanted)}{remedy}.")


def file_record(path: Path, root: Path) -> FileRecord:
    """Return name, size and SHA-256 of a file.

    Example:
        >>> import tempfile
        >>> folder = Path(tempfile.mkdtemp())
        >>> _ = (folder / "a").write_bytes(b"abc")
        >>> file_record(folder / "a", folder).sha256[:8]
        'ba7816bf'
    """
    return FileRecord(path=_relative(path, root), size=path.stat().st_size, sha256=file_checksum(path))


def listing_record(folder: Path, paths: Iterable[str], root: Path) -> FileRecord:
    """Return a record of a folder of many files, from their names and sizes.

    Example:
        >>> listing_record(Path("."), [], Path(".")).size
        0
    """
    digest, total = hashlib.sha256(), 0
    for path in paths:
        size = (folder / path).stat().st_size if (folder / path).exists() else -1
        digest.update(f"{path}\0{size}\n".encode())
        total += max(size, 0)
    return FileRecord(path=_relative(folder, root), size=total, sha256=digest.hexdigest())


def _relative(path: Path, root: Path) -> str:
    return path.relative_to(root).as_posix() if path.is_relative_to(root) else path.name


def check_count(found: int, wanted: int, *, where: str, what: str = "images") -> None:
    """Raise unless a file holds as many samples as it should.

    Example:
        >>> check_count(10, 10, where="a.bin")
    """
    if found != wanted:
        raise DataError(
            f"{where}: expected {wanted} {what}, got {found}. The file is truncated or another one; "
            "get it again."
        )


def read_npy(path: Path) -> NDArray[Any]:
    """Read a .npy file that holds numbers only.

    Raises:
        DataError: If it is damaged, or holds Python objects, which could run code.

    Example:
        >>> import tempfile
        >>> import numpy as np
        >>> file = Path(tempfile.mkdtemp()) / "a.npy"
        >>> np.save(file, np.arange(3))
        >>> read_npy(file)
        array([0, 1, 2])
    """
    try:
        with NpyReader({"array": path}) as reader:
            return _whole(reader, "array")
    except OSError as error:
        raise DataError(
            f"{path}: expected a .npy file of numbers, got {error}. Get the file again."
        ) from error


def _whole(reader: NpyReader | NpzReader, name: str) -> NDArray[Any]:
    """Return an array; the length of its header and the bytes behind it were compared before."""
    shape = reader.shape_of(name)
    values: NDArray[Any] = reader.rows_of(name)(0, shape[0] if shape else 1)
    return values.reshape(shape)


def read_npz_arrays(path: Path, keys: Iterable[str] | None = None) -> dict[str, NDArray[Any]]:
    """Read arrays of a .npz file that hold numbers or text only.

    Args:
        path: The file.
        keys: The arrays wanted; all by default.

    Returns:
        Arrays by name.

    Raises:
        DataError: If the file is damaged, an array is missing, or holds Python objects, which could run code.

    Example:
        >>> import tempfile
        >>> import numpy as np
        >>> file = Path(tempfile.mkdtemp()) / "a.npz"
        >>> np.savez(file, x=np.arange(3))
        >>> read_npz_arrays(file)["x"]
        array([0, 1, 2])
    """
    if not zipfile.is_zipfile(path):
        raise DataError(
            f"{path}: expected a .npz file, got something else or only its beginning. Get it again."
        )
    try:
        with NpzReader(path) as reader:
            held = list(reader.row_shapes)
            names = list(held if keys is None else keys)
            absent = [name for name in names if name not in held]
            if absent:
                raise DataError(
                    f"{path}: must hold {', '.join(names)}, got {', '.join(held)}. Save them all."
                )
            reader.check_arrays(names)
            return {name: _whole(reader, name) for name in names}
    except OSError as error:
        raise DataError(
            f"{path}: expected a .npz file of plain arrays, got {error}. Get it again."
        ) from error
