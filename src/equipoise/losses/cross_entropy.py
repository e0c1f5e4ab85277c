"""Cross-entropy under the rules of this package."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, final

from torch import Tensor, nn

from equipoise.losses.base import Loss

if TYPE_CHECKING:
    from jaxtyping import Float, Int

__all__ = ["CrossEntropyLoss", "cross_entropy_loss"]


def cross_entropy_loss(
    logits: Float[Tensor, "n k"], labels: Int[Tensor, " n"] | Float[Tensor, "n k"]
) -> Float[Tensor, " n"]:
    r"""Log loss of the true class.

    Proper: the probabilities that minimize it are the class posterior. A network large enough to fit its
    training set goes on raising confidence after the last error is gone.

    .. math:: -\log p_y

    Args:
        logits: Unnormalized scores; never probabilities.
        labels: Class numbers in ``[0, k)``, or soft targets.

    Returns:
        One value per sample.

    Example:
        >>> import torch
        >>> cross_entropy_loss(torch.zeros(1, 2), torch.tensor([0]))
        tensor([0.6931])

    Reference:
        Good (1952), Rational decisions.

    Differs from the authors' code:
        Nothing known.
    """
    return nn.functional.cross_entropy(logits, labels, reduction="none")


@final
class CrossEntropyLoss(Loss):
    """Cross-entropy that follows the rules of this package where torch's own does not.

    A batch without labels gives 0 and not NaN, half precision is computed in float32, class weights weigh a
    soft target by their expectation under it, and a label that is no class is refused by a sentence.

    Args:
        weight, ignore_index, reduction: As in :class:`~equipoise.losses.Loss`.

    Example:
        >>> import torch
        >>> CrossEntropyLoss()(torch.zeros(2, 2), torch.tensor([-100, -100]))
        tensor(0.)
    """

    soft_targets: ClassVar[bool] = True

    def per_sample(self, logits: Tensor, labels: Tensor) -> Tensor:
        """Return :func:`cross_entropy_loss`."""
        return cross_entropy_loss(logits, labels)
