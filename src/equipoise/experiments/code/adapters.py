"""The user's own code as a loss, an objective, a network or a dataset."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, final

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils.data import default_collate

from equipoise.core.errors import DataError, SpecError
from equipoise.core.names import nearest
from equipoise.core.splits import check_split
from equipoise.data import Dataset, from_arrays, from_columns, load
from equipoise.data.columns import is_columns
from equipoise.losses.adaptive import is_adaptive

__all__ = [
    "as_dataset",
    "as_test_set",
    "call_with",
    "check_keywords",
    "is_objective",
    "loss_factory",
]


def is_objective(found: Any) -> bool:
    """Whether code makes an objective, which takes ``parts``, and not a loss.

    Example:
        >>> is_objective(nn.Linear)
        False
    """
    return "parts" in _parameters(found)


def loss_factory(found: Any, *, name: str) -> Callable[..., nn.Module]:
    """Return a function of options that makes a loss, with the signature of the code behind it.

    Args:
        found: A class, a function that makes a loss, a loss that is made already, or a function of
            ``(logits, labels)`` itself.
        name: What it is called, for the message.

    Example:
        >>> loss = loss_factory(nn.functional.cross_entropy, name="ce")(label_smoothing=0.1)
        >>> loss(torch.zeros(2, 2), torch.tensor([0, 1]))
        tensor(0.6931)
    """
    parameters = list(_parameters(found).values())
    is_made = _is_loss(found)

    def make(**options: Any) -> nn.Module:
        if is_made:
            if isinstance(found, nn.Module) and options:
                raise SpecError(f"{name} is a loss that is made already, and takes no options.")
            return found if isinstance(found, nn.Module) else _FunctionLoss(partial(found, **options))
        made = found(**options)
        if not callable(made):
            raise SpecError(
                f"{name}: expected a loss of (logits, labels), got {type(made).__name__}. Name a class, a function "
                "that makes a loss, or a function of (logits, labels)."
            )
        if isinstance(made, nn.Module):
            return made
        if is_adaptive(made):
            raise SpecError(
                f"{name}: has `update` but is not a torch module, so that checkpoints do not hold what it learns. Let "
                "it be a subclass of torch.nn.Module that keeps its state in buffers."
            )
        return _FunctionLoss(made)

    signature = inspect.Signature(parameters[2:] if is_made else parameters)
    make.__signature__ = signature  # type: ignore[attr-defined]
    return make


def _is_loss(found: Any) -> bool:
    """Whether code is a loss itself and does not make one."""
    if isinstance(found, (type, nn.Module)):
        return isinstance(found, nn.Module)
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    needed = [
        one for one in _parameters(found).values() if one.kind in positional and one.default is one.empty
    ]
    return len(needed) >= 2


@final
class _FunctionLoss(nn.Module):
    """A function of (logits, labels) as a module; values per sample are averaged."""

    def __init__(self, function: Callable[[Tensor, Tensor], Tensor]) -> None:
        super().__init__()
        self._function = function

    def forward(self, logits: Tensor, labels: Tensor) -> Tensor:
        return self._function(logits, labels).mean()


def _parameters(factory: Any) -> Mapping[str, inspect.Parameter]:
    try:
        return inspect.signature(factory).parameters
    except (TypeError, ValueError):
        return {}


def check_keywords(
    factory: Any,
    given: Mapping[str, Any],
    *,
    name: str,
    ours: frozenset[str] = frozenset(),
    also: Iterable[str] = (),
) -> None:
    """Raise if a factory has no such option.

    Args:
        factory: What will be called.
        given: Options of the user.
        name: What it is called, for the message.
        ours: Parameters that are filled in and are no options.
        also: Options that something else takes.

    Raises:
        SpecError: With the nearest option it has.

    Example:
        >>> check_keywords(nn.Linear, {"bais": True}, name="linear")
        Traceback (most recent call last):
        ...
        equipoise.core.errors.SpecError: 'linear' has no option 'bais'; did you mean 'bias'?
    """
    found = _parameters(factory)
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in found.values()):
        return
    known = [*(word for word in found if word not in ours), *also]
    for key in given:
        if key not in known:
            guess = nearest(key, known)
            remedy = f"did you mean {guess!r}?" if guess else f"it has {', '.join(known) or 'none'}."
            raise SpecError(f"{name!r} has no option {key!r}; {remedy}")


def call_with(factory: Callable[..., Any], offered: Mapping[str, Any], options: Mapping[str, Any]) -> Any:
    """Call a factory with the options, and with what is offered as far as it asks for it by name.

    Example:
        >>> call_with(nn.Linear, {"in_features": 2, "n_classes": 3}, {"out_features": 4})
        Linear(in_features=2, out_features=4, bias=True)
    """
    known = _parameters(factory)
    asked = {key: value for key, value in offered.items() if key in known}
    return factory(**{**asked, **options})


def as_dataset(found: Any, *, name: str, seed: int) -> Dataset:
    """Return what a data function gave as a dataset.

    Args:
        found: A :class:`~equipoise.data.Dataset`; ``(inputs, labels)`` arrays, of which splits are drawn; a data frame
            or columns, as :func:`~equipoise.data.from_columns` takes them; the path of a folder of images by class; or
            map-style datasets of ``(input, label)`` by split.
        name: What to call it.
        seed: Of drawn splits.

    Raises:
        DataError: If it is none of these.

    Example:
        >>> as_dataset((torch.zeros(20, 3), torch.arange(20) % 2), name="mine", seed=0).n_classes
        2
    """
    if isinstance(found, Dataset):
        return replace_name(found, name)
    if isinstance(found, Path):
        return replace_name(load("image_folder", seed=seed, options={"path": str(found)}), name)
    if is_columns(found):
        return from_columns(found, name=name, seed=seed)
    if isinstance(found, tuple) and len(found) == 2:
        inputs, labels = (torch.as_tensor(part) for part in found)
        return _from_tensors(inputs, labels, name=name, seed=seed, splits=None)
    if isinstance(found, Mapping) and found:
        if "train" not in found or "test" not in found:
            raise DataError(f"{name}: expected splits 'train' and 'test', got {', '.join(map(str, found))}.")
        return _from_splits(found, name)
    raise DataError(
        f"{name}: expected a Dataset, (inputs, labels), a data frame, columns, or map-style datasets by split, got "
        f"{type(found).__name__}. Return one of these."
    )


def as_test_set(found: Any, *, name: str) -> Dataset:
    """Return what a data function gave as a dataset to judge by: all of it, or its split ``test``.

    Args:
        found: A :class:`~equipoise.data.Dataset`; ``(inputs, labels)``, or inputs alone, whose labels nobody asks for;
            or map-style datasets by split, among them ``test``.
        name: What to call it.

    Raises:
        DataError: If it is none of these.

    Example:
        >>> as_test_set(torch.zeros(20, 3), name="noise").rows("test").shape
        torch.Size([20])
    """
    if isinstance(found, (Tensor, np.ndarray)):
        found = found, torch.zeros(len(found), dtype=torch.int64)
    if isinstance(found, tuple) and len(found) == 2:
        inputs, labels = (torch.as_tensor(part) for part in found)
        rows = {"test": torch.arange(len(labels))}
        return _from_tensors(inputs, labels, name=name, seed=0, splits=rows)
    if isinstance(found, Mapping) and "test" in found:
        return _from_splits({"test": found["test"]}, name)
    return as_dataset(found, name=name, seed=0)


def replace_name(data: Dataset, name: str) -> Dataset:
    """Return a dataset under another name.

    Example:
        >>> data = from_arrays(torch.zeros(20, 3), torch.arange(20) % 2, name="mine")
        >>> replace_name(data, "yours").name
        'yours'
    """
    return data if data.name == name else replace(data, name=name)


def _from_tensors(
    inputs: Tensor, labels: Tensor, *, name: str, seed: int, splits: Mapping[str, Tensor] | None
) -> Dataset:
    """Make a dataset of floating-point inputs of any shape, or of what :func:`from_arrays` takes."""
    flat = inputs.flatten(1) if inputs.is_floating_point() and inputs.ndim > 2 else inputs
    data = from_arrays(flat, labels, name=name, seed=seed, splits=splits)
    return data if flat is inputs else replace(data, inputs=inputs.float())


def _from_splits(found: Mapping[str, Any], name: str) -> Dataset:
    inputs, labels, splits, seen = [], [], {}, 0
    for split, rows in found.items():
        check_split(split, where=name)
        values, numbers = _collated(rows, f"{name}, split {split!r}")
        splits[split] = torch.arange(seen, seen + len(numbers))
        seen += len(numbers)
        inputs.append(values)
        labels.append(numbers)
    if len({part.shape[1:] for part in inputs}) > 1 or len({part.dtype for part in inputs}) > 1:
        raise DataError(f"{name}: inputs of all splits must have one shape and type.")
    return _from_tensors(torch.cat(inputs), torch.cat(labels), name=name, seed=0, splits=splits)


def _collated(rows: Any, where: str) -> tuple[Tensor, Tensor]:
    """Read a map-style dataset once, in order; what is random in it comes out the same each time."""
    if not (hasattr(rows, "__getitem__") and hasattr(rows, "__len__")) or not len(rows):
        raise DataError(
            f"{where}: expected a map-style dataset with at least one row, got {type(rows).__name__}."
        )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        samples = [rows[row] for row in range(len(rows))]
    if not all(isinstance(sample, (tuple, list)) and len(sample) >= 2 for sample in samples):
        raise DataError(f"{where}: expected rows of (input, label), got {type(samples[0]).__name__}.")
    try:
        inputs, labels = default_collate([(sample[0], sample[1]) for sample in samples])
    except (TypeError, RuntimeError) as error:
        raise DataError(
            f"{where}: its rows cannot be put together: {error}. Give tensors of one shape."
        ) from error
    if not isinstance(inputs, Tensor) or not isinstance(labels, Tensor):
        raise DataError(
            f"{where}: inputs and labels must be numbers or tensors. Add a transform that makes them so."
        )
    return inputs, labels
