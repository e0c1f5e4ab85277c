import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from equipoise.core.bins import lower_edges
from equipoise.metrics import ReliabilityCurve
from equipoise.metrics.curve import calibration_errors


def test_errors_by_hand():
    # Gaps -0.2 (weight 2) and +0.4 (weight 2); the empty bin counts nowhere.
    curve = ReliabilityCurve(np.array([2.0, 0.0, 2.0]), np.array([0.6, 0.0, 1.8]), np.array([1.0, 0.0, 1.0]))
    errors = curve.errors()
    assert errors["ece"] == pytest.approx(0.3)
    assert errors["mce"] == pytest.approx(0.4)
    assert errors["avg_ce"] == pytest.approx(0.3)
    assert errors["rms_ce"] == pytest.approx(0.1**0.5)
    assert errors["ece_over"] == pytest.approx(0.2)
    assert errors["ece_under"] == pytest.approx(0.1)
    assert errors["confidence_gap"] == pytest.approx(0.1)
    assert curve.expected_error() == errors["ece"]


@given(st.lists(st.tuples(st.integers(0, 5), st.floats(0, 1), st.floats(0, 1)), min_size=1, max_size=8))
def test_laws_of_the_family(cells):
    weight = np.array([w for w, _, _ in cells], dtype=float)
    if weight.sum() == 0:
        weight[0] = 1.0
    errors = calibration_errors(weight, weight * [c for _, c, _ in cells], weight * [o for _, _, o in cells])
    assert errors["ece_over"] + errors["ece_under"] == pytest.approx(errors["ece"], abs=1e-12)
    assert errors["ece_over"] - errors["ece_under"] == pytest.approx(errors["confidence_gap"], abs=1e-12)
    assert errors["ece"] <= errors["rms_ce"] + 1e-9
    assert errors["rms_ce"] <= errors["mce"] + 1e-9
    assert abs(errors["confidence_gap"]) <= errors["ece"] + 1e-12


def test_many_curves_at_once_equal_one_by_one():
    rng = np.random.default_rng(0)
    weight = rng.integers(0, 3, (4, 6)).astype(float) + np.eye(4, 6)
    confidence, outcome = weight * rng.random((4, 6)), weight * rng.random((4, 6))
    both = calibration_errors(weight, confidence, outcome)
    for i in range(4):
        one = calibration_errors(weight[i], confidence[i], outcome[i])
        for name, value in one.items():
            assert value == pytest.approx(both[name][i])


@pytest.mark.parametrize("closed", ["right", "left"])
@pytest.mark.parametrize("n_bins", [1, 2, 3, 10, 15, 100])
def test_every_edge_has_one_place(n_bins, closed):
    edges = lower_edges(n_bins, closed)
    assert (np.diff(edges) > 0).all()
    places = np.searchsorted(edges, np.arange(n_bins + 1) / n_bins, side="left") - 1
    inner = np.arange(n_bins + 1) - (closed == "right")
    assert places.tolist() == inner.clip(0, n_bins - 1).tolist()
