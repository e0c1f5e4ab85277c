"""CALS by a heuristic rule: a margin cost per class that follows its own held-out value."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, ClassVar, final

import torch
from torch import Tensor, nn

from equipoise.losses.base import Loss, Reduction
from equipoise.losses.hinge import hinge
from equipoise.losses.options import OverClasses, check_margin, check_n_classes, check_over_classes
from equipoise.losses.sum import Adaptive

if TYPE_CHECKING:
    from jaxtyping import Float, Int

__all__ = ["ClassAdaptiveHeuristicLoss", "class_adaptive_heuristic_loss"]


def class_adaptive_heuristic_loss(
    logits: Float[Tensor, "n k"],
    labels: Int[Tensor, " n"] | Float[Tensor, "n k"],
    *,
    multipliers: Float[Tensor, " k"],
    margin: float = 10.0,
    over_classes: OverClasses = "mean",
) -> Float[Tensor, " n"]:
    r"""Cross-entropy plus, for each class, a cost for logits more than a margin below the largest.

    The simple rival of CALS-ALM in the same paper, and worse there; it is here for comparison.
    It needs held-out predictions each epoch.

    .. math:: -\log p_y + \frac{1}{k} \sum_j \lambda_j \max(0, \max_i z_i - z_j - m)

    Args:
        logits: Unnormalized scores; never probabilities.
        labels: Class numbers in ``[0, k)``, or soft targets.
        multipliers: *λ*, one per class.
        margin: Gap between logits that costs nothing (*m*).
        over_classes: ``"mean"`` or ``"sum"``.

    Returns:
        One value per sample. Multipliers are constants in the backward pass.

    Example:
        >>> logits, ones = torch.tensor([[12.0, 0.0]]), torch.ones(2)
        >>> class_adaptive_heuristic_loss(logits, torch.tensor([0]), multipliers=ones)
        tensor([1.0000])

    Reference:
        Liu et al. (2023), Class adaptive network calibration, eq. (15).

    Differs from the authors' code:
        Nothing known; it differs from the paper's eq. (15) in two points, as their code does. The held-out
        cost that is compared from epoch to epoch contains the multiplier. While the costs of all classes were
        0 in the epoch before, no multiplier is raised, although any positive cost is a growth.
    """
    cross_entropy = nn.functional.cross_entropy(logits, labels, reduction="none")
    weights = multipliers.to(logits) / (1 if over_classes == "sum" else logits.shape[-1])
    return cross_entropy + hinge(logits, margins=logits.new_full((), margin), weights=weights)


@final
class ClassAdaptiveHeuristicLoss(Loss, Adaptive):
    """CALS-HR with the signature of ``nn.CrossEntropyLoss``; see :func:`class_adaptive_heuristic_loss`.

    Call ``loss.update(logits, labels)`` once per epoch with all held-out predictions, or
    ``loss.update_from(chunks)`` if they do not fit into memory.

    Args:
        n_classes: Number of classes.
        margin: Gap between logits that costs nothing (*m*).
        start: Multiplier of every class before the first epoch.
        factor: A multiplier is multiplied with it where its held-out cost grew by more than this factor, and
            divided by it where the cost fell by more.
        over_classes: ``"mean"`` or ``"sum"``.
        weight, ignore_index, reduction: As in :class:`~equipoise.losses.Loss`.

    Example:
        >>> loss = ClassAdaptiveHeuristicLoss(n_classes=2)
        >>> for gap in (12.0, 15.0):
        ...     loss.update(torch.tensor([[gap, 0.0]]), torch.tensor([0]))
        >>> loss.multipliers
        tensor([0.1000, 0.1100])
    """

    soft_targets: ClassVar[bool] = True
    multipliers: Tensor
    previous: Tensor

    def __init__(
        self,
        *,
        n_classes: int,
        margin: float = 10.0,
        start: float = 0.1,
        factor: float = 1.1,
        over_classes: OverClasses = "mean",
        weight: Tensor | None = None,
        ignore_index: int = -100,
        reduction: Reduction = "mean",
    ) -> None:
        super().__init__(weight=weight, ignore_index=ignore_index, reduction=reduction)
        check_n_classes(n_classes, where="ClassAdaptiveHeuristicLoss")
        check_margin(margin, where="ClassAdaptiveHeuristicLoss")
        check_over_classes(over_classes, where="ClassAdaptiveHeuristicLoss")
        self.n_classes = n_classes
        self.margin = margin
        self.start = start
        self.factor = factor
        self.over_classes: OverClasses = over_classes
        self.register_buffer("multipliers", torch.full((n_classes,), start, dtype=torch.float32))
        self.register_buffer("previous", torch.zeros(n_classes, dtype=torch.float32))

    def per_sample(self, logits: Tensor, labels: Tensor) -> Tensor:
        """Return :func:`class_adaptive_heuristic_loss` with the current multipliers."""
        return class_adaptive_heuristic_loss(
            logits,
            labels,
            multipliers=self.multipliers,
            margin=self.margin,
            over_classes=self.over_classes,
        )

    def update(self, logits: Tensor, labels: Tensor) -> None:
        """Raise the multipliers of classes whose held-out cost grew, lower those whose cost fell."""
        self.update_from([(logits, labels)])

    @torch.no_grad()
    def update_from(self, chunks: Iterable[tuple[Tensor, Tensor]]) -> None:
        """Update from held-out predictions that come in chunks, such as all pixels of a segmentation task."""

        def excess(logits: Tensor) -> Tensor:
            return torch.relu(logits.amax(-1, keepdim=True) - self.margin - logits)

        mean = self.held_out_mean(chunks, excess)
        multipliers, before = self.multipliers.to(mean), self.previous.to(mean)
        cost = multipliers * mean
        if before.any():
            multipliers = torch.where(cost > self.factor * before, multipliers * self.factor, multipliers)
            multipliers = torch.where(cost < before / self.factor, multipliers / self.factor, multipliers)
            self.multipliers.copy_(multipliers.clamp(1e-6, 1e6))
        self.previous.copy_(cost)
