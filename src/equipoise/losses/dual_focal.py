"""Dual focal loss: a focal loss that also looks at the class just below the true one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, final

import torch
from torch import Tensor, nn

from equipoise.core.names import check_choice
from equipoise.losses.base import Loss, Reduction
from equipoise.losses.focal import power
from equipoise.losses.options import check_gamma

if TYPE_CHECKING:
    from jaxtyping import Float, Int

__all__ = ["DualFocalLoss", "Rival", "dual_focal_loss", "true_and_rival"]

Rival = Literal["next", "second", "third", "mean2", "mean3", "mean_all"] | float

#: Which places, among the classes below the true one, are averaged.
_PLACES = {"next": [0], "second": [1], "third": [2], "mean2": [0, 1], "mean3": [0, 1, 2]}


def dual_focal_loss(
    logits: Float[Tensor, "n k"],
    labels: Int[Tensor, " n"],
    *,
    gamma: float | Float[Tensor, "*n"] = 5.0,
    rival: Rival = "next",
    detach_weight: bool = False,
) -> Float[Tensor, " n"]:
    r"""Focal loss that loses interest only once the true class is well ahead of the next one.

    The weight is never below focal loss's at the same gamma, which balances focal loss's
    underconfidence against cross-entropy's overconfidence. The value jumps where the order of classes
    changes.

    .. math:: -(1 - p_y + q)^\gamma \log p_y, \qquad q = \max \{p_j : p_j < p_y\}

    Args:
        logits: Unnormalized scores; never probabilities.
        labels: Class numbers in ``[0, k)``.
        gamma: How fast interest is lost; 0 is cross-entropy. A number, or one per sample.
        rival: What *q* is. ``"next"`` is the paper's method; ``"second"`` and ``"third"`` are the classes
            further down, ``"mean2"``, ``"mean3"`` and ``"mean_all"`` average the first two, three or all
            below the true class (those that exist), a number is a constant: the paper's ablations.
        detach_weight: Hold the weight constant in the backward pass.

    Returns:
        One value per sample. Gradients flow through *q*; which class it is, is constant.

    Example:
        >>> logits = torch.tensor([[0.7, 0.2, 0.1]]).log()
        >>> dual_focal_loss(logits, torch.tensor([0]), gamma=5.0)
        tensor([0.0111])

    Reference:
        Tao et al. (2023), Dual focal loss for calibration, eq. (3).

    Differs from the authors' code:
        Its default gamma is 0, which is cross-entropy, and it sums over the batch; ours are the paper's
        5 and the mean. As in the code, *q* is 0 if no class lies below, and ties do not lie below; the
        code compares probabilities and we compare logits, which rounding cannot tie.
    """
    log_true, q = true_and_rival(logits, labels, rival=rival)
    weight = power(q - torch.expm1(log_true), gamma)
    return -(weight.detach() if detach_weight else weight) * log_true


def true_and_rival(
    logits: Float[Tensor, "n k"], labels: Int[Tensor, " n"], *, rival: Rival = "next"
) -> tuple[Float[Tensor, " n"], Float[Tensor, " n"] | float]:
    """Return the log-probability of the true class, and the probability of its rival.

    Example:
        >>> true_and_rival(torch.tensor([[0.5, 0.25, 0.25]]).log(), torch.tensor([0]), rival="mean_all")[1]
        tensor([0.2500])
    """
    log_probs = logits.log_softmax(-1)
    true = labels[:, None]
    log_true = log_probs.gather(-1, true)
    if not isinstance(rival, str):
        return log_true[:, 0], float(rival)
    # One tensor on both sides: a probability from softmax beside one from log_softmax would, by rounding,
    # make the true class its own rival.
    gaps = logits.detach().gather(-1, true) - logits.detach()
    if rival == "mean_all":
        return log_true[:, 0], _mean(log_probs.exp(), gaps > 0)
    places = [place for place in _PLACES[rival] if place < logits.shape[-1]]
    depth = max(places, default=0) + 1
    gaps, classes = _smallest(nn.functional.threshold(gaps, 0.0, torch.inf, inplace=True), depth)
    return log_true[:, 0], _mean(log_probs.gather(-1, classes).exp()[:, places], gaps[:, places] < torch.inf)


def _smallest(gaps: Tensor, depth: int) -> tuple[Tensor, Tensor]:
    if depth == 1:  # the same as topk, and several times faster
        return gaps.min(-1, keepdim=True)
    return gaps.topk(depth, largest=False)


def _mean(probs: Tensor, exists: Tensor) -> Tensor:
    return probs.where(exists, 0.0).sum(-1) / exists.sum(-1).clamp(min=1)


def check_rival(rival: Rival, *, where: str) -> None:
    """Raise unless ``rival`` is a word :func:`dual_focal_loss` knows or a constant in [0, 1]."""
    if isinstance(rival, str):
        check_choice(rival, (*_PLACES, "mean_all"), where=where, name="rival")
    elif not 0 <= rival <= 1:
        raise ValueError(
            f"{where}: a constant `rival` must be in [0, 1], got {rival}. It stands for a probability."
        )


@final
class DualFocalLoss(Loss):
    """Dual focal loss with the signature of ``nn.CrossEntropyLoss``; formula in :func:`dual_focal_loss`.

    Args:
        gamma: How fast interest is lost once the true class is ahead of its rival.
        rival: Which class, mean of classes, or constant the true class is measured against.
        detach_weight: Hold the weight constant in the backward pass.
        weight, ignore_index, reduction: As in :class:`~equipoise.losses.Loss`.

    Example:
        >>> DualFocalLoss(gamma=1.0)(torch.zeros(1, 2), torch.tensor([0]))
        tensor(0.3466)
    """

    def __init__(
        self,
        *,
        gamma: float = 5.0,
        rival: Rival = "next",
        detach_weight: bool = False,
        weight: Tensor | None = None,
        ignore_index: int = -100,
        reduction: Reduction = "mean",
    ) -> None:
        super().__init__(weight=weight, ignore_index=ignore_index, reduction=reduction)
        check_gamma(gamma, where="DualFocalLoss")
        check_rival(rival, where="DualFocalLoss")
        self.gamma = gamma
        self.rival = rival
        self.detach_weight = detach_weight

    def per_sample(self, logits: Tensor, labels: Tensor) -> Tensor:
        """Return :func:`dual_focal_loss`."""
        return dual_focal_loss(
            logits, labels, gamma=self.gamma, rival=self.rival, detach_weight=self.detach_weight
        )
