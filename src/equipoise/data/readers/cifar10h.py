"""CIFAR-10H: what about fifty people each said of every CIFAR-10 test image."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from equipoise.core.errors import DataError
from equipoise.data.dataset import Dataset
from equipoise.data.download import fetch
from equipoise.data.folders import check_count, file_record, missing, open_root, read_npy
from equipoise.data.official import OFFICIAL
from equipoise.data.readers.cifar import cifar10

__all__ = ["cifar10h", "read_votes"]


def cifar10h(
    *,
    root: str | os.PathLike[str] | None = None,
    seed: int = 0,
    download: bool = False,
    recipe: str = "stratified",
    tune: int = 2_500,
    calib: int = 2_500,
) -> Dataset:
    """Read CIFAR-10 with human votes as ``soft_labels`` of its test images.

    The votes are near a true class posterior; they are for evaluation, not for training.

    Args:
        root: The data folder; by default the environment variable ``EQUIPOISE_DATA``.
        seed: Of the splits.
        download: Bring CIFAR-10 and the votes if they are not there.
        recipe: As in :func:`cifar10`.
        tune: Size of ``tune``.
        calib: Size of ``calib``.

    Returns:
        CIFAR-10; ``soft_labels`` are NaN in training rows, of which nobody was asked.

    Raises:
        DataError: If something is not there, or wrong.

    Example:
        >>> cifar10h(root=".")
        Traceback (most recent call last):
        ...
        equipoise.core.errors.DataError: cifar10h: not found in .. Put there cifar10h/cifar10h-counts.npy or
        ...

    Reference:
        Peterson et al. (2019), Human uncertainty makes classification more robust.
    """
    folder = open_root(root, name="cifar10h", make=download)
    if download and _find(folder) is None:
        fetch("cifar10h", folder)
    file = _find(folder)
    if file is None:
        raise missing("cifar10h", folder)
    votes = read_votes(file, count=OFFICIAL["cifar10h"].counts[1])
    images = cifar10(root=folder, seed=seed, download=download, recipe=recipe, tune=tune, calib=calib)
    soft = torch.full((len(images), images.n_classes), torch.nan)
    soft[images.rows("test")] = votes
    return dataclasses.replace(
        images,
        name="cifar10h",
        soft_labels=soft,
        provenance=(*images.provenance, file_record(file, folder)),
    )


def _find(root: Path) -> Path | None:
    options = [root / "cifar10h" / f"cifar10h-{kind}.npy" for kind in ("counts", "probs")]
    return next((path for path in options if path.is_file()), None)


def read_votes(path: Path, *, count: int) -> Tensor:
    """Read votes or shares of votes, and return shares.

    Args:
        path: A .npy file ``(count, 10)``.
        count: How many images there must be.

    Returns:
        Probabilities ``(count, 10)``, float32.

    Raises:
        DataError: If the shape is wrong, or a row has no vote.
    """
    votes = read_npy(path)
    if votes.ndim != 2 or votes.shape[1] != 10 or votes.dtype.kind not in "iuf":
        raise DataError(f"{path}: expected numbers of shape ({count}, 10), got {votes.dtype} {votes.shape}.")
    check_count(len(votes), count, where=str(path), what="rows")
    totals = votes.sum(axis=1, keepdims=True, dtype=np.float64)
    if not (np.isfinite(totals).all() and (votes >= 0).all() and (totals > 0).all()):
        raise DataError(f"{path}: every row must hold votes, none of them negative. Get the file again.")
    return torch.from_numpy((votes / totals).astype(np.float32))
