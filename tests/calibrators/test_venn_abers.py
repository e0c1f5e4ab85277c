"""Venn-Abers: every probability is an isotonic regression with the new row, and one of the two is calibrated."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import isotonic_regression

from equipoise.calibrators import IsotonicCalibration, VennAbers
from equipoise.calibrators.venn_abers import fit_venn_abers


def by_definition(scores, labels, weights, new, label):
    """Fit isotonic regression on all rows and the new one, and read it at the new one."""
    everything = np.append(scores, new)
    _, position = np.unique(everything, return_inverse=True)
    mass = np.bincount(position, np.append(weights, 1.0))
    hits = np.bincount(position, np.append(weights * labels, label))
    return isotonic_regression(hits / mass, weights=mass).x[position[-1]]


@given(st.data())
def test_both_probabilities_are_those_of_the_definition(data):
    n = data.draw(st.integers(1, 12))
    grid = st.sampled_from([0.1, 0.2, 0.3, 0.5, 0.7, 0.9])
    scores = np.array(data.draw(st.lists(grid, min_size=n, max_size=n)))
    labels = np.array(data.draw(st.lists(st.sampled_from([0.0, 1.0]), min_size=n, max_size=n)))
    weights = np.array(data.draw(st.lists(st.sampled_from([0.5, 1.0, 2.0]), min_size=n, max_size=n)))
    knots, lower, upper = fit_venn_abers(scores, labels, weights)
    for new in (0.05, 0.1, 0.25, 0.3, 0.6, 0.9, 0.95):
        low = lower[np.searchsorted(knots, new, side="right")]
        high = upper[np.searchsorted(knots, new, side="left")]
        assert low == pytest.approx(by_definition(scores, labels, weights, new, 0.0), abs=1e-9)
        assert high == pytest.approx(by_definition(scores, labels, weights, new, 1.0), abs=1e-9)


def test_the_merged_probability_lies_between_both_and_is_never_certain():
    rng = np.random.default_rng(0)
    logits = rng.normal(size=300) * 3
    fitted = VennAbers().fit(logits, rng.random(300) < 1 / (1 + np.exp(-logits)))
    low, high = fitted.interval(logits).T
    merged = fitted(np.append(logits, [-1e4, 1e4]))
    assert ((low <= merged[:300]) & (merged[:300] <= high)).all()
    assert ((merged > 0) & (merged < 1)).all()


def test_with_many_rows_both_are_the_isotonic_curve():
    rng = np.random.default_rng(1)
    logits = np.round(rng.normal(size=20_000), 1)
    labels = rng.random(20_000) < 1 / (1 + np.exp(-2 * logits))
    fitted, curve = VennAbers().fit(logits, labels), IsotonicCalibration().fit(logits, labels)
    inside = np.linspace(-2, 2, 41).round(1)
    np.testing.assert_allclose(fitted(inside), curve(inside), atol=0.01)
    assert np.ptp(fitted.interval(inside), axis=1).max() < 0.02


def test_classes_are_fitted_one_against_the_rest():
    rng = np.random.default_rng(2)
    logits = 2 * rng.normal(size=(500, 3))
    labels = (logits + rng.gumbel(size=logits.shape)).argmax(axis=1)
    fitted = VennAbers().fit(2 * logits, labels)
    low, high = np.moveaxis(fitted.interval(2 * logits), -1, 0)
    assert low.shape == (500, 3)
    assert (low <= high).all()
    np.testing.assert_allclose(fitted(2 * logits).sum(axis=1), 1.0)
