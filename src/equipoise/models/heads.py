"""Any model as body and head: timm's, transformers', your own."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from typing import Any

import torch
from torch import Tensor, nn

from equipoise.core.names import nearest
from equipoise.models.network import Inputs, Network, head_sizes

__all__ = ["split_head"]


class ForeignBody(nn.Module):
    """A model whose last layer was taken out, so that it returns what that layer saw."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, inputs: Inputs) -> Tensor:
        """Return the features of inputs; a mapping is passed by name."""
        return _run(self.model, inputs)


def split_head(
    model: nn.Module, name: str, *, example: Inputs | None = None, channels_last: bool | None = None
) -> Network:
    """Return a model as body and head, with the same parameters, so that feature-based methods can train it.

    The model itself stays whole and usable, and learns along: all parameters and buffers are shared. No
    hooks are set. From then on switch modes (``train``, ``eval``) on the network, not on the model.

    Args:
        model: Any module that returns logits, or an object with ``logits`` as transformers do.
        name: Dotted name of its last linear layer: "fc", "head.fc", "classifier.6" ...
        example: Inputs of a few samples. If given, the split is tried on them, and refused if the model
            does anything between its last layer and its return. Worth it whenever inputs are at hand.
        channels_last: As in :class:`Network`; None leaves the model's layout alone.

    Returns:
        The network. ``network.head`` *is* the named layer.

    Raises:
        ValueError: If there is no such layer, or the trial fails.
        TypeError: If the layer is no single layer, or the model is wrapped or compiled.

    Example:
        >>> from torch import nn
        >>> model = nn.Sequential(nn.Flatten(), nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))
        >>> network = split_head(model, "3", example=torch.zeros(2, 8, 8))
        >>> network.head is model[3], network.features(torch.zeros(2, 8, 8)).shape
        (True, torch.Size([2, 32]))
    """
    _check_plain(model)
    head = _find(model, name)
    body = ForeignBody(_without(model, head, {}))
    network = Network(body, head, channels_last=channels_last)
    # Set on these two alone: `train()` would reach into the model and change its parts.
    network.training = body.training = model.training
    if example is not None:
        _try(model, network, example, name=name)
    return network


def _find(model: nn.Module, name: str) -> nn.Module:
    known: dict[str, nn.Module] = dict(model.named_modules(remove_duplicate=False))
    known.pop("", None)
    if name in known:
        head_sizes(known[name], where=f"split_head: layer {name!r}")
        return known[name]
    linear = [key for key, part in known.items() if isinstance(part, nn.Linear)]
    guess = nearest(name, known)
    remedy = f"Did you mean {guess!r}? " if guess else ""
    last = f"The last linear layers are {', '.join(map(repr, linear[-3:]))}." if linear else ""
    raise ValueError(
        f"split_head: `name` must be a layer of {type(model).__name__}, got {name!r}. {remedy}{last}".rstrip()
    )


def _check_plain(model: nn.Module) -> None:
    wrappers = (nn.DataParallel, nn.parallel.DistributedDataParallel)
    if isinstance(model, wrappers):
        raise TypeError(
            f"split_head: `model` must be the plain model, got {type(model).__name__}. Pass model.module."
        )
    if isinstance(model, torch.jit.ScriptModule) or "_orig_mod" in model._modules:
        raise TypeError(
            f"split_head: `model` must be a plain module, got {type(model).__name__}. "
            "Split first, then compile."
        )


def _without(module: nn.Module, head: nn.Module, done: dict[nn.Module, nn.Module]) -> nn.Module:
    """Return the module with every mention of the head replaced by the identity.

    Only modules on the way to the head are copied, and these shallowly: the copies hold the very
    dictionaries of parameters and buffers that the originals hold, so that moving one moves both.
    """
    if module is head:
        return nn.Identity()
    if module not in done:
        parts = {
            key: None if part is None else _without(part, head, done) for key, part in module._modules.items()
        }
        done[module] = module
        if any(parts[key] is not part for key, part in module._modules.items()):
            if "forward" in vars(module):
                raise TypeError(
                    f"split_head: {type(module).__name__} must not carry a `forward` of its own, "
                    "got one set on the instance, which would still call the whole model. "
                    "Split first, then patch or compile."
                )
            done[module] = copy(module)
            vars(done[module])["_modules"] = parts
    return done[module]


def _run(model: nn.Module, inputs: Inputs) -> Tensor:
    output: Any = model(**inputs) if isinstance(inputs, Mapping) else model(inputs)
    output = getattr(output, "logits", output)
    if not isinstance(output, Tensor):
        raise TypeError(
            f"split_head: the model must return a tensor or an object with `logits`, "
            f"got {type(output).__name__}. Wrap it in a module that returns its logits."
        )
    return output


def _try(model: nn.Module, network: Network, example: Inputs, *, name: str) -> None:
    modes = [(part, part.training) for part in (*model.modules(), *network.modules())]
    try:
        model.eval()
        network.eval()
        with torch.no_grad():
            wanted, got = _run(model, example), network(example)
    finally:
        for part, mode in modes:
            part.training = mode
    if wanted.shape != got.shape or not torch.allclose(wanted, got, rtol=1e-3, atol=1e-5, equal_nan=True):
        raise ValueError(
            f"split_head: layer {name!r} must make what the model returns, "
            "got other numbers from the split model. The model does something after this layer (a softmax?) "
            "or uses it twice; let it return plain logits."
        )
