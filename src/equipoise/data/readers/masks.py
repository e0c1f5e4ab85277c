"""Images in memory with a class for every pixel."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from equipoise.core.errors import DataError
from equipoise.data.dataset import Dataset, FileRecord
from equipoise.data.streaming import ImageFiles

__all__ = ["from_masks"]

#: The label of pixels that are no class, as in VOC.
_NONE = 255


@final
class _Stored:
    """Gives an image and its mask, padded to a square on the right and below."""

    def __init__(self, images: NDArray[np.uint8], masks: NDArray[np.uint8], side: int) -> None:
        self._images, self._masks, self._side = images, masks, side

    def __call__(self, row: int) -> list[Tensor]:
        image, mask = (torch.from_numpy(part[row].copy()) for part in (self._images, self._masks))
        right, below = self._side - mask.shape[1], self._side - mask.shape[0]
        colors = image.movedim(-1, 0).expand(3, *mask.shape)
        return [
            torch.nn.functional.pad(layer, (0, right, 0, below), value=fill)
            for layer, fill in ((colors, 0), (mask, _NONE))
        ]


def from_masks(
    images: NDArray[Any],
    masks: NDArray[Any],
    *,
    name: str,
    splits: Mapping[str, Tensor],
    provenance: tuple[FileRecord, ...] = (),
) -> Dataset:
    """Make a segmentation task from arrays; gray images are shown in three equal colors.

    Args:
        images: Pixels as uint8, ``(n, h, w)`` or ``(n, h, w, c)`` with one or three channels.
        masks: The class of every pixel ``(n, h, w)``; 255 is no class.
        name: What to call it.
        splits: Row numbers of each split.
        provenance: The files the arrays come from.

    Returns:
        Images of one square size, those that are not square padded. ``labels`` are zeros.

    Raises:
        DataError: If shapes or types do not fit together.

    Example:
        >>> images, masks = np.zeros((6, 8, 8), np.uint8), np.arange(6 * 64).reshape(6, 8, 8) % 3
        >>> rows = {"train": torch.arange(4), "test": torch.arange(4, 6)}
        >>> data = from_masks(images, masks, name="mine", splits=rows)
        >>> data.kind, data.n_classes
        ('segmentation', 3)
    """
    pixels = images[..., None] if images.ndim == 3 else images
    if pixels.dtype != np.uint8 or pixels.ndim != 4 or pixels.shape[-1] not in (1, 3):
        raise DataError(
            f"{name}: images with masks must be uint8 (n, h, w) or (n, h, w, 3), got {images.dtype} of shape "
            f"{images.shape}. Scale them to 0 to 255."
        )
    if masks.dtype.kind not in "iu" or masks.shape != pixels.shape[:3]:
        raise DataError(
            f"{name}: masks must be whole numbers of the shape {pixels.shape[:3]} of their images, got {masks.dtype} "
            f"of shape {masks.shape}."
        )
    known = masks[masks != _NONE]
    if not known.size or known.min() < 0 or known.max() >= _NONE:
        raise DataError(
            f"{name}: masks must hold classes from 0 to 254, or 255 for none. Number the classes anew."
        )
    side = max(masks.shape[1:])
    digest = provenance[0].sha256 if provenance else name
    names = tuple(f"{row} of {digest}" for row in range(len(masks)))
    train = pixels[splits["train"].numpy()].reshape(-1, pixels.shape[-1]) / 255
    return Dataset(
        name=name,
        kind="segmentation",
        inputs=ImageFiles(
            folder="",
            paths=names,
            masks=names,
            size=side,
            maker=_Stored(pixels, masks.astype(np.uint8), side),
        ),
        labels=torch.zeros(len(masks), dtype=torch.int64),
        class_names=tuple(str(number) for number in range(int(known.max()) + 1)),
        splits=dict(splits),
        mean=torch.from_numpy(train.mean(0)).float().expand(3).clone(),
        std=torch.from_numpy(train.std(0)).float().clamp(min=1e-3).expand(3).clone(),
        ignore_index=_NONE,
        provenance=provenance,
    )
