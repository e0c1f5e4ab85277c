"""A small fully convolutional network: one decision per pixel, for trying out dense prediction."""

from __future__ import annotations

from torch import Tensor, nn

from equipoise.models.network import Network, check_classes
from equipoise.models.residual import init_he_fan_out

__all__ = ["small_fcn"]


class _Body(nn.Sequential):
    """Three convolutions at full resolution, the later ones dilated."""

    def __init__(self, in_channels: int, width: int) -> None:
        layers: list[nn.Module] = []
        for n_in, dilation in ((in_channels, 1), (width, 2), (width, 4)):
            layers += [
                nn.Conv2d(n_in, width, 3, padding=dilation, dilation=dilation, bias=False),
                nn.BatchNorm2d(width),
                nn.ReLU(inplace=True),
            ]
        super().__init__(*layers)


class _Head(nn.Module):
    """A 1x1 convolution."""

    def __init__(self, n_features: int, n_classes: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(n_features, n_classes, 1)
        self.in_channels = n_features
        self.out_channels = n_classes

    def forward(self, features: Tensor) -> Tensor:
        """Return logits ``(n, k, h, w)``."""
        logits: Tensor = self.conv(features)
        return logits


def small_fcn(n_classes: int = 4, in_channels: int = 3, *, width: int = 32) -> Network:
    """Return a fully convolutional network of four layers: logits ``(n, k, h, w)`` for images ``(n, c, h, w)``.

    Args:
        n_classes: Number of classes.
        in_channels: 3 for color, 1 for gray.
        width: Channels of each layer.

    Returns:
        The network; a pixel sees 15 by 15 pixels.

    Example:
        >>> import torch
        >>> tuple(small_fcn(5)(torch.zeros(1, 3, 8, 8)).shape)
        (1, 5, 8, 8)

    Reference:
        Long, Shelhamer and Darrell (2015), Fully convolutional networks for semantic segmentation; this one is ours.
    """
    check_classes(n_classes, where="small_fcn")
    body = _Body(in_channels, width)
    init_he_fan_out(body)
    return Network(body, _Head(width, n_classes), channels_last=True)
