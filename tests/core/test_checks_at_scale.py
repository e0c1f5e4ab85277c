"""Large arrays are checked a block at a time; the first bad row is named."""

import numpy as np
import pytest

from equipoise.core import checks
from equipoise.core.errors import DataError


@pytest.fixture(params=[np.float32, np.float64])
def table(request):
    rng = np.random.default_rng(0)
    raw = rng.random((6000, 50))
    return (raw / raw.sum(axis=1, keepdims=True)).astype(request.param)


def complaint(table):
    with pytest.raises(DataError) as caught:
        checks.check_probs(table, where="doc")
    return str(caught.value)


def test_good_rows_pass(table):
    checks.check_probs(table, where="doc")


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (np.nan, "got nan in row 4321, column 7. Drop or repair"),
        (np.inf, "got inf in row 4321, column 7"),
        (-0.25, "got -0.25 in row 4321, column 7"),
        (2.0, "got 2.0 in row 4321, column 7"),
        (0.75, "row 4321 sums to"),
    ],
)
def test_one_bad_row_among_many_is_named(table, value, message):
    table[4321, 7] = value
    assert message in complaint(table)


def test_an_entry_above_one_is_refused_though_the_row_sums_to_one(table):
    table[17] = 0
    table[17, 3] = 1.0005
    assert "row 17, column 3" in complaint(table)


def test_the_first_bad_row_is_the_one_named(table):
    table[5000, 0], table[80, 1] = np.nan, -1.0
    assert "row 80, column 1" in complaint(table)


def test_rounding_above_one_and_negative_zero_pass(table):
    table[17] = 0
    table[17, 3] = 1 + 5e-7
    table[18] = -table[17] * 0
    table[18, 1] = 1.0
    checks.check_probs(table, where="doc")


def test_other_layouts_are_checked_too(table):
    checks.check_probs(np.asfortranarray(table), where="doc")
    table[9, 9] = np.nan
    assert "row 9, column 9" in complaint(np.asfortranarray(table))
