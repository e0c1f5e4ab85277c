import numpy as np
import pytest
from scipy.stats import binom

from equipoise.calibrators import TemperatureScaling
from equipoise.core import Predictions
from equipoise.core.errors import DataError, SplitError
from equipoise.decisions import compare_unlabelled
from equipoise.decisions.unlabelled import _frequencies


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


def test_classes_with_names_in_one_file_only_are_compared_by_number():
    rng = np.random.default_rng(5)
    old, new = rng.dirichlet([1, 1, 1], 500), rng.dirichlet([1, 1, 1], 500)
    plain, named = Predictions(probs=old), Predictions(probs=new, class_names=["a", "b", "c"])
    found = compare_unlabelled(named, plain)
    assert found.p_values == compare_unlabelled(Predictions(probs=new), plain).p_values
    assert not found.shifted


def test_groups_that_changed_are_found():
    found = compare_unlabelled(draw(500, 1, groups="aab"), draw(500, 2, groups="abb"))
    assert found.p_values["site"] < 0.01
    with pytest.raises(DataError, match="same columns of groups"):
        compare_unlabelled(draw(50, 1, groups="ab"), draw(50, 2))


def test_rare_values_are_joined():
    # One row of a value that the reference has never: of 200 rows, no evidence at all.
    old, new = np.repeat(["a", "b"], [600, 400]), np.repeat(["a", "b", "c"], [120, 79, 1])
    found = _frequencies(new, old)
    assert found == pytest.approx(_frequencies(np.repeat(["a", "b"], [120, 80]), old))
    assert found > 0.5
    assert _frequencies(np.array(["a", "b"]), np.array(["b", "c"])) == 1.0
    assert _frequencies(np.repeat(["a"], 9), np.repeat(["a"], 9)) == 1.0


def test_level_far_in_the_tail_with_rare_groups():
    # As for a look every day of a year; the long form is benchmarks/watch.py.
    rng, share, level = np.random.default_rng(0), np.arange(1, 21) / 210, 0.002
    found = [_frequencies(rng.choice(20, 500, p=share), rng.choice(20, 2000, p=share)) for _ in range(1500)]
    assert np.count_nonzero(np.array(found) <= level) <= binom.ppf(0.999, 1500, level)


def test_predicted_classes_are_compared_by_name():
    rng = np.random.default_rng(0)

    def rows(names, n):
        return Predictions(
            predicted=rng.integers(0, len(names), n), confidence=rng.uniform(0.5, 1, n), class_names=names
        )

    # The first class of the reference occurs once, and not today: all other classes have other numbers.
    old, new = rows(["bus", "car", "van"], 600), rows(["car", "van"], 300)
    old = old.take(np.flatnonzero(old.predicted > 0))
    assert compare_unlabelled(new, old).p_values["predicted class"] > 0.01


def test_predictions_that_cannot_be_compared_are_an_error():
    probs = np.random.default_rng(0).dirichlet([1, 1, 1], 200)
    rows = Predictions(probs=probs, class_names=["bus", "car", "van"])
    other = draw(200, 1).probs
    for wrong in (
        Predictions(probs=other, class_names=["cat", "cow", "dog"]),
        Predictions(probs=np.full((20, 4), 0.25)),
        Predictions(predicted=[0, 1], confidence=[0.9, 0.8], class_names=["cat", "cow"]),
    ):
        with pytest.raises(DataError, match="predictions of one model"):
            compare_unlabelled(rows if wrong.class_names else Predictions(probs=probs), wrong)
    calibrated = TemperatureScaling().fit(Predictions(probs=other, labels=other.argmax(axis=1)))(rows)
    with pytest.raises(DataError, match="a calibrator was applied to one of the two"):
        compare_unlabelled(calibrated, draw(200, 2))
    # Rows with labels are the same rows as without.
    with pytest.raises(SplitError, match="200 of 200 rows are in both files"):
        compare_unlabelled(rows, Predictions(probs=probs, labels=probs.argmax(axis=1)))
