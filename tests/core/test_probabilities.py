"""The likeliest class of many rows, compiled or not, however they lie in memory."""

import numpy as np
import pytest

from equipoise.compiled.dispatch import find_kernel
from equipoise.core.arrays import freeze
from equipoise.core.probabilities import _LARGE, top_of_rows
from helpers.both_ways import go

LAYOUTS = {
    "rows": lambda table: table,
    "columns": np.asfortranarray,
    "every second row": lambda table: table.repeat(2, axis=0)[::2],
    "columns in reverse": lambda table: table[:, ::-1],
    "read-only": freeze,
}


@pytest.fixture(scope="module", params=["compiled", "plain"], autouse=True)
def _way(request):
    yield from go(request.param)


@pytest.fixture(scope="module", params=[np.float32, np.float64])
def table(request):
    """As many rows as are worth compiled code; most have several equals at the top."""
    rng = np.random.default_rng(0)
    table = rng.integers(-3, 4, (_LARGE // 50 + 7, 50)).astype(request.param)
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


def test_other_layouts_are_not_compiled_for(table):
    if find_kernel("top_class", table.dtype.char, table.size) is None:
        pytest.skip("the plain way compiles nothing")
    from equipoise.compiled.top_class_kernel import top_rows

    for layout in LAYOUTS.values():
        top_of_rows(layout(table))
    kinds = [signature.args[0] for signature in top_rows.nopython_signatures]
    assert {(kind.layout, kind.mutable) for kind in kinds} == {("C", True)}
