"""A user's own data: one function."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from equipoise.core.arrays import label_remedy
from equipoise.core.errors import DataError
from equipoise.data.dataset import Dataset, FileRecord, Kind
from equipoise.data.row_splits import stratified_split

__all__ = ["as_images", "column_statistics", "from_arrays"]


def from_arrays(
    inputs: Tensor | NDArray[Any],
    labels: Tensor | NDArray[Any],
    *,
    name: str,
    class_names: Sequence[str] | None = None,
    splits: Mapping[str, Tensor | NDArray[Any]] | None = None,
    seed: int = 0,
    tune: float = 0.1,
    calib: float = 0.1,
    test: float = 0.2,
    mean: Sequence[float] | Tensor | None = None,
    std: Sequence[float] | Tensor | None = None,
    soft_labels: Tensor | None = None,
    provenance: tuple[FileRecord, ...] = (),
) -> Dataset:
    """Make a dataset from arrays.

    Args:
        inputs: Images as uint8 ``(n, c, h, w)``, or features as floating point ``(n, d)``.
        labels: Class numbers ``(n,)``.
        name: What to call it.
        class_names: One word per class; by default the numbers.
        splits: Row numbers of each split; by default four stratified splits are drawn.
        seed: Of the drawn splits.
        tune: Size of ``tune``: an int counts rows, a float is a share.
        calib: Size of ``calib``.
        test: Size of ``test``.
        mean: Per channel (of images scaled to [0, 1]) or column, subtracted in every batch.
        std: Per channel or column, divided by in every batch.
        soft_labels: Class probabilities ``(n, k)`` where they are known.
        provenance: The files the arrays come from.

    Returns:
        A dataset that everything in this package takes.

    Raises:
        DataError: If shapes or types do not fit together.
        SplitError: If splits overlap.

    Example:
        >>> data = from_arrays(np.zeros((40, 3)), np.arange(40) % 4, name="mine")
        >>> {split: len(rows) for split, rows in data.splits.items()}
        {'train': 24, 'tune': 4, 'calib': 4, 'test': 8}
    """
    values, kind = _checked_inputs(torch.as_tensor(inputs), name)
    numbers = _checked_labels(torch.as_tensor(labels), name)
    if len(values) != len(numbers):
        raise DataError(f"{name}: `labels` must be one per input, got {len(numbers)} for {len(values)}.")
    if class_names is None:
        class_names = [str(number) for number in range(int(numbers.max()) + 1 if len(numbers) else 0)]
    if splits is None:
        splits = dict(stratified_split(numbers, {"tune": tune, "calib": calib, "test": test}, seed=seed))
    return Dataset(
        name=name,
        kind=kind,
        inputs=values,
        labels=numbers,
        class_names=tuple(class_names),
        splits={split: torch.as_tensor(rows) for split, rows in splits.items()},
        mean=None if mean is None else torch.as_tensor(mean, dtype=torch.float32),
        std=None if std is None else torch.as_tensor(std, dtype=torch.float32),
        soft_labels=soft_labels,
        provenance=provenance,
    )


def _checked_inputs(inputs: Tensor, name: str) -> tuple[Tensor, Kind]:
    if inputs.dtype == torch.uint8 and inputs.ndim == 4:
        return inputs.contiguous(memory_format=torch.channels_last), "image"
    if inputs.is_floating_point() and inputs.ndim == 2:
        if not bool(inputs.isfinite().all()):
            row = int((~inputs.isfinite()).any(1).nonzero()[0])
            raise DataError(
                f"{name}: `inputs` must be finite, got NaN or infinity in row {row}. Fill the gaps."
            )
        return inputs.to(torch.float32), "features"
    raise DataError(
        f"{name}: `inputs` must be uint8 images (n, c, h, w) or floating-point features (n, d), got "
        f"{inputs.dtype} of shape {tuple(inputs.shape)}. Images in [0, 1]? Pass (255 * "
        "x).round().to(torch.uint8)."
    )


def _checked_labels(labels: Tensor, name: str) -> Tensor:
    if labels.ndim != 1 or labels.is_floating_point() or labels.dtype == torch.bool:
        raise DataError(
            f"{name}: `labels` must be whole numbers of shape (n,), got {labels.dtype} of shape "
            f"{tuple(labels.shape)}. {label_remedy(labels)}"
        )
    return labels.to(torch.int64)


def as_images(array: NDArray[np.uint8]) -> Tensor:
    """Turn an array ``(n, h, w)`` or ``(n, h, w, c)`` into images ``(n, c, h, w)`` without a copy.

    Args:
        array: Pixels, row after row, channels last.

    Returns:
        A tensor stored channels-last.

    Example:
        >>> as_images(np.zeros((5, 8, 9, 3), dtype=np.uint8)).shape
        torch.Size([5, 3, 8, 9])
    """
    pixels = array[..., None] if array.ndim == 3 else array
    return torch.from_numpy(np.ascontiguousarray(pixels)).permute(0, 3, 1, 2)


def column_statistics(inputs: Tensor, rows: Tensor) -> tuple[Tensor, Tensor]:
    """Return mean and spread of each column over some rows; constant columns get a spread of one.

    Args:
        inputs: Features ``(n, d)``.
        rows: The rows that may be looked at, which should be those of ``train``.

    Returns:
        Mean and standard deviation, each ``(d,)``.

    Example:
        >>> column_statistics(torch.tensor([[1.0, 5.0], [3.0, 5.0]]), torch.tensor([0, 1]))
        (tensor([2., 5.]), tensor([1., 1.]))
    """
    seen = inputs[rows].double()
    std = seen.std(0, correction=0)
    return seen.mean(0).float(), torch.where(std > 0, std, torch.ones_like(std)).float()
