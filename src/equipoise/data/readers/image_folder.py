"""Any folder of images, one folder per class."""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import torch
from torch import Tensor

from equipoise.core.errors import DataError
from equipoise.core.progress import progress
from equipoise.core.splits import SPLITS
from equipoise.data.dataset import Dataset
from equipoise.data.folders import listing_record
from equipoise.data.row_splits import stratified_split
from equipoise.data.streaming import ImageFiles

__all__ = ["IMAGENET_MEAN", "IMAGENET_STD", "image_folder", "list_classes", "list_images", "read_all"]

IMAGENET_MEAN = (0.485, 0.456, 0.406)
IMAGENET_STD = (0.229, 0.224, 0.225)

_ENDINGS = (".jpg", ".jpeg", ".png", ".bmp", ".webp", ".ppm", ".tif", ".tiff")


def image_folder(
    path: str | os.PathLike[str],
    *,
    size: int = 224,
    resize: int | None = None,
    in_memory: bool = False,
    seed: int = 0,
    tune: float = 0.1,
    calib: float = 0.1,
    test: float = 0.2,
) -> Dataset:
    """Read ``<class>/<image>``, or ``<split>/<class>/<image>`` with splits train, tune, calib, test.

    Args:
        path: The folder.
        size: Height and width of what a network gets.
        resize: The shorter side before the center is cut out; by default ``size``.
        in_memory: Read all images now and keep them; by default they are read when they are needed.
        seed: Of the splits, if the folder has none.
        tune: Size of ``tune``: an int counts rows, a float is a share.
        calib: Size of ``calib``.
        test: Size of ``test``.

    Returns:
        Images with class names from the folders, in sorted order.

    Raises:
        DataError: If there are no images, or splits have different classes.

    Example:
        >>> image_folder("no-such-folder")
        Traceback (most recent call last):
        ...
        equipoise.core.errors.DataError: image_folder: no-such-folder does not exist. ...
    """
    folder = Path(path)
    if not folder.is_dir():
        raise DataError(
            f"image_folder: {folder} does not exist. Pass path=... of a folder with one folder per class."
        )
    paths, labels, classes, splits = _list_all(folder)
    if not splits:
        splits = stratified_split(labels, {"tune": tune, "calib": calib, "test": test}, seed=seed)
    files = ImageFiles(folder=str(folder), paths=tuple(paths), size=size, resize=resize or size)
    return Dataset(
        name=folder.name,
        kind="image",
        inputs=read_all(files) if in_memory else files,
        labels=labels,
        class_names=tuple(classes),
        splits=splits,
        mean=torch.tensor(IMAGENET_MEAN),
        std=torch.tensor(IMAGENET_STD),
        provenance=(listing_record(folder, paths, folder.parent),),
    )


def _list_all(folder: Path) -> tuple[list[str], Tensor, list[str], dict[str, Tensor]]:
    tops = [split for split in SPLITS if (folder / split).is_dir()]
    classes = list_classes(folder / tops[0] if tops else folder)
    paths: list[str] = []
    numbers: list[int] = []
    splits: dict[str, Tensor] = {}
    for top in tops or [""]:
        if top and list_classes(folder / top) != classes:
            raise DataError(
                f"{folder / top}: must have the classes of {folder / tops[0]}. Rename the folders."
            )
        found, labels = list_images(folder, top, classes)
        if top:
            splits[top] = torch.arange(len(paths), len(paths) + len(found))
        paths += found
        numbers += labels
    return paths, torch.tensor(numbers, dtype=torch.int64), classes, splits


def list_classes(folder: Path) -> list[str]:
    """Return the names of the folders in a folder, sorted.

    Raises:
        DataError: If there are none.
    """
    names = sorted(entry.name for entry in folder.iterdir() if entry.is_dir()) if folder.is_dir() else []
    if not names:
        raise DataError(f"{folder}: expected one folder per class, got none. Sort the images into folders.")
    return names


def list_images(
    folder: Path, top: str, classes: Sequence[str], inner: str = ""
) -> tuple[list[str], list[int]]:
    """Return paths and class numbers of the images below ``folder / top``, sorted.

    Args:
        folder: Where paths start.
        top: The split, or nothing.
        classes: Names of the class folders.
        inner: A folder between class and image, or nothing.

    Returns:
        Paths relative to ``folder``, and one class number for each.

    Raises:
        DataError: If a class has no image.
    """
    paths: list[str] = []
    numbers: list[int] = []
    for number, name in enumerate(progress(classes, label=f"listing {top or folder.name}", unit="classes")):
        base = Path(top) / name / inner
        with os.scandir(folder / base) as entries:
            found = sorted(entry.name for entry in entries if entry.name.lower().endswith(_ENDINGS))
        if not found:
            raise DataError(f"{folder / base}: holds no image. Remove the folder, or put images there.")
        paths += [(base / file).as_posix() for file in found]
        numbers += [number] * len(found)
    return paths, numbers


def read_all(files: ImageFiles) -> Tensor:
    """Read all images into memory.

    Args:
        files: Where they are.

    Returns:
        uint8 images ``(n, 3, size, size)``, stored channels-last.
    """
    images = torch.empty(len(files), files.size, files.size, 3, dtype=torch.uint8)
    with ThreadPoolExecutor() as pool:
        read = pool.map(lambda row: files.read(row)[0], range(len(files)), chunksize=64)
        for row, image in enumerate(progress(read, label="reading", total=len(files), unit="images")):
            images[row] = image.permute(1, 2, 0)
    return images.permute(0, 3, 1, 2)
