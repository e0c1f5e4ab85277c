"""Gather, crop, flip and normalise in compiled code, for images that are in memory on the processor.

The tensor operations of :mod:`equipoise.data.augment` say what the result is; this must equal them bit for
bit.
"""

from __future__ import annotations

import numba
import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

__all__ = ["read_augmented"]


def read_augmented(
    images: Tensor,
    rows: NDArray[np.int64],
    *,
    top: NDArray[np.int64],
    left: NDArray[np.int64],
    flip: NDArray[np.bool_],
    padding: int,
    mean: Tensor | None,
    std: Tensor | None,
) -> Tensor:
    """Read images, cut a part out of each padded one, mirror some, and normalise.

    Args:
        images: uint8 ``(n, c, h, w)``, stored channels-last.
        rows: Which images.
        top: First row of the part in the padded image, one per image read.
        left: First column, likewise.
        flip: True for those to mirror.
        padding: Pixels of zeros on each side.
        mean: Per channel, of images scaled to [0, 1]; None subtracts nothing.
        std: Per channel; None divides by nothing.

    Returns:
        float32 images, stored channels-last.

    Example:
        >>> image = torch.tensor([[[[0, 255]]]], dtype=torch.uint8)
        >>> nothing, one = np.zeros(1, dtype=np.int64), np.ones(1, dtype=np.bool_)
        >>> at = {"top": nothing, "left": nothing, "flip": one, "padding": 0, "mean": None, "std": None}
        >>> read_augmented(image, nothing, **at)
        tensor([[[[1., 0.]]]])
    """
    _, channels, height, width = images.shape
    offset = torch.zeros(channels) if mean is None else mean
    spread = torch.ones(channels) if std is None else std
    scale = (1 / (255 * spread)).repeat(width).numpy()
    shift = (-offset / spread).repeat(width).numpy()
    pixels = images.permute(0, 2, 3, 1).contiguous().numpy().reshape(len(images), height, width * channels)
    placed = np.zeros((len(rows), height, width * channels), dtype=np.uint8)
    _place(pixels, rows, top - padding, left - padding, flip, channels, placed)
    out = np.empty((len(rows) * height, width * channels), dtype=np.float32)
    _scale(placed.reshape(out.shape), scale, shift, out)
    return torch.from_numpy(out).view(len(rows), height, width, channels).permute(0, 3, 1, 2)


# Two loops instead of one: the compiler turns each into vectors, and a joint one into single steps.
@numba.njit(cache=True, nogil=True)
def _place(pixels, rows, top, left, flip, channels, out):  # type: ignore[no-untyped-def]
    height, width = out.shape[1], out.shape[2] // channels
    for place in range(len(rows)):
        first = min(max(-left[place], 0), width)
        last = max(min(width - left[place], width), first)
        start = (width - last if flip[place] else first) * channels
        begin, count = (first + left[place]) * channels, (last - first) * channels
        for y in range(height):
            source = y + top[place]
            if count == 0 or source < 0 or source >= height:
                continue
            given = pixels[rows[place], source, begin : begin + count]
            part = out[place, y, start : start + count]
            if flip[place] and channels == 3:
                # Written out for colour images: a loop over channels inside was measured to be slower.
                for x in range(last - first):
                    goal = count - 3 * (x + 1)
                    part[goal] = given[3 * x]
                    part[goal + 1] = given[3 * x + 1]
                    part[goal + 2] = given[3 * x + 2]
            elif flip[place]:
                for x in range(last - first):
                    for channel in range(channels):
                        part[count - (x + 1) * channels + channel] = given[x * channels + channel]
            else:
                for x in range(count):
                    part[x] = given[x]


@numba.njit(cache=True, nogil=True)
def _scale(values, scale, shift, out):  # type: ignore[no-untyped-def]
    for line in range(values.shape[0]):
        for x in range(values.shape[1]):
            out[line, x] = np.float32(values[line, x]) * scale[x] + shift[x]
