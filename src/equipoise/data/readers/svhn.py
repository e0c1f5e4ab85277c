"""SVHN, from the two MATLAB files of its owners."""

from __future__ import annotations

import os
import struct
import zlib
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.io import loadmat
from scipy.io.matlab import MatReadError

from equipoise.core.errors import DataError
from equipoise.data.arrays import as_images, from_arrays
from equipoise.data.dataset import Dataset
from equipoise.data.folders import check_count, file_record, missing, open_root
from equipoise.data.official import OFFICIAL
from equipoise.data.readers.class_names import DIGITS
from equipoise.data.row_splits import official_splits

__all__ = ["read_mat", "svhn"]


def svhn(
    *,
    root: str | os.PathLike[str] | None = None,
    seed: int = 0,
    download: bool = False,
    tune: int = 2_500,
    calib: int = 2_500,
) -> Dataset:
    """Read SVHN: 32 x 32 color images of digits on houses.

    Args:
        root: The data folder; by default the environment variable ``EQUIPOISE_DATA``.
        seed: Of the splits.
        download: Bring it if it is not there.
        tune: Size of ``tune``.
        calib: Size of ``calib``.

    Returns:
        99,289 images, training images first. The digit 0, class 10 in the files, is class 0 here.

    Raises:
        DataError: If it is not there, or a file is wrong or truncated.

    Example:
        >>> svhn(root=".")
        Traceback (most recent call last):
        ...
        equipoise.core.errors.DataError: svhn: not found in .. Put there svhn/train_32x32.mat and ...

    Reference:
        Netzer et al. (2011), Reading Digits in Natural Images with Unsupervised Feature Learning.
    """
    folder = open_root(root, name="svhn", download=download)
    files = [folder / "svhn" / f"{part}_32x32.mat" for part in ("train", "test")]
    if not all(file.is_file() for file in files):
        raise missing("svhn", folder)
    counts = OFFICIAL["svhn"].counts
    parts = [read_mat(file) for file in files]
    for file, (images, _), count in zip(files, parts, counts, strict=True):
        check_count(len(images), count, where=str(file))
    labels = torch.from_numpy(np.concatenate([labels for _, labels in parts]))
    return from_arrays(
        as_images(np.concatenate([images for images, _ in parts])),
        labels,
        name="svhn",
        class_names=DIGITS,
        splits=dict(official_splits(labels, counts[0], tune=tune, calib=calib, seed=seed)),
        mean=(0.4377, 0.4438, 0.4728),
        std=(0.1980, 0.2010, 0.1970),
        provenance=tuple(file_record(file, folder) for file in files),
    )


def read_mat(path: Path) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Read images and digits from one MATLAB file.

    Args:
        path: The file.

    Returns:
        Images ``(n, 32, 32, 3)`` and digits ``(n,)``.

    Raises:
        DataError: If it holds something else, or is truncated.
    """
    try:
        stored = loadmat(path, variable_names=["X", "y"])
    except (
        MatReadError,
        ValueError,
        TypeError,
        OSError,
        EOFError,
        NotImplementedError,
        zlib.error,
        IndexError,
        struct.error,
    ) as error:
        raise DataError(
            f"{path}: expected a MATLAB file, but it cannot be read: {error}. Get it again."
        ) from error
    if "X" not in stored or "y" not in stored:
        raise DataError(f"{path}: must hold X and y. Is it the file of cropped digits?")
    images, labels = stored["X"], stored["y"].reshape(-1)
    if images.dtype != np.uint8 or images.shape != (32, 32, 3, len(labels)):
        raise DataError(
            f"{path}: X must be uint8 of shape (32, 32, 3, {len(labels)}), one image per label, got "
            f"{images.dtype} "
            f"of shape {images.shape}. Get the file again."
        )
    if len(labels) and not (labels.min() >= 1 and labels.max() <= 10):
        raise DataError(
            f"{path}: y must lie in 1 to 10, got {labels.min()} to {labels.max()}. Get the file again."
        )
    return np.ascontiguousarray(images.transpose(3, 0, 1, 2)), labels.astype(np.int64) % 10
