"""Images that are read from disk when they are needed."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.utils.data import DataLoader
from torch.utils.data import Dataset as TorchDataset

from equipoise.core.errors import DataError, require

if TYPE_CHECKING:
    from PIL.Image import Image

__all__ = ["ImageFiles", "Request", "stream"]

#: What one batch needs: row numbers, and four random numbers per row or None.
Request = tuple[NDArray[np.int64], NDArray[np.float64] | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageFiles:
    """Image files of one size after reading, with or without a mask for each.

    Attributes:
        folder: Where the paths start.
        paths: One per image.
        size: Height and width of what is read.
        resize: The shorter side before the center is cut out; None leaves the image as it is and pads it
            to ``size`` on the right and below, as segmentation needs.
        masks: One per image, for segmentation.
        fill: The mask value of padding.
        maker: What gives the layers of a row instead of files; it must be the same for the same row.

    Example:
        >>> len(ImageFiles(folder=".", paths=("a.png", "b.png"), size=224, resize=256))
        2
    """

    folder: str
    paths: tuple[str, ...]
    size: int
    resize: int | None = None
    masks: tuple[str, ...] | None = None
    fill: int = 255
    maker: Callable[[int], list[Tensor]] | None = None

    def __len__(self) -> int:
        return len(self.paths)

    def read(self, row: int, *, draw: NDArray[np.float64] | None = None, area: float = 0.08) -> list[Tensor]:
        """Read one image, and its mask if there are masks.

        Args:
            row: Which one.
            draw: Four numbers in [0, 1) that choose a random part of the image, which is then resized;
                None takes the center.
            area: The smallest part of the image that may be chosen.

        Returns:
            The image ``(3, size, size)`` as uint8, then the mask ``(size, size)`` as uint8 if there is one.

        Raises:
            DataError: If a file is missing or cannot be read; it is named.
        """
        if self.maker is not None:
            return self.maker(row)
        image = _open(Path(self.folder) / self.paths[row], "RGB")
        layers = [image]
        if self.masks is not None:
            mask = _open(Path(self.folder) / self.masks[row], None)
            if mask.size != image.size:
                raise DataError(
                    f"{self.masks[row]}: a mask must have the size of its image {image.size}, got "
                    f"{mask.size}. "
                    "One of the two files is wrong."
                )
            layers.append(mask)
        if draw is not None:
            box = _random_box(image.size, draw, area)
            return [
                _resized(layer, box, (self.size, self.size), smooth=not k) for k, layer in enumerate(layers)
            ]
        if self.resize is None:
            return [_padded(layer, self.size, fill=self.fill if k else 0) for k, layer in enumerate(layers)]
        return [_center(layer, self.resize, self.size, smooth=not k) for k, layer in enumerate(layers)]


def stream(
    files: ImageFiles, requests: Sequence[Request], *, workers: int = 0, area: float = 0.08
) -> Iterator[tuple[Tensor, Tensor | None]]:
    """Read batches of images in worker processes, in order.

    Args:
        files: Where the images are.
        requests: One per batch: row numbers, and random numbers that choose a part of each image, or None.
        workers: How many processes; zero reads in this one.
        area: The smallest part of an image that may be chosen.

    Yields:
        Images ``(n, 3, size, size)`` and masks ``(n, size, size)`` or None, as uint8.
    """
    loader: DataLoader[Any] = DataLoader(
        _Requests(files, requests, area), batch_size=None, num_workers=workers, collate_fn=_as_is
    )
    yield from loader


def _as_is(item: Any) -> Any:
    return item


class _Requests(TorchDataset[tuple[Tensor, Tensor | None]]):
    """One item is one whole batch, so that a worker sends few and large messages."""

    def __init__(self, files: ImageFiles, requests: Sequence[Request], area: float) -> None:
        self._files, self._requests, self._area = files, requests, area

    def __len__(self) -> int:
        return len(self._requests)

    def __getitem__(self, step: int) -> tuple[Tensor, Tensor | None]:
        rows, draws = self._requests[step]
        read = [
            self._files.read(int(row), draw=None if draws is None else draws[place], area=self._area)
            for place, row in enumerate(rows)
        ]
        if not read:
            side = self._files.size
            empty = torch.empty(0, 3, side, side, dtype=torch.uint8)
            return empty, None if self._files.masks is None else empty[:, 0]
        images = torch.stack([layers[0] for layers in read])
        return images, None if self._files.masks is None else torch.stack([layers[1] for layers in read])


def _open(path: Path, mode: str | None) -> Image:
    pil = require("PIL.Image", extra="data", purpose="read image files")
    try:
        with pil.open(path) as handle:
            image: Image = handle.convert(mode) if mode else handle.copy()
            return image
    except FileNotFoundError:
        raise DataError(f"{path}: no such file. The dataset lists it; is the folder complete?") from None
    except (OSError, SyntaxError, ValueError) as error:
        raise DataError(
            f"{path}: expected an image, got something that cannot be read ({error}). Get the file again."
        ) from error


def _tensor(image: Image) -> Tensor:
    array = np.array(image, dtype=np.uint8)
    return torch.from_numpy(array if array.ndim == 2 else array.transpose(2, 0, 1).copy())


def _resized(
    image: Image, box: tuple[float, float, float, float], size: tuple[int, int], *, smooth: bool
) -> Tensor:
    pil = require("PIL.Image", extra="data", purpose="resize images")
    resample = pil.Resampling.BILINEAR if smooth else pil.Resampling.NEAREST
    return _tensor(image.resize(size, resample, box=box))


def _center(image: Image, resize: int, size: int, *, smooth: bool) -> Tensor:
    width, height = image.size
    side = min(width, height) * size / resize
    left, top = (width - side) / 2, (height - side) / 2
    if size > resize:
        left, top, side = max(left, 0.0), max(top, 0.0), min(side, width, height)
    return _resized(image, (left, top, left + side, top + side), (size, size), smooth=smooth)


def _padded(image: Image, size: int, *, fill: int) -> Tensor:
    values = _tensor(image)
    height, width = values.shape[-2:]
    if max(height, width) > size:
        raise DataError(
            f"an image must fit into {size} x {size} pixels, got {height} x {width}. Load with a larger size."
        )
    return torch.nn.functional.pad(values, (0, size - width, 0, size - height), value=fill)


def _random_box(
    size: tuple[int, int], draw: NDArray[np.float64], area: float
) -> tuple[float, float, float, float]:
    """Choose a part with ``area`` to 1 of the pixels and sides of 3:4 to 4:3."""
    width, height = size
    pixels = width * height * (area + (1 - area) * draw[0])
    aspect = math.exp((2 * draw[1] - 1) * math.log(4 / 3))
    part_width = min(math.sqrt(pixels * aspect), width)
    part_height = min(math.sqrt(pixels / aspect), height)
    left, top = (width - part_width) * draw[2], (height - part_height) * draw[3]
    return (left, top, left + part_width, top + part_height)
