import numpy as np
import pytest

from equipoise.metrics.intervals import error_interval, mean_interval, tail_probability


def test_mean_interval_by_hand():
    # Draws from 0 to 1, mean 0.5, moved up by 0.1 to center on 0.6.
    low, high = mean_interval(0.6, np.linspace(0, 1, 1001), level=0.8)
    assert (low, high) == (pytest.approx(0.2), pytest.approx(1.0))


def test_mean_interval_stays_in_range_and_holds_the_estimate():
    low, high = mean_interval(0.9, np.linspace(0.5, 1.0, 101), level=0.9, within=(0.0, 1.0))
    assert high == 1.0
    for value in (1 / 3, 0.1 + 0.2, 2 / 3):
        low, high = mean_interval(value, np.full(10, value))
        assert low <= value <= high


@pytest.mark.parametrize("n", [1, 2, 3, 40, 1000])
def test_ends_are_quantiles(n):
    draws = np.random.default_rng(n).normal(size=n)
    value = float(draws.mean())
    low, high = np.quantile(draws, [0.05, 0.95])
    assert mean_interval(value, draws, level=0.9) == pytest.approx((min(low, value), max(high, value)))


def test_draws_that_are_no_numbers_are_left_out():
    draws = np.array([np.nan, 0.4, 0.6, np.nan])
    low, high = mean_interval(0.5, draws)
    assert 0.39 < low < 0.5 < high < 0.61
    assert mean_interval(0.5, np.full(3, np.nan)) == (0.5, 0.5)


def test_error_interval_takes_the_bias_off():
    rng = np.random.default_rng(0)
    draws = 0.13 + 0.01 * rng.standard_normal(20_000)
    # The draws lie 0.03 above the estimate: twice off below, once off above.
    low, high = error_interval(0.10, draws, np.full(10, 0.02))
    assert low == pytest.approx(0.13 - 0.0196 - 0.06, abs=1e-3)
    assert high == pytest.approx(0.13 + 0.0196 - 0.03, abs=1e-3)


def test_error_interval_reaches_zero_if_chance_explains_the_error():
    draws, chance = np.linspace(0.01, 0.03, 100), np.linspace(0.0, 0.05, 100)
    assert error_interval(0.02, draws, chance).low == 0.0
    assert error_interval(0.02, draws, chance / 10).low > 0.0
    assert error_interval(0.02, draws, None).low > 0.0


@pytest.mark.parametrize("value", [0.0, 0.01, 0.5, 1.0])
def test_error_interval_holds_the_estimate(value):
    draws = np.random.default_rng(0).random(50)
    low, high = error_interval(value, draws, draws / 2)
    assert 0 <= low <= value <= high


def test_tail_probability_counts_the_value_itself():
    assert tail_probability(2.0, np.zeros(99)) == pytest.approx(0.01)
    assert tail_probability(0.0, np.zeros(99)) == 1.0


@pytest.mark.parametrize("level", [0.0, 1.0, 95])
def test_refuses_a_level_that_is_none(level):
    with pytest.raises(ValueError, match=r"0\.95 is usual"):
        mean_interval(0.5, np.zeros(3), level=level)
    with pytest.raises(ValueError, match=r"0\.95 is usual"):
        error_interval(0.5, np.zeros(3), None, level=level)
