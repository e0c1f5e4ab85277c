"""Structured vector and matrix scaling."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

from calibration_data import nll, probs, sample
from equipoise.calibrators import (
    StructuredMatrixScaling,
    StructuredVectorScaling,
    TemperatureScaling,
    VectorScaling,
)

BOTH = pytest.mark.parametrize("made", [StructuredVectorScaling, StructuredMatrixScaling])


def tempered(logits: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Mix tempered probabilities with the uniform distribution at weight 1 / (n + 1), and take the logarithm."""
    n, k = logits.shape
    temperature = TemperatureScaling().fit(logits, labels).temperature
    return np.log(n / (n + 1) * probs(logits / temperature) + 1 / (n + 1) / k)


def test_a_general_optimiser_finds_the_same_vector() -> None:
    logits, labels = sample(120, 3)
    features = tempered(2 * logits, labels)

    def objective(theta: np.ndarray) -> float:
        scale, offset = theta.reshape(2, 3)
        return nll((1 + scale) * features + offset, labels) + 3 / 120 * (theta**2).sum()

    other = minimize(objective, np.zeros(6), method="BFGS", options={"gtol": 1e-9})
    found = StructuredVectorScaling().fit(2 * logits, labels).result
    assert found.certificate["objective"] == pytest.approx(other.fun, abs=1e-9)
    np.testing.assert_allclose(found.parameters["scale"] - 1, other.x[:3], atol=1e-5)


def test_a_general_optimiser_finds_the_same_matrix() -> None:
    logits, labels = sample(120, 3)
    features = tempered(2 * logits, labels)

    def objective(theta: np.ndarray) -> float:
        change = theta.reshape(3, 4)
        diagonal = np.diag(change[:, :3])
        loose = (change**2).sum() - (diagonal**2).sum() - (change[:, 3] ** 2).sum()
        penalty = 3 / 120 * ((diagonal**2).sum() + (change[:, 3] ** 2).sum()) + 6 / 120 * loose
        return nll(features @ (np.eye(3) + change[:, :3]).T + change[:, 3], labels) + penalty

    other = minimize(objective, np.zeros(12), method="BFGS", options={"gtol": 1e-9})
    found = StructuredMatrixScaling().fit(2 * logits, labels).result
    assert found.certificate["objective"] == pytest.approx(other.fun, abs=1e-9)
    np.testing.assert_allclose(
        found.parameters["matrix"] - np.eye(3), other.x.reshape(3, 4)[:, :3], atol=1e-5
    )


@BOTH
def test_few_rows_give_a_temperature(made: type) -> None:
    logits, labels = sample(12, 3)
    calibrator = made().fit(logits, labels)
    parameters = calibrator.result.parameters
    correction = (
        parameters["scale"] - 1 if made is StructuredVectorScaling else parameters["matrix"] - np.eye(3)
    )
    assert np.abs(correction).max() < 0.3
    assert np.abs(parameters["offset"]).max() < 0.3


def test_many_rows_give_vector_scaling() -> None:
    logits, labels = sample(20_000, 3)
    bent = 2 * logits + [0.0, 0.5, -0.5]
    gap = (
        StructuredVectorScaling().fit(bent, labels).result.nll_after
        - VectorScaling().fit(tempered(bent, labels), labels).result.nll_after
    )
    assert abs(gap) < 1e-4


@BOTH
def test_a_class_that_never_came_keeps_some_probability(made: type) -> None:
    logits, labels = sample(100, 4)
    kept = labels != 3
    after = probs(made().fit(logits[kept], labels[kept])(np.zeros((1, 4))))
    assert after[0, 3] > 0.005
