"""Functions of arrays and tensors: both libraries give the same numbers, and edges are where torch puts them."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from equipoise.core import array_functions as functions

SCORES = np.array([[1e4, -1e4, 0.0], [0.1, 0.2, 0.3], [-5.0, -5.0, -5.0]])


@pytest.mark.parametrize("name", ["softmax", "log_softmax", "logsumexp", "log_sigmoid", "double"])
def test_arrays_and_tensors_agree(name):
    function = getattr(functions, name)
    with np.errstate(divide="ignore"):
        np.testing.assert_allclose(function(SCORES), function(torch.tensor(SCORES)).numpy(), rtol=1e-14)


@pytest.mark.parametrize("name", ["take_along", "put_along", "sum_by_index"])
def test_indexed_functions_agree(name):
    index = np.array([[0, 0, 2], [1, 1, 1], [2, 0, 2]])
    extra = {"put_along": (0.5,)}.get(name, ())
    function = getattr(functions, name)
    expected = function(torch.tensor(SCORES), torch.tensor(index), *extra).numpy()
    np.testing.assert_array_equal(function(SCORES, index, *extra), expected)


def test_a_sum_of_no_exponentials_is_minus_infinity():
    with np.errstate(divide="ignore"):
        assert functions.logsumexp(np.full((1, 2), -np.inf)).item() == -np.inf


@given(st.data(), st.integers(0, 9), st.booleans())
def test_rows_are_searched_as_torch_does(data, n_edges, right):
    numbers = st.sampled_from([0.0, 0.1, 0.25, 0.5, 0.5, 0.75, 1.0, np.inf])
    edges = np.sort(
        np.array(data.draw(st.lists(numbers, min_size=2 * n_edges, max_size=2 * n_edges))).reshape(2, -1)
    )
    values = np.array(data.draw(st.lists(st.sampled_from([0.0, 0.1, 0.3, 0.5, 1.0]), min_size=6, max_size=6)))
    found = functions.search_rows(edges, values.reshape(2, 3), right=right)
    expected = torch.searchsorted(torch.tensor(edges), torch.tensor(values.reshape(2, 3)), right=right)
    np.testing.assert_array_equal(found, expected.numpy())


def test_numbers_follow_the_kind_and_device_of_others():
    assert isinstance(functions.asarray_like(torch.tensor([0.5]), SCORES), np.ndarray)
    moved = functions.asarray_like(np.array([0.5]), torch.zeros(1, device="meta"))
    assert moved.device.type == "meta"
