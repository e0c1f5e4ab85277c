"""Matrix scaling."""

from __future__ import annotations

import numpy as np
import pytest

from equipoise.calibrators import MatrixScaling, VectorScaling
from equipoise.calibrators import softmax_regression as regression
from equipoise.core.errors import DataError
from helpers.calibration_data import nll, probs, sample
from helpers.golden import SECOND, arrays, expected


def test_swapped_classes_are_swapped_back() -> None:
    logits, labels = sample(2000, 3)
    swapped = logits[:, [1, 0, 2]]
    calibrator = MatrixScaling().fit(swapped, labels)
    assert calibrator.result.nll_after <= nll(logits, labels)
    assert (probs(calibrator(swapped)).argmax(1) == logits.argmax(1)).mean() > 0.95


def test_golden_values() -> None:
    want = expected("matrix.R")
    calibrator = MatrixScaling().fit(*arrays("R"))
    assert calibrator.result.nll_after == pytest.approx(want["nll"], rel=1e-8)
    np.testing.assert_allclose(probs(calibrator(SECOND)), want["S_probs_first2"], rtol=1e-5)


def test_at_least_as_good_as_its_diagonal() -> None:
    logits, labels = sample(200, 4)
    assert (
        MatrixScaling().fit(logits, labels).result.nll_after
        <= VectorScaling().fit(logits, labels).result.nll_after
    )


def test_conjugate_gradients_end_where_the_exact_hessian_does(monkeypatch: pytest.MonkeyPatch) -> None:
    logits, labels = sample(1500, 6)
    direct = MatrixScaling().fit(logits, labels).result
    monkeypatch.setattr(regression, "_DIRECT", 0)
    iterative = MatrixScaling().fit(logits, labels).result
    assert iterative.converged
    assert iterative.nll_after == pytest.approx(direct.nll_after, abs=1e-9)


def test_gradient_at_the_end_is_nothing() -> None:
    logits, labels = sample(500, 4)
    calibrator = MatrixScaling().fit(logits, labels)
    residual = probs(calibrator(logits)) - np.eye(4)[labels]
    assert np.abs(residual.T @ logits / 500).max() < 1e-8
    assert calibrator.result.certificate["gradient"] < 1e-8


def test_more_parameters_than_rows_separate_and_say_so() -> None:
    rng = np.random.default_rng(0)
    result = MatrixScaling().fit(rng.normal(size=(40, 20)), rng.integers(0, 20, 40)).result
    assert not result.converged
    assert any("separates" in warning for warning in result.warnings)
    assert result.nll_after < 1e-4


def test_rows_without_weight_need_not_be_separated() -> None:
    labels = np.arange(31) % 3
    logits = 4 * np.eye(3)[labels]
    logits[30] = logits[1]
    weights = np.ones(31)
    assert MatrixScaling().fit(logits, labels, sample_weight=weights).result.warnings == ()
    weights[30] = 0
    assert "separates" in MatrixScaling().fit(logits, labels, sample_weight=weights).result.warnings[0]


def test_far_too_few_rows_for_so_many_classes_are_refused_at_once() -> None:
    with pytest.raises(DataError, match="1001000 numbers cannot be learned from 50 rows"):
        MatrixScaling().fit(np.zeros((50, 1000)), np.zeros(50, int))
