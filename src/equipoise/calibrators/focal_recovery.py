"""Focal posterior recovery: undo what a focal loss does to confidence, in closed form."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, final

from equipoise.calibrators.base import Calibrator
from equipoise.calibrators.fit_checks import check_not_negative
from equipoise.calibrators.result import FitResult
from equipoise.core.array_functions import AnyArray, softmax
from equipoise.core.names import check_choice
from equipoise.core.predictions import Predictions
from equipoise.theory.posterior import posterior_of_minimizer

__all__ = ["FocalRecovery"]


@final
@dataclass(kw_only=True, eq=False)
class FocalRecovery(Calibrator):
    r"""Turn the probabilities of a network trained with a (dual) focal loss into class posteriors; no fit needed.

    .. math:: \eta_j \propto q_j / \varphi(q_j)

    See :func:`equipoise.theory.recover_posterior`. It is exact for a network that minimizes its loss; ``fit`` is
    there only to see whether it helps on held-out rows, and gives the calibrator up if it does not.

    Args:
        loss: The loss the network was trained with.
        gamma: The focusing parameter it was trained with.

    Example:
        >>> FocalRecovery(gamma=3.0)([[0.0, 0.0]])
        array([[0.5, 0.5]])

    Reference:
        Charoenphakdee et al. (2021), On focal loss for class-posterior probability estimation.

    Differs from the authors' code:
        Nothing known.
    """

    loss: Literal["focal", "dual_focal"] = "focal"
    gamma: float = 3.0

    kind = "focal_recovery"
    gives = "probs"
    needs_fit = False

    def __post_init__(self) -> None:
        check_choice(self.loss, ("focal", "dual_focal"), where="FocalRecovery", name="loss")
        check_not_negative(self.gamma, where="FocalRecovery", name="gamma")
        self.preserves_order = self.preserves_accuracy = self.loss == "focal"

    def n_parameters(self, n_classes: int) -> int:
        """Count the learned numbers: none."""
        return 0

    def _learn(self, predictions: Predictions) -> FitResult:
        return FitResult(
            parameters={}, words=f"undoes {self.loss.replace('_', ' ')} training, gamma = {self.gamma:g}"
        )

    def _map(self, logits: AnyArray, parameters: Mapping[str, AnyArray]) -> AnyArray:
        return posterior_of_minimizer(softmax(logits), loss=self.loss, gamma=self.gamma)
