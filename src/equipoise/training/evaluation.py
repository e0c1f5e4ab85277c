"""Held-out predictions: made once per network and epoch, and shared by everyone who needs them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, final

import torch
from torch import nn

from equipoise.core.errors import DataError
from equipoise.core.predictions import Predictions
from equipoise.training.batch_source import Batch, Inputs, Source, draw, gather
from equipoise.training.network_call import as_logits, call_network

if TYPE_CHECKING:
    from lightning_fabric import Fabric

__all__ = ["TunePredictions", "evaluating", "predict"]


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
    batches: Iterable[Batch],
    *,
    split: str | None = None,
    ignore_index: int | None = None,
    convert: Callable[[Inputs], Inputs] = lambda inputs: inputs,
) -> Predictions:
    """Return what a network says about batches; several processes join their parts.

    Args:
        network: A module from inputs to logits, or to an object with ``logits``, on the device of the batches.
        batches: What to predict.
        split: The name of the split they come from.
        ignore_index: Label of rows to leave out.
        convert: What is done to inputs first, for networks that are not in float32.

    Returns:
        Predictions whose rows are known by the batches' index.

    Raises:
        DataError: If there is no batch.

    Example:
        >>> source = [(torch.eye(2), torch.tensor([0, 1]))]
        >>> from equipoise.training import Loader
        >>> batches = Loader(source)(
        ...     epoch=0, visit=None, start=0, rank=0, world_size=1, device=torch.device("cpu")
        ... )
        >>> predict(nn.Identity(), batches, split="tune")
        Predictions(logits, n=2, k=2, split=tune)
    """
    with evaluating(network):
        parts = [
            gather(
                as_logits(call_network(network, convert(batch.inputs)), where="predict"),
                batch.targets,
                batch.index,
            )
            for batch in batches
        ]
    if not parts:
        raise DataError("predict: there is no batch to predict. Is the split empty?")
    logits, labels, index = (torch.cat(columns).cpu() for columns in zip(*parts, strict=True))
    return Predictions(logits=logits, labels=labels, ids=index, split=split, ignore_index=ignore_index)


@final
class TunePredictions:
    """Predictions on the ``tune`` split at the end of an epoch, made when first asked for and then kept.

    Args:
        source: The split's batches.
        fabric: Where to compute, and in which precision.
        ignore_index: Label of rows to leave out.
    """

    def __init__(self, source: Source, *, fabric: Fabric, ignore_index: int | None = None) -> None:
        self._source, self._fabric, self._ignore_index = source, fabric, ignore_index
        self._made: dict[nn.Module, Predictions] = {}

    def __call__(self, network: nn.Module) -> Predictions:
        """Return a network's predictions."""
        if network not in self._made:
            fabric = self._fabric
            with fabric.autocast():
                self._made[network] = predict(
                    network,
                    draw(self._source, fabric, epoch=0),
                    split="tune",
                    ignore_index=self._ignore_index,
                    convert=fabric.strategy.precision.convert_input,
                )
        return self._made[network]
