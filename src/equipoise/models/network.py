"""A network in two parts: a body that makes features and a head that makes logits."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain
from typing import final

import torch
from torch import Tensor, nn

__all__ = ["Inputs", "Network", "count_parameters", "make_head"]

#: What a network is called with: a tensor, or named tensors for a user's model that takes several.
Inputs = Tensor | Mapping[str, Tensor]


@final
class Network(nn.Module):
    """A body and a head, so that a method may look at, or move, either of them.

    ``network(inputs)`` is ``network.head(network.features(inputs))``. Methods that need features take
    ``features``; methods that move the head only take ``head`` and ``torch.func.functional_call``.

    Args:
        body: Makes features ``(n, d)`` from inputs, or ``(n, d, h, w)`` for dense predictions.
        head: The last layer. It has ``in_features`` and ``out_features`` as ``nn.Linear`` does, or
            ``in_channels`` and ``out_channels`` as a convolution does.
        channels_last: True keeps images and kernels in the channels-last layout, which trains up to
            1.5 times as fast on a CPU; False keeps them in torch's old layout; None leaves all as it comes.

    Example:
        >>> network = Network(nn.Flatten(), nn.Linear(64, 10))
        >>> network(torch.zeros(2, 1, 8, 8)).shape, network.features(torch.zeros(2, 1, 8, 8)).shape
        (torch.Size([2, 10]), torch.Size([2, 64]))
        >>> network.n_features, network.n_classes
        (64, 10)
    """

    def __init__(self, body: nn.Module, head: nn.Module, *, channels_last: bool | None = None) -> None:
        super().__init__()
        head_sizes(head, where="Network")
        self.body = body
        self.head = head
        self.channels_last = channels_last
        if channels_last is not None:
            _arrange(self, _layout(channels_last))

    @property
    def n_features(self) -> int:
        """Numbers per sample that the head sees.

        Example:
            >>> Network(nn.Flatten(), nn.Linear(64, 10)).n_features
            64
        """
        return head_sizes(self.head, where="Network")[0]

    @property
    def n_classes(self) -> int:
        """Logits per sample, or per pixel.

        Example:
            >>> Network(nn.Flatten(), nn.Linear(64, 10)).n_classes
            10
        """
        return head_sizes(self.head, where="Network")[1]

    def features(self, inputs: Inputs) -> Tensor:
        """Return what the head sees.

        Example:
            >>> Network(nn.Flatten(), nn.Linear(4, 3)).features(torch.ones(1, 2, 2))
            tensor([[1., 1., 1., 1.]])
        """
        if self.channels_last is not None and isinstance(inputs, Tensor) and inputs.dim() == 4:
            inputs = inputs.contiguous(memory_format=_layout(self.channels_last))
        features: Tensor = self.body(inputs)
        return features

    def forward(self, inputs: Inputs) -> Tensor:
        """Return logits ``(n, k)``, or ``(n, k, h, w)`` for dense predictions."""
        logits: Tensor = self.head(self.features(inputs))
        return logits


def make_head(n_features: int, n_classes: int, *, where: str) -> nn.Linear:
    """Return a linear head, after a look at the number of classes.

    Raises:
        ValueError: If there are fewer than two classes.

    Example:
        >>> make_head(64, 1, where="resnet20")
        Traceback (most recent call last):
        ...
        ValueError: resnet20: `n_classes` must be at least 2, got 1. A yes-or-no question has two classes.
    """
    check_classes(n_classes, where=where)
    return nn.Linear(n_features, n_classes)


def check_classes(n_classes: int, *, where: str) -> None:
    """Raise if there are fewer than two classes."""
    if n_classes < 2:
        raise ValueError(
            f"{where}: `n_classes` must be at least 2, got {n_classes}. A yes-or-no question has two classes."
        )


def count_parameters(module: nn.Module) -> int:
    """Return how many numbers a module learns.

    Example:
        >>> count_parameters(nn.Linear(64, 10))
        650
    """
    return sum(parameter.numel() for parameter in module.parameters())


def head_sizes(head: nn.Module, *, where: str) -> tuple[int, int]:
    """Return how many features a head takes and how many logits it gives."""
    for one, two in (("in_features", "out_features"), ("in_channels", "out_channels")):
        if hasattr(head, one) and hasattr(head, two):
            return int(getattr(head, one)), int(getattr(head, two))
    raise TypeError(
        f"{where}: `head` must be one layer with `in_features` and `out_features` (or `in_channels` and "
        f"`out_channels`), got {type(head).__name__}. Take the last layer, and put the rest in the body."
    )


def _layout(channels_last: bool) -> torch.memory_format:
    return torch.channels_last if channels_last else torch.contiguous_format


def _arrange(module: nn.Module, layout: torch.memory_format) -> None:
    # Not `module.to(memory_format=...)`: that refuses the five-dimensional kernels of video networks.
    for tensor in chain(module.parameters(), module.buffers()):
        if tensor.dim() == 4:
            tensor.data = tensor.data.contiguous(memory_format=layout)
