"""Calibration of classes and groups, one at a time."""

import numpy as np
import pytest

from equipoise import Predictions, score
from equipoise.core.errors import SpecError
from equipoise.evaluate import score_by_class, score_by_group
from equipoise.evaluate.chance import holm


def top1(confidence, correct, groups=None):
    confidence, correct = np.asarray(confidence, float), np.asarray(correct, bool)
    return Predictions(
        predicted=np.zeros(len(correct), int),
        labels=np.where(correct, 0, 1),
        confidence=confidence,
        groups=None if groups is None else {"site": groups},
    )


def test_numbers_of_a_slice_by_hand():
    rows = top1([0.9, 0.7, 0.8, 0.8], [1, 0, 1, 1], ["a", "a", "b", "b"])
    by_name = {part.name: part for part in score_by_group(rows, "site")}
    assert by_name["a"][1:5] == (2, 0.5, pytest.approx(0.8), pytest.approx(0.3))
    assert by_name["a"].ece == pytest.approx(0.4)  # |0.9 - 1| and |0.7 - 0|, half each
    assert by_name["b"].gap == pytest.approx(-0.2)
    # Two rows that are both right are no proof: the interval has a width.
    assert by_name["b"].low < by_name["b"].gap < 0 < by_name["b"].high


def test_calibrated_slices_are_rarely_called_off():
    rng = np.random.default_rng(0)
    alarms = 0
    for _ in range(40):
        confidence = rng.uniform(0.5, 1, 600)
        rows = top1(confidence, rng.random(600) < confidence, rng.integers(0, 12, 600).astype(str))
        alarms += any(part.p_value <= 0.05 for part in score_by_group(rows, "site"))
    assert alarms <= 6  # Holm keeps the chance of any alarm at 5 %: 2 of 40 are expected


def test_the_bad_group_is_found_and_stands_first():
    rng = np.random.default_rng(0)
    confidence, group = rng.uniform(0.6, 1, 2000), rng.integers(0, 10, 2000)
    rows = top1(confidence, rng.random(2000) < confidence - 0.35 * (group == 7), group.astype(str))
    first, second, *_ = score_by_group(rows, "site")
    assert (first.name, first.p_value < 1e-3, second.p_value > 0.05) == ("7", True, True)


def test_classes_are_the_predicted_ones_by_name():
    rows = Predictions(probs=[[0.9, 0.1], [0.8, 0.2]], labels=[0, 1], class_names=["cat", "dog"])
    assert [(part.name, part.n_samples) for part in score_by_class(rows)] == [("cat", 2)]


def test_weights_are_repetition():
    rows = top1([0.9, 0.6, 0.7], [1, 0, 1])
    repeated = top1([0.9, 0.6, 0.6, 0.7], [1, 0, 0, 1])
    weighted = score_by_class(rows.with_weights([1, 2, 1]))[0]
    plain = score_by_class(repeated)[0]
    assert (weighted.gap, weighted.ece) == (pytest.approx(plain.gap), pytest.approx(plain.ece))


def test_certainty_that_fails_is_off_and_one_that_holds_is_not():
    assert score_by_class(top1([1.0] * 5, [0] * 5))[0].p_value < 1e-9
    assert score_by_class(top1([1.0] * 5, [1] * 5))[0].p_value == 1


def test_an_unknown_column_is_named():
    with pytest.raises(SpecError, match="did you mean 'site'"):
        score_by_group(top1([0.9], [1], ["a"]), "sight")


def test_every_slice_equals_the_scorecard_of_its_rows():
    rng = np.random.default_rng(2)
    probs = rng.dirichlet(np.ones(4), 500)
    rows = Predictions(probs=probs, labels=rng.integers(0, 4, 500), weights=rng.uniform(0.5, 2, 500))
    for part in score_by_class(rows):
        card = score(rows.take(rows.predicted == int(part.name)), n_resamples=5)
        assert part.ece == pytest.approx(card["ece"].value)
        assert part.accuracy == pytest.approx(card["accuracy"].value)
        assert part.gap == pytest.approx(card["confidence_gap"].value)
        assert part.n_samples == card.n_samples


def test_holm_by_hand():
    # 0.01 x 3, 0.02 x 2, and 0.5, each at least the one before
    np.testing.assert_allclose(holm(np.array([0.5, 0.01, 0.02])), [0.5, 0.03, 0.04])
    np.testing.assert_allclose(holm(np.array([0.02, 0.01])), [0.02, 0.02])


def test_a_slice_without_weight_is_left_out():
    rows = top1([0.9, 0.8], [1, 1], ["a", "b"]).with_weights([1, 0])
    assert [part.name for part in score_by_group(rows, "site")] == ["a"]
