"""Pairs of known and out-of-distribution images, to ask whether confidence tells them apart."""

from __future__ import annotations

import dataclasses
import os
from dataclasses import dataclass

from equipoise.core.errors import DataError
from equipoise.data.corruptions import CORRUPTIONS, corrupt
from equipoise.data.dataset import Dataset
from equipoise.data.loading import load
from equipoise.data.streaming import ImageFiles

__all__ = ["OodPair", "ood_pair"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class OodPair:
    """Data a network was made for, and data it was not.

    Attributes:
        inside: What it was trained on; judged on ``test``.
        outside: Out-of-distribution data; judged on ``test``, and normalized as ``inside`` is.

    Example:
        >>> ood_pair("digits", "contrast").outside.name
        'digits_contrast_5'
    """

    inside: Dataset
    outside: Dataset


def ood_pair(
    inside: str | Dataset,
    outside: str | Dataset,
    *,
    root: str | os.PathLike[str] | None = None,
    seed: int = 0,
    download: bool = False,
    severity: int = 5,
) -> OodPair:
    """Pair a dataset with an out-of-distribution one, or with its own test images corrupted.

    Args:
        inside: A name or a dataset.
        outside: A name, a dataset, or the name of a corruption.
        root: The data folder, for names.
        seed: Of splits and noise.
        download: Bring what is not there.
        severity: Of the corruption, 1 to 5.

    Returns:
        Two datasets with ``test`` rows of one shape; gray images become color images if the others are.

    Raises:
        DataError: If their images differ in shape otherwise.

    Example:
        >>> pair = ood_pair("digits", "gaussian_noise", severity=3)
        >>> pair.inside.mean is pair.outside.mean
        True
    """
    known = load(inside, root=root, seed=seed, download=download) if isinstance(inside, str) else inside
    if isinstance(outside, str) and outside in CORRUPTIONS:
        return OodPair(inside=known, outside=corrupt(known, outside, severity=severity, seed=seed))
    other = load(outside, root=root, seed=seed, download=download) if isinstance(outside, str) else outside
    other = _in_color(other, _shape(known))
    if _shape(known) != _shape(other):
        raise DataError(
            f"ood_pair: both must have inputs of one shape, got {_shape(known)} of {known.name} and "
            f"{_shape(other)} of {other.name}. CIFAR goes with SVHN, MNIST with Fashion-MNIST; smaller gray images "
            "are put into the middle of color ones."
        )
    return OodPair(inside=known, outside=dataclasses.replace(other, mean=known.mean, std=known.std))


def _in_color(other: Dataset, shape: tuple[int, ...]) -> Dataset:
    """Show gray images as color images of the wanted size, in the middle of black, if they are not larger."""
    images = other.inputs
    if isinstance(images, ImageFiles) or len(shape) != 3 or images.ndim != 4:
        return other
    n, channels, height, width = images.shape
    if (channels, shape[0]) != (1, 3) or height > shape[1] or width > shape[2]:
        return other
    top, left = (shape[1] - height) // 2, (shape[2] - width) // 2
    shown = images.new_zeros(n, *shape)
    shown[:, :, top : top + height, left : left + width] = images
    return dataclasses.replace(other, inputs=shown)


def _shape(dataset: Dataset) -> tuple[int, ...]:
    if isinstance(dataset.inputs, ImageFiles):
        return (3, dataset.inputs.size, dataset.inputs.size)
    return tuple(dataset.inputs.shape[1:])
