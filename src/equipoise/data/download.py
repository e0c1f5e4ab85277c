"""Downloads that are there whole, with the right checksum, or not at all."""

from __future__ import annotations

import hashlib
import shutil
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator
from http.client import HTTPException
from pathlib import Path
from typing import IO
from urllib.parse import urlsplit
from urllib.request import urlopen

from equipoise.core.atomic_files import atomic_path
from equipoise.core.errors import DataError
from equipoise.core.names import look_up
from equipoise.core.progress import progress
from equipoise.data.official import OFFICIAL, Remote

__all__ = ["check_checksum", "download_file", "fetch", "unpack"]

_CHUNK = 1 << 20


def fetch(name: str, root: Path) -> None:
    """Bring a public dataset into the data folder: download, check, unpack; what is there stays.

    Args:
        name: A key of :data:`~equipoise.data.official.OFFICIAL`.
        root: The data folder.

    Raises:
        DataError: If it cannot be downloaded, or a file is not the official one.
    """
    entry = look_up(name, OFFICIAL, what="public dataset")
    if not entry.remotes:
        raise DataError(
            f"{name}: its owners do not offer a free download ({entry.terms or 'no address'}). "
            f"Put into {root}: {entry.wanted[0]}."
        )
    for remote in entry.remotes:
        _fetch_one(remote, root)


def _fetch_one(remote: Remote, root: Path) -> None:
    if remote.unpacks_to and (root / remote.unpacks_to).exists():
        return
    target = root / remote.file
    if target.exists():
        check_checksum(target, remote.checksum)
    else:
        target.parent.mkdir(parents=True, exist_ok=True)
        download_file(remote.url, target, checksum=remote.checksum)
    if remote.unpacks_to:
        unpack(target, root / remote.unpacks_to)


def download_file(url: str, path: Path, *, checksum: str, timeout: float = 60.0) -> None:
    """Download one file with a progress bar; it takes its name only once its checksum is right.

    Args:
        url: An address that begins with http, https or file.
        path: Where it shall stand.
        checksum: ``"md5:..."`` or ``"sha256:..."``.
        timeout: Seconds without an answer.

    Raises:
        DataError: If the download fails or the checksum is wrong; nothing is left behind.

    Example:
        >>> folder = Path(tempfile.mkdtemp())
        >>> _ = (folder / "a").write_bytes(b"whole")
        >>> md5 = "md5:" + hashlib.md5(b"whole").hexdigest()
        >>> download_file((folder / "a").as_uri(), folder / "b", checksum=md5)
        >>> (folder / "b").read_bytes()
        b'whole'
    """
    if urlsplit(url).scheme not in ("http", "https", "file"):
        raise ValueError(f"download_file: `url` must begin with http, https or file, got {url!r}.")
    digest = _hasher(checksum)
    with atomic_path(path) as temporary:
        try:
            with urlopen(url, timeout=timeout) as source, temporary.open("wb") as out:  # noqa: S310 checked above
                size = int(source.headers.get("Content-Length") or 0)
                total = -(-size // _CHUNK) if size else None
                received = 0
                for chunk in progress(_chunks(source), label=path.name, total=total, unit="MB"):
                    out.write(chunk)
                    digest.update(chunk)
                    received += len(chunk)
        except (OSError, HTTPException) as error:
            raise DataError(
                f"{url}: the download failed ({error}). Try again, or get the file by hand."
            ) from error
        if size and received != size:
            raise DataError(f"{url}: {size} bytes were announced, {received} came. Try again.")
        _compare(digest.hexdigest(), checksum, url)


def check_checksum(path: Path, checksum: str) -> None:
    """Raise unless a file has a checksum.

    Args:
        path: The file.
        checksum: ``"md5:..."`` or ``"sha256:..."``.

    Raises:
        DataError: If it has another; the file is named.

    Example:
        >>> file = Path(tempfile.mkdtemp()) / "a"
        >>> _ = file.write_bytes(b"whole")
        >>> check_checksum(file, "md5:" + hashlib.md5(b"whole").hexdigest())
    """
    digest = _hasher(checksum)
    with path.open("rb") as stream:
        for chunk in _chunks(stream):
            digest.update(chunk)
    _compare(digest.hexdigest(), checksum, str(path))


def unpack(archive: Path, goal: Path) -> None:
    """Unpack a tar or zip archive so that ``goal`` is there whole or not at all.

    Args:
        archive: The file; the name of its top folder or file must be that of ``goal``.
        goal: The folder or file that shall stand in the data folder afterwards.

    Raises:
        DataError: If the archive is damaged, leaves its folder, or does not hold ``goal``.
    """
    work = Path(tempfile.mkdtemp(dir=goal.parent, prefix=".unpacking-"))
    try:
        if zipfile.is_zipfile(archive):
            with zipfile.ZipFile(archive) as zipped:
                names = [name for name in zipped.namelist() if name.split("/")[0] == goal.name]
                for name in progress(names, label=f"unpacking {archive.name}", unit="files"):
                    zipped.extract(name, work)
        else:
            with tarfile.open(archive) as tarred:
                for member in progress(tarred, label=f"unpacking {archive.name}", unit="files"):
                    tarred.extract(member, work, filter="data")
        if not (work / goal.name).exists():
            raise DataError(
                f"{archive}: expected {goal.name} inside, and it is not there. Get the archive again."
            )
        (work / goal.name).replace(goal)
    except (tarfile.TarError, zipfile.BadZipFile, EOFError, OSError) as error:
        raise DataError(f"{archive}: cannot be unpacked ({error}). Get the archive again.") from error
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _chunks(source: IO[bytes]) -> Iterator[bytes]:
    while chunk := source.read(_CHUNK):
        yield chunk


def _hasher(checksum: str) -> hashlib._Hash:
    kind, _, value = checksum.partition(":")
    if kind not in ("md5", "sha256") or not value:
        raise ValueError(f"`checksum` must be 'md5:...' or 'sha256:...', got {checksum!r}.")
    # MD5 is what the owners publish; it guards against damage, not against malice.
    return hashlib.new(kind, usedforsecurity=False)


def _compare(found: str, checksum: str, where: str) -> None:
    wanted = checksum.partition(":")[2].lower()
    if found != wanted:
        raise DataError(
            f"{where}: the checksum must be {checksum}, got {found}. The file is damaged or not the "
            "official one; "
            "delete it and get it again."
        )
