"""What a gamma-network sees of a sample: to ask whether what it sees matters."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any, cast, final

import torch
from torch import Tensor, nn

from equipoise.core.names import nearest
from equipoise.objectives.bilevel import FeaturesAndLogits
from equipoise.training import Source
from equipoise.training.batch_source import Inputs
from equipoise.training.evaluation import evaluating
from equipoise.training.network_call import call_network

if TYPE_CHECKING:
    from lightning_fabric import Fabric

__all__ = ["GammaSight"]

_WORDS = ("features", "random", "noise")


@final
class GammaSight(nn.Module):
    """What is shown of each sample, as one row of numbers without a gradient.

    Args:
        sees: ``"features"``, what the head sees; ``"random"``, what the network made of the sample before it was
            trained; ``"noise"``, normal numbers that know nothing of the sample; or the dotted name of a layer
            of the network, such as ``"body.layer2"``, whose output is averaged over all but samples and channels.
        parts: The network that is trained.
        held_out: Batches, of which the first is tried on a named layer.

    Raises:
        ValueError: If there is no such layer, or it is not used, or gives no tensor.

    Example:
        >>> from equipoise.models import mlp
        >>> from equipoise.training import Loader
        >>> tune = Loader([(torch.zeros(2, 3), torch.tensor([0, 1]))])
        >>> GammaSight("body.1", FeaturesAndLogits(mlp(2, 3, hidden=(5, 4))), tune).n_features
        5
    """

    def __init__(self, sees: str, parts: FeaturesAndLogits, held_out: Source) -> None:
        super().__init__()
        self.sees = sees
        self.untrained = _frozen_copy(parts.network) if sees == "random" else None
        self._shown: Tensor | None = None
        if sees not in _WORDS:
            _layer(parts.network, sees).register_forward_hook(self._keep)
            self._try(parts.network, held_out)
        self.n_features = int(parts.head.in_features if self._shown is None else self._shown.shape[1])  # type: ignore[arg-type]

    def forward(self, inputs: Inputs, features: Tensor, fabric: Fabric) -> Tensor:
        """Return what is shown of samples that have just gone through the network."""
        if self.untrained is not None:
            with evaluating(self.untrained), fabric.autocast():
                return cast(
                    "Tensor", self.untrained.features(fabric.strategy.precision.convert_input(inputs))
                )
        if self.sees == "noise":
            return torch.randn_like(features)
        return features.detach() if self._shown is None else self._shown

    def _keep(self, layer: nn.Module, given: Any, output: Any) -> None:
        if not isinstance(output, Tensor):
            raise ValueError(
                f"GammaNet: `sees` must name a layer that gives a tensor, and {self.sees!r} gives "
                f"{type(output).__name__}. Name one inside it."
            )
        shown = output.detach()
        self._shown = shown.flatten(2).mean(2) if shown.ndim > 2 else shown

    def _try(self, network: nn.Module, held_out: Source) -> None:
        device = next(network.parameters()).device
        batches = held_out(epoch=0, indices=None, start=0, rank=0, world_size=1, device=device)
        with evaluating(network):
            call_network(network, next(iter(batches)).inputs)
        if self._shown is None:
            raise ValueError(f"GammaNet: `sees` must name a layer that is used, and {self.sees!r} is not.")


def _frozen_copy(network: nn.Module) -> Any:
    return copy.deepcopy(network).requires_grad_(False)


def _layer(network: nn.Module, name: str) -> nn.Module:
    known: dict[str, nn.Module] = dict(network.named_modules())
    known.pop("")
    if name in known:
        return known[name]
    guess = nearest(name, [*_WORDS, *known])
    remedy = f"Did you mean {guess!r}?" if guess else f"Its first layers are {', '.join(list(known)[:5])}."
    words = ", ".join(map(repr, _WORDS))
    raise ValueError(
        f"GammaNet: `sees` must be {words} or a layer of {type(network).__name__}, got {name!r}. {remedy}"
    )
