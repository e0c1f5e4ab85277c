"""Other views of a batch, by name: what an auxiliary network may be shown instead of what the primary sees."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

import torch
from torch import Tensor

from equipoise.data import flip_images, shift_crop
from equipoise.training import Inputs

__all__ = ["VIEWS", "add_noise", "flip_half", "shift_each"]

_PADDING = 4
_NOISE = 0.1


def flip_half(inputs: Inputs) -> Tensor:
    """Mirror every second image, by chance, from left to right.

    Example:
        >>> flip_half(torch.zeros(2, 3, 8, 8)).shape
        torch.Size([2, 3, 8, 8])
    """
    images = _tensor(inputs)
    return flip_images(images, torch.rand(len(images), dtype=torch.float32, device=images.device) < 0.5)


def shift_each(inputs: Inputs) -> Tensor:
    """Shift each image by up to four pixels either way; what comes in is the mean color.

    Example:
        >>> shift_each(torch.zeros(2, 3, 8, 8)).shape
        torch.Size([2, 3, 8, 8])
    """
    images = _tensor(inputs)
    top, left = torch.randint(0, 2 * _PADDING + 1, (2, len(images)), device=images.device)
    return shift_crop(images, top, left, padding=_PADDING)


def add_noise(inputs: Inputs) -> Tensor:
    """Add normal noise of a tenth of the inputs' unit; for features and images alike.

    Example:
        >>> add_noise(torch.zeros(2, 3)).shape
        torch.Size([2, 3])
    """
    values = _tensor(inputs)
    return values + _NOISE * torch.randn_like(values)


def _tensor(inputs: Inputs) -> Tensor:
    if isinstance(inputs, Tensor):
        return inputs
    raise TypeError(
        "augment: expected one tensor of inputs, got named ones. Pass a function of your own as `augment`."
    )


#: Name and function.
VIEWS: Mapping[str, Callable[[Inputs], Tensor]] = MappingProxyType(
    {"flip": flip_half, "noise": add_noise, "shift": shift_each}
)
