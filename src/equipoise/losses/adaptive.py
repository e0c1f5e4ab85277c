"""Losses that adapt: recognized by their method ``update``, and checked to keep their state where it is saved."""

from __future__ import annotations

import copy
import inspect
import pickle
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

__all__ = ["adapts", "check_saved_state", "is_adaptive", "is_ours", "made_up_rows", "terms_of"]

# Where a module keeps what is compared by itself, or is not state.
_NOT_ATTRIBUTES = frozenset(vars(nn.Module())) - {"training"}
_REMEDY = (
    "Register it in __init__ as a buffer, self.register_buffer('{name}', torch.tensor(...)), or return it from "
    "get_extra_state."
)


def is_adaptive(loss: Any) -> bool:
    """Whether something has a method ``update`` that takes ``(logits, labels)``, whatever its class.

    Example:
        >>> from equipoise.losses import AdaFocalLoss
        >>> is_adaptive(AdaFocalLoss()), is_adaptive(nn.CrossEntropyLoss()), is_adaptive(nn.ModuleDict())
        (True, False, False)
    """
    update = getattr(loss, "update", None)
    if not callable(update):
        return False
    try:
        inspect.signature(update).bind(None, None)
    except (TypeError, ValueError):
        return False
    return True


def adapts(loss: Any) -> bool:
    """Whether a loss changes when it is updated; those of ours that need not say so by ``adapts``.

    Example:
        >>> from equipoise.losses import FocalLoss
        >>> adapts(FocalLoss()), adapts(FocalLoss(gamma=5, schedule={1: 3}))
        (False, True)
    """
    return is_adaptive(loss) and bool(getattr(loss, "adapts", True))


def made_up_rows(n_classes: int) -> tuple[Tensor, Tensor]:
    """Return a few logits and labels to try an update on, where none are at hand yet.

    Example:
        >>> logits, labels = made_up_rows(3)
        >>> logits.shape, labels.unique()
        (torch.Size([24, 3]), tensor([0, 1, 2]))
    """
    labels = torch.arange(8 * n_classes) % n_classes
    logits = torch.randn(len(labels), n_classes, generator=torch.Generator().manual_seed(0))
    return logits + nn.functional.one_hot(labels, n_classes), labels


def check_saved_state(loss: Any, logits: Tensor, labels: Tensor, *, where: str) -> None:
    """Raise if an update changes something that ``state_dict`` does not carry: a resumed run would be another run.

    A copy is updated; another copy takes its ``state_dict``. What differs between the two would be lost. The loss
    itself and its terms of this package are left as they are.

    Args:
        loss: A loss that adapts; others, and terms that are ours, pass.
        logits: Rows to update from.
        labels: Their classes.
        where: Who asks, for the error.

    Raises:
        TypeError: With what would be lost, and how to save it.

    Example:
        >>> class Mine(nn.Module):
        ...     gamma = 1.0
        ...     def update(self, logits, labels):
        ...         self.gamma *= 2
        >>> Mine.__module__ = "mine"
        >>> check_saved_state(Mine(), *made_up_rows(2), where="doc")
        Traceback (most recent call last):
        ...
        TypeError: doc: Mine.update changes `gamma`, which checkpoints do not hold, so that a resumed run ...
    """
    for term in terms_of(loss):
        if adapts(term) and not is_ours(term):
            _check_term(term, logits, labels, where)


def is_ours(loss: Any) -> bool:
    """Whether a loss is of this package, whose tests see to its state.

    Example:
        >>> is_ours(nn.CrossEntropyLoss())
        False
    """
    return type(loss).__module__.partition(".")[0] == "equipoise"


def terms_of(loss: Any) -> Iterator[Any]:
    """Yield the terms of a sum, however nested; any other loss is its own term.

    Example:
        >>> from equipoise.losses import BrierLoss, FocalLoss
        >>> [type(term).__name__ for term in terms_of(FocalLoss() + 2 * BrierLoss())]
        ['FocalLoss', 'BrierLoss']
    """
    several, one = (getattr(loss, name, None) if is_ours(loss) else None for name in ("terms", "term"))
    if isinstance(several, nn.ModuleList):
        for term in several:
            yield from terms_of(term)
    elif isinstance(one, nn.Module):
        yield from terms_of(one)
    else:
        yield loss


def _check_term(loss: Any, logits: Tensor, labels: Tensor, where: str) -> None:
    name = type(loss).__name__
    if not isinstance(loss, nn.Module):
        raise TypeError(
            f"{where}: {name} has `update` but is not a torch module, so that checkpoints do not hold what it learns. "
            "Let it be a subclass of torch.nn.Module that keeps its state in buffers."
        )
    try:
        updated, restored = copy.deepcopy(loss), copy.deepcopy(loss)
    except Exception as error:
        raise TypeError(
            f"{where}: {name} cannot be copied ({type(error).__name__}: {error}), so that it cannot be checked whether "
            "checkpoints hold what it learns. Keep plain values and tensors without gradient in it."
        ) from error
    device = next((one.device for one in (*loss.buffers(), *loss.parameters())), torch.device("cpu"))
    with torch.no_grad():
        for _ in range(2):
            updated.update(logits.detach().clone().to(device), labels.clone().to(device))  # type: ignore[operator]
    try:
        restored.load_state_dict(updated.state_dict())
    except RuntimeError as error:
        reason = " ".join(str(error).split())
        raise TypeError(
            f"{where}: the state of {name} after `update` does not load again ({reason}). Register its buffers in "
            "__init__ with the shapes that they will have."
        ) from error
    lost = next(_differences(updated, restored), None)
    if lost is not None:
        raise TypeError(
            f"{where}: {name}.update changes `{lost}`, which checkpoints do not hold, so that a resumed run would "
            f"differ. {_REMEDY.format(name=lost.rpartition('.')[2])}"
        )


def _differences(one: nn.Module, other: nn.Module) -> Iterator[str]:
    """Yield the names of attributes, buffers and parameters that two copies of a module do not share."""
    others = dict(other.named_modules())
    for path, module in one.named_modules():
        twin = others.get(path)
        for name, value in {**_attributes(module), **module._buffers, **module._parameters}.items():
            same = {} if twin is None else {**_attributes(twin), **twin._buffers, **twin._parameters}
            if name not in same or not _is_same(value, same[name]):
                yield f"{path}.{name}" if path else name


def _attributes(module: nn.Module) -> dict[str, Any]:
    return {name: value for name, value in vars(module).items() if name not in _NOT_ATTRIBUTES}


def _is_same(one: Any, other: Any) -> bool:
    if type(one) is not type(other):
        return False
    if isinstance(one, Tensor):
        return one.shape == other.shape and bool(
            torch.isclose(one, other, rtol=0, atol=0, equal_nan=True).all()
        )
    if isinstance(one, np.ndarray):
        return bool(np.array_equal(one, other))
    if isinstance(one, Mapping):
        return one.keys() == other.keys() and all(_is_same(one[key], other[key]) for key in one)
    if isinstance(one, (list, tuple)):
        return len(one) == len(other) and all(map(_is_same, one, other))
    if isinstance(one, (bool, int, float, complex, str, bytes, type(None))):
        return bool(one == other) or repr(one) == repr(other) == "nan"
    try:
        return pickle.dumps(one) == pickle.dumps(other)
    except Exception:  # noqa: BLE001 - functions and handles, which copies share
        return True
