"""Differences over seeds: tests that few seeds do not fool, and intervals that agree with them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from equipoise.evaluate import Difference
from equipoise.evaluate.chance import holm
from equipoise.experiments.results import Cell, combine, combine_family, difference_of_cells
from equipoise.experiments.seed_scatter import usual_scatter

SMALL = st.floats(-1.0, 1.0)


def seeds(*values, half):
    """One difference per seed; ``half`` is the error that the rows give."""
    return [
        Difference("ece", 0.0, v, v, v - 1.959964 * half, v + 1.959964 * half, 1.0, "tie") for v in values
    ]


def test_two_seeds_that_scatter_make_the_test_milder():
    """Differences 1 and 3 with hardly any error from rows: t = 2 with one degree of freedom, p = 0.295."""
    assert combine(seeds(1.0, 3.0, half=1e-9)).p_value == pytest.approx(0.2952, abs=1e-4)
    assert combine(seeds(2.0, 2.0, half=1.0)).p_value == pytest.approx(0.0455, abs=1e-4)


def test_the_interval_of_two_seeds_is_that_of_one_degree_of_freedom():
    """The error of the mean of 1 and 3 is 1, and t of one degree of freedom 12.706."""
    found = combine(seeds(1.0, 3.0, half=1e-9))
    assert (found.low, found.high) == pytest.approx((2 - 12.706, 2 + 12.706), abs=1e-3)


@given(values=st.lists(SMALL, min_size=1, max_size=5), half=st.floats(1e-3, 1.0))
def test_an_interval_holds_zero_just_when_the_test_calls_a_tie(values, half):
    found = combine(seeds(*values, half=half))
    assert (found.verdict == "tie") == (found.low <= 0 <= found.high) or found.p_value == pytest.approx(0.05)


def test_cells_with_few_seeds_have_wider_intervals_than_normal_ones():
    one = Cell(mean=0.1, error=0.01, spread=1e-9, n_seeds=3, temperature=None)
    found = difference_of_cells("ece", one, one)
    # The error is 0.0141, of four degrees of freedom: t is 2.776.
    assert found.high == pytest.approx(0.01414 * 2.776, abs=1e-4)


def test_seeds_that_agree_by_luck_get_the_scatter_of_their_family():
    lucky, *_ = combine_family([seeds(1.0, 1.0, half=0.1), *(seeds(0.0, 2.0, half=0.1) for _ in range(4))])
    assert combine(seeds(1.0, 1.0, half=0.1)).verdict == "first better"
    assert lucky.verdict == "tie"


def test_a_method_with_one_seed_gets_the_scatter_of_the_others():
    single, *_ = combine_family([seeds(1.0, half=0.1), *(seeds(0.0, 2.0, half=0.1) for _ in range(4))])
    assert combine(seeds(1.0, half=0.1)).verdict == "first better"
    assert single.verdict == "tie"


def test_more_seeds_are_trusted_more():
    others = [seeds(*(2.0 * (k % 2) for k in range(20)), half=0.1) for _ in range(4)]
    widths = []
    for n_seeds in (2, 5, 20):
        lucky, *_ = combine_family([seeds(*[1.0] * n_seeds, half=0.1), *others])
        widths.append(lucky.high - lucky.low)
    assert widths[0] > widths[1] > widths[2]
    assert widths[2] < 1.5 * (combine(seeds(*[1.0] * 20, half=0.1)).high - 1.0) * 2


def test_a_method_that_scatters_more_than_the_others_keeps_its_own():
    wild = combine_family([seeds(0.0, 8.0, half=0.1), *(seeds(0.0, 0.2, half=0.1) for _ in range(9))])[0]
    assert wild.high - wild.low > 8


def test_the_same_networks_differ_by_nothing_whatever_others_do():
    same = combine_family([seeds(0.0, 0.0, half=0.0), *(seeds(0.0, 2.0, half=0.1) for _ in range(4))])[0]
    assert (same.low, same.high, same.verdict) == (0.0, 0.0, "tie")


def test_the_usual_scatter_is_the_true_one():
    values = np.random.default_rng(0).normal(0.0, 3.0, (4001, 3))
    assert usual_scatter(list(values)) == pytest.approx(9.0, rel=0.1)
    assert usual_scatter([values[0]]) is None
    assert usual_scatter([values[0], [1.0]]) is None


def test_tables_of_equal_methods_seldom_show_a_difference():
    """Forty methods that are all as good as the baseline, two seeds each, Holm's correction: one table in ten at most.

    Trusting each pair's own scatter shows a difference in about three of four such tables.
    """
    random = np.random.default_rng(1)
    alone, together, n_tables = 0, 0, 100
    for _ in range(n_tables):
        baseline = random.normal(0.0, 4.0, 2)
        family = [
            seeds(*(random.normal(0.0, 4.0, 2) - baseline + random.normal()), half=1.0) for _ in range(40)
        ]
        alone += holm(np.array([combine(one).p_value for one in family])).min() < 0.05
        together += holm(np.array([one.p_value for one in combine_family(family)])).min() < 0.05
    assert alone > n_tables / 2
    assert together <= n_tables / 10
