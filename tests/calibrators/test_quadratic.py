"""Quadratic scaling: the posterior of two normal distributions, tangents beyond the fit rows."""

import numpy as np
import pytest

from equipoise.calibrators import PlattScaling, QuadraticScaling
from equipoise.core import Predictions

N = 20_000


@pytest.fixture(scope="module")
def normal():
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 2, N)
    x = np.where(labels == 1, rng.normal(1.0, 2.0, N), rng.normal(-1.0, 1.0, N))
    return x, labels


def test_the_posterior_of_unequal_variances_is_found(normal):
    # log N(x; 1, 4) - log N(x; -1, 1) = x²/2 - x²/8 + x + x/4 + 1/2 - 1/8 - log 2
    a, b, c = QuadraticScaling().fit(*normal).result.parameters["coefficients"][1]
    np.testing.assert_allclose([a, b, c], [1.25, 0.375, 0.375 - np.log(2)], atol=0.08)


def test_it_beats_a_straight_line_there(normal):
    quadratic, line = QuadraticScaling().fit(*normal), PlattScaling().fit(*normal)
    assert quadratic.result.nll_after < line.result.nll_after - 0.01


def test_equal_variances_need_no_curvature():
    rng = np.random.default_rng(1)
    labels = rng.integers(0, 2, N)
    fitted = QuadraticScaling().fit(rng.normal(2.0 * labels - 1.0, 1.0), labels)
    assert abs(fitted.result.parameters["coefficients"][1, 1]) < 0.1


def test_far_beyond_the_fit_rows_it_is_straight_and_never_turns_back(normal):
    fitted = QuadraticScaling().fit(*normal)
    high = fitted.result.parameters["range"][1, 1]
    far = fitted(np.array([high, high + 1.0, high + 2.0, 1e4, 1e8]))
    assert np.isfinite(far).all()
    assert (np.diff(far) > 0).all()
    np.testing.assert_allclose(np.diff(far[:3], n=2), 0.0, atol=1e-9)
    low = fitted.result.parameters["range"][1, 0]  # the parabola has turned there: level
    assert fitted(np.array([-1e4, low]))[0] == pytest.approx(fitted(np.array([low]))[0])


def test_a_confidence_can_be_calibrated():
    rng = np.random.default_rng(2)
    confidence = rng.uniform(0.5, 1.0, 3000)
    labels = (rng.random(3000) < confidence**2).astype(int)
    claims = Predictions(predicted=np.ones(3000, int), confidence=confidence, labels=labels)
    fitted = QuadraticScaling().fit(claims)
    assert abs(fitted(claims).confidence.mean() - labels.mean()) < 0.02


def test_classes_are_fitted_one_against_the_rest():
    rng = np.random.default_rng(3)
    logits = 2 * rng.normal(size=(3000, 3))
    labels = (logits + rng.gumbel(size=logits.shape)).argmax(axis=1)
    fitted = QuadraticScaling().fit(2 * logits, labels)
    assert fitted.result.parameters["coefficients"].shape == (3, 3)
    assert fitted.result.nll_after < fitted.result.nll_before - 0.05
