"""Accuracy versus uncertainty calibration with a soft threshold."""

from __future__ import annotations

from math import log
from typing import TYPE_CHECKING, final

import torch
from torch import Tensor

from equipoise.losses.avuc import agreement_penalty
from equipoise.losses.base import Penalty, Reduction
from equipoise.losses.statistics import entropy, shares

if TYPE_CHECKING:
    from jaxtyping import Float, Int

__all__ = ["SoftAvUC", "soft_avuc_penalty"]

_SMOOTHING = 1e-5


def soft_avuc_penalty(
    logits: Float[Tensor, "n k"],
    labels: Int[Tensor, " n"],
    *,
    threshold: float = 0.5,
    temperature: float = 1.0,
    weights: Float[Tensor, " n"] | None = None,
) -> Float[Tensor, ""]:
    r"""Reward being certain where right and uncertain where wrong, with a soft border between the two.

    Unlike :func:`~equipoise.losses.avuc_penalty` it needs no held-out data, and its gradient sees the border.
    With the entropy *u*, and *e* its ratio to the largest possible:

    .. math::
        q_U = \sigma \Bigl( \tfrac1T \log \frac{e (1-\kappa)}{(1-e) \kappa} \Bigr), \qquad
        \log \Bigl( 1 + \frac{\sum_A q_U \tanh u + \sum_I q_C (1 - \tanh u)}
        {\sum_A q_C (1 - \tanh u) + \sum_I q_U \tanh u} \Bigr)

    Args:
        logits: Unnormalized scores; never probabilities.
        labels: Class numbers in ``[0, k)``.
        threshold: Relative entropy at which a sample is half certain (:math:`\kappa`), inside (0, 1).
        temperature: Softness of the border (*T*).
        weights: Weight of each sample.

    Returns:
        One value for the batch.

    Example:
        >>> logits = torch.tensor([[9.0, 0.0], [0.1, 0.0]])
        >>> soft_avuc_penalty(logits, torch.tensor([0, 1])) < soft_avuc_penalty(logits, torch.tensor([1, 0]))
        tensor(True)

    Reference:
        Karandikar et al. (2021), Soft calibration objectives for neural networks.

    Differs from the authors' code:
        Theirs is not defined for uniform probabilities, where the border's logit is infinite; ours is finite.
    """
    n_classes = logits.shape[-1]
    accurate = logits.argmax(-1) == labels
    probs = (1 - _SMOOTHING) * logits.softmax(-1) + _SMOOTHING / n_classes
    uncertainty = entropy(probs.log())
    relative = uncertainty / log(n_classes)
    epsilon = torch.finfo(logits.dtype).eps
    odds = relative.clamp(min=epsilon).log() - (1 - relative).clamp(min=epsilon).log()
    border = (odds - log(threshold / (1 - threshold))) / temperature
    share, tanh = shares(weights, logits), uncertainty.tanh()
    uncertain = share * border.sigmoid() * tanh
    certain = share * (-border).sigmoid() * (1 - tanh)
    return agreement_penalty(
        certain.where(accurate, uncertain).sum(), uncertain.where(accurate, certain).sum()
    )


@final
class SoftAvUC(Penalty):
    """Accuracy versus uncertainty of a batch with a soft border; formula in :func:`soft_avuc_penalty`.

    Args:
        threshold: Relative entropy at which a sample is half certain, inside (0, 1).
        temperature: Softness of the border, above 0.
        weight, ignore_index, reduction, gather: As in :class:`~equipoise.losses.Penalty`.

    Example:
        >>> SoftAvUC()(torch.tensor([[30.0, 0.0]]), torch.tensor([0])) < 1e-3
        tensor(True)
    """

    def __init__(
        self,
        *,
        threshold: float = 0.5,
        temperature: float = 1.0,
        weight: Tensor | None = None,
        ignore_index: int = -100,
        reduction: Reduction = "mean",
        gather: bool = False,
    ) -> None:
        super().__init__(weight=weight, ignore_index=ignore_index, reduction=reduction, gather=gather)
        if not 0 < threshold < 1:
            raise ValueError(
                f"SoftAvUC: `threshold` must be inside (0, 1), got {threshold}. "
                "It is a share of the largest entropy."
            )
        if not temperature > 0:
            raise ValueError(
                f"SoftAvUC: `temperature` must be above 0, got {temperature}. For a hard border use AvUC."
            )
        self.threshold = threshold
        self.temperature = temperature

    def term(self, logits: Tensor, labels: Tensor, weights: Tensor) -> Tensor:
        """Return :func:`soft_avuc_penalty`."""
        return soft_avuc_penalty(
            logits, labels, threshold=self.threshold, temperature=self.temperature, weights=weights
        )
