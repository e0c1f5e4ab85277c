"""How a network is called, and what its answer means: tensors, named tensors, objects with logits."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from torch import Tensor, nn

from equipoise.losses.base import log_odds_as_logits
from equipoise.training.batch_source import Inputs

__all__ = ["as_logits", "call_network"]


def call_network(network: Callable[..., Any], inputs: Inputs, *, like: nn.Module | None = None) -> Any:
    """Call a network with a batch's inputs; named tensors go by name where its ``forward`` knows these names.

    A module is called in its own precision: floating-point inputs get the type of its first parameter, so that a
    network that was trained in float64 or bfloat16 predicts, too.

    Args:
        network: What is called.
        inputs: A tensor, or named tensors.
        like: The module whose ``forward`` says what it takes, if ``network`` is a wrapper around it, which then sees
            to the precision.

    Returns:
        What the network returns.

    Example:
        >>> import torch
        >>> class Sum(nn.Module):
        ...     def forward(self, one, two):
        ...         return one + two
        >>> call_network(Sum(), {"one": torch.ones(2), "two": torch.ones(2)})
        tensor([2., 2.])
    """
    if like is None:
        inputs = _in_precision_of(network, inputs)
    if isinstance(inputs, Mapping):
        module = network if like is None else like
        known = inspect.signature(getattr(module, "forward", module)).parameters
        if all(name in known for name in inputs) or any(p.kind is p.VAR_KEYWORD for p in known.values()):
            return network(**inputs)
    return network(inputs)


def _in_precision_of(network: Callable[..., Any], inputs: Inputs) -> Inputs:
    parameters = network.parameters() if isinstance(network, nn.Module) else iter(())
    wanted = next((one.dtype for one in parameters if one.is_floating_point()), None)

    def cast(part: Tensor) -> Tensor:
        return part if wanted is None or not part.is_floating_point() else part.to(wanted)

    return (
        {name: cast(part) for name, part in inputs.items()} if isinstance(inputs, Mapping) else cast(inputs)
    )


def as_logits(output: Any, *, where: str = "fit") -> Tensor:
    """Return logits ``(n, k)`` or ``(n, k, ...)`` from what a network said.

    Args:
        output: A tensor, or an object or mapping with ``logits``, as models of transformers return. One column
            ``(n,)`` or ``(n, 1)`` holds log-odds of class 1, as in :class:`~equipoise.Predictions`, and becomes two.
        where: Who asks, for the error.

    Raises:
        TypeError: If there are no logits in it.

    Example:
        >>> import torch
        >>> as_logits(torch.tensor([[2.0]]))
        tensor([[0., 2.]])
    """
    found = output.get("logits") if isinstance(output, Mapping) else getattr(output, "logits", output)
    if not isinstance(found, Tensor) or not found.ndim:
        raise TypeError(
            f"{where}: a network must return a tensor of logits or an object with `logits`, got "
            f"{type(output).__name__}. Wrap it in a module that returns its logits."
        )
    column = found[:, None] if found.ndim == 1 else found
    return log_odds_as_logits(column)
