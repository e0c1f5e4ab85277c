"""Dirichlet calibration."""

from __future__ import annotations

import numpy as np
import pytest

from equipoise.calibrators import DirichletCalibration
from equipoise.core.errors import DataError
from helpers.calibration_data import probs
from helpers.golden import SECOND, arrays, expected


def objective(
    theta: np.ndarray, logits: np.ndarray, labels: np.ndarray, off_diagonal: float, offset: float
) -> float:
    """The paper's objective, with both sums divided by their number of terms."""
    k = logits.shape[1]
    mapped = probs(np.log(probs(logits)) @ theta[:, :k].T + theta[:, k])
    nll = -np.log(mapped[np.arange(len(labels)), labels]).mean()
    squares = (theta[:, :k] ** 2).sum() - (np.diag(theta[:, :k]) ** 2).sum()
    return float(nll + off_diagonal / (k * (k - 1)) * squares + offset / k * (theta[:, k] ** 2).sum())


def test_the_objective_is_the_golden_one() -> None:
    theta = np.full((3, 4), 0.05) + 1.1 * np.eye(3, 4)
    theta[:, 3] = [0.1, -0.2, 0.3]
    assert objective(theta, *arrays("R"), 0.1, 0.2) == pytest.approx(
        expected("dirichlet.R")["objective_at_W0"], rel=1e-9
    )


@pytest.mark.parametrize(("strength", "name"), [(0.01, "odir_l0.01_m0.01"), (1.0, "odir_l1_m1")])
def test_golden_values(strength: float, name: str) -> None:
    want = expected("dirichlet.R")[name]
    calibrator = DirichletCalibration(off_diagonal=strength, offset=strength).fit(*arrays("R"))
    found = calibrator.result
    assert found.certificate["objective"] == pytest.approx(want["objective"], rel=1e-7)
    np.testing.assert_allclose(found.parameters["matrix"], want["W"], rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(found.parameters["offset"], want["b"], rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(probs(calibrator(SECOND)), want["S_probs_first2"], rtol=1e-4)


def test_an_endless_penalty_leaves_a_scale_per_class() -> None:
    found = DirichletCalibration(off_diagonal=1e9, offset=1e9).fit(*arrays("R")).result
    off_diagonal = found.parameters["matrix"] - np.diag(np.diag(found.parameters["matrix"]))
    assert np.abs(off_diagonal).max() < 1e-6
    assert np.abs(found.parameters["offset"]).max() < 1e-6


def test_shifted_logits_are_the_same_rows() -> None:
    logits, labels = arrays("R")
    calibrator = DirichletCalibration().fit(logits, labels)
    np.testing.assert_allclose(calibrator(logits + 100.0), calibrator(logits), atol=1e-9)


def test_negative_strength_is_refused() -> None:
    with pytest.raises(ValueError, match="`off_diagonal` must be at least 0"):
        DirichletCalibration(off_diagonal=-1.0)


def test_far_too_few_rows_for_so_many_classes_are_refused_at_once() -> None:
    with pytest.raises(DataError, match="1001000 numbers cannot be learned from 50 rows"):
        DirichletCalibration().fit(np.zeros((50, 1000)), np.zeros(50, int))
