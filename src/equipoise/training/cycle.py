"""A source gone through again and again, that knows where it is."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, final

from torch import nn

from equipoise.training.batch_source import BatchLike, Source, as_source, draw

if TYPE_CHECKING:
    from lightning_fabric import Fabric

__all__ = ["Cycle"]


@final
class Cycle(nn.Module):
    """One batch at a time from a source without end; its place is part of ``state_dict``.

    Bilevel objectives take a held-out batch per step from it, and a resumed run takes the same ones.

    Args:
        source: What to go through; every pass is an epoch of it. A ``DataLoader`` will do.

    Example:
        >>> import torch
        >>> from equipoise.training import Hardware, Loader
        >>> cycle = Cycle(Loader([(torch.zeros(1, 2), torch.tensor([label])) for label in (0, 1)]))
        >>> fabric = Hardware(accelerator="cpu").make_fabric()
        >>> [int(cycle.next_batch(fabric).targets) for _ in range(3)]
        [0, 1, 0]
    """

    def __init__(self, source: Source | Iterable[Any]) -> None:
        super().__init__()
        self._source = as_source(source)
        self._passes = self._done = 0
        self._batches: Iterator[BatchLike] | None = None

    def next_batch(self, fabric: Fabric) -> BatchLike:
        """Return this process's part of the next batch.

        Raises:
            ValueError: If the source has no batch at all.
        """
        for _ in range(2):
            if self._batches is None:
                self._batches = iter(draw(self._source, fabric, epoch=self._passes, start=self._done))
            batch = next(self._batches, None)
            if batch is not None:
                self._done += 1
                return batch
            self._passes, self._done, self._batches = self._passes + 1, 0, None
        raise ValueError("Cycle: `source` must have at least one batch, got none. Is the split empty?")

    def __getstate__(self) -> dict[str, Any]:
        """Leave batches under way behind when pickled or copied: the copy takes them anew from its place."""
        return {**self.__dict__, "_batches": None}

    def get_extra_state(self) -> dict[str, int]:
        """Return the place: whole passes, and batches of the current one."""
        return {"passes": self._passes, "done": self._done}

    def set_extra_state(self, state: Mapping[str, int]) -> None:
        """Go to a place."""
        self._passes, self._done, self._batches = state["passes"], state["done"], None
