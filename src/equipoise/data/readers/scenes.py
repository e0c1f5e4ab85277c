"""Scenes of colored patches: a small segmentation task, made on the fly, whose true posterior is known."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np
import torch
from torch import Tensor

from equipoise.core.seeds import numpy_generator
from equipoise.data.dataset import Dataset
from equipoise.data.streaming import ImageFiles

__all__ = ["SceneMaker", "scenes"]

_COLORS = ((200, 90, 90), (90, 190, 90), (90, 90, 200), (190, 190, 80), (80, 190, 190), (190, 80, 190))


@final
@dataclass(frozen=True, kw_only=True)
class SceneMaker:
    """Draws images of square patches, each of one class, whose color is noisy at every pixel.

    Attributes:
        n_classes: 2 to 6.
        size: Height and width.
        patch: Side of a patch.
        noise: Standard deviation of the color, in steps of 255.
        seed: Another seed draws others.

    Example:
        >>> image, mask = SceneMaker()(0)
        >>> tuple(image.shape), tuple(mask.shape), image.dtype
        ((3, 32, 32), (32, 32), torch.uint8)
    """

    n_classes: int = 4
    size: int = 32
    patch: int = 8
    noise: float = 60.0
    seed: int = 0

    def __call__(self, row: int) -> list[Tensor]:
        """Return an image ``(3, size, size)`` and its mask ``(size, size)``; the mask's border pixel is no class."""
        random = numpy_generator(self.seed, "scene", row)
        n_patches = -(-self.size // self.patch)
        coarse = random.integers(self.n_classes, size=(n_patches, n_patches))
        mask = np.kron(coarse, np.ones((self.patch, self.patch), dtype=np.int64))[: self.size, : self.size]
        clean = np.array(_COLORS[: self.n_classes], dtype=np.float64)[mask].transpose(2, 0, 1)
        image = (clean + self.noise * random.standard_normal(clean.shape)).round().clip(0, 255)
        shown = mask.astype(np.uint8)
        shown[[0, -1]] = 255
        return [torch.from_numpy(image.astype(np.uint8)), torch.from_numpy(shown)]

    def posterior(self, image: Tensor) -> Tensor:
        """Return the true probability of each class, ``(n_classes, size, size)``, by all pixels of each patch.

        Colors that were cut off at 0 and 255 are taken as they are, which matters little for moderate noise.
        """
        colors = torch.tensor(_COLORS[: self.n_classes], dtype=torch.float64)
        distance = ((image.double()[None] - colors[:, :, None, None]) ** 2).sum(1)
        joined = torch.nn.functional.avg_pool2d(
            distance[None], self.patch, ceil_mode=True, divisor_override=1
        )[0]
        whole = joined.repeat_interleave(self.patch, 1).repeat_interleave(self.patch, 2)
        return torch.softmax(-0.5 * whole[:, : self.size, : self.size] / self.noise**2, dim=0)


def scenes(
    *,
    n: int = 400,
    n_classes: int = 4,
    size: int = 32,
    patch: int = 8,
    noise: float = 60.0,
    seed: int = 0,
    tune: int = 40,
    calib: int = 40,
    test: int = 120,
) -> Dataset:
    """Make a segmentation task out of colored patches; images are drawn when they are needed, and never kept.

    Args:
        n: How many images.
        n_classes: 2 to 6.
        size: Height and width.
        patch: Side of a patch.
        noise: Standard deviation of colors, in steps of 255.
        seed: Of the images.
        tune: Images of ``tune``.
        calib: Images of ``calib``.
        test: Images of ``test``.

    Returns:
        Images and masks; 255 is no class. ``labels`` are zeros.

    Raises:
        ValueError: If sizes do not fit.

    Example:
        >>> data = scenes(n=20, tune=4, calib=4, test=4)
        >>> data.kind, len(data.rows("train"))
        ('segmentation', 8)
    """
    if not 2 <= n_classes <= len(_COLORS) or min(size, patch) < 1 or not noise > 0:
        raise ValueError(
            f"scenes: expected 2 to {len(_COLORS)} classes, sides of at least 1 and noise above 0, got "
            f"{n_classes} classes, size {size}, patch {patch} and noise {noise}."
        )
    if min(tune, calib, test) < 0 or tune + calib + test >= n:
        raise ValueError(
            f"scenes: `tune`, `calib` and `test` must leave some of {n} images, got {tune + calib + test}."
        )
    maker = SceneMaker(n_classes=n_classes, size=size, patch=patch, noise=noise, seed=seed)
    names = tuple(f"{row} of {maker!r}" for row in range(n))
    ends = np.cumsum([0, n - tune - calib - test, tune, calib, test]).tolist()
    return Dataset(
        name="scenes",
        kind="segmentation",
        inputs=ImageFiles(folder="", paths=names, masks=names, size=size, maker=maker),
        labels=torch.zeros(n, dtype=torch.int64),
        class_names=tuple(f"color {number}" for number in range(n_classes)),
        splits={
            name: torch.arange(start, end)
            for name, start, end in zip(("train", "tune", "calib", "test"), ends, ends[1:], strict=False)
            if end > start
        },
        mean=torch.full((3,), 0.5),
        std=torch.full((3,), 0.25),
        ignore_index=255,
    )
