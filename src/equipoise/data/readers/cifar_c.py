"""CIFAR-10-C and CIFAR-100-C: the test images, corrupted in many ways at five severities."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from equipoise.core.errors import DataError
from equipoise.core.names import look_up
from equipoise.data.arrays import as_images, from_arrays
from equipoise.data.dataset import Dataset
from equipoise.data.folders import check_count, file_record, missing, open_root, read_npy
from equipoise.data.official import OFFICIAL
from equipoise.data.readers.cifar import MEAN, STD
from equipoise.data.readers.class_names import CIFAR10, CIFAR100

__all__ = ["cifar10c", "cifar100c"]

_LEVELS = 5


def _reader(name: str, base: str, class_names: tuple[str, ...]) -> Callable[..., Dataset]:
    def read(
        *,
        root: str | os.PathLike[str] | None = None,
        download: bool = False,
        corruption: str = "gaussian_noise",
        severity: int | None = 5,
        seed: int = 0,
    ) -> Dataset:
        folder = open_root(root, name=name, download=download)
        return _read(
            name, folder, base=base, class_names=class_names, corruption=corruption, severity=severity
        )

    read.__name__ = read.__qualname__ = name
    read.__doc__ = f"""Read one corruption of {base}; all rows are ``test``.

    Args:
        root: The data folder; by default the environment variable ``EQUIPOISE_DATA``.
        download: Bring it if it is not there (2.9 GB).
        corruption: The name of a file in the folder, without its ending.
        severity: 1 to 5; None gives all five, one after the other.
        seed: Not used: nothing is random here.

    Returns:
        10,000 images in the order of the {base.removesuffix("-C")} test set, for each severity.

    Raises:
        DataError: If it is not there, or a file is wrong or truncated.

    Example:
        >>> {name}(root=".")
        Traceback (most recent call last):
        ...
        equipoise.core.errors.DataError: {name}: not found in .. Put there {base}/ with ...

    Reference:
        Hendrycks and Dietterich (2019), Benchmarking Neural Network Robustness to Common Corruptions.
    """
    return read


cifar10c = _reader("cifar10c", "CIFAR-10-C", CIFAR10)
cifar100c = _reader("cifar100c", "CIFAR-100-C", CIFAR100)


def _read(
    name: str, root: Path, *, base: str, class_names: tuple[str, ...], corruption: str, severity: int | None
) -> Dataset:
    if severity is not None and severity not in range(1, _LEVELS + 1):
        raise ValueError(f"{name}: `severity` must be 1 to {_LEVELS} or None, got {severity}.")
    folder = root / base
    known = {file.stem: file for file in sorted(folder.glob("*.npy")) if file.stem != "labels"}
    labels_file = folder / "labels.npy"
    if not known or not labels_file.is_file():
        raise missing(name, root)
    file = look_up(corruption, known, what=f"corruption in {base}")
    per_level = OFFICIAL[name].counts[1]
    images, labels = _checked(file, _LEVELS * per_level), read_npy(labels_file)
    check_count(labels.size, _LEVELS * per_level, where=str(labels_file), what="labels")
    rows = slice(None) if severity is None else slice((severity - 1) * per_level, severity * per_level)
    chosen = labels.reshape(-1)[rows].astype(np.int64)
    return from_arrays(
        as_images(images[rows]),
        chosen,
        name=name,
        class_names=class_names,
        splits={"test": torch.arange(len(chosen))},
        mean=MEAN,
        std=STD,
        provenance=(file_record(file, root), file_record(labels_file, root)),
    )


def _checked(path: Path, count: int) -> NDArray[np.uint8]:
    images = read_npy(path)
    if images.dtype != np.uint8 or images.shape[1:] != (32, 32, 3):
        raise DataError(
            f"{path}: expected uint8 images of shape (n, 32, 32, 3), got {images.dtype} of shape "
            f"{images.shape}. "
            "Get the file again."
        )
    check_count(len(images), count, where=str(path))
    return images
