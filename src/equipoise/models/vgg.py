"""VGG-16 with batch norm for 32x32 images."""

from __future__ import annotations

from torch import Tensor, nn

from equipoise.models.network import Network, make_head
from equipoise.models.pooling import mean_over_image

__all__ = ["vgg16_bn"]

_WIDTHS = ((64, 64), (128, 128), (256, 256, 256), (512, 512, 512), (512, 512, 512))


class VggBody(nn.Module):
    """Thirteen 3x3 convolutions with batch norm, a max-pool after each group."""

    def __init__(self, in_channels: int) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        n_in = in_channels
        for group in _WIDTHS:
            for width in group:
                convolution = nn.Conv2d(n_in, width, 3, padding=1)
                layers += [convolution, nn.BatchNorm2d(width), nn.ReLU(inplace=True)]
                n_in = width
            # Rounded up, so that 28x28 images outlive five halvings; nothing changes at 32x32.
            layers.append(nn.MaxPool2d(2, ceil_mode=True))
        self.features = nn.Sequential(*layers)

    def forward(self, inputs: Tensor) -> Tensor:
        """Return features ``(n, 512)``."""
        return mean_over_image(self.features(inputs))


def vgg16_bn(n_classes: int = 10, in_channels: int = 3) -> Network:
    """Return VGG-16 with batch norm for 32x32 images: 14,728,266 parameters at ten classes.

    The usual CIFAR form: thirteen convolutions, then one linear layer instead of three.

    Args:
        n_classes: Number of classes.
        in_channels: 3 for color, 1 for gray.

    Returns:
        The network, with features of 512 numbers.

    Example:
        >>> import torch
        >>> from equipoise.models import count_parameters
        >>> with torch.device("meta"):
        ...     count_parameters(vgg16_bn())
        14728266

    Reference:
        Simonyan & Zisserman (2015), Very deep convolutional networks, configuration D.

    Differs from the authors' code:
        Batch norm, and one linear layer instead of three, as everyone does for CIFAR; torch's default
        initialization.
    """
    head = make_head(512, n_classes, where="vgg16_bn")
    return Network(VggBody(in_channels), head, channels_last=True)
