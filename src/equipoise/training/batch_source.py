"""What the loop asks of data, and how processes join their parts of a batch."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sized
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any, Protocol, final

import torch
from torch import Tensor
from torch.utils.data import Dataset

from equipoise.losses.gather import gather_rows

if TYPE_CHECKING:
    from lightning_fabric import Fabric

__all__ = ["BatchLike", "Inputs", "Loader", "Source", "as_source", "draw", "gather"]

# Names under which labels come in a mapping, and names of an input that is the only one.
_LABELS = ("labels", "label", "targets", "target", "y")
_ALONE = ("inputs", "input", "x", "image", "images", "features")

#: What a network is called with.
Inputs = Tensor | Mapping[str, Tensor]


class BatchLike(Protocol):
    """Some samples, their classes, and which samples they are; ``equipoise.data.Batch`` is one.

    Attributes:
        inputs: What the network is called with, one row per sample.
        targets: Class numbers ``(n,)``, dense ``(n, d1, ...)``, or soft targets ``(n, k)``.
        index: Numbers that identify the samples ``(n,)``.

    Example:
        >>> from typing import NamedTuple
        >>> class Mine(NamedTuple):
        ...     inputs: Tensor
        ...     targets: Tensor
        ...     index: Tensor
        >>> batch: BatchLike = Mine(torch.zeros(2, 3), torch.tensor([0, 1]), torch.tensor([7, 8]))
        >>> len(batch.index)
        2
    """

    @property
    def inputs(self) -> Inputs: ...  # noqa: D102
    @property
    def targets(self) -> Tensor: ...  # noqa: D102
    @property
    def index(self) -> Tensor: ...  # noqa: D102


class Source(Protocol):
    """Makes the batches of an epoch; ``functools.partial(batches, dataset, "train", batch_size=128)`` is one.

    The same call must give the same batches: then the place of a run in its data is the epoch and the number
    of batches done, and nothing else has to be saved.

    Example:
        >>> source: Source = Loader([(torch.zeros(2, 3), torch.tensor([0, 1]))])
        >>> found = source(epoch=0, indices=None, start=0, rank=0, world_size=1, device=torch.device("cpu"))
        >>> [len(batch.index) for batch in found]
        [2]
    """

    def __call__(
        self,
        *,
        epoch: int,
        indices: Tensor | None,
        start: int,
        rank: int,
        world_size: int,
        device: torch.device,
    ) -> Iterable[BatchLike]:
        """Return the batches of an epoch.

        Args:
            epoch: Counted from 0.
            indices: Numbers of the samples to use; None uses all.
            start: How many batches to leave out, after a resume.
            rank: The number of this process, which gets its part of every batch.
            world_size: How many processes there are.
            device: Where the batches shall be.
        """


@dataclass(frozen=True, slots=True)
class _Rows:
    inputs: Inputs
    targets: Tensor
    index: Tensor


@dataclass(frozen=True, slots=True)
class _Counted:
    """Batches whose number is known, so that a schedule can move within the epoch."""

    batches: Iterator[BatchLike]
    left: int

    def __len__(self) -> int:
        return self.left

    def __iter__(self) -> Iterator[BatchLike]:
        return self.batches


@final
class Loader:
    """A source made of anybody's batches: a ``DataLoader`` or a list; ``fit`` makes one where it is given such.

    A batch is ``(inputs, labels)`` or ``(inputs, labels, index)``, or a mapping with ``labels`` (or ``label``,
    ``targets``, ``target``, ``y``), perhaps ``index``, and inputs by name, as those of Hugging Face are. Inputs named
    ``inputs``, ``input``, ``x``, ``image``, ``images`` or ``features`` that stand alone are the network's one input.

    It is gone through once per epoch; the loop seeds torch before, so a shuffling loader gives the same order in
    a resumed run. Several processes must go through equal batches, and each keeps its part.

    Args:
        batches: What to go through. Without an index, samples are numbered in the order they come.

    Raises:
        TypeError: If it cannot be gone through again and again; later, if a batch is none of the above.

    Example:
        >>> source = Loader([(torch.zeros(2, 3), torch.tensor([0, 1])), (torch.ones(1, 3), torch.tensor([1]))])
        >>> parts = source(epoch=0, indices=None, start=0, rank=0, world_size=1, device=torch.device("cpu"))
        >>> [batch.index.tolist() for batch in parts]
        [[0, 1], [2]]
    """

    def __init__(self, batches: Iterable[Any]) -> None:
        if isinstance(batches, Dataset) or not isinstance(batches, Iterable):
            raise TypeError(
                f"Loader: expected batches, got {type(batches).__name__}. Pass a DataLoader: "
                "DataLoader(dataset, batch_size=128, shuffle=True)."
            )
        if isinstance(batches, Iterator):
            raise TypeError(
                f"Loader: expected batches that can be gone through once per epoch, got "
                f"{type(batches).__name__}, which is empty after the first. Pass a DataLoader or a list."
            )
        self._batches = batches

    def __call__(
        self,
        *,
        epoch: int,
        indices: Tensor | None,
        start: int,
        rank: int,
        world_size: int,
        device: torch.device,
    ) -> Iterable[BatchLike]:
        """Return this process's part of each batch."""
        if indices is not None:
            raise ValueError(
                "Loader: it goes through all its batches, but the objective visits a part of the samples. Give "
                "the data as a Dataset: functools.partial(batches, dataset, 'train', batch_size=128)."
            )
        batches = self._numbered()
        # Passed over now and not at the first batch asked for: they may draw random numbers of their own,
        # and the random state of an interrupted run is restored in between.
        deque(islice(batches, start), maxlen=0)

        def part(rows: Tensor) -> Tensor:
            return rows.tensor_split(world_size)[rank].to(device)

        parts = (
            _Rows(_each(batch.inputs, part), part(batch.targets), part(batch.index)) for batch in batches
        )
        return _Counted(parts, len(self._batches) - start) if isinstance(self._batches, Sized) else parts

    def _numbered(self) -> Iterator[_Rows]:
        seen = 0
        for batch in self._batches:
            inputs, labels, index = _understood(batch)
            numbers = torch.arange(seen, seen + len(labels)) if index is None else index
            seen += len(labels)
            yield _Rows(inputs, labels, numbers)


def _each(inputs: Inputs, change: Callable[[Tensor], Tensor]) -> Inputs:
    if isinstance(inputs, Mapping):
        return {name: change(part) for name, part in inputs.items()}
    return change(inputs)


def _understood(batch: Any) -> tuple[Inputs, Tensor, Tensor | None]:
    """Return inputs, labels and index of a batch in any of the usual forms."""
    if isinstance(batch, Mapping):
        left = dict(batch)
        label = next((name for name in _LABELS if name in left), None)
        labels: Any = None if label is None else left.pop(label)
        index = left.pop("index", None)
        alone = len(left) == 1 and next(iter(left)) in _ALONE
        inputs: Any = next(iter(left.values())) if alone else left
    elif isinstance(batch, tuple | list) and len(batch) in (2, 3):
        inputs, labels, index = batch if len(batch) == 3 else (*batch, None)
        inputs = dict(inputs) if isinstance(inputs, Mapping) else inputs
    else:
        inputs, labels, index = (getattr(batch, name, None) for name in ("inputs", "targets", "index"))
    _check_batch(batch, inputs, labels, index)
    return inputs, labels, index


def _check_batch(batch: Any, inputs: Any, labels: Any, index: Any) -> None:
    rows = list(inputs.values()) if isinstance(inputs, Mapping) else [inputs]
    tensors = [*rows, labels, *([] if index is None else [index])]
    if not rows or not all(isinstance(part, Tensor) and part.ndim for part in tensors):
        raise TypeError(
            "fit: a batch must be (inputs, labels), (inputs, labels, index) or a dictionary with 'labels', all "
            f"tensors, got {_described(batch)}. Give the loader a collate_fn that returns one of these."
        )
    if any(len(part) != len(labels) for part in tensors):
        raise ValueError(
            f"fit: the parts of a batch must be equally long, got {_described(batch)}. One label per sample."
        )
    if labels.is_floating_point() and labels.ndim == 1:
        raise TypeError(
            f"fit: labels must be class numbers, got {labels.dtype}. Pass labels.long(); probabilities of "
            "classes are of shape (n, k)."
        )


def _described(batch: Any) -> str:
    if isinstance(batch, Mapping):
        return "a dictionary of " + ", ".join(f"{name!r}: {_described(part)}" for name, part in batch.items())
    if isinstance(batch, tuple | list):
        return f"{type(batch).__name__} of " + ", ".join(map(_described, batch[:4]))
    return f"tensor of shape {tuple(batch.shape)}" if isinstance(batch, Tensor) else type(batch).__name__


def as_source(data: Source | Iterable[Any]) -> Source:
    """Return data as a source: one that is called with an epoch as it is, a ``DataLoader`` or list wrapped.

    Raises:
        TypeError: If it is neither.

    Example:
        >>> as_source([(torch.zeros(2, 3), torch.tensor([0, 1]))])
        <equipoise.training.batch_source.Loader object at ...>
    """
    return data if callable(data) else Loader(data)


def draw(
    source: Source, fabric: Fabric, *, epoch: int, indices: Tensor | None = None, start: int = 0
) -> Iterable[BatchLike]:
    """Return this process's part of an epoch's batches, on its device."""
    return source(
        epoch=epoch,
        indices=indices,
        start=start,
        rank=fabric.global_rank,
        world_size=fabric.world_size,
        device=fabric.device,
    )


def gather(*tensors: Tensor) -> tuple[Tensor, ...]:
    """Return the rows of all processes, in order of rank, with gradient; one process gets back what it gave.

    A loss of gathered rows is the loss of the whole batch, whatever its formula and however uneven the parts,
    and the gradient that data parallelism then averages is that of the whole batch.

    Example:
        >>> [rows] = gather(torch.tensor([1.0, 2.0]))
        >>> rows
        tensor([1., 2.])
    """
    here = torch.ones(len(tensors[0]), device=tensors[0].device)
    *gathered, there = gather_rows(*tensors, here)
    return tensors if there is here else tuple(rows[there > 0] for rows in gathered)
