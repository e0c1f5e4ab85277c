"""The residual networks of depth 6n+2 that He et al. made for CIFAR, with stochastic depth, and wide."""

from __future__ import annotations

from torch import nn

from equipoise.core.names import check_choice
from equipoise.models.network import Network, make_head
from equipoise.models.residual import (
    BasicBlock,
    ResidualBody,
    Stage,
    StochasticDepth,
    init_he_fan_out,
    make_stages,
    padded_shortcut,
    projection_shortcut,
)

__all__ = [
    "cifar_resnet",
    "resnet8",
    "resnet20",
    "resnet32",
    "resnet44",
    "resnet56",
    "resnet110",
    "resnet110_sd",
    "wide_resnet",
]

_SHORTCUTS = {"A": padded_shortcut, "B": projection_shortcut}


def blocks_per_stage(depth: int, *, where: str) -> int:
    """Return *n* of a depth 6n+2, or raise with the nearest depths that have one.

    Example:
        >>> blocks_per_stage(20, where="cifar_resnet")
        3
        >>> blocks_per_stage(18, where="cifar_resnet")
        Traceback (most recent call last):
        ...
        ValueError: cifar_resnet: `depth` must be 6n+2 (8, 14, 20 ...), got 18. The nearest are 14 and 20.
    """
    n_blocks, rest = divmod(depth - 2, 6)
    if rest == 0 and n_blocks > 0:
        return n_blocks
    below = 6 * n_blocks + 2
    near = f"The nearest are {below} and {below + 6}." if n_blocks > 0 else "The least is 8."
    raise ValueError(f"{where}: `depth` must be 6n+2 (8, 14, 20 ...), got {depth}. {near}")


def cifar_resnet(
    n_classes: int = 10,
    in_channels: int = 3,
    *,
    depth: int,
    shortcut: str = "B",
    last_survival: float = 1.0,
) -> Network:
    """Return the residual network of depth 6n+2 for 32x32 images.

    Three stages of n basic blocks, 16, 32 and 64 channels wide; He-normal weights. Any image side from
    4 pixels works.

    Args:
        n_classes: Number of classes.
        in_channels: 3 for color, 1 for gray.
        depth: Layers with weights: 6n+2.
        shortcut: Where a stage widens, "A" pads with zero channels and learns nothing (the paper's choice
            for CIFAR, and that of most published checkpoints), "B" projects with a 1x1 convolution and
            batch norm (the choice of the calibration papers, whose ResNet-110 has 1,730,714 parameters).
        last_survival: Stochastic depth: probability that the last block is there while training; it falls
            linearly with depth. 1 keeps all blocks.

    Returns:
        The network, with features of 64 numbers.

    Example:
        >>> import torch
        >>> from equipoise.models import count_parameters
        >>> with torch.device("meta"):
        ...     [count_parameters(cifar_resnet(depth=20, shortcut=option)) for option in "AB"]
        [269722, 272474]

    Reference:
        He et al. (2016), Deep residual learning, section 4.2; Huang et al. (2016), Deep networks with
        stochastic depth.

    Differs from the authors' code:
        Names of layers and initialization are those of akamaster/pytorch_resnet_cifar10, so that its
        checkpoints load; Kull's group trained a pre-activation form.
    """
    where = "cifar_resnet"
    n_blocks = blocks_per_stage(depth, where=where)
    check_choice(shortcut, _SHORTCUTS, where=where, name="shortcut")
    if not 0.0 < last_survival <= 1.0:
        raise ValueError(
            f"{where}: `last_survival` must be in (0, 1], got {last_survival}. "
            "The paper uses 0.5; 1 keeps all blocks."
        )
    shapes = [Stage(n_blocks=n_blocks, width=w, stride=s) for w, s in ((16, 1), (32, 2), (64, 2))]
    stages = make_stages(BasicBlock, 16, shapes, shortcut=_SHORTCUTS[shortcut])
    head = make_head(64, n_classes, where=where)
    body = ResidualBody(nn.Conv2d(in_channels, 16, 3, padding=1, bias=False), stages)
    _init(body, head)
    if last_survival < 1.0:
        _let_blocks_drop(stages, last_survival)
    return Network(body, head, channels_last=True)


def _init(body: nn.Module, head: nn.Linear) -> None:
    for part in (*body.modules(), head):
        if isinstance(part, nn.Conv2d | nn.Linear):
            nn.init.kaiming_normal_(part.weight)


def _let_blocks_drop(stages: list[nn.Sequential], last_survival: float) -> None:
    n_blocks = sum(len(stage) for stage in stages)
    number = 0
    for stage in stages:
        for place, block in enumerate(stage):
            number += 1
            assert isinstance(block, BasicBlock)
            stage[place] = StochasticDepth(block, survival=1.0 - number / n_blocks * (1.0 - last_survival))


def resnet8(n_classes: int = 10, in_channels: int = 3, *, shortcut: str = "B") -> Network:
    """Return the 6n+2 ResNet of depth 8. See :func:`cifar_resnet`.

    Example:
        >>> from equipoise.models import count_parameters
        >>> count_parameters(resnet8())
        78042
    """
    return cifar_resnet(n_classes, in_channels, depth=8, shortcut=shortcut)


def resnet20(n_classes: int = 10, in_channels: int = 3, *, shortcut: str = "B") -> Network:
    """Return the 6n+2 ResNet of depth 20. See :func:`cifar_resnet`.

    Example:
        >>> import torch
        >>> resnet20()(torch.zeros(2, 3, 32, 32)).shape
        torch.Size([2, 10])
    """
    return cifar_resnet(n_classes, in_channels, depth=20, shortcut=shortcut)


def resnet32(n_classes: int = 10, in_channels: int = 3, *, shortcut: str = "B") -> Network:
    """Return the 6n+2 ResNet of depth 32. See :func:`cifar_resnet`.

    Example:
        >>> resnet32().n_features
        64
    """
    return cifar_resnet(n_classes, in_channels, depth=32, shortcut=shortcut)


def resnet44(n_classes: int = 10, in_channels: int = 3, *, shortcut: str = "B") -> Network:
    """Return the 6n+2 ResNet of depth 44. See :func:`cifar_resnet`.

    Example:
        >>> resnet44().n_features
        64
    """
    return cifar_resnet(n_classes, in_channels, depth=44, shortcut=shortcut)


def resnet56(n_classes: int = 10, in_channels: int = 3, *, shortcut: str = "B") -> Network:
    """Return the 6n+2 ResNet of depth 56. See :func:`cifar_resnet`.

    Example:
        >>> resnet56().n_features
        64
    """
    return cifar_resnet(n_classes, in_channels, depth=56, shortcut=shortcut)


def resnet110(n_classes: int = 10, in_channels: int = 3, *, shortcut: str = "B") -> Network:
    """Return the 6n+2 ResNet of depth 110: 1,730,714 parameters at ten classes. See :func:`cifar_resnet`.

    The focal-loss papers call another network ResNet-110: :func:`resnet110_focal`.

    Example:
        >>> import torch
        >>> from equipoise.models import count_parameters
        >>> with torch.device("meta"):
        ...     count_parameters(resnet110()), count_parameters(resnet110(shortcut="A"))
        (1730714, 1727962)
    """
    return cifar_resnet(n_classes, in_channels, depth=110, shortcut=shortcut)


def resnet110_sd(
    n_classes: int = 10, in_channels: int = 3, *, shortcut: str = "B", last_survival: float = 0.5
) -> Network:
    """Return ResNet-110 with stochastic depth: survival falls linearly from 1 to 0.5.

    See :func:`cifar_resnet`. While training, a block is skipped for the whole batch, which saves its time;
    in evaluation its residual is multiplied by its survival.

    Example:
        >>> import torch
        >>> from equipoise.models import count_parameters
        >>> with torch.device("meta"):
        ...     count_parameters(resnet110_sd())
        1730714
    """
    return cifar_resnet(n_classes, in_channels, depth=110, shortcut=shortcut, last_survival=last_survival)


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
