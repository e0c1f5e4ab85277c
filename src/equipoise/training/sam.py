"""Sharpness-aware minimization: where the loss is highest near the current weights."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

__all__ = ["sam_perturbation"]


@torch.no_grad()
def sam_perturbation(
    weights: Sequence[Tensor], gradients: Sequence[Tensor], *, rho: float = 0.05, adaptive: bool = False
) -> list[Tensor]:
    r"""Return the step to the weights of the highest loss within a small distance, to first order.

    A network trained on the gradient there ends in flatter minima, and is less overconfident, at the cost of a second
    forward and backward pass per step.

    .. math::
        \epsilon = \rho \frac{g}{\lVert g \rVert + 10^{-12}} \quad \text{(SAM)}, \qquad
        \epsilon = \rho \frac{w^2 g}{\lVert |w| \, g \rVert + 10^{-12}} \quad \text{(ASAM)}

    Args:
        weights: All weights *w* that have a gradient.
        gradients: Their gradients *g*.
        rho: Distance (*ρ*): 0.05 for SAM. ASAM measures it relative to the weights: 0.5 in its authors' code, which
            adds 0.01 to the weights, and 2 in a common implementation that does not.
        adaptive: Whether the distance is relative to the size of each weight: ASAM.

    Returns:
        One step for each weight; 0 where all gradients are 0.

    Example:
        >>> sam_perturbation([torch.tensor([1.0, 2.0])], [torch.tensor([3.0, 4.0])], rho=0.5)
        [tensor([0.3000, 0.4000])]

    Reference:
        Foret et al. (2021), Sharpness-aware minimization for efficiently improving generalization; Kwon et al. (2021),
        ASAM: adaptive sharpness-aware minimization for scale-invariant learning of deep neural networks.

    Differs from the authors' code:
        One norm over all devices, where theirs take that of each device's part of the batch. No small constant is
        added to the weights in ASAM.
    """
    scaled = (
        torch._foreach_mul(torch._foreach_abs(list(weights)), list(gradients))
        if adaptive
        else list(gradients)
    )
    norm = torch.linalg.vector_norm(torch.stack(torch._foreach_norm(scaled)))
    directions = torch._foreach_mul(torch._foreach_abs(list(weights)), scaled) if adaptive else scaled
    return list(torch._foreach_mul(directions, rho / (norm + 1e-12)))
