"""Orders are written down here, so that a platform or a NumPy that gives others is caught."""

import numpy as np
import pytest

from equipoise.data.shuffling import permutation, uniform


def test_the_order_is_the_same_on_every_machine():
    assert permutation(10, seed=0, stream=("order", 0)).tolist() == ORDER_0
    assert permutation(10, seed=0, stream=("order", 1)).tolist() == ORDER_1
    assert permutation(10, seed=1, stream=("order", 0)).tolist() == ORDER_SEED_1


ORDER_0 = [6, 1, 7, 8, 9, 3, 2, 5, 0, 4]
ORDER_1 = [7, 6, 1, 4, 2, 9, 3, 5, 8, 0]
ORDER_SEED_1 = [0, 6, 7, 2, 3, 1, 5, 8, 4, 9]


def test_numbers_are_the_same_on_every_machine():
    assert uniform(3, seed=7).tolist() == NUMBERS


NUMBERS = [0.1184537381882177, 0.5223683712985561, 0.1893808133706083]


@pytest.mark.parametrize("n", [0, 1, 2, 1000])
def test_every_number_occurs_once(n):
    assert sorted(permutation(n, seed=3).tolist()) == list(range(n))


def test_numbers_fill_the_unit_interval():
    numbers = uniform(20_000, seed=1)
    assert numbers.min() >= 0
    assert numbers.max() < 1
    # Each of ten bins has 2,000 +- 42 of 20,000; six standard deviations.
    assert np.abs(np.histogram(numbers, bins=10, range=(0, 1))[0] - 2000).max() < 6 * 43


def test_streams_are_unrelated():
    one, two = uniform(5000, seed=0, stream=("a",)), uniform(5000, seed=0, stream=("b",))
    assert abs(np.corrcoef(one, two)[0, 1]) < 0.08
