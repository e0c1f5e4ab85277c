"""Monte Carlo dropout: the mean of several predictions with dropout left on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, final

import torch
from torch import Tensor, nn

from equipoise.core.seeds import derive_seed
from equipoise.models import Network
from equipoise.objectives.deep_ensemble import mean_log_probs
from equipoise.objectives.parts import Parts
from equipoise.objectives.supervised import Supervised
from equipoise.training import BatchLike, HeldOut, Objective, Step
from equipoise.training.batch_source import Inputs
from equipoise.training.network_call import as_logits, call_network

__all__ = ["MCDropout", "MonteCarloNetwork"]

_Dropout = nn.modules.dropout._DropoutNd


@final
class MonteCarloNetwork(nn.Module):
    """A network that answers with its mean over random dropout masks, in evaluation as well.

    Each pass has masks of its own, the same for all rows and in every call, so that predictions can be repeated and do
    not depend on the batches that rows come in.

    Args:
        network: A network with dropout layers.
        n_passes: Number of masks that are averaged (*S*).
        seed: Seed of the masks.

    Raises:
        ValueError: If the network has no dropout that does anything.

    Example:
        >>> network = nn.Sequential(nn.Dropout(0.5), nn.Linear(2, 3)).eval()
        >>> MonteCarloNetwork(network, n_passes=4)(torch.ones(1, 2)).exp().sum().round(decimals=4)
        tensor(1., grad_fn=...)
    """

    def __init__(self, network: nn.Module, *, n_passes: int = 20, seed: int = 0) -> None:
        super().__init__()
        if n_passes < 1:
            raise ValueError(
                f"MonteCarloNetwork: `n_passes` must be at least 1, got {n_passes}. 10 to 30 are usual."
            )
        if not dropouts(network):
            raise ValueError(
                "MonteCarloNetwork: the network has no dropout, so all passes would be the same. Give it some, such as "
                "mlp(dropout=0.1)."
            )
        if any(layer.p == 1 for layer in dropouts(network)):
            raise ValueError(
                "MonteCarloNetwork: a dropout of probability 1 leaves nothing. Use a smaller one."
            )
        self.network = network
        self.n_passes, self.seed = n_passes, seed
        self._masks: dict[tuple[int, ...], Tensor] = {}

    def forward(self, inputs: Inputs) -> Tensor:
        """Return the logarithm of the mean probabilities."""
        layers = dropouts(self.network)
        modes = [layer.training for layer in layers]
        for layer in layers:
            layer.eval()
        answers = [self._pass(inputs, number, layers) for number in range(self.n_passes)]
        for layer, mode in zip(layers, modes, strict=True):
            layer.train(mode)
        return mean_log_probs(answers)

    def _pass(self, inputs: Inputs, number: int, layers: Sequence[_Dropout]) -> Tensor:
        """Return the logits with one mask in place of each dropout."""

        def masked(place: int) -> Callable[[nn.Module, Any, Tensor], Tensor]:
            return lambda layer, _, output: output * self._mask(number, place, layers[place], output)

        handles = [layer.register_forward_hook(masked(place)) for place, layer in enumerate(layers)]
        try:
            return as_logits(call_network(self.network, inputs))
        finally:
            for handle in handles:
                handle.remove()

    def _mask(self, number: int, place: int, layer: _Dropout, output: Tensor) -> Tensor:
        # Kept, so that exported graphs hold masks and not random numbers.
        spread = (
            output.shape[2:] if isinstance(layer, nn.Dropout | nn.AlphaDropout) else (1,) * (output.ndim - 2)
        )
        shape = (1, *output.shape[1:2], *spread)
        key = (number, place, *shape)
        if key not in self._masks:
            generator = torch.Generator().manual_seed(derive_seed(self.seed, "dropout", number, place))
            drawn = torch.rand(shape, generator=generator, dtype=torch.float32)
            self._masks[key] = (drawn >= layer.p).float() / (1 - layer.p)
        return self._masks[key].to(output)


def dropouts(network: nn.Module) -> list[_Dropout]:
    """Return the dropout layers of a network that zero anything.

    Example:
        >>> len(dropouts(nn.Sequential(nn.Dropout(0.5), nn.Dropout(0.0))))
        1
    """
    return [part for part in network.modules() if isinstance(part, _Dropout) and part.p > 0]


@final
class MCDropout(Objective):
    r"""Train one network with one loss, and average its predictions over dropout masks.

    The cheapest baseline of uncertainty: training costs nothing extra, prediction *S* times as much. It rarely reaches
    an ensemble.

    .. math:: p = \frac{1}{S} \sum_s \mathrm{softmax}(f_{\theta \odot m_s}(x))

    Args:
        objective: What is trained; its network has dropout layers.
        n_passes: Number of masks that are averaged (*S*).

    Example:
        >>> from equipoise.models import mlp
        >>> network = mlp(3, 2, hidden=(4,), dropout=0.2)
        >>> MCDropout(Supervised(network, nn.CrossEntropyLoss()), n_passes=5).network().n_passes
        5

    Reference:
        Gal and Ghahramani (2016), Dropout as a Bayesian approximation.

    Differs from the authors' code:
        Masks come from a seed, and are the same for all rows of a pass, so that predictions can be repeated.
    """

    def __init__(self, objective: Objective, *, n_passes: int = 20) -> None:
        super().__init__()
        self.objective = objective
        # A tuple, so that the network does not become a second child beside the objective's.
        self._network = (MonteCarloNetwork(objective.network(), n_passes=n_passes),)

    @classmethod
    def from_parts(cls, parts: Parts, *, n_passes: int = 20, dropout: float = 0.1) -> MCDropout:
        """Build it from what an experiment has; a network without dropout gets one before its head.

        Args:
            parts: Network, loss and recipe.
            dropout: Probability of that dropout; networks that have their own keep it.

        Example:
            >>> from equipoise.models import mlp
            >>> parts = Parts(make_network=lambda: mlp(3, 2))
            >>> MCDropout.from_parts(parts, dropout=0.3).network().network.body[-1]
            Dropout(p=0.3, inplace=False)
        """
        network = parts.network("mc_dropout")
        if not dropouts(network) and isinstance(network, Network):
            body = nn.Sequential(network.body, nn.Dropout(dropout))
            network = Network(body, network.head, channels_last=network.channels_last)
        return cls(Supervised(network, parts.loss(), recipe=parts.recipe), n_passes=n_passes)

    def step(self, batch: BatchLike) -> Step:
        """Let the objective step."""
        return self.objective.step(batch)

    def network(self) -> MonteCarloNetwork:
        """Return the network that averages its predictions."""
        return self._network[0]

    def plan_epoch(self, epoch: int) -> Tensor | None:
        """Let the objective plan its epoch."""
        return self.objective.plan_epoch(epoch)

    def prepare_evaluation(self) -> None:
        """Let the objective prepare its network."""
        self.objective.prepare_evaluation()

    def end_epoch(self, held_out: HeldOut | None) -> None:
        """Let the objective end its epoch."""
        self.objective.end_epoch(held_out)
