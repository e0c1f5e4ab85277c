"""What the residual networks share: blocks, shortcuts, stages, the body."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from equipoise.models.pooling import mean_over_image

__all__ = [
    "BasicBlock",
    "Bottleneck",
    "ResidualBody",
    "Stage",
    "StochasticDepth",
    "init_he_fan_out",
    "make_stages",
    "padded_shortcut",
    "projection_shortcut",
]

#: Gives the shortcut of a block from its numbers of channels and its stride.
MakeShortcut = Callable[[int, int, int], nn.Module]


class PaddedShortcut(nn.Module):
    """Every second pixel, with channels of zeros on both sides: a shortcut that learns nothing."""

    def __init__(self, n_in: int, n_out: int, stride: int) -> None:
        super().__init__()
        self.stride = stride
        self.before = (n_out - n_in) // 2
        self.after = n_out - n_in - self.before

    def forward(self, inputs: Tensor) -> Tensor:
        """Thin the image and widen it with zeros."""
        thinned = inputs[:, :, :: self.stride, :: self.stride]
        return functional.pad(thinned, (0, 0, 0, 0, self.before, self.after))


def padded_shortcut(n_in: int, n_out: int, stride: int) -> nn.Module:
    """Return He et al.'s option A: identity where shapes agree, else zero-padded channels."""
    return nn.Identity() if n_in == n_out and stride == 1 else PaddedShortcut(n_in, n_out, stride)


def projection_shortcut(n_in: int, n_out: int, stride: int) -> nn.Module:
    """Return He et al.'s option B: identity where shapes agree, else a 1x1 convolution and batch norm."""
    if n_in == n_out and stride == 1:
        return nn.Identity()
    return nn.Sequential(nn.Conv2d(n_in, n_out, 1, stride=stride, bias=False), nn.BatchNorm2d(n_out))


class BasicBlock(nn.Module):
    """Two 3x3 convolutions beside a shortcut."""

    expansion = 1

    def __init__(self, n_in: int, width: int, stride: int, dilation: int, shortcut: MakeShortcut) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(n_in, width, 3, stride, dilation, dilation, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, 1, dilation, dilation, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.shortcut = shortcut(n_in, width, stride)

    def residual(self, inputs: Tensor) -> Tensor:
        """Return what the block adds to its shortcut."""
        hidden = functional.relu_(self.bn1(self.conv1(inputs)))
        added: Tensor = self.bn2(self.conv2(hidden))
        return added

    def forward(self, inputs: Tensor) -> Tensor:
        """Add the residual to the shortcut, then rectify; in place, to ask for less fresh memory."""
        return functional.relu_(self.residual(inputs).add_(self.shortcut(inputs)))


class Bottleneck(nn.Module):
    """A 3x3 convolution between two 1x1 ones, beside a shortcut; four times as wide outside as inside."""

    expansion = 4

    def __init__(self, n_in: int, width: int, stride: int, dilation: int, shortcut: MakeShortcut) -> None:
        super().__init__()
        n_out = self.expansion * width
        self.conv1 = nn.Conv2d(n_in, width, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, stride, dilation, dilation, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.conv3 = nn.Conv2d(width, n_out, 1, bias=False)
        self.bn3 = nn.BatchNorm2d(n_out)
        self.shortcut = shortcut(n_in, n_out, stride)

    def residual(self, inputs: Tensor) -> Tensor:
        """Return what the block adds to its shortcut."""
        hidden = functional.relu_(self.bn1(self.conv1(inputs)))
        hidden = functional.relu_(self.bn2(self.conv2(hidden)))
        added: Tensor = self.bn3(self.conv3(hidden))
        return added

    def forward(self, inputs: Tensor) -> Tensor:
        """Add the residual to the shortcut, then rectify; in place, to ask for less fresh memory."""
        return functional.relu_(self.residual(inputs).add_(self.shortcut(inputs)))


Block = type[BasicBlock] | type[Bottleneck]


class StochasticDepth(nn.Module):
    """A residual block that is skipped, for the whole batch, with some probability while training.

    In evaluation the residual is multiplied by its probability of being there, so that what follows
    sees its expectation.

    The choice is made in Python and saves the time of skipped blocks; ``torch.compile`` breaks its graph
    there while training.

    Args:
        block: The block.
        survival: Probability that the block is there (*p* of layer *l* in the paper).
    """

    def __init__(self, block: BasicBlock | Bottleneck, *, survival: float) -> None:
        super().__init__()
        self.block = block
        self.survival = survival

    def forward(self, inputs: Tensor) -> Tensor:
        """Run the block, skip it, or run its expectation."""
        shortcut: Tensor = self.block.shortcut(inputs)
        if not self.training:
            return functional.relu_(self.survival * self.block.residual(inputs) + shortcut)
        # A number drawn on the CPU: the choice decides what is computed, and must not wait for a GPU.
        if torch.rand((), device="cpu").item() >= self.survival:
            return functional.relu(shortcut)
        return functional.relu_(self.block.residual(inputs) + shortcut)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """Some blocks at one resolution: how many, how wide, and how the first one thins the image."""

    n_blocks: int
    width: int
    stride: int = 1
    dilation: int = 1


def make_stages(
    block: Block, n_in: int, stages: Sequence[Stage], *, shortcut: MakeShortcut = projection_shortcut
) -> list[nn.Sequential]:
    """Return the stages of a residual network, each as wide inside as it says.

    Example:
        >>> [len(stage) for stage in make_stages(BasicBlock, 16, [Stage(n_blocks=3, width=16)])]
        [3]
    """
    made = []
    for stage in stages:
        blocks = []
        for number in range(stage.n_blocks):
            stride = stage.stride if number == 0 else 1
            blocks.append(block(n_in, stage.width, stride, stage.dilation, shortcut))
            n_in = stage.width * block.expansion
        made.append(nn.Sequential(*blocks))
    return made


class ResidualBody(nn.Module):
    """Stem, stages, average pool: the body of every residual network here.

    The names of its parts (``conv1``, ``bn1``, ``layer1`` ...) are those of published checkpoints.

    Args:
        stem: The first convolution.
        stages: What :func:`make_stages` gave.
        stem_pool: Whether a 3x3 max-pool of stride 2 follows the stem.
        pool: Side of the average-pooled map, which is then flattened; None leaves the map as it is.
    """

    def __init__(
        self, stem: nn.Conv2d, stages: Sequence[nn.Module], *, stem_pool: bool = False, pool: int | None = 1
    ) -> None:
        super().__init__()
        self.conv1 = stem
        self.bn1 = nn.BatchNorm2d(stem.out_channels)
        self.stem_pool = stem_pool
        self.pool = pool
        self.n_stages = len(stages)
        for number, stage in enumerate(stages, start=1):
            self.add_module(f"layer{number}", stage)

    def forward(self, inputs: Tensor) -> Tensor:
        """Return features ``(n, d)``, or a map of them."""
        hidden = functional.relu_(self.bn1(self.conv1(inputs)))
        if self.stem_pool:
            hidden = functional.max_pool2d(hidden, 3, stride=2, padding=1)
        for number in range(1, self.n_stages + 1):
            hidden = self.get_submodule(f"layer{number}")(hidden)
        if self.pool is None:
            return hidden
        if self.pool == 1:
            return mean_over_image(hidden)
        return functional.adaptive_avg_pool2d(hidden, self.pool).flatten(1)


def init_he_fan_out(module: nn.Module) -> None:
    """Draw the kernels of all convolutions from He's normal distribution, by fan-out; biases become zero."""
    for part in module.modules():
        if isinstance(part, nn.Conv2d):
            nn.init.kaiming_normal_(part.weight, mode="fan_out", nonlinearity="relu")
            if part.bias is not None:
                nn.init.zeros_(part.bias)
