"""What structured vector and matrix scaling share: a temperature first, then a penalised correction of it."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch
from torch import Tensor

from equipoise.calibrators.fit_checks import describe_offsets
from equipoise.calibrators.forms import blocks
from equipoise.calibrators.linear_shapes import Shape
from equipoise.calibrators.result import FitResult
from equipoise.calibrators.softmax_regression import QuadraticPenalty, RegressionFit, fit_softmax
from equipoise.calibrators.temperature import describe_temperature
from equipoise.calibrators.temperature_search import fit_beta
from equipoise.core.arrays import Array, as_tensor
from equipoise.core.predictions import Predictions

__all__ = ["fit_structured", "tempered_log_probs"]


def tempered_log_probs(logits: Tensor, parameters: Mapping[str, Tensor]) -> Tensor:
    """Return the logarithm of tempered probabilities mixed with a pinch of the uniform distribution.

    Args:
        logits: ``(m, k)``.
        parameters: ``temperature``, and ``uniform``, the share of the uniform distribution.

    Returns:
        ``(m, k)``, bounded from below by ``log(uniform / k)``.

    Example:
        >>> told = {"temperature": torch.tensor(1.0), "uniform": torch.tensor(0.5)}
        >>> tempered_log_probs(torch.tensor([[1e4, 0.0]]), told).exp()
        tensor([[0.7500, 0.2500]])
    """
    tempered = (logits / parameters["temperature"]).log_softmax(-1)
    uniform = parameters["uniform"]
    return torch.logaddexp(tempered + torch.log1p(-uniform), torch.log(uniform / logits.shape[-1]))


def fit_structured(
    predictions: Predictions, *, shape: Shape, start: Tensor, strength: Tensor
) -> tuple[FitResult, RegressionFit]:
    """Fit a temperature, then a correction that starts at none and is held there by a penalty.

    Args:
        predictions: The fit rows.
        shape: Diagonal or full.
        start: The parameters that correct nothing.
        strength: Penalty on the distance from ``start``, before the division by the number of rows.

    Returns:
        A result with the parameters ``temperature`` and ``uniform``, and the fit of the correction.
    """
    logits, labels, weights = predictions.logits, predictions.labels, predictions.weights
    rows = float(len(labels) if weights is None else weights.sum())
    temperature = 1.0 / fit_beta(logits, labels, weights).beta
    parameters = {"temperature": np.array(temperature), "uniform": np.array(1.0 / (rows + 1.0))}
    features = _features(
        logits, {name: torch.tensor(value, device="cpu") for name, value in parameters.items()}
    )
    found = fit_softmax(
        features, labels, weights, shape=shape, start=start, penalty=QuadraticPenalty(strength / rows, start)
    )
    offset = shape.per_class(torch.as_tensor(found.theta, device="cpu"))[:, -1].numpy()
    words = f"{describe_temperature(temperature)}; then {describe_offsets(offset, predictions.class_names)}"
    result = FitResult(
        parameters=parameters,
        words=words,
        converged=found.converged,
        iterations=found.iterations,
        certificate={**found.certificate, "objective": found.objective},
    )
    return result, found


def _features(logits: Array, parameters: Mapping[str, Tensor]) -> Array:
    features = np.empty(logits.shape)
    for block in blocks(*logits.shape):
        features[block] = tempered_log_probs(as_tensor(logits[block]).double(), parameters).numpy()
    return features
