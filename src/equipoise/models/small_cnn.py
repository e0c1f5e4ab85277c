"""A small convolutional network for trying things out on a CPU."""

from __future__ import annotations

from collections.abc import Sequence

from torch import nn

from equipoise.models.network import Network, make_head
from equipoise.models.pooling import GlobalMean

__all__ = ["small_cnn"]


def small_cnn(n_classes: int = 10, in_channels: int = 3, *, widths: Sequence[int] = (32, 64, 128)) -> Network:
    """Return a network of three convolutions: 21 million operations for a 32x32 image.

    Convolutions of 32, 64 and 128 channels with batch norm, a 2x2 max-pool after all but the last, average
    pool at the end. The weak "CNN" of mutual-learning tables, and the network for quick trials: on two
    cores an epoch of CIFAR-10 takes half a minute.

    Args:
        n_classes: Number of classes.
        in_channels: 3 for color, 1 for gray.
        widths: Channels of each convolution; halving them quarters the work.

    Returns:
        The network, with as many features as the last convolution has channels. Any image side from 4 pixels works.

    Raises:
        ValueError: If a width is not a positive number, or there is none.

    Example:
        >>> import torch
        >>> small_cnn(in_channels=1)(torch.zeros(2, 1, 28, 28)).shape
        torch.Size([2, 10])
    """
    if not widths or min(widths) < 1:
        raise ValueError(
            f"small_cnn: `widths` must be positive numbers, got {list(widths)}. (32, 64, 128) is usual."
        )
    layers: list[nn.Module] = []
    n_in = in_channels
    for number, width in enumerate(widths, start=1):
        layers += [nn.Conv2d(n_in, width, 3, padding=1, bias=False), nn.BatchNorm2d(width)]
        if number < len(widths):
            # The largest of the rectified is the largest, rectified: pooled first, a quarter is left to rectify.
            layers.append(nn.MaxPool2d(2))
        layers.append(nn.ReLU(inplace=True))
        n_in = width
    body = nn.Sequential(*layers, GlobalMean())
    return Network(body, make_head(n_in, n_classes, where="small_cnn"), channels_last=True)
