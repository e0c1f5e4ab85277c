"""Vector scaling."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

from equipoise.calibrators import (
    DirichletCalibration,
    MatrixScaling,
    StructuredVectorScaling,
    TemperatureScaling,
    VectorScaling,
    softmax_regression,
)
from helpers.calibration_data import nll, probs, sample
from helpers.golden import SECOND, arrays, expected


def test_offsets_turn_two_rates_into_themselves() -> None:
    # Constant logits: the best map answers with the frequencies, here 1/4 and 3/4.
    calibrator = VectorScaling().fit(np.zeros((4, 2)), [0, 1, 1, 1])
    np.testing.assert_allclose(probs(calibrator(np.zeros((1, 2)))), [[0.25, 0.75]], atol=1e-8)


def test_golden_values() -> None:
    want = expected("vector.R")
    calibrator = VectorScaling().fit(*arrays("R"))
    assert calibrator.result.nll_after == pytest.approx(want["nll"], rel=1e-8)
    np.testing.assert_allclose(calibrator.result.parameters["scale"], want["w"], rtol=1e-6)
    np.testing.assert_allclose(calibrator.result.parameters["offset"], want["b_centred"], rtol=1e-5)
    np.testing.assert_allclose(probs(calibrator(SECOND)), want["S_probs_first2"], rtol=1e-6)


@pytest.mark.parametrize("k", [2, 4, 12])
def test_a_general_optimizer_finds_nothing_better(k: int) -> None:
    logits, labels = sample(300, k)
    found = VectorScaling().fit(2 * logits, labels).result

    def objective(theta: np.ndarray) -> float:
        return nll(2 * logits * theta[:k] + theta[k:], labels)

    start = np.concatenate([np.full(k, 0.5), np.zeros(k)])
    other = minimize(objective, start, method="L-BFGS-B", options={"maxiter": 200})
    assert found.nll_after <= other.fun + 1e-8
    assert found.converged


def test_at_least_as_good_as_a_temperature() -> None:
    logits, labels = sample(200, 4)
    assert (
        VectorScaling().fit(logits, labels).result.nll_after
        <= TemperatureScaling().fit(logits, labels).result.nll_after
    )


def test_conjugate_gradients_end_where_the_exact_hessian_does(monkeypatch: pytest.MonkeyPatch) -> None:
    logits, labels = sample(1500, 12)
    direct = VectorScaling().fit(logits, labels).result
    monkeypatch.setattr(softmax_regression, "_DIRECT", 0)
    iterative = VectorScaling().fit(logits, labels).result
    assert iterative.converged
    assert iterative.nll_after == pytest.approx(direct.nll_after, abs=1e-9)


def test_absent_classes_are_named() -> None:
    logits, labels = sample(60, 4)
    kept = labels != 3
    assert (
        "1 of 4 classes have no row to fit on (3)"
        in VectorScaling().fit(logits[kept], labels[kept]).result.warnings[0]
    )


def test_separable_rows_are_stopped_and_named() -> None:
    labels = np.arange(30) % 3
    result = VectorScaling().fit(4 * np.eye(3)[labels], labels).result
    assert any("separates" in warning for warning in result.warnings)
    assert not result.converged
    assert result.nll_after < 1e-4


@pytest.mark.parametrize(
    ("make", "n", "k"),
    [
        (make, n, k)
        for make in (VectorScaling, StructuredVectorScaling, MatrixScaling, DirichletCalibration)
        for n, k in ((1, 90), (5, 200), (20, 80))
        if k < 200 or make not in (MatrixScaling, DirichletCalibration)  # which refuse so few rows
    ],
)
@pytest.mark.parametrize("scale", [1e-6, 1.0, 30.0, 1e4])
def test_fewer_rows_than_classes_give_a_finite_calibrator(make: type, n: int, k: int, scale: float) -> None:
    """Classes without rows, rows that are alike, and rows of one class leave the curvature singular."""
    generator = np.random.default_rng(n)
    logits = scale * generator.normal(size=(n, k))
    labels = generator.integers(0, k, n)
    for scores, true in (
        (logits, labels),
        (np.repeat(logits[:1], n, axis=0), labels),
        (logits, np.zeros(n, int)),
    ):
        calibrator = make().fit(scores, true)
        assert np.isfinite(calibrator(scores)).all()
        assert calibrator.result.nll_after <= calibrator.result.nll_before + 1e-9
