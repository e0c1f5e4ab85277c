"""Residual networks of four stages: the focal-loss papers' for 32x32, and those for 64 and 224 pixels."""

from __future__ import annotations

from torch import nn

from equipoise.models.network import Network, make_head
from equipoise.models.residual import (
    BasicBlock,
    Block,
    Bottleneck,
    ResidualBody,
    Stage,
    init_he_fan_out,
    make_stages,
)

__all__ = ["resnet18", "resnet34", "resnet50", "resnet50_imagenet", "resnet50_tiny", "resnet110_focal"]

_WIDTHS = (64, 128, 256, 512)
_STRIDES = (1, 2, 2, 2)


def make_body(
    block: Block,
    n_blocks: tuple[int, int, int, int],
    in_channels: int,
    *,
    large_images: bool = False,
    pool: int | None = 1,
    strides: tuple[int, ...] = _STRIDES,
    dilations: tuple[int, ...] = (1, 1, 1, 1),
) -> ResidualBody:
    """Return a body of four stages; for large images its stem thins them fourfold first."""
    stem = (
        nn.Conv2d(in_channels, 64, 7, stride=2, padding=3, bias=False)
        if large_images
        else nn.Conv2d(in_channels, 64, 3, padding=1, bias=False)
    )
    shapes = zip(n_blocks, _WIDTHS, strides, dilations, strict=True)
    stages = make_stages(
        block, 64, [Stage(n_blocks=n, width=w, stride=s, dilation=d) for n, w, s, d in shapes]
    )
    return ResidualBody(stem, stages, stem_pool=large_images, pool=pool)


def _make_small(
    block: Block, n_blocks: tuple[int, int, int, int], n_classes: int, in_channels: int, *, where: str
) -> Network:
    head = make_head(512 * block.expansion, n_classes, where=where)
    return Network(make_body(block, n_blocks, in_channels), head, channels_last=True)


def resnet18(n_classes: int = 10, in_channels: int = 3) -> Network:
    """Return ResNet-18 for 32x32 images: 11,173,962 parameters at ten classes.

    The stem is a 3x3 convolution of stride 1 without a max-pool; kernels have torch's default
    initialization. Any image side from 8 pixels works.

    Args:
        n_classes: Number of classes.
        in_channels: 3 for color, 1 for gray.

    Returns:
        The network, with features of 512 numbers.

    Example:
        >>> import torch
        >>> from equipoise.models import count_parameters
        >>> with torch.device("meta"):
        ...     count_parameters(resnet18())
        11173962

    Reference:
        He et al. (2016), Deep residual learning; widths and stem as in torrvision/focal_calibration.

    Differs from the authors' code:
        Pools over the whole map instead of 4x4 pixels, which is the same at 32x32; no built-in temperature.
    """
    return _make_small(BasicBlock, (2, 2, 2, 2), n_classes, in_channels, where="resnet18")


def resnet34(n_classes: int = 10, in_channels: int = 3) -> Network:
    """Return ResNet-34 for 32x32 images: 21,282,122 parameters at ten classes. See :func:`resnet18`.

    Example:
        >>> import torch
        >>> from equipoise.models import count_parameters
        >>> with torch.device("meta"):
        ...     count_parameters(resnet34())
        21282122
    """
    return _make_small(BasicBlock, (3, 4, 6, 3), n_classes, in_channels, where="resnet34")


def resnet50(n_classes: int = 10, in_channels: int = 3) -> Network:
    """Return ResNet-50 for 32x32 images: 23,520,842 parameters at ten classes. See :func:`resnet18`.

    Example:
        >>> import torch
        >>> from equipoise.models import count_parameters
        >>> with torch.device("meta"):
        ...     count_parameters(resnet50())
        23520842
    """
    return _make_small(Bottleneck, (3, 4, 6, 3), n_classes, in_channels, where="resnet50")


def resnet110_focal(n_classes: int = 10, in_channels: int = 3) -> Network:
    """Return what the focal-loss papers call ResNet-110: 45,864,522 parameters at ten classes.

    A bottleneck network with 3, 4, 26 and 3 blocks. It is *not* the ResNet-110 of He et al., which has
    1.7 million parameters and is :func:`resnet110`. See :func:`resnet18` for stem and pool.

    Example:
        >>> import torch
        >>> from equipoise.models import count_parameters
        >>> with torch.device("meta"):
        ...     count_parameters(resnet110_focal())
        45864522

    Reference:
        Mukhoti et al. (2020), Calibrating deep neural networks using focal loss; their repository.
    """
    return _make_small(Bottleneck, (3, 4, 26, 3), n_classes, in_channels, where="resnet110_focal")


def resnet50_tiny(n_classes: int = 200, in_channels: int = 3) -> Network:
    """Return ResNet-50 for 64x64 images such as Tiny-ImageNet: 25,138,952 parameters at 200 classes.

    As :func:`resnet50`, but pooled to 2x2 before the head (8192 features), with He-normal kernels by fan-out.

    Example:
        >>> import torch
        >>> from equipoise.models import count_parameters
        >>> with torch.device("meta"):
        ...     count_parameters(resnet50_tiny())
        25138952

    Reference:
        Mukhoti et al. (2020), Calibrating deep neural networks using focal loss; their repository.
    """
    head = make_head(4 * 2048, n_classes, where="resnet50_tiny")
    body = make_body(Bottleneck, (3, 4, 6, 3), in_channels, pool=2)
    init_he_fan_out(body)
    return Network(body, head, channels_last=True)


def resnet50_imagenet(n_classes: int = 1000, in_channels: int = 3) -> Network:
    """Return ResNet-50 for 224x224 images such as ImageNet: 25,557,032 parameters at 1000 classes.

    The stem is a 7x7 convolution of stride 2 and a 3x3 max-pool of stride 2; the 3x3 convolution of a
    bottleneck carries the stride; He-normal kernels by fan-out.

    Args:
        n_classes: Number of classes.
        in_channels: 3 for color, 1 for gray.

    Example:
        >>> import torch
        >>> from equipoise.models import count_parameters
        >>> with torch.device("meta"):
        ...     count_parameters(resnet50_imagenet())
        25557032

    Reference:
        He et al. (2016), Deep residual learning.

    Differs from the authors' code:
        The stride sits in the 3x3 convolution, not the first 1x1 one, as in all present-day code.
    """
    head = make_head(2048, n_classes, where="resnet50_imagenet")
    body = make_body(Bottleneck, (3, 4, 6, 3), in_channels, large_images=True)
    init_he_fan_out(body)
    return Network(body, head, channels_last=True)
