"""One step into the future: how a hyper-parameter's choice now changes a loss on other data after the step."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, cast, final

import torch
from torch import Tensor, nn
from torch.func import functional_call

from equipoise.training import BatchLike, Cycle, Learner, gather
from equipoise.training.batch_source import Inputs
from equipoise.training.network_call import as_logits

__all__ = ["FeaturesAndLogits", "head_ahead", "held_out_logits", "look_ahead", "moved_there", "pure_forward"]


def pure_forward(module: nn.Module, weights: Mapping[str, Tensor], inputs: Any) -> Any:
    """Return a module's output with other weights; its own weights, buffers and gradients are not touched.

    Example:
        >>> layer = nn.Linear(1, 1, bias=False)
        >>> pure_forward(layer, {"weight": torch.tensor([[3.0]])}, torch.ones(1, 1))
        tensor([[3.]])
    """
    buffers = {name: buffer.clone() for name, buffer in module.named_buffers()}
    return functional_call(module, {**weights, **buffers}, (inputs,))


def look_ahead(
    module: nn.Module, inputs: Any, loss: Callable[[Tensor], Tensor], *, lr: float
) -> dict[str, Tensor]:
    r"""Return the weights after one plain gradient step, as a differentiable function of what the loss holds.

    .. math:: \theta'(\phi) = \theta - \eta \nabla_\theta L(\theta, \phi)

    The weights it starts from are detached copies, so whatever is computed from the result sends gradients to
    :math:`\phi` only and can leak nothing into the module.

    Args:
        module: What would be moved.
        inputs: What it is called with.
        loss: From its output to a number; what the output meets there is :math:`\phi`.
        lr: Length of the step, :math:`\eta`.

    Returns:
        Weights by name, for :func:`pure_forward`.

    Example:
        >>> layer, factor = nn.Linear(1, 1, bias=False), torch.tensor(2.0, requires_grad=True)
        >>> ahead = look_ahead(layer, torch.ones(1, 1), lambda output: factor * output.sum(), lr=0.1)
        >>> torch.autograd.grad(ahead["weight"].sum(), factor)
        (tensor(-0.1000),)
    """
    # Copies, because the module may take its own step before somebody differentiates through this one.
    weights = {name: weight.detach().clone().requires_grad_() for name, weight in module.named_parameters()}
    value = loss(pure_forward(module, weights, inputs))
    gradients = torch.autograd.grad(value, list(weights.values()), create_graph=True)
    return {
        name: weight - lr * gradient
        for (name, weight), gradient in zip(weights.items(), gradients, strict=True)
    }


def moved_there(module: nn.Module, ahead: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return a module's weights as they are now, with the derivatives that :func:`look_ahead` found for them.

    After the module's own step its weights are not quite those looked ahead to: momentum, weight decay and clipping
    took part. What is measured with the result is measured where the module is; how a hyper-parameter moved it there
    comes from the plain step.

    Example:
        >>> layer, factor = nn.Linear(1, 1, bias=False), torch.tensor(2.0, requires_grad=True)
        >>> ahead = look_ahead(layer, torch.ones(1, 1), lambda output: factor * output.sum(), lr=0.1)
        >>> there = moved_there(layer, ahead)["weight"]
        >>> torch.equal(there, layer.weight), torch.autograd.grad(there.sum(), factor)
        (True, (tensor(-0.1000),))
    """
    now = dict(module.named_parameters())
    return {name: now[name].detach() + (weight - weight.detach()) for name, weight in ahead.items()}


@final
class FeaturesAndLogits(nn.Module):
    """A network in two parts that gives both what its head sees and what it says.

    Args:
        network: With ``features(inputs)`` and ``head``, as ``equipoise.models.Network``.

    Raises:
        TypeError: If it has no such parts.

    Example:
        >>> from equipoise.models import mlp
        >>> features, logits = FeaturesAndLogits(mlp(3, 2, hidden=(4,)))(torch.zeros(1, 2))
        >>> features.shape, logits.shape
        (torch.Size([1, 4]), torch.Size([1, 3]))
    """

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        if not isinstance(getattr(network, "head", None), nn.Module) or not callable(
            getattr(network, "features", None)
        ):
            raise TypeError(
                f"FeaturesAndLogits: `network` must have a body and a head, got {type(network).__name__}. "
                "Wrap it: equipoise.models.Network(body, head)."
            )
        self.network = network

    @property
    def head(self) -> nn.Module:
        """The last layer."""
        return cast("nn.Module", self.network.head)

    def forward(self, inputs: Inputs) -> tuple[Tensor, Tensor]:
        """Return features and logits."""
        features: Tensor = self.network.features(inputs)  # type: ignore[operator]
        return features, as_logits(self.head(features))


def head_ahead(
    learner: Learner[FeaturesAndLogits], seen: Tensor, loss: Callable[[Tensor], Tensor], held_out: Cycle
) -> tuple[Tensor, Tensor]:
    """Return what a network would say about the next held-out batch if its head took one step now.

    Args:
        learner: What moves the network; its current rate is the length of the step.
        seen: Features of the training batch of all processes.
        loss: From the head's logits for them to a number.
        held_out: Where the held-out batch comes from.

    Returns:
        Logits of the held-out batch of all processes, and its labels.
    """
    head = learner.network.head
    ahead = look_ahead(head, seen, lambda output: loss(as_logits(output)), lr=learner.lr)
    return held_out_logits(learner, ahead, held_out)


def held_out_logits(
    learner: Learner[FeaturesAndLogits], head: Mapping[str, Tensor], held_out: Cycle
) -> tuple[Tensor, Tensor]:
    """Return what a network with other weights of its head says about the next held-out batch, and its labels."""
    batch = held_out.next_batch(learner.fabric)
    features, labels = gather(_quiet_features(learner, batch), batch.targets)
    return as_logits(pure_forward(learner.network.head, head, features)), labels


def _quiet_features(learner: Learner[FeaturesAndLogits], batch: BatchLike) -> Tensor:
    """Return a batch's features without a trace.

    The network stays in training mode, as in the published bilevel loops, but keeps neither gradients nor running
    statistics of these samples.
    """
    fabric, network = learner.fabric, learner.network
    with torch.no_grad(), fabric.autocast():
        inputs = fabric.strategy.precision.convert_input(batch.inputs)
        features, _ = pure_forward(network, dict(network.named_parameters()), inputs)
    return cast("Tensor", features)
