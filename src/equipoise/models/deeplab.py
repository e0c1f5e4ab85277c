"""DeepLabV3 with a ResNet-34 encoder: one decision per pixel."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from equipoise.models.network import Network, check_classes
from equipoise.models.residual import BasicBlock, init_he_fan_out
from equipoise.models.resnet import make_body

__all__ = ["deeplabv3_resnet34"]

_STRIDE = 8
_WIDTH = 256
_RATES = (12, 24, 36)


def _conv_norm(n_in: int, n_out: int, kernel: int, *, dilation: int = 1) -> nn.Sequential:
    padding = dilation * (kernel // 2)
    convolution = nn.Conv2d(n_in, n_out, kernel, padding=padding, dilation=dilation, bias=False)
    return nn.Sequential(convolution, nn.BatchNorm2d(n_out), nn.ReLU(inplace=True))


class AtrousPyramid(nn.Module):
    """The same map seen at five scales: pixel, three dilated neighborhoods, the whole image."""

    def __init__(self, n_in: int, *, dropout: float) -> None:
        super().__init__()
        self.scales = nn.ModuleList(
            [_conv_norm(n_in, _WIDTH, 1), *(_conv_norm(n_in, _WIDTH, 3, dilation=rate) for rate in _RATES)]
        )
        self.whole = _conv_norm(n_in, _WIDTH, 1)
        self.project = _conv_norm((len(self.scales) + 1) * _WIDTH, _WIDTH, 1)
        self.dropout = nn.Dropout(dropout)

    def forward(self, image: Tensor) -> Tensor:
        """Map ``(n, c, h, w)`` to ``(n, 256, h, w)``."""
        whole = self.whole(functional.adaptive_avg_pool2d(image, 1)).expand(-1, -1, *image.shape[-2:])
        seen: Tensor = self.dropout(
            self.project(torch.cat([*(scale(image) for scale in self.scales), whole], dim=1))
        )
        return seen


class DeepLabBody(nn.Module):
    """Encoder at an eighth of the resolution, pyramid, one more convolution."""

    def __init__(self, in_channels: int, *, dropout: float) -> None:
        super().__init__()
        self.encoder = make_body(
            BasicBlock,
            (3, 4, 6, 3),
            in_channels,
            large_images=True,
            pool=None,
            strides=(1, 2, 1, 1),
            dilations=(1, 1, 2, 4),
        )
        self.pyramid = AtrousPyramid(512, dropout=dropout)
        self.last = _conv_norm(_WIDTH, _WIDTH, 3)

    def forward(self, inputs: Tensor) -> Tensor:
        """Return features ``(n, 256, h/8, w/8)``."""
        height, width = inputs.shape[-2:]
        if height % _STRIDE or width % _STRIDE:
            up = tuple(-(-side // _STRIDE) * _STRIDE for side in (height, width))
            raise ValueError(
                f"deeplabv3_resnet34: the sides of an image must be multiples of {_STRIDE}, "
                f"got {height}x{width}. Pad it to {up[0]}x{up[1]}, and its labels with the ignored class."
            )
        features: Tensor = self.last(self.pyramid(self.encoder(inputs)))
        return features


class DenseHead(nn.Module):
    """A 1x1 convolution, then bilinear enlargement to the size of the image."""

    def __init__(self, n_features: int, n_classes: int, *, stride: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(n_features, n_classes, 1)
        self.in_channels = n_features
        self.out_channels = n_classes
        self.stride = stride

    def forward(self, features: Tensor) -> Tensor:
        """Return logits ``(n, k, h, w)``."""
        return functional.interpolate(
            self.conv(features), scale_factor=float(self.stride), mode="bilinear", align_corners=True
        )


def deeplabv3_resnet34(n_classes: int = 21, in_channels: int = 3, *, dropout: float = 0.5) -> Network:
    """Return DeepLabV3 with a ResNet-34 encoder: logits ``(n, k, h, w)`` for images ``(n, 3, h, w)``.

    The last two stages of the encoder are dilated instead of thinned, so that features have an eighth of
    the resolution; the pyramid has dilations 12, 24 and 36; He-normal kernels by fan-out. While training, a
    batch holds at least two images, since the pyramid normalizes one number per image.

    Args:
        n_classes: Number of classes; 21 in VOC2012.
        in_channels: 3 for color, 1 for gray.
        dropout: Probability that a number of the pyramid is zeroed while training.

    Returns:
        The network, with 256 features per pixel of the map. The sides of images are multiples of 8.

    Example:
        >>> from equipoise.models import count_parameters
        >>> with torch.device("meta"):
        ...     count_parameters(deeplabv3_resnet34())
        26012245

    Reference:
        Chen et al. (2017), Rethinking atrous convolution for semantic image segmentation; encoder as in
        Liu et al. (2023), CALS.

    Differs from the authors' code:
        No pretrained encoder comes with it; no auxiliary head.
    """
    check_classes(n_classes, where="deeplabv3_resnet34")
    body = DeepLabBody(in_channels, dropout=dropout)
    init_he_fan_out(body)
    return Network(body, DenseHead(_WIDTH, n_classes, stride=_STRIDE), channels_last=True)
