"""The error of a mean over seeds: its two sources, and intervals that agree with their tests."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import t as student
from scipy.stats import ttest_rel

from equipoise.evaluate import Score, StandardError, mean_over_seeds
from equipoise.evaluate.differences import correct_family, difference_test, paired_difference
from equipoise.evaluate.standard_error import error_over_seeds
from equipoise.metrics.row_draws import ResamplePlan, RowDraws

ERRORS = st.builds(
    StandardError,
    rows=st.floats(0.0, 1.0),
    rows_df=st.sampled_from([5.0, 100.0, np.inf]),
    seeds=st.floats(1e-3, 1.0),
    seeds_df=st.sampled_from([1.0, 2.0, 9.0]),
)


def normal_draws(generator, scale, n_resamples=4000):
    return scale * generator.standard_normal(n_resamples)


def test_without_row_error_the_test_is_a_paired_t_test():
    first, second = np.array([0.50, 0.52, 0.51, 0.55]), np.array([0.47, 0.50, 0.50, 0.51])
    generator = np.random.default_rng(0)
    draws = [normal_draws(generator, 1e-4) for _ in range(8)]  # independent: no row moves two networks
    plan = ResamplePlan(1000, 1000, 4000, 0)
    runs = [RowDraws({"nll": v}, {"nll": d}, plan) for v, d in zip([*first, *second], draws, strict=True)]
    found = paired_difference("nll", runs[:4], runs[4:])
    assert found.p_value == pytest.approx(ttest_rel(first, second).pvalue, rel=0.02)
    assert found.verdict == "better"


def test_rows_that_move_all_seeds_alike_do_not_average_out():
    generator = np.random.default_rng(0)
    common = normal_draws(generator, 0.1)
    draws = [common + normal_draws(generator, 0.2) for _ in range(4)]
    error = error_over_seeds([0.0, 0.0, 0.0, 0.0], draws, 10_000)
    assert error.rows == pytest.approx(0.1, rel=0.1)
    assert error.seeds == 0


def test_one_run_has_the_error_of_its_rows():
    draws = normal_draws(np.random.default_rng(0), 0.3)
    error = error_over_seeds([1.0], [draws], 10_000)
    assert error.rows == pytest.approx(0.3, rel=0.05)
    assert (error.seeds, error.seeds_df) == (0.0, np.inf)


def test_the_interval_of_two_seeds_is_that_of_one_degree_of_freedom():
    """The error of the mean of 1 and 3 is 1, and t of one degree of freedom 12.706."""
    error = error_over_seeds([1.0, 3.0], np.zeros((2, 50)), 100)
    assert error.half_width(0.05) == pytest.approx(12.706, abs=1e-3)


@given(error=ERRORS, difference=st.floats(-3.0, 3.0), level=st.sampled_from([0.9, 0.95, 0.99]))
def test_an_interval_excludes_zero_exactly_when_the_p_value_is_below_the_level(error, difference, level):
    found = difference_test("nll", 1.0, 1.0 + difference, error, level=level)
    assert (found.low <= 0 <= found.high) == (found.p_value >= 1 - level) == (found.verdict == "tie")


FAMILIES = st.lists(st.tuples(st.floats(-3.0, 3.0), ERRORS), min_size=1, max_size=12)


@given(family=FAMILIES, more=st.integers(0, 30))
def test_a_family_is_corrected_as_benjamini_and_hochberg_do(family, more):
    single = [difference_test("nll", 1.0, 1.0 + difference, error) for difference, error in family]
    found = correct_family(single, total=len(single) + more)
    m, ordered = len(single) + more, sorted(one.p_value for one in single)
    called = max((rank for rank, p in enumerate(ordered, 1) if p * m / rank < 0.05), default=0)
    assert sum(one.verdict != "tie" for one in found) == called
    for one, alone in zip(found, single, strict=True):
        assert (one.low <= 0 <= one.high) == (one.p_value >= 0.05) == (one.verdict == "tie")
        assert one.comparisons == m
        assert one.p_value >= alone.p_value
        assert one.detectable() >= alone.detectable()
    assert correct_family(found, total=m) == found, "correcting again changes nothing"


@given(error=ERRORS)
def test_the_critical_value_lies_between_those_of_the_sources(error):
    critical = error.half_width(0.05) / error.total
    ends = [student.ppf(0.975, df) for df in (error.rows_df, error.seeds_df)]
    assert min(ends) - 1e-9 <= critical <= max(ends) + 1e-9


def test_a_unit_that_is_alone_says_nothing():
    error = error_over_seeds([0.5], np.zeros((1, 20)), 1)
    assert error.rows_df < 1
    assert difference_test("nll", 0.0, 0.5, error._replace(rows=0.1)).verdict == "tie"


def test_equivalence_needs_a_margin_that_the_interval_fits_into():
    found = difference_test("ece", 0.1, 0.101, StandardError(0.002))
    assert found.verdict == "tie"
    assert found.is_equivalent(0.005)
    assert not found.is_equivalent(0.004)
    assert not correct_family([found] * 20)[0].is_equivalent(0.005)


def test_the_mean_of_seeds_without_draws_takes_the_error_of_one_run():
    scores = [Score(0.80, 0.79, 0.81), Score(0.80, 0.79, 0.81)]
    found = mean_over_seeds("accuracy", scores)
    assert (found.low, found.high) == pytest.approx((0.79, 0.81), abs=1e-6)


def test_an_interval_stays_in_the_range_of_its_metric():
    found = mean_over_seeds("ece", [Score(0.01, 0.0, 0.02), Score(0.05, 0.03, 0.07)])
    assert found.low == 0.0
    assert found.high <= 1.0


@pytest.mark.parametrize("metric", ["accuracy", "ece"])
def test_few_clusters_make_the_mean_of_seeds_less_certain(metric):
    shared = normal_draws(np.random.default_rng(0), 0.01)
    scores = [Score(0.30, 0.28, 0.32), Score(0.31, 0.29, 0.33)]
    widths = []
    for n_units in (3, 4000):
        plan = ResamplePlan(8000, n_units, len(shared), 0)
        runs = [RowDraws({metric: score.value}, {metric: shared}, plan) for score in scores]
        found = mean_over_seeds(metric, scores, draws=runs)
        widths.append(found.high - found.low)
    assert widths[0] > 1.1 * widths[1]
