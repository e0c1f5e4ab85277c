"""CIFAR-10 and CIFAR-100, from the binary batches or one .npz file."""

from __future__ import annotations

import os
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
from equipoise.data.readers.class_names import CIFAR10, CIFAR100
from equipoise.data.readers.npz import read_train_and_test
from equipoise.data.row_splits import official_splits

__all__ = ["cifar10", "cifar100", "read_binary_batch"]

_PIXELS = 3 * 32 * 32
#: Means and spreads that the focal-calibration code uses for both datasets.
MEAN, STD = (0.4914, 0.4822, 0.4465), (0.2023, 0.1994, 0.2010)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Facts:
    """What tells CIFAR-10 and CIFAR-100 apart."""

    name: str
    title: str
    class_names: tuple[str, ...]
    python: str
    binary: str
    train: tuple[str, ...]
    test: str
    label_bytes: int


def _reader(facts: _Facts) -> Callable[..., Dataset]:
    def read(
        *,
        root: str | os.PathLike[str] | None = None,
        seed: int = 0,
        download: bool = False,
        recipe: str = "stratified",
        tune: int = 2_500,
        calib: int = 2_500,
    ) -> Dataset:
        folder = open_root(root, name=facts.name, download=download)
        return _read(facts, folder, seed=seed, recipe=recipe, tune=tune, calib=calib)

    read.__name__ = read.__qualname__ = facts.name
    read.__doc__ = f"""Read {facts.title}: 32 x 32 color images of {len(facts.class_names)} things.

    The papers train on 45,000 images and hold 5,000 out; here the 5,000 are halved into ``tune`` and
    ``calib``.

    Args:
        root: The data folder; by default the environment variable ``EQUIPOISE_DATA``.
        seed: Of the splits.
        download: Bring it if it is not there.
        recipe: ``"stratified"``, or ``"focal"`` for the held-out rows of the focal-calibration code.
        tune: Size of ``tune``.
        calib: Size of ``calib``.

    Returns:
        60,000 images, training images first; of CIFAR-100 the fine labels.

    Raises:
        DataError: If it is not there, or a file is wrong or truncated.

    Example:
        >>> {facts.name}(root=".")
        Traceback (most recent call last):
        ...
        equipoise.core.errors.DataError: {facts.name}: not found in .. Put there {facts.binary}/ ...

    Reference:
        Krizhevsky (2009), Learning Multiple Layers of Features from Tiny Images.
    """
    return read


cifar10 = _reader(
    _Facts(
        name="cifar10",
        title="CIFAR-10",
        class_names=CIFAR10,
        python="cifar-10-batches-py",
        binary="cifar-10-batches-bin",
        train=tuple(f"data_batch_{number}" for number in range(1, 6)),
        test="test_batch",
        label_bytes=1,
    )
)

cifar100 = _reader(
    _Facts(
        name="cifar100",
        title="CIFAR-100",
        class_names=CIFAR100,
        python="cifar-100-python",
        binary="cifar-100-binary",
        train=("train",),
        test="test",
        label_bytes=2,
    )
)


def _read(facts: _Facts, root: Path, *, seed: int, recipe: str, tune: int, calib: int) -> Dataset:
    name, counts = facts.name, OFFICIAL[facts.name].counts
    if (root / facts.binary).is_dir():
        images, labels, files = _read_batches(facts, root, counts)
    elif (root / f"{name}.npz").is_file():
        files = [root / f"{name}.npz"]
        images, labels = read_train_and_test(files[0], counts=counts, shape=(32, 32, 3))
    elif (root / facts.python).is_dir():
        raise DataError(
            f"{name}: {root / facts.python} holds pickles, which can run code and are not read. Put the binary version "
            f"there, {facts.binary}/, or pass download=True (on the command line, --download)."
        )
    else:
        raise missing(name, root)
    numbers = torch.from_numpy(labels)
    splits = official_splits(numbers, counts[0], tune=tune, calib=calib, seed=seed, recipe=recipe)
    return from_arrays(
        as_images(images),
        numbers,
        name=name,
        class_names=facts.class_names,
        splits=dict(splits),
        mean=MEAN,
        std=STD,
        provenance=tuple(file_record(file, root) for file in files),
    )


def _read_batches(
    facts: _Facts, root: Path, counts: tuple[int, int]
) -> tuple[NDArray[np.uint8], NDArray[np.int64], list[Path]]:
    files = [root / facts.binary / f"{name}.bin" for name in (*facts.train, facts.test)]
    sizes = [counts[0] // len(facts.train)] * len(facts.train) + [counts[1]]
    images = np.empty((sum(counts), 32, 32, 3), dtype=np.uint8)
    labels = np.empty(sum(counts), dtype=np.int64)
    start = 0
    for file, size in zip(files, sizes, strict=True):
        if not file.is_file():
            raise DataError(f"{file}: no such file, though its folder is there. Unpack the archive again.")
        planes, numbers = read_binary_batch(file, label_bytes=facts.label_bytes)
        check_count(len(planes), size, where=str(file))
        images[start : start + size] = planes.transpose(0, 2, 3, 1)
        labels[start : start + size] = numbers
        start += size
    return images, labels, files


def read_binary_batch(path: Path, *, label_bytes: int) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Read one batch of the binary version.

    Args:
        path: The file.
        label_bytes: 1 for CIFAR-10; 2 for CIFAR-100, where the second byte is the fine label.

    Returns:
        Images ``(n, 3, 32, 32)`` and labels ``(n,)``.

    Raises:
        DataError: If the file is not a whole number of records.
    """
    raw = np.fromfile(path, dtype=np.uint8)
    record = label_bytes + _PIXELS
    if raw.size == 0 or raw.size % record:
        raise DataError(
            f"{path}: the size must be a multiple of {record} bytes, got {raw.size}. It is truncated; get "
            "it again."
        )
    records = raw.reshape(-1, record)
    return records[:, label_bytes:].reshape(-1, 3, 32, 32), records[:, label_bytes - 1].astype(np.int64)
