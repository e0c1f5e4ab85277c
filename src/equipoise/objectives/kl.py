"""How far one network's opinion is from another's."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch
from torch import Tensor
from torch.nn.functional import kl_div, log_softmax

if TYPE_CHECKING:
    from jaxtyping import Float

__all__ = ["kl_divergence", "mixture"]


def kl_divergence(logits: Float[Tensor, "n k *d"], target: Float[Tensor, "n k *d"]) -> Float[Tensor, " n *d"]:
    r"""How much is lost by believing one opinion where another is true.

    .. math:: \mathrm{KL}(q \| p) = \sum_k q_k (\log q_k - \log p_k)

    Args:
        logits: Of the opinion that is judged, *p*.
        target: Logits or log-probabilities of the one that is believed, *q*; detach it to hold it constant.

    Returns:
        One value per sample; classes with a probability of zero in the target count nothing.

    Example:
        >>> kl_divergence(torch.zeros(1, 2), torch.tensor([[0.75, 0.25]]).log())
        tensor([0.1308])
    """
    return kl_div(log_softmax(logits, 1), log_softmax(target, 1), reduction="none", log_target=True).sum(1)


def mixture(
    logits: Float[Tensor, "n k"], other: Float[Tensor, "n k"], *, beta: float
) -> Float[Tensor, "n k"]:
    r"""Log-probabilities of a mixture of two opinions, :math:`\log((1 - \beta) p + \beta q)`.

    Example:
        >>> mixture(torch.tensor([[1.0, 0.0]]).log(), torch.zeros(1, 2), beta=0.5).exp()
        tensor([[0.7500, 0.2500]])
    """
    weights = math.log1p(-beta) if beta < 1 else -math.inf, math.log(beta) if beta > 0 else -math.inf
    return torch.logaddexp(weights[0] + log_softmax(logits, 1), weights[1] + log_softmax(other, 1))
