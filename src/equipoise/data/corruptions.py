"""Corrupted images at five severities, with the strengths of CIFAR-10-C."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import conv2d, pad

from equipoise.core.names import look_up
from equipoise.core.seeds import numpy_generator
from equipoise.data.dataset import Dataset
from equipoise.data.streaming import ImageFiles

__all__ = ["CORRUPTIONS", "corrupt", "corrupt_images"]


def _gaussian_noise(images: Tensor, strength: float, random: np.random.Generator) -> Tensor:
    return images + strength * _normal(images, random)


def _speckle_noise(images: Tensor, strength: float, random: np.random.Generator) -> Tensor:
    return images + strength * images * _normal(images, random)


def _shot_noise(images: Tensor, strength: float, random: np.random.Generator) -> Tensor:
    counts = random.poisson((images * strength).double().numpy())
    return torch.from_numpy(counts).to(images.dtype) / strength


def _impulse_noise(images: Tensor, strength: float, random: np.random.Generator) -> Tensor:
    chance = torch.from_numpy(random.random(tuple(images.shape), dtype=np.float32))
    extreme = (chance < strength / 2).to(images.dtype)
    return torch.where(chance < strength, extreme, images)


def _gaussian_blur(images: Tensor, strength: float, random: np.random.Generator) -> Tensor:
    reach = int(4 * strength + 0.5)
    place = torch.arange(-reach, reach + 1, dtype=images.dtype)
    weight = torch.exp(-0.5 * (place / strength) ** 2)
    weight = weight / weight.sum()
    n, channels, height, width = images.shape
    flat = pad(images.reshape(n * channels, 1, height, width), (reach,) * 4, mode="replicate")
    blurred = conv2d(conv2d(flat, weight.view(1, 1, -1, 1)), weight.view(1, 1, 1, -1))
    return blurred.view(n, channels, height, width)


def _contrast(images: Tensor, strength: float, random: np.random.Generator) -> Tensor:
    mean = images.mean(dim=(2, 3), keepdim=True)
    return (images - mean) * strength + mean


def _brightness(images: Tensor, strength: float, random: np.random.Generator) -> Tensor:
    # The value of hue-saturation-value is the largest channel; raising it scales all channels alike.
    value = images.amax(dim=1, keepdim=True)
    raised = (value + strength).clamp(max=1)
    return torch.where(value > 0, images * raised / value.clamp(min=1e-12), raised)


def _normal(images: Tensor, random: np.random.Generator) -> Tensor:
    return torch.from_numpy(random.standard_normal(tuple(images.shape), dtype=np.float32))


_Corruption = Callable[[Tensor, float, np.random.Generator], Tensor]

_TABLE: dict[str, tuple[_Corruption, Sequence[float]]] = {
    "brightness": (_brightness, (0.05, 0.1, 0.15, 0.2, 0.3)),
    "contrast": (_contrast, (0.75, 0.5, 0.4, 0.3, 0.15)),
    "gaussian_blur": (_gaussian_blur, (0.4, 0.6, 0.7, 0.8, 1.0)),
    "gaussian_noise": (_gaussian_noise, (0.04, 0.06, 0.08, 0.09, 0.10)),
    "impulse_noise": (_impulse_noise, (0.01, 0.02, 0.03, 0.05, 0.07)),
    "shot_noise": (_shot_noise, (500, 250, 100, 75, 50)),
    "speckle_noise": (_speckle_noise, (0.06, 0.1, 0.12, 0.16, 0.2)),
}

#: Name and strength at each of the five severities.
CORRUPTIONS: Mapping[str, tuple[float, ...]] = MappingProxyType(
    {name: tuple(strengths) for name, (_, strengths) in _TABLE.items()}
)


def corrupt_images(images: Tensor, name: str, *, severity: int, seed: int = 0) -> Tensor:
    """Corrupt images.

    Args:
        images: uint8 ``(n, c, h, w)``.
        name: One of :data:`CORRUPTIONS`.
        severity: 1 to 5.
        seed: Of the noise.

    Returns:
        New uint8 images of the same shape, stored channels-last.

    Raises:
        SpecError: If there is no such corruption.

    Example:
        >>> gray = torch.full((1, 1, 4, 4), 100, dtype=torch.uint8)
        >>> corrupt_images(gray, "contrast", severity=5).unique()
        tensor([100], dtype=torch.uint8)

    Reference:
        Hendrycks and Dietterich (2019), Benchmarking Neural Network Robustness to Common Corruptions.

    Differs from the authors' code:
        Noise comes from a seeded generator, image after image.
    """
    function, strengths = look_up(name, _TABLE, what="corruption")
    if severity not in range(1, len(strengths) + 1):
        raise ValueError(f"corrupt: `severity` must be 1 to {len(strengths)}, got {severity}.")
    result = torch.empty_like(images, memory_format=torch.channels_last)
    size = max(1, 2**22 // max(math.prod(images.shape[1:]), 1))
    for start in range(0, len(images), size):
        random = numpy_generator(seed, "corrupt", name, severity, start)
        part = images[start : start + size].to(torch.float32, memory_format=torch.contiguous_format) / 255
        changed = function(part, strengths[severity - 1], random)
        result[start : start + size] = (changed.clamp(0, 1) * 255).to(torch.uint8)
    return result


def corrupt(dataset: Dataset, name: str, *, severity: int, split: str = "test", seed: int = 0) -> Dataset:
    """Corrupt one split of a dataset, and keep no other.

    Args:
        dataset: Images in memory.
        name: One of :data:`CORRUPTIONS`.
        severity: 1 to 5.
        split: What to corrupt.
        seed: Of the noise.

    Returns:
        A dataset with that split only, its rows in the same order, to be judged and not trained on.

    Raises:
        ValueError: If the images are not in memory.

    Example:
        >>> from equipoise.data import load
        >>> noisy = corrupt(load("digits"), "gaussian_noise", severity=5)
        >>> list(noisy.splits)
        ['test']
    """
    if isinstance(dataset.inputs, ImageFiles) or dataset.kind != "image":
        raise ValueError(
            f"corrupt: images in memory are needed, and {dataset.name} has none. Load with in_memory."
        )
    rows = dataset.rows(split)
    return dataclasses.replace(
        dataset,
        name=f"{dataset.name}_{name}_{severity}",
        inputs=corrupt_images(dataset.inputs[rows], name, severity=severity, seed=seed),
        labels=dataset.labels[rows],
        splits={split: torch.arange(len(rows))},
        soft_labels=None if dataset.soft_labels is None else dataset.soft_labels[rows],
    )
