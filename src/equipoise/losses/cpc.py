"""Pairwise constraints: two-class problems between the true class and each other, and among the others."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, final

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from equipoise.losses.base import Loss, Reduction

if TYPE_CHECKING:
    from jaxtyping import Float, Int

__all__ = ["PairwiseConstraintLoss", "pairwise_constraint_loss"]

#: Numbers held at once while pairs of classes are compared.
_CHUNK = 2**22


def pairwise_constraint_loss(
    logits: Float[Tensor, "n k"],
    labels: Int[Tensor, " n"],
    *,
    discrimination: float = 10.0,
    exclusion: float = 1.0,
    self_pairs: bool = False,
) -> Float[Tensor, " n"]:
    r"""Cross-entropy, plus the true class against each other one, plus a cost for ranking the others.

    It asks of the wrong classes to be equally unlikely. The last term compares all pairs of classes, so time
    grows with the square of their number; not for a thousand classes.

    .. math::
        -\log p_y - \frac{\lambda_D}{k - 1} \sum_{j \ne y} \log \sigma(z_y - z_j)
        - \frac{\lambda_E}{(k - 1)(k - 2)} \sum_{j \ne y} \sum_{i \ne y, j} \tfrac12 \log \sigma(z_j - z_i)

    Args:
        logits: Unnormalized scores of at least three classes; never probabilities.
        labels: Class numbers in ``[0, k)``.
        discrimination: Weight of the pairs with the true class (*λ_D*).
        exclusion: Weight of the pairs without it (*λ_E*).
        self_pairs: Count also the pairs of a class with itself: a constant without gradient.

    Returns:
        One value per sample.

    Example:
        >>> pairwise_constraint_loss(torch.zeros(1, 3), torch.tensor([0]), discrimination=1.0)
        tensor([2.1383])

    Reference:
        Cheng and Vasconcelos (2022), Calibrating deep neural networks by pairwise constraints.

    Differs from the authors' code:
        It is not public; compared with the CALS authors' version. That counts each class's pair with itself,
        which adds a constant; ``self_pairs=True`` does so. Its configuration file has discrimination
        0.1, its paper 10.
    """
    others = _others(logits, labels)
    true = logits.gather(-1, labels[:, None])
    cross_entropy = nn.functional.cross_entropy(logits, labels, reduction="none")
    apart = -nn.functional.logsigmoid(true - others).mean(-1)
    return cross_entropy + discrimination * apart + exclusion * _exclusion(others, self_pairs)


def _others(logits: Tensor, labels: Tensor) -> Tensor:
    """Return the logits of all classes but the true one, ``(n, k - 1)``."""
    place = torch.arange(logits.shape[-1] - 1, device=logits.device)
    return logits.gather(-1, place + (place >= labels[:, None]).long())


def _exclusion(others: Tensor, self_pairs: bool) -> Tensor:
    n_others = others.shape[-1]
    parts = torch.split(others, max(1, _CHUNK // n_others**2))
    if len(parts) == 1:
        totals = _pairs(others)
    else:  # recomputing the pairs in backward keeps memory at one chunk of them instead of n k^2
        totals = torch.cat([checkpoint(_pairs, part, use_reentrant=False) for part in parts])
    own = 0.0 if self_pairs else n_others * math.log(2)
    return (totals - own) / (2 * n_others * (n_others - 1))


def _pairs(others: Tensor) -> Tensor:
    return -nn.functional.logsigmoid(others[:, :, None] - others[:, None, :]).sum((1, 2))


@final
class PairwiseConstraintLoss(Loss):
    """Pairwise constraints as a drop-in for ``nn.CrossEntropyLoss``; see :func:`pairwise_constraint_loss`.

    Args:
        discrimination: Weight of the pairs with the true class (*λ_D*).
        exclusion: Weight of the pairs without it (*λ_E*).
        self_pairs: Count also the pairs of a class with itself.
        weight, ignore_index, reduction: As in :class:`~equipoise.losses.Loss`.

    Example:
        >>> PairwiseConstraintLoss(discrimination=1.0)(torch.zeros(1, 3), torch.tensor([0]))
        tensor(2.1383)
    """

    def __init__(
        self,
        *,
        discrimination: float = 10.0,
        exclusion: float = 1.0,
        self_pairs: bool = False,
        weight: Tensor | None = None,
        ignore_index: int = -100,
        reduction: Reduction = "mean",
    ) -> None:
        super().__init__(weight=weight, ignore_index=ignore_index, reduction=reduction)
        self.discrimination = discrimination
        self.exclusion = exclusion
        self.self_pairs = self_pairs

    def per_sample(self, logits: Tensor, labels: Tensor) -> Tensor:
        """Return :func:`pairwise_constraint_loss`."""
        if logits.shape[-1] < 3:
            raise ValueError(
                f"PairwiseConstraintLoss: `logits` must have at least 3 classes, got {logits.shape[-1]}. "
                "With two there is no pair of wrong classes; use nn.CrossEntropyLoss."
            )
        return pairwise_constraint_loss(
            logits,
            labels,
            discrimination=self.discrimination,
            exclusion=self.exclusion,
            self_pairs=self.self_pairs,
        )
