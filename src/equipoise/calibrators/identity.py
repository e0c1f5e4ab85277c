"""No calibration: the choice to beat."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import final

from equipoise.calibrators.base import Calibrator
from equipoise.calibrators.result import FitResult
from equipoise.core.array_functions import AnyArray
from equipoise.core.predictions import Predictions

__all__ = ["Identity"]


@final
@dataclass(kw_only=True, eq=False)
class Identity(Calibrator):
    """Leave the predictions alone.

    Example:
        >>> Identity()([[2.0, 0.0]])
        array([[2., 0.]])

    Reference:
        Nobody's in particular.

    Differs from the authors' code:
        Nothing known.
    """

    kind = "identity"
    preserves_accuracy = True
    preserves_order = True
    needs_fit = False
    changes_scores = False

    @property
    def takes_claims(self) -> bool:
        """Whether it can be fitted on top-1 predictions."""
        return True

    def n_parameters(self, n_classes: int) -> int:
        """Count the learned numbers: none."""
        return 0

    def _learn(self, predictions: Predictions) -> FitResult:
        return FitResult(parameters={}, words="left alone")

    def _map(self, logits: AnyArray, parameters: Mapping[str, AnyArray]) -> AnyArray:
        return logits
