"""Maximum mean calibration error with correct and wrong predictions balanced."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, final

import torch
from torch import Tensor

from equipoise.core.names import check_choice
from equipoise.losses.base import Penalty, Reduction
from equipoise.losses.mmce import check_width, laplace_form
from equipoise.losses.statistics import safe_root, top_label

if TYPE_CHECKING:
    from jaxtyping import Float, Int

__all__ = ["MMCEWeighted", "mmce_weighted_penalty"]

Normalization = Literal["paper", "authors"]


def mmce_weighted_penalty(
    logits: Float[Tensor, "n k"],
    labels: Int[Tensor, " n"],
    *,
    width: float = 0.4,
    normalization: Normalization = "paper",
    weights: Float[Tensor, " n"] | None = None,
) -> Float[Tensor, ""]:
    r"""MMCE in which correct and wrong predictions weigh the same, however few are wrong.

    Made for accurate networks, whose few errors :func:`~equipoise.losses.mmce_penalty` hardly sees. With *m*
    correct and *n* wrong predictions:

    .. math::
        \Bigl( \tfrac{1}{m^2} \sum_{++} (1-c_i)(1-c_j) k_{ij} + \tfrac{1}{n^2} \sum_{--} c_i c_j k_{ij}
        - \tfrac{2}{mn} \sum_{+-} (1-c_i) c_j k_{ij} \Bigr)^{1/2}

    Args:
        logits: Unnormalized scores; never probabilities.
        labels: Class numbers in ``[0, k)``.
        width: Width of the Laplace kernel.
        normalization: ``"authors"`` divides the three means by :math:`m^2, n^2, mn` once more, and is 0 for
            a batch that is all correct or all wrong; in the paper's form an empty sum is left out.
        weights: Weight of each sample; *m* and *n* are sums of weights.

    Returns:
        One value for the batch.

    Example:
        >>> mmce_weighted_penalty(torch.zeros(3, 2), torch.tensor([0, 0, 1]))
        tensor(0.)

    Reference:
        Kumar, Sarawagi and Jain (2018), Trainable calibration measures for neural networks from kernel
        mean embeddings, eq. (5).

    Differs from the authors' code:
        The double division, which ``normalization="authors"`` reproduces; their root can be of a negative
        number, ours is of 0 then.
    """
    confidence, correct = top_label(logits, labels)
    weights = torch.ones_like(confidence) if weights is None else weights
    groups = weights * correct, weights * (1 - correct)
    m, n = (group.sum() for group in groups)
    hits = groups[0] / m.where(m > 0, 1.0) * (1 - confidence)
    misses = groups[1] / n.where(n > 0, 1.0) * confidence
    if normalization == "paper":
        return safe_root(laplace_form(confidence, hits - misses, width=width))
    s1, s2 = (laplace_form(confidence, part, width=width) for part in (hits, misses))
    s3 = (laplace_form(confidence, hits + misses, width=width) - s1 - s2) / 2
    value = s1 / (m * m + 1e-5) + s2 / (n * n + 1e-5) - 2 * s3 / (m * n + 1e-5) + 1e-10
    return safe_root(value.where((m > 0) & (n > 0), 0.0))


@final
class MMCEWeighted(Penalty):
    """MMCE with correct and wrong predictions balanced; formula in :func:`mmce_weighted_penalty`.

    Args:
        width: Width of the Laplace kernel, at least 0.01.
        normalization: ``"paper"``, or ``"authors"`` for their code's double division.
        weight, ignore_index, reduction, gather: As in :class:`~equipoise.losses.Penalty`.

    Example:
        >>> MMCEWeighted()(torch.zeros(3, 2), torch.tensor([0, 0, 1]))
        tensor(0.)
    """

    def __init__(
        self,
        *,
        width: float = 0.4,
        normalization: Normalization = "paper",
        weight: Tensor | None = None,
        ignore_index: int = -100,
        reduction: Reduction = "mean",
        gather: bool = False,
    ) -> None:
        super().__init__(weight=weight, ignore_index=ignore_index, reduction=reduction, gather=gather)
        check_width(width, where="MMCEWeighted")
        check_choice(normalization, ("paper", "authors"), where="MMCEWeighted", name="normalization")
        self.width = width
        self.normalization: Normalization = normalization

    def term(self, logits: Tensor, labels: Tensor, weights: Tensor) -> Tensor:
        """Return :func:`mmce_weighted_penalty`."""
        return mmce_weighted_penalty(
            logits, labels, width=self.width, normalization=self.normalization, weights=weights
        )
