"""Last-layer Laplace: a normal distribution over the head's weights, averaged in closed form."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import final

import torch
from torch import Tensor, nn

from equipoise.objectives.bilevel import FeaturesAndLogits
from equipoise.objectives.parts import Parts
from equipoise.objectives.supervised import Supervised
from equipoise.training import BatchLike, HeldOut, Learner, Objective, Source, Step, evaluating
from equipoise.training.batch_source import Inputs
from equipoise.training.network_call import as_logits
from equipoise.training.randomness import random_state, restore_random_state

__all__ = ["LaplaceNetwork", "LastLayerLaplace"]

#: Prior precisions that are tried.
_PRECISIONS = torch.logspace(-4, 4, 81, dtype=torch.float64)


@final
class LaplaceNetwork(nn.Module):
    r"""A network whose head has a normal distribution over its weights, with the mean where training ended.

    The covariance is the inverse of the Hessian of the training loss with respect to the head, in Kronecker form,
    plus a prior. Logits are divided by a factor that grows with their variance, which is large far from the training
    data.

    .. math::
        \Sigma = (A \otimes B + \delta I)^{-1}, \qquad A = \sum_i h_i h_i^T, \quad
        B = \tfrac1n \sum_i (\mathrm{diag}(p_i) - p_i p_i^T), \qquad
        \tilde z_k = \frac{z_k}{\sqrt{1 + \tfrac{\pi}{8} \mathrm{Var}[z_k]}}

    Args:
        network: With ``features(inputs)`` and a linear ``head``, as ``equipoise.models.Network``.
        prior_precision: Precision *δ* of the prior; None chooses it by the marginal likelihood when fitted.

    Raises:
        TypeError: If the head is not a linear layer.

    Example:
        >>> from equipoise.models import mlp
        >>> from equipoise.training import Loader
        >>> network = LaplaceNetwork(mlp(2, 2, hidden=(4,)))
        >>> source = Loader([(torch.eye(2), torch.tensor([0, 1]))])
        >>> network.fit(source(epoch=0, indices=None, start=0, rank=0, world_size=1, device=torch.device("cpu")))
        >>> network(torch.eye(2)).shape
        torch.Size([2, 2])

    Reference:
        Daxberger et al. (2021), Laplace redux: effortless Bayesian deep learning; Kristiadi et al. (2020), Being
        Bayesian, even just a bit, fixes overconfidence in ReLU networks.

    Differs from the authors' code:
        Written from the formulas; their package offers more structures of the covariance, and other predictives.
    """

    feature_vectors: Tensor
    feature_values: Tensor
    class_vectors: Tensor
    class_values: Tensor
    precision: Tensor

    def __init__(self, network: nn.Module, *, prior_precision: float | None = None) -> None:
        super().__init__()
        head = FeaturesAndLogits(network).head
        if not isinstance(head, nn.Linear):
            raise TypeError(f"LaplaceNetwork: the head must be nn.Linear, got {type(head).__name__}.")
        if prior_precision is not None and not prior_precision > 0:
            raise ValueError(f"LaplaceNetwork: `prior_precision` must be above 0, got {prior_precision}.")
        self.network = network
        self.prior_precision = prior_precision
        width, n_classes = head.in_features + (head.bias is not None), head.out_features
        self.register_buffer("feature_vectors", torch.eye(width))
        self.register_buffer("feature_values", torch.zeros(width))
        self.register_buffer("class_vectors", torch.eye(n_classes))
        self.register_buffer("class_values", torch.zeros(n_classes))
        # Without a fit the variance is 0, and the network answers as it is.
        self.register_buffer("precision", torch.tensor(torch.inf))

    @property
    def head(self) -> nn.Linear:
        """The last layer."""
        head: nn.Linear = self.network.head  # type: ignore[assignment]
        return head

    def fit(self, batches: Iterable[BatchLike]) -> None:
        """Compute the covariance from training batches.

        Raises:
            ValueError: If there is no batch.
        """
        products = outer = None
        count = 0
        with evaluating(self.network):
            for batch in batches:
                features, logits = self._parts(batch.inputs)
                wide, probs = features.double(), logits.double().softmax(-1)
                product = wide.T @ wide
                spread = torch.diag(probs.sum(0)) - probs.T @ probs
                products = product if products is None else products + product
                outer = spread if outer is None else outer + spread
                count += len(wide)
        if products is None or outer is None:
            raise ValueError("LaplaceNetwork.fit: there is no batch to fit on. Is `train` empty?")
        feature_values, feature_vectors = torch.linalg.eigh(products)
        class_values, class_vectors = torch.linalg.eigh(outer / count)
        feature_values, class_values = feature_values.clamp(min=0), class_values.clamp(min=0)
        chosen = self.prior_precision or self._best_precision(feature_values, class_values)
        for name, value in (
            ("feature_values", feature_values),
            ("feature_vectors", feature_vectors),
            ("class_values", class_values),
            ("class_vectors", class_vectors),
        ):
            getattr(self, name).copy_(value)
        self.precision.fill_(chosen)

    def _best_precision(self, feature_values: Tensor, class_values: Tensor) -> float:
        """Return the prior precision of the highest marginal likelihood: the normal evidence of the head's weights."""
        weights = [part.detach().double() for part in self.head.parameters()]
        energy, n_weights = (
            sum(float(part.square().sum()) for part in weights),
            sum(map(Tensor.numel, weights)),
        )
        curvature = torch.outer(feature_values, class_values).flatten()
        precisions = _PRECISIONS.to(curvature.device)
        cost = precisions * energy - n_weights * precisions.log()
        cost = cost + torch.stack([torch.log(curvature + one).sum() for one in precisions])
        return float(precisions[cost.argmin()])

    def _parts(self, inputs: Inputs) -> tuple[Tensor, Tensor]:
        features: Tensor = self.network.features(inputs)  # type: ignore[operator]
        if features.ndim != 2:
            raise ValueError(
                f"LaplaceNetwork: features must be (n, d), got {tuple(features.shape)}. Dense predictions do not work."
            )
        logits = as_logits(self.head(features))
        if self.head.bias is not None:
            features = torch.cat([features, torch.ones_like(features[:, :1])], 1)
        return features, logits

    def variance(self, features: Tensor) -> Tensor:
        """Return the variance of each logit for features ``(n, d)``, with a column of ones if the head has a bias."""
        seen = (features.to(self.feature_vectors) @ self.feature_vectors).square()
        inverse = 1 / (torch.outer(self.feature_values, self.class_values) + self.precision)
        return (seen @ inverse) @ self.class_vectors.square().T

    def forward(self, inputs: Inputs) -> Tensor:
        """Return logits, divided by a factor that grows with their variance."""
        features, logits = self._parts(inputs)
        return logits / torch.sqrt(1 + math.pi / 8 * self.variance(features)).to(logits)


@final
class LastLayerLaplace(Objective):
    r"""Train any objective of one network, and give its head a normal distribution over its weights.

    Uncertainty at nearly the cost of one network: a forward pass over ``train`` per epoch, and a matrix product per
    prediction. Formula in :class:`LaplaceNetwork`.

    .. math:: p = \mathrm{softmax} \left( z / \sqrt{1 + \tfrac{\pi}{8} \mathrm{Var}[z]} \right)

    Args:
        objective: What is trained; its network has a body and a linear head.
        train: Training batches, from which the covariance is computed at the end of every epoch.
        prior_precision: Precision *δ* of the prior; None chooses it by the marginal likelihood.

    Example:
        >>> from equipoise.models import mlp
        >>> from equipoise.training import Loader
        >>> train = Loader([(torch.eye(2), torch.tensor([0, 1]))])
        >>> laplace = LastLayerLaplace(Supervised(mlp(2, 2), nn.CrossEntropyLoss()), train)
        >>> type(laplace.network()).__name__
        'LaplaceNetwork'

    Reference:
        Daxberger et al. (2021), Laplace redux: effortless Bayesian deep learning.

    Differs from the authors' code:
        Written from the formulas; their package offers more structures of the covariance, and other predictives. If
        training batches are augmented, the Hessian is of augmented batches too.
    """

    def __init__(self, objective: Objective, train: Source, *, prior_precision: float | None = None) -> None:
        super().__init__()
        self.objective = objective
        self.laplace = LaplaceNetwork(objective.network(), prior_precision=prior_precision)
        # A tuple, since a source may be a module, which would become a child.
        self._train = (train,)
        self._epoch = 0

    @classmethod
    def from_parts(cls, parts: Parts, *, prior_precision: float | None = None) -> LastLayerLaplace:
        """Build it from what an experiment has.

        Args:
            parts: Network, loss, recipe and training batches.

        Example:
            >>> from equipoise.models import mlp
            >>> from equipoise.training import Loader
            >>> train = Loader([(torch.eye(2), torch.tensor([0, 1]))])
            >>> parts = Parts(make_network=lambda: mlp(2, 2), train=train)
            >>> LastLayerLaplace.from_parts(parts, prior_precision=2.0).laplace.prior_precision
            2.0
        """
        if parts.train is None:
            raise ValueError("last_layer_laplace: needs training batches. Give them as `train`.")
        return cls(Supervised.from_parts(parts), parts.train, prior_precision=prior_precision)

    def step(self, batch: BatchLike) -> Step:
        """Let the objective step."""
        return self.objective.step(batch)

    def plan_epoch(self, epoch: int) -> Tensor | None:
        """Let the objective plan its epoch."""
        self._epoch = epoch
        return self.objective.plan_epoch(epoch)

    def prepare_evaluation(self) -> None:
        """Compute the covariance for the weights as they are."""
        self.objective.prepare_evaluation()
        before = random_state()
        (train,) = self._train
        device = next(self.laplace.network.parameters()).device
        batches = train(epoch=self._epoch, indices=None, start=0, rank=0, world_size=1, device=device)
        learner = next(part for part in self.objective.modules() if isinstance(part, Learner))
        with learner.fabric.autocast():
            self.laplace.fit(batches)
        restore_random_state(before)

    def network(self) -> LaplaceNetwork:
        """Return the network with the distribution over its head."""
        return self.laplace

    def end_epoch(self, held_out: HeldOut | None) -> None:
        """Let the objective end its epoch."""
        self.objective.end_epoch(held_out)

    def get_extra_state(self) -> dict[str, int]:
        """Return the current epoch."""
        return {"epoch": self._epoch}

    def set_extra_state(self, state: dict[str, int]) -> None:
        """Take back what :meth:`get_extra_state` gave."""
        self._epoch = state["epoch"]
