"""Small networks for trying things out on a CPU: for tables and features, images, and dense prediction."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor, nn

from equipoise.models.network import Network, check_classes, make_head
from equipoise.models.pooling import GlobalMean
from equipoise.models.residual import init_he_fan_out

__all__ = ["mlp", "small_cnn", "small_fcn"]


def mlp(
    n_classes: int = 10, n_inputs: int = 64, *, hidden: Sequence[int] = (128, 128), dropout: float = 0.0
) -> Network:
    """Return linear layers with rectifiers between them.

    Args:
        n_classes: Number of classes.
        n_inputs: Numbers per sample; inputs of any shape are flattened to it.
        hidden: Widths of the hidden layers; ``()`` makes a linear classifier.
        dropout: Probability that a hidden number is zeroed while training.

    Returns:
        The network, with as many features as the last hidden layer is wide.

    Example:
        >>> import torch
        >>> mlp(n_classes=10, n_inputs=64)(torch.zeros(2, 8, 8)).shape
        torch.Size([2, 10])
        >>> mlp(n_classes=3, n_inputs=4, hidden=())
        Network(
          (body): Sequential(
            (0): Flatten(start_dim=1, end_dim=-1)
          )
          (head): Linear(in_features=4, out_features=3, bias=True)
        )
    """
    if n_inputs < 1 or any(width < 1 for width in hidden):
        raise ValueError(
            f"mlp: `n_inputs` and every width in `hidden` must be at least 1, "
            f"got {n_inputs} and {tuple(hidden)}. For a linear classifier pass hidden=()."
        )
    layers: list[nn.Module] = [nn.Flatten()]
    n_in = n_inputs
    for width in hidden:
        layers += [nn.Linear(n_in, width), nn.ReLU()]
        if dropout:
            layers.append(nn.Dropout(dropout))
        n_in = width
    return Network(nn.Sequential(*layers), make_head(n_in, n_classes, where="mlp"))


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
