"""Held-out predictions: made once per network and epoch, and shared by everyone who needs them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, final

import torch
from torch import Tensor, nn

from equipoise.core.arrays import as_tensor
from equipoise.core.errors import DataError
from equipoise.core.predictions import Predictions
from equipoise.training.batch_source import BatchLike, Source, draw, gather
from equipoise.training.network_call import as_logits, call_network
from equipoise.training.pixel_sample import PixelSample

if TYPE_CHECKING:
    from lightning_fabric import Fabric

__all__ = ["SplitPredictions", "evaluating", "predict"]

# Of dense outputs an epoch is scored by a sample of so many pixels: 80 MB at 21 classes.
_EPOCH_PIXELS = 1_000_000


@contextmanager
def evaluating(network: nn.Module) -> Iterator[None]:
    """Put a network in evaluation mode, without gradients; every module gets back the mode it had.

    Example:
        >>> network = nn.Sequential(nn.Dropout())
        >>> with evaluating(network):
        ...     network.training
        False
        >>> network.training
        True
    """
    modes = {module: module.training for module in network.modules()}
    network.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        for module, mode in modes.items():
            module.training = mode


def predict(
    network: nn.Module,
    batches: Iterable[BatchLike],
    *,
    split: str | None = None,
    ignore_index: int | None = None,
    n_pixels: int | None = None,
    seed: int = 0,
    joined: bool = True,
) -> Predictions:
    """Return what a network says about batches; several processes join their parts.

    Args:
        network: A module from inputs to logits, or to an object with ``logits``, on the device of the batches.
        batches: What to predict.
        split: The name of the split they come from.
        ignore_index: Label of rows to leave out.
        n_pixels: Of dense outputs keep a uniform random sample of at most so many pixels, so that memory does not
            grow with the number of images; None keeps all. Other outputs are kept whole.
        seed: Of that sample.
        joined: Whether each of several processes has its part of every batch. False if this one has all rows.

    Returns:
        Predictions whose rows are known by the batches' index; of a sample, by the place of the pixel among all.

    Raises:
        DataError: If there is no batch.

    Example:
        >>> source = [(torch.eye(2), torch.tensor([0, 1]))]
        >>> from equipoise.training import Loader
        >>> batches = Loader(source)(
        ...     epoch=0, indices=None, start=0, rank=0, world_size=1, device=torch.device("cpu")
        ... )
        >>> predict(nn.Identity(), batches, split="tune")
        Predictions(logits, n=2, k=2, split=tune)
    """
    sample, parts = None if n_pixels is None else PixelSample(n_pixels, seed=seed), []
    with evaluating(network):
        for batch in batches:
            logits = as_logits(call_network(network, batch.inputs), where="predict")
            part: tuple[Tensor, ...] = (logits, batch.targets, batch.index)
            part = gather(*part) if joined else part
            if sample is None or logits.ndim == 2:
                parts.append(part)
            else:
                sample.add(*_pixels(part[0].cpu(), part[1].cpu(), ignore_index))
    if sample is not None and sample.seen:
        return Predictions(logits=sample.logits, labels=sample.labels, ids=sample.places, split=split)
    if not parts:
        raise DataError("predict: there is no batch to predict. Is the split empty?")
    logits, labels, index = (torch.cat(columns).cpu() for columns in zip(*parts, strict=True))
    return Predictions(logits=logits, labels=labels, ids=index, split=split, ignore_index=ignore_index)


def _pixels(logits: Tensor, labels: Tensor, ignore_index: int | None) -> tuple[Tensor, Tensor]:
    """Return dense outputs as rows, without those that are no class."""
    rows, numbers = logits.movedim(1, -1).flatten(0, -2), labels.flatten()
    known = slice(None) if ignore_index is None else numbers != ignore_index
    return rows[known], numbers[known]


@final
class SplitPredictions:
    """Predictions on a split at the end of an epoch, made when first asked for and then kept.

    Of dense outputs they are a random sample of a million pixels, the same in every epoch; :meth:`chunks` gives all.

    Args:
        source: The split's batches.
        fabric: Where to compute, and in which precision.
        split: Its name.
        ignore_index: Label of rows to leave out.
    """

    def __init__(
        self, source: Source, *, fabric: Fabric, split: str = "tune", ignore_index: int | None = None
    ) -> None:
        self._source, self._fabric, self._split, self._ignore_index = source, fabric, split, ignore_index
        self._made: dict[nn.Module, Predictions] = {}

    def __call__(self, network: nn.Module) -> Predictions:
        """Return a network's predictions."""
        if network not in self._made:
            fabric = self._fabric
            with fabric.autocast():
                self._made[network] = predict(
                    network,
                    draw(self._source, fabric, epoch=0),
                    split=self._split,
                    ignore_index=self._ignore_index,
                    n_pixels=_EPOCH_PIXELS,
                )
        return self._made[network]

    def chunks(self, network: nn.Module) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield logits and labels of all rows, batch by batch; several processes are given the same ones."""
        if len(self(network)) < _EPOCH_PIXELS:  # then nothing was left out
            found = self(network)
            yield as_tensor(found.logits), as_tensor(found.labels)
            return
        with self._fabric.autocast(), evaluating(network):
            for batch in draw(self._source, self._fabric, epoch=0):
                logits = as_logits(call_network(network, batch.inputs), where="predict")
                logits, labels = gather(logits, batch.targets)
                yield _pixels(logits, labels, self._ignore_index) if logits.ndim > 2 else (logits, labels)
