"""Ensemble temperature scaling."""

from __future__ import annotations

import numpy as np
import pytest

from equipoise.calibrators import EnsembleTemperatureScaling
from equipoise.calibrators.ensemble_temperature import _flattest_minimum, _simplex_minimum
from helpers.calibration_data import probs, sample
from helpers.golden import arrays, expected


def brier(p: np.ndarray, labels: np.ndarray) -> float:
    return float(((p - np.eye(p.shape[1])[labels]) ** 2).sum(1).mean())


def test_the_temperature_is_the_golden_one() -> None:
    found = EnsembleTemperatureScaling().fit(*arrays("R")).result.parameters
    assert float(found["temperature"]) == pytest.approx(
        expected("temperature.R")["T_mse_continuous"], rel=1e-4
    )


def test_the_map_is_the_mixture() -> None:
    logits, labels = arrays("R")
    calibrator = EnsembleTemperatureScaling().fit(logits, labels)
    temperature, w = (
        float(calibrator.result.parameters["temperature"]),
        calibrator.result.parameters["mixture"],
    )
    mixed = w[0] * probs(logits / temperature) + w[1] * probs(logits) + w[2] / 3
    np.testing.assert_allclose(probs(calibrator(logits)), mixed, rtol=1e-9)


def test_no_other_mixture_has_a_lower_brier_score() -> None:
    logits, labels = sample(300, 4)
    logits = 3 * logits
    calibrator = EnsembleTemperatureScaling().fit(logits, labels)
    temperature = float(calibrator.result.parameters["temperature"])
    best = brier(probs(calibrator(logits)), labels)
    for w in np.random.default_rng(0).dirichlet([0.3, 0.3, 0.3], 300):
        assert (
            best
            <= brier(w[0] * probs(logits / temperature) + w[1] * probs(logits) + w[2] / 4, labels) + 1e-12
        )


def test_corners_of_the_simplex_are_found() -> None:
    for corner in np.eye(3):
        np.testing.assert_allclose(_simplex_minimum(np.eye(3), 5 * corner), corner, atol=1e-12)


def test_mixture_weights_are_a_distribution() -> None:
    w = EnsembleTemperatureScaling().fit(*arrays("R")).result.parameters["mixture"]
    assert (w >= 0).all()
    assert w.sum() == pytest.approx(1.0)


def test_a_temperature_at_a_bound_is_reported() -> None:
    labels = np.arange(30) % 3
    result = EnsembleTemperatureScaling().fit(np.eye(3)[labels], labels).result
    assert not result.converged
    assert "at a bound" in result.warnings[0]


def test_a_trace_of_the_predictions_stays_where_uniform_is_best() -> None:
    rng = np.random.default_rng(0)
    logits = rng.normal(size=(500, 4))
    calibrator = EnsembleTemperatureScaling().fit(logits, (logits.argmax(1) + 1) % 4)
    assert not calibrator.result.identity
    np.testing.assert_allclose(calibrator.result.parameters["mixture"][2], 0.99)
    np.testing.assert_array_equal(calibrator(logits.astype(np.float32)).argmax(1), logits.argmax(1))


def test_the_flattest_mixture_is_the_best_on_its_edge() -> None:
    rng = np.random.default_rng(1)
    members = rng.random((3, 50))
    gram, target = members @ members.T, members @ rng.random(50)
    share = np.linspace(0, 0.01, 101)
    tried = np.stack([share, 0.01 - share, np.full(101, 0.99)], 1)
    values = np.einsum("na,ab,nb->n", tried, gram, tried) - 2 * tried @ target
    found = _flattest_minimum(gram, target)
    assert found @ gram @ found - 2 * target @ found <= values.min() + 1e-12
