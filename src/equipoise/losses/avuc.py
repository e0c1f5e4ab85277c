"""Accuracy versus uncertainty calibration."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, final

import torch
from torch import Tensor

from equipoise.core.names import check_choice
from equipoise.losses.base import Penalty, Reduction
from equipoise.losses.statistics import entropy, shares
from equipoise.losses.sum import Adaptive

if TYPE_CHECKING:
    from jaxtyping import Float, Int

__all__ = ["AvUC", "agreement_penalty", "avuc_penalty"]

TieSide = Literal["certain", "uncertain"]

_FLOOR = 1e-10


def agreement_penalty(good: Float[Tensor, ""], bad: Float[Tensor, ""]) -> Float[Tensor, ""]:
    """Return ``log(1 + bad / good)``, finite if either is 0.

    Example:
        >>> agreement_penalty(torch.tensor(1.0), torch.tensor(1.0))
        tensor(0.6931)
    """
    return (good + bad + _FLOOR).log() - (good + _FLOOR).log()


def avuc_penalty(
    logits: Float[Tensor, "n k"],
    labels: Int[Tensor, " n"],
    *,
    threshold: float | Float[Tensor, ""],
    ties: TieSide = "certain",
    detach_confidence: bool = False,
    weights: Float[Tensor, " n"] | None = None,
) -> Float[Tensor, ""]:
    r"""Reward being certain where right and uncertain where wrong.

    Each sample falls in one of four cells: accurate or not, certain (entropy *u* up to a threshold) or not.
    It calibrates uncertainty rather than probability, and needs a sensible threshold.

    .. math::
        \log \Bigl( 1 + \frac{n_{AU} + n_{IC}}{n_{AC} + n_{IU}} \Bigr), \qquad
        \begin{aligned} n_{AC} &= \sum c (1 - \tanh u) & n_{AU} &= \sum c \tanh u \\
        n_{IC} &= \sum (1-c)(1 - \tanh u) & n_{IU} &= \sum (1-c) \tanh u \end{aligned}

    Args:
        logits: Unnormalized scores; never probabilities.
        labels: Class numbers in ``[0, k)``.
        threshold: Entropy, in nats, that parts certain from uncertain; a constant in backward.
        ties: On which side a sample exactly at the threshold falls.
        detach_confidence: Hold the confidence *c* constant in backward.
        weights: Weight of each sample.

    Returns:
        One value for the batch.

    Example:
        >>> avuc_penalty(torch.tensor([[4.0, 0.0], [0.0, 0.0]]), torch.tensor([0, 1]), threshold=0.5)
        tensor(0.)

    Reference:
        Krishnan and Tickoo (2020), Improving model calibration with accuracy versus uncertainty optimization.

    Differs from the authors' code:
        They multiply by 3 in their training script; give that as the weight in a sum. Google's version takes
        ties as uncertain (``ties="uncertain"``) and can hold the confidence constant. With no sample in the
        agreeing cells theirs has no gradient; ours still shrinks the disagreeing ones.
    """
    log_probs = logits.log_softmax(-1)
    log_confidence, predicted = log_probs.max(-1)
    confidence = log_confidence.exp()
    if detach_confidence:
        confidence = confidence.detach()
    uncertainty = entropy(log_probs)
    accurate = predicted == labels
    uncertain = uncertainty > threshold if ties == "certain" else uncertainty >= threshold
    tanh = uncertainty.tanh()
    mass = (
        shares(weights, logits) * confidence.where(accurate, 1 - confidence) * tanh.where(uncertain, 1 - tanh)
    )
    agrees = accurate != uncertain
    return agreement_penalty(mass.where(agrees, 0.0).sum(), mass.where(~agrees, 0.0).sum())


@final
class AvUC(Penalty, Adaptive):
    """Accuracy versus uncertainty of a batch; formula in :func:`avuc_penalty`.

    The threshold starts at 1, and :meth:`update` sets it to the middle between the mean entropies of right
    and wrong held-out predictions; after a few updates it stays.

    Args:
        threshold: Where it starts.
        n_updates: Number of updates that move it; 0 keeps the start.
        ties: On which side a sample exactly at the threshold falls: ``"certain"`` or ``"uncertain"``.
        detach_confidence: Hold the confidence constant in backward.
        weight, ignore_index, reduction, gather: As in :class:`~equipoise.losses.Penalty`.

    Example:
        >>> term = AvUC()
        >>> term.update(torch.zeros(2, 2), torch.tensor([0, 1]))
        >>> term.threshold
        tensor(0.6931)
    """

    threshold: Tensor
    updates_left: Tensor

    def __init__(
        self,
        *,
        threshold: float = 1.0,
        n_updates: int = 5,
        ties: TieSide = "certain",
        detach_confidence: bool = False,
        weight: Tensor | None = None,
        ignore_index: int = -100,
        reduction: Reduction = "mean",
        gather: bool = False,
    ) -> None:
        super().__init__(weight=weight, ignore_index=ignore_index, reduction=reduction, gather=gather)
        check_choice(ties, ("certain", "uncertain"), where="AvUC", name="ties")
        if n_updates < 0:
            raise ValueError(f"AvUC: `n_updates` must be at least 0, got {n_updates}. 0 keeps the threshold.")
        self.register_buffer("threshold", torch.tensor(float(threshold), dtype=torch.float32))
        self.register_buffer("updates_left", torch.tensor(n_updates))
        self.n_updates = n_updates
        self.ties: TieSide = ties
        self.detach_confidence = detach_confidence

    def term(self, logits: Tensor, labels: Tensor, weights: Tensor) -> Tensor:
        """Return :func:`avuc_penalty` at the current threshold."""
        return avuc_penalty(
            logits,
            labels,
            threshold=self.threshold,
            ties=self.ties,
            detach_confidence=self.detach_confidence,
            weights=weights,
        )

    @torch.no_grad()
    def update(self, logits: Tensor, labels: Tensor) -> None:
        """Move the threshold to the middle between right and wrong held-out predictions, if it still moves.

        Where all are right, or all wrong, the mean entropy of all is taken.
        """
        held_logits, held_labels = self.held_out(logits, labels)
        uncertainty = entropy(held_logits.log_softmax(-1))
        right = held_logits.argmax(-1) == held_labels
        means = [uncertainty[side].mean() for side in (right, ~right) if bool(side.any())]
        if self.updates_left > 0:
            self.threshold.copy_(torch.stack(means).mean())
            self.updates_left -= 1
