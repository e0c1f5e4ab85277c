"""ImageNet and ImageNet-LT, streamed from the folders of the 2012 challenge."""

from __future__ import annotations

import os
from pathlib import Path

import torch
from torch import Tensor

from equipoise.core.errors import DataError
from equipoise.data.dataset import Dataset
from equipoise.data.folders import check_count, file_record, listing_record, missing, open_root
from equipoise.data.official import OFFICIAL
from equipoise.data.readers.image_folder import IMAGENET_MEAN, IMAGENET_STD, list_classes, list_images
from equipoise.data.row_splits import stratified_split
from equipoise.data.streaming import ImageFiles

__all__ = ["imagenet", "imagenet_lt", "read_list"]


def imagenet(
    *,
    root: str | os.PathLike[str] | None = None,
    seed: int = 0,
    download: bool = False,
    size: int = 224,
    resize: int = 256,
    tune: int = 5_000,
    calib: int = 5_000,
) -> Dataset:
    """Read ImageNet; a fifth of the official validation images is held out, the rest is ``test``.

    Args:
        root: The data folder; by default the environment variable ``EQUIPOISE_DATA``.
        seed: Of the splits.
        download: Raises: it is handed out at image-net.org after registration.
        size: Height and width of what a network gets.
        resize: The shorter side before the center is cut out.
        tune: Size of ``tune``, from the official validation images.
        calib: Size of ``calib``, likewise.

    Returns:
        1,331,167 images that are read when they are needed.

    Raises:
        DataError: If it is not there, or files are missing.

    Example:
        >>> imagenet(root=".")
        Traceback (most recent call last):
        ...
        equipoise.core.errors.DataError: imagenet: not found in .. Put there imagenet/train/<class>/*.JPEG ...

    Reference:
        Russakovsky et al. (2015), ImageNet Large Scale Visual Recognition Challenge. Splits: Liu et al.
        (2023), class-adaptive label smoothing: 20% of the validation images held out.
    """
    base = open_root(root, name="imagenet", download=download)
    folder = base / "imagenet"
    if not (folder / "train").is_dir() or not (folder / "val").is_dir():
        raise missing("imagenet", base)
    classes = list_classes(folder / "train")
    if list_classes(folder / "val") != classes:
        raise DataError(
            f"{folder / 'val'}: must have the class folders of train. Sort the validation images so."
        )
    counts = OFFICIAL["imagenet"].counts
    paths, numbers = list_images(folder, "train", classes)
    check_count(len(paths), counts[0], where=str(folder / "train"))
    held_paths, held_numbers = list_images(folder, "val", classes)
    check_count(len(held_paths), counts[1], where=str(folder / "val"))
    labels = torch.tensor(numbers + held_numbers, dtype=torch.int64)
    held = torch.arange(len(paths), len(labels))
    splits = stratified_split(labels, {"tune": tune, "calib": calib}, seed=seed, rows=held, rest="test")
    return _dataset(
        "imagenet",
        base,
        paths=[*paths, *held_paths],
        labels=labels,
        classes=classes,
        splits={"train": torch.arange(len(paths)), **splits},
        sizes=(size, resize),
    )


def imagenet_lt(
    *,
    root: str | os.PathLike[str] | None = None,
    seed: int = 0,
    download: bool = False,
    size: int = 224,
    resize: int = 256,
) -> Dataset:
    """Read ImageNet-LT: a long-tailed part of ImageNet, given by lists of files.

    Args:
        root: The data folder; by default the environment variable ``EQUIPOISE_DATA``.
        seed: Of the halves of the validation list, which become ``tune`` and ``calib``.
        download: Raises: the images are handed out at image-net.org after registration.
        size: Height and width of what a network gets.
        resize: The shorter side before the center is cut out.

    Returns:
        Images that are read when they are needed.

    Raises:
        DataError: If a list is not there or damaged.

    Example:
        >>> imagenet_lt(root=".")
        Traceback (most recent call last):
        ...
        equipoise.core.errors.DataError: imagenet_lt: not found in .. Put there
        imagenet_lt/ImageNet_LT_train.txt...

    Reference:
        Liu et al. (2019), Large-Scale Long-Tailed Recognition in an Open World.
    """
    base = open_root(root, name="imagenet_lt", download=download)
    lists = {part: base / "imagenet_lt" / f"ImageNet_LT_{part}.txt" for part in ("train", "val", "test")}
    if not all(file.is_file() for file in lists.values()):
        raise missing("imagenet_lt", base)
    rows: dict[str, Tensor] = {}
    paths: list[str] = []
    numbers: list[int] = []
    for part, file in lists.items():
        found, labels = read_list(file)
        rows[part] = torch.arange(len(paths), len(paths) + len(found))
        paths += found
        numbers += labels
    counts = OFFICIAL["imagenet_lt"].counts
    check_count(len(rows["train"]), counts[0], where=str(lists["train"]))
    check_count(len(rows["test"]), counts[1], where=str(lists["test"]))
    every = torch.tensor(numbers, dtype=torch.int64)
    tune = stratified_split(every, {"calib": 0.5}, seed=seed, rows=rows["val"], rest="tune")
    classes = [str(number) for number in range(int(every.max()) + 1)]
    splits = {"train": rows["train"], **tune, "test": rows["test"]}
    return _dataset(
        "imagenet_lt",
        base,
        paths=paths,
        labels=every,
        classes=classes,
        splits=splits,
        sizes=(size, resize),
        lists=tuple(lists.values()),
    )


def _dataset(
    name: str,
    root: Path,
    *,
    paths: list[str],
    labels: Tensor,
    classes: list[str],
    splits: dict[str, Tensor],
    sizes: tuple[int, int],
    lists: tuple[Path, ...] = (),
) -> Dataset:
    folder = root / "imagenet"
    records = [file_record(file, root) for file in lists] or [listing_record(folder, paths, root)]
    return Dataset(
        name=name,
        kind="image",
        inputs=ImageFiles(folder=str(folder), paths=tuple(paths), size=sizes[0], resize=sizes[1]),
        labels=labels,
        class_names=tuple(classes),
        splits=splits,
        mean=torch.tensor(IMAGENET_MEAN),
        std=torch.tensor(IMAGENET_STD),
        provenance=tuple(records),
    )


def read_list(path: Path) -> tuple[list[str], list[int]]:
    """Read lines of ``path label``.

    Args:
        path: The file.

    Returns:
        Paths and class numbers.

    Raises:
        DataError: If a line holds something else; it is named.

    Example:
        >>> import tempfile
        >>> file = Path(tempfile.mkdtemp()) / "list.txt"
        >>> _ = file.write_text("train/n01440764/a.JPEG 0")
        >>> read_list(file)
        (['train/n01440764/a.JPEG'], [0])
    """
    paths, numbers = [], []
    for count, line in enumerate(path.read_text().splitlines(), start=1):
        name, _, number = line.strip().rpartition(" ")
        if not name or not number.isdigit():
            raise DataError(f"{path}: line {count} must be 'path label', got {line!r}. Get the file again.")
        paths.append(name)
        numbers.append(int(number))
    return paths, numbers
