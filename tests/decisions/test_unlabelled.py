import numpy as np
import pytest
from scipy.stats import binom

from equipoise.core import Predictions
from equipoise.core.errors import DataError
from equipoise.decisions import compare_unlabelled


def draw(n, seed, a=1.0, groups=None):
    rng = np.random.default_rng(seed)
    named = {} if groups is None else {"site": rng.choice(list(groups), n)}
    return Predictions(probs=rng.dirichlet([a, 1, 1], n), groups=named)


def test_false_alarms_of_all_tests_together():
    found = sum(
        compare_unlabelled(draw(300, i, groups="ab"), draw(300, 999 + i, groups="ab")).shifted
        for i in range(200)
    )
    assert found <= binom.ppf(0.999, 200, 0.05)


def test_a_shift_asks_for_labels_and_names_its_assumption():
    found = compare_unlabelled(draw(500, 1, 3.0), draw(500, 2))
    assert found.shifted
    assert "if calibration still holds" in found.describe()
    assert f"Label about {found.labels_needed:,} random rows" in found.describe()
    assert found.p_values["predicted class"] < 0.01
    same = compare_unlabelled(draw(500, 1), draw(500, 2))
    assert not same.shifted
    assert "if calibration still holds" in same.describe()


def test_groups_that_changed_are_found():
    found = compare_unlabelled(draw(500, 1, groups="aab"), draw(500, 2, groups="abb"))
    assert found.p_values["site"] < 0.01
    with pytest.raises(DataError, match="same columns of groups"):
        compare_unlabelled(draw(50, 1, groups="ab"), draw(50, 2))
