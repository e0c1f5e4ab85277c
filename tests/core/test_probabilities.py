"""From logits to confidences: one rule, whatever the layout in memory and whatever other rows there are."""

import numpy as np
import pytest

from equipoise.core.arrays import freeze
from equipoise.core.probabilities import exponentials, softmax, top_of_logits, top_of_rows

LAYOUTS = {
    "rows": lambda table: table,
    "columns": np.asfortranarray,
    "every second row": lambda table: table.repeat(2, axis=0)[::2],
    "columns in reverse": lambda table: table[:, ::-1],
    "read-only": freeze,
}


@pytest.fixture(scope="module", params=[np.float32, np.float64])
def table(request):
    """Rows of which most have several equals at the top."""
    rng = np.random.default_rng(0)
    table = rng.integers(-3, 4, (5007, 50)).astype(request.param)
    table[:100] = rng.normal(0, 1e30, (100, 50))
    table[100], table[101], table[102] = -np.inf, np.inf, 0.0
    return table


@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_top_is_the_first_of_the_largest(table, layout):
    scores = LAYOUTS[layout](table)
    place, value = top_of_rows(scores)
    largest = scores.max(axis=1)
    first = np.where(scores == largest[:, None], np.arange(50), 50).min(axis=1)
    np.testing.assert_array_equal(place, first)
    np.testing.assert_array_equal(value, largest)
    assert (place.dtype, value.dtype) == (np.int64, table.dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("m", range(1, 41))
def test_ties_of_m_classes_have_the_confidence_one_mth(m, dtype):
    logits = np.full((3, 41), -1e4, dtype)
    logits[:, :m] = 7.25
    column, confidence = top_of_logits(logits)
    assert confidence.tolist() == [1 / m] * 3
    assert column.tolist() == [0] * 3
    assert softmax(logits)[0, 0] == dtype(1 / m)


@pytest.mark.parametrize("k", [2, 3, 10, 100, 1001, 9000])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_row_gives_the_same_bits_whatever_rows_are_beside_it(k, dtype):
    logits = np.random.default_rng(k).normal(0, 3, (40, k)).astype(dtype)
    exps, total, column = exponentials(logits)
    for layout in LAYOUTS.values():
        np.testing.assert_array_equal(
            top_of_logits(layout(logits))[1][:40], 1 / exponentials(np.ascontiguousarray(layout(logits)))[1]
        )
    for start, stop in ((0, 1), (1, 4), (7, 40), (39, 40)):
        part = exponentials(logits[start:stop])
        for whole, some in zip((exps, total, column), part, strict=True):
            np.testing.assert_array_equal(whole[start:stop], some)


def test_exponentials_do_not_raise_where_numpy_is_told_to():
    with np.errstate(all="raise"):
        for dtype in (np.float32, np.float64):
            largest = np.finfo(dtype).max
            assert top_of_logits(np.array([[largest, -largest, 0]], dtype))[1] == 1.0
            assert softmax(np.array([[0, -90, -700]], dtype))[0, 0] == 1.0
