"""Structured vector scaling (SVS): vector scaling that a penalty keeps near temperature scaling."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import final

import torch
from torch import Tensor

from equipoise.calibrators.artifact_checks import Axes
from equipoise.calibrators.base import Calibrator
from equipoise.calibrators.linear_shapes import Diagonal
from equipoise.calibrators.result import FitResult
from equipoise.calibrators.structured import fit_structured, tempered_log_probs
from equipoise.core.predictions import Predictions

__all__ = ["StructuredVectorScaling"]


@final
@dataclass(kw_only=True, eq=False)
class StructuredVectorScaling(Calibrator):
    r"""Scale and shift each class, starting from the best temperature and straying only as far as rows warrant.

    .. math::
        z' = \log\left(\tfrac{n}{n+1} \operatorname{softmax}(z/T) + \tfrac{1}{n+1} \tfrac{1}{k}\right), \qquad
        p = \operatorname{softmax}((1 + v) \circ z' + b), \qquad
        \text{NLL} + \tfrac{k}{n} (\|v\|^2 + \|b\|^2)

    With few rows it is temperature scaling, with many it is vector scaling: a safe default for many classes.

    Example:
        >>> logits, labels = [[3.0, 0.0]] * 4, [0, 0, 0, 1]
        >>> calibrator = StructuredVectorScaling().fit(logits, labels)
        >>> bool(abs(calibrator.result.nll_after - 0.5623) < 0.01)
        True

    Reference:
        Berta, Holzmüller, Jordan, Bach (2026), Structured matrix scaling for multi-class calibration.

    Differs from the authors' code:
        Newton steps to the optimum, where theirs stops at a gradient of 1e-5.
    """

    kind = "svs"
    penalised = True

    def n_parameters(self, n_classes: int) -> int:
        """Count the learnt numbers: a temperature, and two per class."""
        return 1 + 2 * n_classes

    def _axes(self, n_classes: int) -> Mapping[str, Axes]:
        return {"temperature": (), "uniform": (), "scale": (n_classes,), "offset": (n_classes,)}

    def _learn(self, predictions: Predictions) -> FitResult:
        n_classes = predictions.logits.shape[1]
        start = torch.zeros(2, n_classes, dtype=torch.float64, device="cpu")
        start[0] = 1.0
        strength = torch.full_like(start, n_classes)
        result, found = fit_structured(predictions, shape=Diagonal(), start=start, strength=strength)
        scale, offset = found.theta
        return replace(result, parameters={**result.parameters, "scale": scale, "offset": offset})

    def _map(self, logits: Tensor, parameters: Mapping[str, Tensor]) -> Tensor:
        return parameters["scale"] * tempered_log_probs(logits, parameters) + parameters["offset"]
