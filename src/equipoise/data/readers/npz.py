"""Any .npz file with inputs and labels."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from equipoise.core.errors import DataError
from equipoise.core.names import check_choice
from equipoise.data.arrays import as_images, column_statistics, from_arrays
from equipoise.data.dataset import Dataset
from equipoise.data.folders import check_count, file_record, read_npz_arrays
from equipoise.data.readers.masks import from_masks
from equipoise.data.row_splits import stratified_split

__all__ = ["npz", "read_train_and_test"]

_FOUR = ("x_train", "y_train", "x_test", "y_test")


def npz(
    path: str | os.PathLike[str],
    *,
    seed: int = 0,
    layout: str = "nhwc",
    tune: float = 0.1,
    calib: float = 0.1,
    test: float = 0.2,
    standardize: bool = True,
) -> Dataset:
    """Read a .npz file that holds ``x, y``, or ``x_train, y_train, x_test, y_test``; ``y`` may be masks ``(n, h, w)``.

    Args:
        path: The file.
        seed: Of the splits.
        layout: ``"nhwc"`` or ``"nchw"``: where the channels of uint8 images with four dimensions are.
        tune: Size of ``tune``: an int counts rows, a float is a share of what may be split.
        calib: Size of ``calib``.
        test: Size of ``test``, if the file has no test set of its own.
        standardize: Subtract the mean of the training rows from features, and divide by their spread.

    Returns:
        Images if the inputs are uint8, features if they are floating point; images with a class for every pixel
        if the labels are masks, in which 255 is no class.

    Raises:
        DataError: If arrays are missing or do not fit together.

    Example:
        >>> import tempfile
        >>> file = Path(tempfile.mkdtemp()) / "mine.npz"
        >>> np.savez(file, x=np.zeros((20, 3)), y=np.arange(20) % 2)
        >>> npz(file).kind
        'features'
    """
    check_choice(layout, ("nhwc", "nchw"), where="npz", name="layout")
    file = Path(path)
    if not file.is_file():
        raise DataError(f"npz: {file} does not exist. Pass path=... of a .npz file.")
    stored = read_npz_arrays(file)
    sizes = {"tune": tune, "calib": calib}
    if all(key in stored for key in _FOUR):
        x, y = (np.concatenate([stored[f"{k}_train"], stored[f"{k}_test"]]) for k in "xy")
        n_train = len(stored["x_train"])
        labels = _row_labels(y, file)
        splits = stratified_split(labels, sizes, seed=seed, rows=torch.arange(n_train))
        splits["test"] = torch.arange(n_train, len(x))
    elif "x" in stored and "y" in stored:
        x, y = stored["x"], stored["y"]
        labels = _row_labels(y, file)
        splits = stratified_split(labels, {**sizes, "test": test}, seed=seed)
    else:
        raise DataError(
            f"{file}: must hold x and y, or {', '.join(_FOUR)}, got {', '.join(stored)}. Rename them."
        )
    provenance = (file_record(file, file.parent),)
    if y.ndim == 3:
        pixels = x.transpose(0, 2, 3, 1) if x.ndim == 4 and layout == "nchw" else x
        return from_masks(pixels, y, name=file.stem, splits=splits, provenance=provenance)
    inputs = _images(x, layout) if x.dtype == np.uint8 and x.ndim > 2 else torch.as_tensor(x)
    mean, std = (None, None)
    if standardize and inputs.is_floating_point() and inputs.ndim == 2:
        mean, std = column_statistics(inputs, splits["train"])
    return from_arrays(
        inputs,
        labels,
        name=file.stem,
        splits=dict(splits),
        mean=mean,
        std=std,
        provenance=provenance,
    )


def _row_labels(labels: NDArray[Any], file: Path) -> torch.Tensor:
    """Return one label per row; rows with masks are all alike to a split."""
    if labels.ndim == 3:
        return torch.zeros(len(labels), dtype=torch.int64)
    return torch.from_numpy(_whole(labels, file))


def _images(pixels: NDArray[np.uint8], layout: str) -> torch.Tensor:
    if pixels.ndim == 4 and layout == "nchw":
        return torch.from_numpy(pixels)
    return as_images(pixels)


def read_train_and_test(
    path: Path, *, counts: tuple[int, int], shape: tuple[int, ...]
) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Read ``x_train, y_train, x_test, y_test`` of a public image dataset from a .npz file.

    Args:
        path: The file.
        counts: How many training and test images there must be.
        shape: Of one image.

    Returns:
        Images and labels, training rows first.

    Raises:
        DataError: If there are too few, or they have another shape or type.
    """
    stored = read_npz_arrays(path, _FOUR)
    for part, count in zip(("train", "test"), counts, strict=True):
        x, y = stored[f"x_{part}"], stored[f"y_{part}"]
        if x.dtype != np.uint8 or x.shape[1:] != shape:
            raise DataError(
                f"{path}: x_{part} must be uint8 of shape (n, {', '.join(map(str, shape))}), got "
                f"{x.dtype} of "
                f"shape {x.shape}. Save the images as they come."
            )
        check_count(len(x), count, where=f"{path}: x_{part}")
        check_count(y.size, count, where=f"{path}: y_{part}", what="labels")
    return (
        np.concatenate([stored["x_train"], stored["x_test"]]),
        np.concatenate([_whole(stored["y_train"], path), _whole(stored["y_test"], path)]),
    )


def _whole(labels: NDArray[Any], path: Path) -> NDArray[np.int64]:
    if labels.dtype.kind not in "iu":
        raise DataError(f"{path}: labels must be whole numbers, got {labels.dtype}. Save class numbers.")
    return labels.reshape(-1).astype(np.int64)
