"""Networks that a file describes: built only after their size was compared with the weights in the file."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain
from math import prod
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules import module as torch_module

from equipoise.catalogue import CATALOGUE
from equipoise.core.errors import DataError, EquipoiseError, first_line
from equipoise.core.names import look_up
from equipoise.objectives.deep_ensemble import MeanNetwork

__all__ = ["build_network", "check_input_shape", "check_weights", "count_classes"]

#: Values of an input that a file may name; larger inputs exhaust the memory of the layers behind them.
LARGEST_INPUT = 1 << 24

#: An integer option is a width or a count: at most this, or the number of weights in the file.
_LARGEST_OPTION = 1 << 16
_MOST_OPTIONS = 1 << 10

#: Modules without weights (activations, containers, dropout) per tensor, and the number that is always allowed.
_MODULES_PER_TENSOR = 16
_ALWAYS_ALLOWED = 256


class _TooLargeError(Exception):
    """Raised while a network is built that has more layers than the file has weights for."""


def build_network(architecture: Any, weights: Mapping[str, Tensor], *, where: str) -> nn.Module:
    """Return a network of the catalogue that the weights of a file fit; its own weights are still random.

    The network is first built on torch's ``meta`` device, where tensors have a shape and no memory.

    Args:
        architecture: ``{"name": ..., "options": {...}}``; with ``"members": n``, the mean of n such networks.
        weights: The tensors that are to fill it.
        where: Prefix of error messages.

    Raises:
        DataError: If the options are not those of the architecture, or the network has other weights.
        SpecError: If the catalogue has no network of that name.

    Example:
        >>> small = {"name": "mlp", "options": {"n_inputs": 4, "n_classes": 2, "hidden": []}}
        >>> build_network(small, {"head.weight": torch.zeros(9, 9), "head.bias": torch.zeros(9)}, where="doc")
        Traceback (most recent call last):
        ...
        equipoise.core.errors.DataError: doc: the weights do not fit the network: expected `head.weight` of shape ...
    """
    name, options = _checked_architecture(architecture, weights, where=where)
    members = architecture.get("members")
    if members is not None and not (type(members) is int and 1 <= members <= len(weights)):
        raise DataError(f"{where}: `members` must count networks in the file, got {str(members)[:40]}.")
    entry = look_up(name, CATALOGUE["models"], what="network")
    made_with = {**entry.options, **options}

    def make() -> nn.Module:
        if members is None:
            network: nn.Module = entry.factory(**made_with)
            return network
        return MeanNetwork([entry.factory(**made_with) for _ in range(members)])

    try:
        with torch.device("meta"), _at_most(len(weights)):
            outline = make()
        check_weights(outline, weights, where=where)
        _check_buffers(outline, weights, where=where)
        with torch.device("cpu"):
            network = make()
        check_weights(network, weights, where=where)
    except EquipoiseError:
        raise
    except _TooLargeError:
        raise DataError(
            f"{where}: the weights do not fit the network: the options of {name!r} describe a network with more than "
            f"the {len(weights)} tensors of the file."
        ) from None
    except (TypeError, ValueError, RuntimeError, OverflowError, ArithmeticError, LookupError) as error:
        raise DataError(
            f"{where}: {name!r} cannot be built with these options ({first_line(error).rstrip('.')})."
        ) from error
    return network


def check_weights(network: nn.Module, weights: Mapping[str, Tensor], *, where: str) -> None:
    """Raise unless tensors have the names, shapes and kinds of a network's weights, and are numbers.

    They must be finite, except where a buffer of the network has the same infinity, as masks of attention do. Values
    are not compared with a network on the ``meta`` device, which has none.

    Raises:
        DataError: With the first tensor that does not fit.

    Example:
        >>> weights = {"weight": torch.tensor([[0.0, torch.nan]]), "bias": torch.zeros(1)}
        >>> check_weights(nn.Linear(2, 1), weights, where="a")
        Traceback (most recent call last):
        ...
        equipoise.core.errors.DataError: a: the weights `weight` must be finite, got NaN or infinity. Train and save ...
    """
    state = network.state_dict()
    for name in chain(state, weights):
        if name not in weights or name not in state:
            lacking = "the file has no" if name not in weights else "the network has no"
            raise DataError(f"{where}: the weights do not fit the network: {lacking} `{name[:80]}`.")
    for name, value in state.items():
        given = weights[name]
        if given.shape != value.shape or given.is_floating_point() != value.is_floating_point():
            raise DataError(
                f"{where}: the weights do not fit the network: expected `{name}` of shape {tuple(value.shape)} and "
                f"{value.dtype}, got {tuple(given.shape)} and {given.dtype}."
            )
    parameters = dict(network.named_parameters(remove_duplicate=False))
    for name, value in state.items():
        if value.is_meta:
            continue
        bad = ~weights[name].isfinite()
        if name not in parameters and bad.any():
            bad &= weights[name] != value.detach().to(weights[name].device)
        if bad.any():
            raise DataError(
                f"{where}: the weights `{name}` must be finite, got NaN or infinity. Train and save the model again."
            )


def check_input_shape(network: nn.Module, shape: Sequence[int], *, where: str) -> tuple[int, ...]:
    """Return the shape of the logits of one input, computed on the ``meta`` device.

    Raises:
        DataError: If the network does not accept inputs of this shape.

    Example:
        >>> check_input_shape(nn.Linear(3, 2), (3,), where="doc")
        (2,)
        >>> check_input_shape(nn.Linear(3, 2), (5,), where="doc")
        Traceback (most recent call last):
        ...
        equipoise.core.errors.DataError: doc: inputs of shape (5,) do not fit the network (...). Pass the shape ...
    """
    if prod(shape) > LARGEST_INPUT:
        raise DataError(
            f"{where}: inputs of shape {tuple(shape)} have {prod(shape)} values, more than {LARGEST_INPUT}. "
            "Pass a smaller shape."
        )
    tensors = dict(chain(network.named_parameters(), network.named_buffers()))
    outline = {name: torch.empty_like(value, device="meta") for name, value in tensors.items()}
    training = network.training
    try:
        with torch.no_grad():
            network.eval()
            example = torch.empty(2, *shape, device="meta")
            logits = torch.func.functional_call(network, outline, (example,))
        return tuple(logits.shape[1:])
    except (RuntimeError, ValueError, TypeError, IndexError, AssertionError, AttributeError) as error:
        raise DataError(
            f"{where}: inputs of shape {tuple(shape)} do not fit the network ({first_line(error).rstrip('.')}). "
            "Pass the shape of one input, without the batch."
        ) from error
    finally:
        network.train(training)


def count_classes(network: nn.Module) -> int | None:
    """Return how many logits a network gives, if its head has a size; None for other networks.

    Example:
        >>> from equipoise.models import mlp
        >>> count_classes(mlp(n_classes=3)), count_classes(nn.Sequential())
        (3, None)
    """
    found = getattr(network, "n_classes", None)
    return found if type(found) is int else None


def _checked_architecture(
    architecture: Any, weights: Mapping[str, Tensor], *, where: str
) -> tuple[str, Mapping[str, Any]]:
    """Return name and options; raise for options that no network with these weights has."""
    name = architecture.get("name") if isinstance(architecture, Mapping) else None
    options = architecture.get("options") if isinstance(architecture, Mapping) else None
    if not isinstance(name, str) or not isinstance(options, Mapping):
        raise DataError(f"{where}: `architecture` must have a name and a table of options.")
    largest = max(_LARGEST_OPTION, sum(value.numel() for value in weights.values()))
    for option, value in options.items():
        values = list(_flat(value))
        if len(values) > _MOST_OPTIONS:
            raise DataError(
                f"{where}: the option `{option}` must have at most {_MOST_OPTIONS} values, got {len(values)}."
            )
        for one in values:
            if isinstance(one, int) and abs(one) > largest:
                raise DataError(
                    f"{where}: the weights do not fit the network: the option `{option}` is {str(one)[:40]}, and the "
                    f"file has {sum(value.numel() for value in weights.values())} weights."
                )
    return name, options


def _flat(value: Any) -> Iterator[Any]:
    inner: Iterable[Any] = ()
    if isinstance(value, Mapping):
        inner = value.values()
    elif isinstance(value, list | tuple):
        inner = value
    else:
        yield value
    for one in inner:
        yield from _flat(one)


@contextmanager
def _at_most(n_tensors: int) -> Iterator[None]:
    """Stop the building of a network in this thread once it has many more layers than there are tensors.

    Layers may be replaced while a network is built, so twice the number is allowed.
    """
    thread, counts = threading.get_ident(), {"parameters": 0, "modules": 0}
    limits = {
        "parameters": 2 * n_tensors + _ALWAYS_ALLOWED,
        "modules": _MODULES_PER_TENSOR * (n_tensors + _ALWAYS_ALLOWED),
    }

    def count(kind: str) -> None:
        if threading.get_ident() == thread:
            counts[kind] += 1
            if counts[kind] > limits[kind]:
                raise _TooLargeError

    hooks = (
        torch_module.register_module_parameter_registration_hook(lambda *_: count("parameters")),
        torch_module.register_module_module_registration_hook(lambda *_: count("modules")),
    )
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()


def _check_buffers(outline: nn.Module, weights: Mapping[str, Tensor], *, where: str) -> None:
    """Raise for buffers that are not in the file and are far larger than it."""
    stored = sum(value.numel() for value in weights.values())
    derived = sum(value.numel() for name, value in outline.named_buffers() if name not in weights)
    if derived > 4 * stored + LARGEST_INPUT:
        raise DataError(
            f"{where}: the options describe a network with tables of {derived} numbers beside its {stored} weights."
        )
