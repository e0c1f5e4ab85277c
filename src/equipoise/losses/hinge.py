"""The cost that margin methods share: logits too far below the largest one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import torch
from torch import Tensor

if TYPE_CHECKING:
    from jaxtyping import Float, Int

__all__ = ["hinge"]


def hinge(
    logits: Float[Tensor, "n k"],
    *,
    margins: Float[Tensor, "*k"],
    weights: Float[Tensor, " k"],
    power: Literal[1, 2] = 1,
) -> Float[Tensor, " n"]:
    r"""Weigh how far each logit lies below the largest, beyond its class's margin.

    .. math:: \sum_j w_j \max(0, \max_i z_i - z_j - m_j)^{\text{power}}

    Args:
        logits: Unnormalized scores.
        margins: *m*, one per class or one for all.
        weights: *w*, one per class.
        power: 1 or 2.

    Returns:
        One value per sample. Margins and weights are constants in the backward pass; of logits that are tied
        for the largest, the first has the gradient.

    Example:
        >>> hinge(torch.tensor([[12.0, 0.0, 3.0]]), margins=torch.tensor(10.0), weights=torch.ones(3))
        tensor([2.])
    """
    if torch.compiler.is_compiling():  # which fuses the passes by itself
        excess = _excess(logits, logits.argmax(-1, keepdim=True), margins.detach())
        return excess.pow(power) @ weights.detach()
    value: Tensor = _Hinge.apply(logits, margins.detach(), weights.detach(), power)[0]  # type: ignore[no-untyped-call]
    return value


def _excess(logits: Tensor, top: Int[Tensor, "n 1"], margins: Tensor) -> Tensor:
    largest = logits.gather(-1, top)
    if margins.ndim == 0:  # one pass less
        return (largest - margins - logits).relu_()
    return (largest - logits).sub_(margins).relu_()


class _Hinge(torch.autograd.Function):
    """One backward pass over the logits, where automatic differentiation would take six."""

    generate_vmap_rule = True

    @staticmethod
    def forward(
        logits: Tensor, margins: Tensor, weights: Tensor, power: int
    ) -> tuple[Tensor, Int[Tensor, "n 1"], Tensor]:
        top = logits.max(-1, keepdim=True).indices
        excess = _excess(logits, top, margins)
        return (excess if power == 1 else excess.square()) @ weights, top, excess

    @staticmethod
    def setup_context(
        ctx: Any, inputs: tuple[Tensor, Tensor, Tensor, int], output: tuple[Tensor, Tensor, Tensor]
    ) -> None:
        logits, margins, weights, ctx.power = inputs
        ctx.mark_non_differentiable(*output[1:])
        ctx.save_for_backward(logits, margins, weights, *output[1:])
        ctx.save_for_forward(logits, margins, weights, output[1])

    @staticmethod
    def jvp(ctx: Any, *tangents: Tensor) -> tuple[Tensor, None, None]:
        logits, margins, weights, top = ctx.saved_tensors
        excess = _excess(logits, top, margins)
        slopes = excess.sign() * weights if ctx.power == 1 else 2 * weights * excess
        rise = tangents[0]
        return (slopes * (rise.gather(-1, top) - rise)).sum(-1), None, None

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None, None, None]:
        logits, margins, weights, top, excess = ctx.saved_tensors
        if torch.is_grad_enabled():  # a second derivative is wanted: connect the excess to the logits
            excess = _excess(logits, top, margins)
        slopes = excess.sign().mul_(weights) if ctx.power == 1 else 2 * weights * excess
        fall = slopes.mul_(-grads[0][:, None])
        return fall.scatter_add_(-1, top, -fall.sum(-1, keepdim=True)), None, None, None
