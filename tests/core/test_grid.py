"""The grid of probabilities: decimals, shares of trees, number formats."""

import numpy as np
import pytest

from equipoise.core.grid import grid_of

RANDOM = np.random.default_rng(0).dirichlet([0.2] * 4, 500)


@pytest.mark.parametrize("decimals", [1, 2, 3, 4, 5, 6])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_decimals_are_recognized_in_both_precisions(decimals, dtype):
    rounded = np.round(RANDOM, decimals).astype(dtype)
    found = grid_of(rounded, np.dtype(dtype).name)
    assert found.steps == pytest.approx((10.0**-decimals,))
    assert found.words == f"rounded to {decimals} decimal{'s' * (decimals > 1)}"


def test_single_precision_written_as_text_is_recognized():
    text = [repr(float(value)) for value in np.round(RANDOM[:, 0], 4).astype(np.float32)]
    assert grid_of(np.array(text, float)).words == "rounded to 4 decimals"


@pytest.mark.parametrize("trees", [3, 7, 20, 25, 30, 64, 100, 300])
def test_the_shares_of_trees_have_the_step_of_one_tree(trees):
    votes = np.random.default_rng(1).binomial(trees, RANDOM[:, 0]) / trees
    assert grid_of(votes).steps == pytest.approx((1 / trees, 1 / trees))


def test_numbers_that_are_not_rounded_have_their_least_as_the_step():
    assert grid_of(RANDOM).steps == (RANDOM[RANDOM > 0].min(),)


def test_half_precision_is_not_taken_for_decimals():
    half = RANDOM.astype(np.float16)
    found = grid_of(half.astype(np.float32), "float16")
    assert found.steps == (float(half[half > 0].min()),)
    assert "decimals" not in found.words


def test_one_column_of_single_precision_has_a_step_on_either_side():
    column = np.concatenate([RANDOM[:, 0], [0.0, 1.0, 1e-20, 1 - 1e-7]]).astype(np.float32)
    other, own = grid_of(column, "float32").steps
    assert own == pytest.approx(column[column > 0].min())
    assert other == pytest.approx(1 - float(np.float32(1 - 1e-7)))


def test_zeros_and_ones_alone_do_not_count_as_one_half():
    assert grid_of(np.array([[0.0, 1.0], [1.0, 0.0]])).half_steps == (0.1,)


def test_probabilities_below_single_precision_stay_above_zero():
    assert grid_of(np.array([[0.0, 1.0], [5e-324, 1.0]])).half_steps[0] >= np.finfo(np.float32).tiny
