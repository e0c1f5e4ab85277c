"""LogitNorm: cross-entropy of logits brought to a constant norm."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, final

import torch
from torch import Tensor, nn

from equipoise.losses.base import Loss, Reduction

if TYPE_CHECKING:
    from jaxtyping import Float, Int

__all__ = ["LogitNormLoss", "logit_norm_loss"]

#: Added to the norm by the authors.
_EPSILON = 1e-7


def logit_norm_loss(
    logits: Float[Tensor, "n k"],
    labels: Int[Tensor, " n"] | Float[Tensor, "n k"],
    *,
    temperature: float = 0.04,
) -> Float[Tensor, " n"]:
    r"""Cross-entropy of the direction of the logits, whatever their norm.

    Cross-entropy goes on growing the norm of the logits, and with it confidence, after all samples are right. Here
    the norm does not matter, so nothing makes it grow, and it is free to be small on unusual inputs. The probabilities
    of the trained network are those of its plain logits, as for every loss here; fit a temperature afterwards.

    .. math:: -\log \mathrm{softmax} \left( \frac{z}{\tau (\lVert z \rVert_2 + 10^{-7})} \right)_y

    Args:
        logits: Unnormalized scores; never probabilities.
        labels: Class numbers in ``[0, k)``, or soft targets.
        temperature: Temperature *τ* of the normalized logits, of which the loss is bounded from below:
            0.04 is quoted for the paper's CIFAR-10 (not confirmed there); the authors' example runs with 0.01.

    Returns:
        One value per sample.

    Example:
        >>> logit_norm_loss(torch.tensor([[3.0, -4.0]]), torch.tensor([0]), temperature=1.0)
        tensor([0.2204])

    Reference:
        Wei et al. (2022), Mitigating neural network overconfidence with logit normalization.

    Differs from the authors' code:
        Nothing known. At logits of exactly zero the slope is 1 / (temperature x 1e-7), which is finite in float32 and
        infinite in float16. The penalty on the norm of the logits is another method, :func:`logit_penalty_loss`.
    """
    norms = torch.linalg.vector_norm(logits, dim=-1, keepdim=True) + _EPSILON
    return nn.functional.cross_entropy(logits / (temperature * norms), labels, reduction="none")


@final
class LogitNormLoss(Loss):
    """LogitNorm with the signature of ``nn.CrossEntropyLoss``; formula in :func:`logit_norm_loss`.

    Args:
        temperature: Temperature of the normalized logits (*τ*), above 0.
        weight, ignore_index, reduction: As in :class:`~equipoise.losses.Loss`.

    Example:
        >>> LogitNormLoss(temperature=1.0)(torch.tensor([[3.0, -4.0]]), torch.tensor([0]))
        tensor(0.2204)
    """

    soft_targets: ClassVar[bool] = True

    def __init__(
        self,
        *,
        temperature: float = 0.04,
        weight: Tensor | None = None,
        ignore_index: int = -100,
        reduction: Reduction = "mean",
    ) -> None:
        super().__init__(weight=weight, ignore_index=ignore_index, reduction=reduction)
        if not temperature > 0:
            raise ValueError(
                f"LogitNormLoss: `temperature` must be above 0, got {temperature}. The paper uses 0.04."
            )
        self.temperature = temperature

    def per_sample(self, logits: Tensor, labels: Tensor) -> Tensor:
        """Return :func:`logit_norm_loss`."""
        return logit_norm_loss(logits, labels, temperature=self.temperature)
