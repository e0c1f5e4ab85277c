"""Tiny-ImageNet: 200 classes of 64 x 64 images."""

from __future__ import annotations

import os
from pathlib import Path

import torch

from equipoise.core.errors import DataError
from equipoise.data.dataset import Dataset
from equipoise.data.folders import check_count, listing_record, missing, open_root
from equipoise.data.official import OFFICIAL
from equipoise.data.readers.image_folder import IMAGENET_MEAN, IMAGENET_STD, list_images, read_all
from equipoise.data.row_splits import official_splits
from equipoise.data.streaming import ImageFiles

__all__ = ["tiny_imagenet"]


def tiny_imagenet(
    *,
    root: str | os.PathLike[str] | None = None,
    seed: int = 0,
    download: bool = False,
    tune: int = 5_000,
    calib: int = 5_000,
    in_memory: bool = True,
) -> Dataset:
    """Read Tiny-ImageNet; the official validation images are ``test``, and are nothing else.

    As in the margin-based and class-adaptive smoothing papers 50 training images per class are held out, here
    halved into ``tune`` and ``calib``.

    Args:
        root: The data folder; by default the environment variable ``EQUIPOISE_DATA``.
        seed: Of the splits.
        download: Bring it if it is not there.
        tune: Size of ``tune``.
        calib: Size of ``calib``.
        in_memory: Keep all images in memory, 1.4 GB; otherwise they are read when they are needed.

    Returns:
        110,000 images, training images first.

    Raises:
        DataError: If it is not there, or files are missing.

    Example:
        >>> tiny_imagenet(root=".")
        Traceback (most recent call last):
        ...
        equipoise.core.errors.DataError: tiny_imagenet: not found in .. Put there tiny-imagenet-200/ ...

    Differs from the authors' code:
        The focal-calibration code uses the official validation images both to choose and to judge.
    """
    base = open_root(root, name="tiny_imagenet", download=download)
    folder = base / "tiny-imagenet-200"
    if not (folder / "wnids.txt").is_file():
        raise missing("tiny_imagenet", base)
    classes = sorted((folder / "wnids.txt").read_text().split())
    paths, numbers = list_images(folder, "train", classes, inner="images")
    counts = OFFICIAL["tiny_imagenet"].counts
    check_count(len(paths), counts[0], where=str(folder / "train"))
    test_paths, test_numbers = _validation(folder, classes)
    check_count(len(test_paths), counts[1], where=str(folder / "val"))
    labels = torch.tensor(numbers + test_numbers, dtype=torch.int64)
    every = (*paths, *test_paths)
    files = ImageFiles(folder=str(folder), paths=every, size=64, resize=64)
    return Dataset(
        name="tiny_imagenet",
        kind="image",
        inputs=read_all(files) if in_memory else files,
        labels=labels,
        class_names=tuple(classes),
        splits=official_splits(labels, counts[0], tune=tune, calib=calib, seed=seed),
        mean=torch.tensor(IMAGENET_MEAN),
        std=torch.tensor(IMAGENET_STD),
        provenance=(listing_record(folder, every, base),),
    )


def _validation(folder: Path, classes: list[str]) -> tuple[list[str], list[int]]:
    notes = folder / "val" / "val_annotations.txt"
    if not notes.is_file():
        raise DataError(f"{notes}: no such file. Unpack the archive again.")
    number = {name: place for place, name in enumerate(classes)}
    paths, numbers = [], []
    for count, line in enumerate(notes.read_text().splitlines(), start=1):
        words = line.split("\t")
        if len(words) < 2 or words[1] not in number:
            raise DataError(
                f"{notes}: line {count} must hold an image and a class of wnids.txt, got {line!r}."
            )
        paths.append(f"val/images/{words[0]}")
        numbers.append(number[words[1]])
    return paths, numbers
