"""MNIST and Fashion-MNIST, from idx files or one .npz file."""

from __future__ import annotations

import gzip
import math
import os
import struct
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from equipoise.core.errors import DataError
from equipoise.data.arrays import as_images, from_arrays
from equipoise.data.dataset import Dataset
from equipoise.data.folders import check_count, file_record, missing, open_root
from equipoise.data.official import OFFICIAL
from equipoise.data.readers.class_names import DIGITS, FASHION_MNIST
from equipoise.data.readers.npz import read_train_and_test
from equipoise.data.row_splits import official_splits

__all__ = ["fashion_mnist", "mnist", "read_idx"]

_STEMS = (
    "train-images-idx3-ubyte",
    "train-labels-idx1-ubyte",
    "t10k-images-idx3-ubyte",
    "t10k-labels-idx1-ubyte",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Facts:
    """What tells one dataset in the idx format from another."""

    name: str
    title: str
    shows: str
    class_names: tuple[str, ...]
    mean: float
    std: float
    paper: str


def _reader(facts: _Facts) -> Callable[..., Dataset]:
    def read(
        *,
        root: str | os.PathLike[str] | None = None,
        seed: int = 0,
        download: bool = False,
        tune: int = 2_500,
        calib: int = 2_500,
    ) -> Dataset:
        folder = open_root(root, name=facts.name, download=download)
        return _read(facts, folder, seed=seed, tune=tune, calib=calib)

    read.__name__ = read.__qualname__ = facts.name
    read.__doc__ = f"""Read {facts.title}: 28 x 28 gray images of {facts.shows}.

    Args:
        root: The data folder; by default the environment variable ``EQUIPOISE_DATA``.
        seed: Of the splits.
        download: Bring it if it is not there.
        tune: Size of ``tune``.
        calib: Size of ``calib``.

    Returns:
        70,000 images, training images first.

    Raises:
        DataError: If it is not there, or a file is wrong or truncated.

    Example:
        >>> {facts.name}(root=".")
        Traceback (most recent call last):
        ...
        equipoise.core.errors.DataError: {facts.name}: not found in .. Put there {facts.name}/ with ...

    Reference:
        {facts.paper}
    """
    return read


mnist = _reader(
    _Facts(
        name="mnist",
        title="MNIST",
        shows="handwritten digits",
        class_names=DIGITS,
        mean=0.1307,
        std=0.3081,
        paper="LeCun et al. (1998), Gradient-based learning applied to document recognition.",
    )
)

fashion_mnist = _reader(
    _Facts(
        name="fashion_mnist",
        title="Fashion-MNIST",
        shows="clothes",
        class_names=FASHION_MNIST,
        mean=0.2860,
        std=0.3530,
        paper="Xiao, Rasul and Vollgraf (2017), Fashion-MNIST.",
    )
)


def _read(facts: _Facts, root: Path, *, seed: int, tune: int, calib: int) -> Dataset:
    name, counts = facts.name, OFFICIAL[facts.name].counts
    files = [_find(root / name, stem) for stem in _STEMS]
    packed = root / f"{name}.npz"
    if all(file is None for file in files):
        if not packed.is_file():
            raise missing(name, root)
        images, labels = read_train_and_test(packed, counts=counts, shape=(28, 28))
        used = [packed]
    else:
        absent = [stem for stem, file in zip(_STEMS, files, strict=True) if file is None]
        if absent:
            raise DataError(f"{root / name}: {', '.join(absent)} (plain or .gz) is missing. Put it there.")
        used = [file for file in files if file is not None]
        images, labels = _read_four(used, counts)
    numbers = torch.from_numpy(labels)
    return from_arrays(
        as_images(images),
        numbers,
        name=name,
        class_names=facts.class_names,
        splits=dict(official_splits(numbers, counts[0], tune=tune, calib=calib, seed=seed)),
        mean=(facts.mean,),
        std=(facts.std,),
        provenance=tuple(file_record(file, root) for file in used),
    )


def _find(folder: Path, stem: str) -> Path | None:
    options = (folder / stem, folder / f"{stem}.gz")
    return next((path for path in options if path.is_file()), None)


def _read_four(files: list[Path], counts: tuple[int, int]) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    parts = [read_idx(file, n_dims=3 if place % 2 == 0 else 1) for place, file in enumerate(files)]
    for place, (file, part) in enumerate(zip(files, parts, strict=True)):
        check_count(len(part), counts[place // 2], where=str(file), what="records")
        if part.ndim == 3 and part.shape[1:] != (28, 28):
            raise DataError(
                f"{file}: expected images of 28 x 28, got {part.shape[1:]}. Is it another dataset?"
            )
    return np.concatenate(parts[::2]), np.concatenate(parts[1::2]).astype(np.int64)


def read_idx(path: Path, *, n_dims: int) -> NDArray[np.uint8]:
    """Read a file in the idx format, plain or gzipped.

    Args:
        path: The file; it is unzipped if its name ends in .gz.
        n_dims: How many dimensions it must have.

    Returns:
        An array of bytes.

    Raises:
        DataError: If it does not begin as such a file does, or is shorter or longer than it says.
    """
    try:
        raw = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"{path}: expected a gzipped file, got {error}. Get it again.") from error
    head = 4 + 4 * n_dims
    if len(raw) < head or raw[:3] != b"\x00\x00\x08" or raw[3] != n_dims:
        raise DataError(
            f"{path}: expected an idx file of bytes with {n_dims} dimensions, but it begins with "
            f"{raw[:4].hex()!r}. "
            "Is it the right file?"
        )
    shape = struct.unpack(f">{n_dims}I", raw[4:head])
    if len(raw) - head != math.prod(shape):
        raise DataError(
            f"{path}: says it holds {math.prod(shape)} bytes, has {len(raw) - head}. It is truncated; get "
            "it again."
        )
    return np.frombuffer(raw, dtype=np.uint8, offset=head).reshape(shape)
