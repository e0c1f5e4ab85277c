"""Intervals of the bins of a reliability curve."""

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import norm

from equipoise.metrics import ReliabilityCurve


def curve_of(counts, right):
    counts, right = np.array(counts, float), np.array(right, float)
    return ReliabilityCurve(counts, counts * 0.5, right)


@pytest.mark.parametrize(("n", "k"), [(1, 0), (1, 1), (5, 2), (400, 399), (100_000, 50_000)])
def test_ends_solve_the_score_equation(n, k):
    # Wilson's ends are where the score test of the share just fails: |k/n - p| = z sqrt(p (1 - p) / n).
    z, share = norm.ppf(0.975), k / n
    low, high = curve_of([n], [k]).intervals()

    def excess(p):
        return (share - p) ** 2 - z**2 * p * (1 - p) / n

    if k > 0:
        assert low[0] == pytest.approx(brentq(excess, 0, share - 1e-12), abs=1e-9)
    else:
        assert low[0] == 0
    if k < n:
        assert high[0] == pytest.approx(brentq(excess, share + 1e-12, 1), abs=1e-9)
    else:
        assert high[0] == 1


def test_empty_bins_have_no_interval_and_others_hold_their_frequency():
    curve = curve_of([0, 3, 10], [0, 3, 4])
    low, high = curve.intervals(level=0.9)
    assert np.isnan(low[0])
    assert np.isnan(high[0])
    assert (low[1:] <= curve.frequency[1:]).all()
    assert (curve.frequency[1:] <= high[1:]).all()


def test_a_higher_level_is_wider():
    narrow, wide = (curve_of([20], [11]).intervals(level=level) for level in (0.5, 0.99))
    assert wide[0] < narrow[0] < narrow[1] < wide[1]
