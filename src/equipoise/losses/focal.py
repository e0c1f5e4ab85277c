"""Focal loss, with a constant, scheduled or per-sample gamma."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import TYPE_CHECKING, final

import torch
from torch import Tensor, nn

from equipoise.losses.base import Loss, Reduction
from equipoise.losses.options import check_gamma
from equipoise.losses.sum import Adaptive

if TYPE_CHECKING:
    from jaxtyping import Float, Int

__all__ = ["FocalLoss", "focal_loss", "focal_of", "power"]


def power(base: Tensor, exponent: float | Tensor) -> Tensor:
    """Return ``base ** exponent`` for a base in [0, 2], with finite derivatives of every order at 0.

    The floor lies below the smallest positive ``1 - p`` that a floating-point softmax can give, so it acts
    only where the true class has probability 1 exactly; there the focal family is 0 with gradient 0.

    Example:
        >>> base = torch.zeros(1, requires_grad=True)
        >>> power(base, 0.5).backward()
        >>> base.grad
        tensor([0.])
    """
    return base.clamp(min=torch.finfo(base.dtype).eps ** 2).pow(exponent)


def focal_loss(
    logits: Float[Tensor, "n k"],
    labels: Int[Tensor, " n"],
    *,
    gamma: float | Float[Tensor, "*n"] = 3.0,
    detach_weight: bool = False,
) -> Float[Tensor, " n"]:
    r"""Cross-entropy that loses interest in a sample as the network grows sure of it.

    It bounds cross-entropy minus gamma times the entropy from above, so it rewards predictions less sure than
    the data ask for: the usual cure for overconfidence. With gamma too large it makes a network
    underconfident.

    .. math:: -(1 - p_y)^\gamma \log p_y

    Args:
        logits: Unnormalized scores; never probabilities.
        labels: Class numbers in ``[0, k)``.
        gamma: How fast interest is lost; 0 is cross-entropy. A number, or one per sample, through which
            gradients of any order flow.
        detach_weight: Hold :math:`(1 - p_y)^\gamma` constant in the backward pass.

    Returns:
        One value per sample.

    Example:
        >>> focal_loss(torch.zeros(1, 2), torch.tensor([0]), gamma=1.0)
        tensor([0.3466])

    Reference:
        Lin et al. (2017), Focal loss for dense object detection, eq. (4); for calibration: Mukhoti et al.
        (2020), Calibrating deep neural networks using focal loss.

    Differs from the authors' code:
        They sum over the batch; use ``reduction="sum"``. Their gradient is not finite for gamma in (0, 1) on
        samples with probability 1; ours is. Wang et al. (2021) hold the weight constant in backward;
        ``detach_weight=True`` does so.
    """
    cross_entropy = nn.functional.cross_entropy(logits, labels, reduction="none")
    return focal_of(cross_entropy, gamma=gamma, detach_weight=detach_weight)


def focal_of(
    cross_entropy: Float[Tensor, " n"], *, gamma: float | Float[Tensor, "*n"], detach_weight: bool = False
) -> Float[Tensor, " n"]:
    """Return focal loss of samples whose cross-entropy is known.

    Example:
        >>> focal_of(torch.tensor([0.5]).log().neg(), gamma=1.0)
        tensor([0.3466])
    """
    # 1 - p without cancellation, where p itself would have rounded to 1.
    weight = power(-torch.expm1(-cross_entropy), gamma)
    return (weight.detach() if detach_weight else weight) * cross_entropy


@final
class FocalLoss(Loss, Adaptive):
    """Focal loss with the signature of ``nn.CrossEntropyLoss``; formula in :func:`focal_loss`.

    Args:
        gamma: How fast interest is lost in samples the network is sure of. A number, or a tensor with one
            value per sample of the batches it will be given (or one for all).
        schedule: First epoch of each later gamma, counted from 0. The paper's FLSc-531 is
            ``FocalLoss(gamma=5, schedule={100: 3, 250: 1})``. The epoch is a buffer that :meth:`update`
            advances.
        detach_weight: Hold the focal weight constant in the backward pass.
        weight: Weight of each class, ``(k,)``.
        ignore_index: Label of samples that do not count.
        reduction: ``"mean"``, ``"sum"`` or ``"none"``.

    Example:
        >>> FocalLoss(gamma=1.0)(torch.zeros(1, 2), torch.tensor([0]))
        tensor(0.3466)
    """

    epoch: Tensor
    current_gamma: Tensor

    def __init__(
        self,
        *,
        gamma: float | Tensor = 3.0,
        schedule: Mapping[int, float] | None = None,
        detach_weight: bool = False,
        weight: Tensor | None = None,
        ignore_index: int = -100,
        reduction: Reduction = "mean",
    ) -> None:
        super().__init__(weight=weight, ignore_index=ignore_index, reduction=reduction)
        check_gamma(gamma, where="FocalLoss")
        self.gamma = gamma
        self.schedule = dict(schedule or {})
        self.detach_weight = detach_weight
        if self.schedule:
            self._start(gamma)

    def _start(self, gamma: float | Tensor) -> None:
        if isinstance(gamma, Tensor) or any(b <= a for a, b in pairwise([0, *self.schedule])):
            raise ValueError(
                "FocalLoss: `schedule` must follow a plain number `gamma` with epochs that rise from 1, got "
                f"{self.schedule}. FLSc-531 is FocalLoss(gamma=5, schedule={{100: 3, 250: 1}})."
            )
        for later in self.schedule.values():
            check_gamma(later, where="FocalLoss")
        self.register_buffer("epoch", torch.tensor(0))
        self.register_buffer("current_gamma", torch.tensor(float(gamma), dtype=torch.float32))

    @property
    def adapts(self) -> bool:
        """Whether there is a schedule to advance."""
        return bool(self.schedule)

    def per_sample(self, logits: Tensor, labels: Tensor) -> Tensor:
        """Return :func:`focal_loss` with the gamma of this epoch."""
        gamma = self.current_gamma if self.schedule else self.gamma
        if isinstance(gamma, Tensor):
            gamma = gamma.reshape(-1).to(logits)
        return focal_loss(logits, labels, gamma=gamma, detach_weight=self.detach_weight)

    def update(self, logits: Tensor, labels: Tensor) -> None:
        """Advance the schedule by one epoch; the predictions are not looked at."""
        if self.schedule:
            self.epoch += 1
            reached = [gamma for first, gamma in self.schedule.items() if first <= int(self.epoch)]
            if reached:
                self.current_gamma.fill_(reached[-1])
