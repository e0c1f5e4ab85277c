"""Wide residual networks, post-activation, as the focal-loss papers trained them."""

from __future__ import annotations

from torch import nn

from equipoise.models.network import Network, make_head
from equipoise.models.residual import BasicBlock, ResidualBody, Stage, init_he_fan_out, make_stages
from equipoise.models.resnet_cifar import blocks_per_stage

__all__ = ["wide_resnet"]


def wide_resnet(n_classes: int = 10, in_channels: int = 3, *, depth: int = 26, width: int = 10) -> Network:
    """Return a wide ResNet for 32x32 images; 26-10 has 36,481,434 parameters at ten classes.

    Three stages of basic blocks, ``width`` times as wide as the 6n+2 ResNet of the same depth; no dropout;
    He-normal kernels by fan-out.

    Args:
        n_classes: Number of classes.
        in_channels: 3 for color, 1 for gray.
        depth: Layers with weights: 6n+2. The calibration papers use 26 and 32.
        width: Widening factor.

    Returns:
        The network, with features of ``64 * width`` numbers.

    Example:
        >>> import torch
        >>> from equipoise.models import count_parameters
        >>> with torch.device("meta"):
        ...     count_parameters(wide_resnet())
        36481434

    Reference:
        Zagoruyko & Komodakis (2016), Wide residual networks; depth, order and initialization as in
        torrvision/focal_calibration.

    Differs from the authors' code:
        Zagoruyko's blocks are pre-activation, and his depths 6n+4. Nothing known against the focal
        repository.
    """
    n_blocks = blocks_per_stage(depth, where="wide_resnet")
    if width < 1:
        raise ValueError(f"wide_resnet: `width` must be at least 1, got {width}. The papers use 10.")
    shapes = [Stage(n_blocks=n_blocks, width=w * width, stride=s) for w, s in ((16, 1), (32, 2), (64, 2))]
    head = make_head(64 * width, n_classes, where="wide_resnet")
    stem = nn.Conv2d(in_channels, 16, 3, padding=1, bias=False)
    body = ResidualBody(stem, make_stages(BasicBlock, 16, shapes))
    init_he_fan_out(body)
    return Network(body, head, channels_last=True)
