"""Densely connected networks for 32x32 images."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional

from equipoise.models.network import Network, make_head
from equipoise.models.pooling import mean_over_image
from equipoise.models.residual import init_he_fan_out

__all__ = ["densenet40", "densenet121"]


class PlainLayer(nn.Module):
    """Normalize, rectify, convolve 3x3; the result is put before the input."""

    def __init__(self, n_in: int, growth: int) -> None:
        super().__init__()
        self.bn1 = nn.BatchNorm2d(n_in)
        self.conv1 = nn.Conv2d(n_in, growth, 3, padding=1, bias=False)

    def forward(self, inputs: Tensor) -> Tensor:
        """Return the new channels, then the old ones."""
        return torch.cat([self.conv1(functional.relu_(self.bn1(inputs))), inputs], dim=1)


class BottleneckLayer(nn.Module):
    """A 1x1 convolution to four times the growth, then as :class:`PlainLayer`."""

    def __init__(self, n_in: int, growth: int) -> None:
        super().__init__()
        self.bn1 = nn.BatchNorm2d(n_in)
        self.conv1 = nn.Conv2d(n_in, 4 * growth, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(4 * growth)
        self.conv2 = nn.Conv2d(4 * growth, growth, 3, padding=1, bias=False)

    def forward(self, inputs: Tensor) -> Tensor:
        """Return the new channels, then the old ones."""
        hidden = self.conv1(functional.relu_(self.bn1(inputs)))
        return torch.cat([self.conv2(functional.relu_(self.bn2(hidden))), inputs], dim=1)


class Transition(nn.Module):
    """Normalize, rectify, convolve 1x1, average 2x2."""

    def __init__(self, n_in: int, n_out: int) -> None:
        super().__init__()
        self.bn = nn.BatchNorm2d(n_in)
        self.conv = nn.Conv2d(n_in, n_out, 1, bias=False)

    def forward(self, inputs: Tensor) -> Tensor:
        """Thin the image twofold."""
        return functional.avg_pool2d(self.conv(functional.relu_(self.bn(inputs))), 2)


class DenseBody(nn.Module):
    """Stem, dense blocks with transitions between them, last norm, average pool."""

    def __init__(
        self,
        layer: type[PlainLayer] | type[BottleneckLayer],
        n_layers: Sequence[int],
        in_channels: int,
        *,
        n_stem: int,
        growth: int,
        compression: float,
    ) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(in_channels, n_stem, 3, padding=1, bias=False)
        self.n_blocks = len(n_layers)
        n_channels = n_stem
        for number, n in enumerate(n_layers, start=1):
            layers = [layer(n_channels + place * growth, growth) for place in range(n)]
            self.add_module(f"dense{number}", nn.Sequential(*layers))
            n_channels += n * growth
            if number < self.n_blocks:
                n_kept = int(n_channels * compression)
                self.add_module(f"trans{number}", Transition(n_channels, n_kept))
                n_channels = n_kept
        self.bn = nn.BatchNorm2d(n_channels)
        self.n_features = n_channels

    def forward(self, inputs: Tensor) -> Tensor:
        """Return features ``(n, d)``."""
        hidden: Tensor = self.conv1(inputs)
        for number in range(1, self.n_blocks + 1):
            hidden = self.get_submodule(f"dense{number}")(hidden)
            if number < self.n_blocks:
                hidden = self.get_submodule(f"trans{number}")(hidden)
        return mean_over_image(functional.relu_(self.bn(hidden)))


def densenet121(n_classes: int = 10, in_channels: int = 3) -> Network:
    """Return DenseNet-121 for 32x32 images: 6,956,298 parameters at ten classes.

    Growth 32, blocks of 6, 12, 24 and 16 bottleneck layers, compression 0.5, a 3x3 stem of 64 channels
    and stride 1; torch's default initialization.

    Args:
        n_classes: Number of classes.
        in_channels: 3 for color, 1 for gray.

    Returns:
        The network, with features of 1024 numbers.

    Example:
        >>> from equipoise.models import count_parameters
        >>> with torch.device("meta"):
        ...     count_parameters(densenet121())
        6956298

    Reference:
        Huang et al. (2017), Densely connected convolutional networks; stem as in
        torrvision/focal_calibration.

    Differs from the authors' code:
        Pools over the whole map instead of 4x4 pixels, which is the same at 32x32.
    """
    body = DenseBody(BottleneckLayer, (6, 12, 24, 16), in_channels, n_stem=64, growth=32, compression=0.5)
    head = make_head(body.n_features, n_classes, where="densenet121")
    return Network(body, head, channels_last=True)


def densenet40(n_classes: int = 10, in_channels: int = 3) -> Network:
    """Return DenseNet-40 for 32x32 images: 1,019,722 parameters at ten classes.

    Growth 12, three blocks of 12 plain layers, neither bottleneck nor compression, a stem of 16 channels;
    He-normal kernels by fan-out. See :func:`densenet121`.

    Example:
        >>> from equipoise.models import count_parameters
        >>> with torch.device("meta"):
        ...     count_parameters(densenet40())
        1019722

    Reference:
        Huang et al. (2017), Densely connected convolutional networks, table 2.
    """
    body = DenseBody(PlainLayer, (12, 12, 12), in_channels, n_stem=16, growth=12, compression=1.0)
    head = make_head(body.n_features, n_classes, where="densenet40")
    init_he_fan_out(body)
    return Network(body, head, channels_last=True)
