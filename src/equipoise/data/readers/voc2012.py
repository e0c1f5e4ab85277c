"""PASCAL VOC 2012: a class for every pixel."""

from __future__ import annotations

import os
from pathlib import Path

import torch

from equipoise.core.errors import DataError
from equipoise.data.dataset import Dataset
from equipoise.data.folders import check_count, listing_record, missing, open_root
from equipoise.data.official import OFFICIAL
from equipoise.data.readers.class_names import VOC2012
from equipoise.data.readers.image_folder import IMAGENET_MEAN, IMAGENET_STD
from equipoise.data.shuffling import permutation
from equipoise.data.streaming import ImageFiles

__all__ = ["voc2012"]


def voc2012(
    *,
    root: str | os.PathLike[str] | None = None,
    seed: int = 0,
    download: bool = False,
    size: int = 512,
    tune: int = 147,
    calib: int = 146,
) -> Dataset:
    """Read the segmentation task of VOC 2012.

    As in the class-adaptive smoothing paper 1,171 images are for training, 293 are held out (here halved into
    ``tune`` and ``calib``), and the official 1,449 validation images are ``test``. The held-out images are
    drawn without looking at the masks, so the splits are not stratified.

    Args:
        root: The data folder; by default the environment variable ``EQUIPOISE_DATA``.
        seed: Of the splits.
        download: Bring it if it is not there (2 GB).
        size: Images are padded to this height and width, masks with 255.
        tune: Size of ``tune``.
        calib: Size of ``calib``.

    Returns:
        Images and masks that are read when they are needed; 255 is no class. ``labels`` are zeros.

    Raises:
        DataError: If it is not there, or lists are damaged.

    Example:
        >>> voc2012(root=".")
        Traceback (most recent call last):
        ...
        equipoise.core.errors.DataError: voc2012: not found in .. Put there VOCdevkit/VOC2012/ with ...

    Reference:
        Everingham et al. (2010), The PASCAL Visual Object Classes Challenge.
    """
    base = open_root(root, name="voc2012", download=download)
    folder = base / "VOCdevkit" / "VOC2012"
    lists = [folder / "ImageSets" / "Segmentation" / f"{part}.txt" for part in ("train", "val")]
    if not all(file.is_file() for file in lists):
        raise missing("voc2012", base)
    counts = OFFICIAL["voc2012"].counts
    names = [name for file, count in zip(lists, counts, strict=True) for name in _read_names(file, count)]
    n_train = counts[0]
    if tune + calib >= n_train:
        raise ValueError(
            f"voc2012: `tune` and `calib` must leave some of {n_train} images, got {tune + calib}."
        )
    order = torch.from_numpy(permutation(n_train, seed=seed, stream=("split", "voc2012")))
    held = order[: tune + calib]
    images = tuple(f"JPEGImages/{name}.jpg" for name in names)
    masks = tuple(f"SegmentationClass/{name}.png" for name in names)
    return Dataset(
        name="voc2012",
        kind="segmentation",
        inputs=ImageFiles(folder=str(folder), paths=images, masks=masks, size=size),
        labels=torch.zeros(len(names), dtype=torch.int64),
        class_names=VOC2012,
        splits={
            "train": order[tune + calib :].sort().values,
            "tune": held[:tune].sort().values,
            "calib": held[tune:].sort().values,
            "test": torch.arange(n_train, len(names)),
        },
        mean=torch.tensor(IMAGENET_MEAN),
        std=torch.tensor(IMAGENET_STD),
        ignore_index=255,
        provenance=(listing_record(folder, [*images, *masks], base),),
    )


def _read_names(path: Path, count: int) -> list[str]:
    names = path.read_text().split()
    if len(set(names)) != len(names):
        raise DataError(f"{path}: names an image twice. Get the file again.")
    check_count(len(names), count, where=str(path), what="names")
    return names
