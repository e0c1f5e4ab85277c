"""Structured vector scaling."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

from equipoise.calibrators import StructuredVectorScaling, VectorScaling
from helpers.calibration_data import nll, probs, sample, tempered


def test_a_general_optimizer_finds_the_same_vector() -> None:
    logits, labels = sample(120, 3)
    features = tempered(2 * logits, labels)

    def objective(theta: np.ndarray) -> float:
        scale, offset = theta.reshape(2, 3)
        return nll((1 + scale) * features + offset, labels) + 3 / 120 * (theta**2).sum()

    other = minimize(objective, np.zeros(6), method="BFGS", options={"gtol": 1e-7})
    found = StructuredVectorScaling().fit(2 * logits, labels).result
    assert found.certificate["objective"] == pytest.approx(other.fun, abs=1e-9)
    np.testing.assert_allclose(found.parameters["scale"] - 1, other.x[:3], atol=1e-5)
    np.testing.assert_allclose(found.parameters["offset"], other.x[3:], atol=1e-5)


def test_few_rows_give_a_temperature() -> None:
    logits, labels = sample(12, 3)
    parameters = StructuredVectorScaling().fit(logits, labels).result.parameters
    assert np.abs(parameters["scale"] - 1).max() < 0.3
    assert np.abs(parameters["offset"]).max() < 0.3


def test_many_rows_give_vector_scaling() -> None:
    logits, labels = sample(20_000, 3)
    bent = 2 * logits + [0.0, 0.5, -0.5]
    free = VectorScaling().fit(tempered(bent, labels), labels).result.nll_after
    assert abs(StructuredVectorScaling().fit(bent, labels).result.nll_after - free) < 1e-4


def test_a_class_that_never_came_keeps_some_probability() -> None:
    logits, labels = sample(100, 4)
    kept = labels != 3
    after = probs(StructuredVectorScaling().fit(logits[kept], labels[kept])(np.zeros((1, 4))))
    assert after[0, 3] > 0.005
