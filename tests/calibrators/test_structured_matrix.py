"""Structured matrix scaling."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

from equipoise.calibrators import StructuredMatrixScaling, StructuredVectorScaling
from helpers.calibration_data import nll, probs, sample, tempered


def test_a_general_optimizer_finds_the_same_matrix() -> None:
    logits, labels = sample(120, 3)
    features = tempered(2 * logits, labels)

    def objective(theta: np.ndarray) -> float:
        change = theta.reshape(3, 4)
        diagonal = np.diag(change[:, :3])
        loose = (change**2).sum() - (diagonal**2).sum() - (change[:, 3] ** 2).sum()
        penalty = 3 / 120 * ((diagonal**2).sum() + (change[:, 3] ** 2).sum()) + 6 / 120 * loose
        return nll(features @ (np.eye(3) + change[:, :3]).T + change[:, 3], labels) + penalty

    other = minimize(objective, np.zeros(12), method="BFGS", options={"gtol": 1e-7})
    found = StructuredMatrixScaling().fit(2 * logits, labels).result
    change = other.x.reshape(3, 4)
    assert found.certificate["objective"] == pytest.approx(other.fun, abs=1e-9)
    np.testing.assert_allclose(found.parameters["matrix"] - np.eye(3), change[:, :3], atol=1e-5)
    np.testing.assert_allclose(found.parameters["offset"], change[:, 3], atol=1e-5)


def test_its_objective_is_never_above_that_of_the_diagonal() -> None:
    logits, labels = sample(300, 4)
    vector, matrix = (
        made().fit(logits, labels) for made in (StructuredVectorScaling, StructuredMatrixScaling)
    )
    assert matrix.result.certificate["objective"] <= vector.result.certificate["objective"] + 1e-12


def test_few_rows_give_a_temperature() -> None:
    logits, labels = sample(12, 3)
    parameters = StructuredMatrixScaling().fit(logits, labels).result.parameters
    assert np.abs(parameters["matrix"] - np.eye(3)).max() < 0.3
    assert np.abs(parameters["offset"]).max() < 0.3


def test_a_class_that_never_came_keeps_some_probability() -> None:
    logits, labels = sample(100, 4)
    kept = labels != 3
    after = probs(StructuredMatrixScaling().fit(logits[kept], labels[kept])(np.zeros((1, 4))))
    assert after[0, 3] > 0.005
