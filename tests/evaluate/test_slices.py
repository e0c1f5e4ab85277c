"""Calibration of classes and groups, one at a time."""

import numpy as np
import pytest

from equipoise import Predictions, score
from equipoise.core.errors import DataError, SpecError
from equipoise.evaluate import SliceSums, score_by_class, score_by_group
from equipoise.evaluate.chance import holm
from equipoise.kernels.dispatch import use_backend
from helpers.backends import go


@pytest.fixture(scope="module", params=["compiled", "fallback"], autouse=True)
def _way(request):
    yield from go(request.param)


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
    assert alarms <= 6  # Holm keeps the chance of any alarm at 5%: 2 of 40 are expected


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


def random_rows(n=3000, seed=0, **extra):
    generator = np.random.default_rng(seed)
    logits = 2 * generator.normal(size=(n, 4))
    labels = (logits + generator.gumbel(size=logits.shape)).argmax(1)
    return Predictions(logits=logits, labels=labels, **extra)


def test_by_hand():
    rows = Predictions(
        probs=[[0.9, 0.1], [0.9, 0.1], [0.2, 0.8], [0.4, 0.6]],
        labels=[0, 1, 1, 1],
        class_names=["cat", "dog"],
    )
    parts = {part.name: part for part in score_by_class(rows)}
    cat, dog = parts["cat"], parts["dog"]
    assert (cat.n_samples, cat.accuracy, cat.confidence) == (2, 0.5, pytest.approx(0.9))
    assert cat.gap == pytest.approx(0.4)
    assert cat.ece == pytest.approx(0.4)
    assert dog.gap == pytest.approx(0.7 - 1)
    # One of two right at 0.9 or worse: 2 * (1 - 0.81), then doubled by Holm's rule for two slices.
    assert cat.p_value == pytest.approx(2 * 2 * (1 - 0.81), abs=0.08)


def test_chunks_add_up_to_the_whole():
    rows = random_rows(groups={"site": np.array(["a", "b", "ccc"])[np.arange(3000) % 3]})
    sums = SliceSums()
    for chunk in rows.blocks(700):
        sums.update(chunk, chunk.groups["site"], name="site")
    whole = score_by_group(rows, "site")
    for one, other in zip(sums.slices(), whole, strict=True):
        assert one[:2] == other[:2]
        assert one[2:] == pytest.approx(other[2:])


def test_weights_repeat_rows():
    rows = random_rows(500)
    twice = rows.with_weights(np.full(500, 1.0))
    parts = score_by_class(twice.take(np.repeat(np.arange(500), 2)))
    weighted = score_by_class(rows.with_weights(np.full(500, 2.0)))
    for one, other in zip(sorted(parts), sorted(weighted), strict=True):
        assert one.gap == pytest.approx(other.gap)
        assert one.accuracy == pytest.approx(other.accuracy)
    # Doubled weights of the same rows tell no more than the rows do.
    for one, other in zip(sorted(score_by_class(rows)), sorted(weighted), strict=True):
        assert one.p_value == pytest.approx(other.p_value)


def test_intervals_cover_the_truth():
    generator = np.random.default_rng(1)
    hits, total = 0, 0
    for _ in range(150):
        confidence = generator.beta(6, 2, size=(20, 8))
        truth = np.clip(confidence - 0.15, 0, 1)
        correct = generator.random(truth.shape) < truth
        rows = Predictions(
            predicted=np.ones(160, int), confidence=confidence.ravel(), labels=correct.ravel().astype(int)
        )
        sums = SliceSums()
        sums.update(rows, np.repeat(np.arange(20), 8))
        for part in sums.slices():
            expected = (confidence - truth)[int(part.name)].mean()
            hits += part.low <= expected <= part.high
            total += 1
    assert 0.93 < hits / total <= 1


def test_a_few_right_rows_are_not_certain():
    rows = Predictions(predicted=[1, 1, 1], confidence=[0.99, 0.99, 0.99], labels=[1, 1, 1])
    part = score_by_class(rows)[0]
    assert part.high - part.low > 0.3
    assert part.p_value > 0.5


def test_the_broken_group_is_found_among_many():
    rows = random_rows(20_000, groups={"site": np.arange(20_000) % 40})
    probs = rows.probs.copy()
    broken = rows.groups["site"] == 7
    probs[broken] = np.eye(4)[rows.predicted[broken]] * 0.96 + 0.01
    spoiled = Predictions(probs=probs, labels=rows.labels, groups=rows.groups)
    parts = score_by_group(spoiled, "site")
    assert parts[0].name == "7"
    assert [part.name for part in parts if part.p_value < 0.05] == ["7"]
    assert not [part for part in score_by_group(rows, "site") if part.p_value < 0.01]


@pytest.mark.parametrize(
    ("column", "names"),
    [
        (np.array([True, False, True]), {"True", "False"}),
        (np.array([1.5, np.nan, np.nan]), {"1.5", "nan"}),
        (np.array([-(2**40), 2**40, 0]), {str(-(2**40)), str(2**40), "0"}),
        (np.array(["", "a", "a\x00b"]), {"", "a", "a\x00b"}),
        (np.array([255, 0, 255], np.uint8), {"255", "0"}),
    ],
)
def test_columns_of_any_type(column, names):
    rows = Predictions(probs=[0.9, 0.2, 0.6], labels=[1, 0, 1], groups={"g": column})
    assert {part.name for part in score_by_group(rows, "g")} == names


def test_refusals():
    rows = Predictions(probs=np.full(2000, 0.5), labels=np.zeros(2000, int), groups={"id": np.arange(2000)})
    with pytest.raises(DataError, match="more than 1000 different values"):
        score_by_group(rows, "id")
    with pytest.raises(SpecError, match="did you mean 'id'"):
        score_by_group(rows, "idd")
    with pytest.raises(ValueError, match="level"):
        score_by_class(rows, level=1.0)


@pytest.mark.parametrize("closed", ["right", "left"])
@pytest.mark.parametrize("weighted", [False, True])
def test_both_ways_give_the_same_sums(closed, weighted):
    rng = np.random.default_rng(0)
    # Many on an edge.
    confidence = np.append(rng.integers(0, 31, 400) / 30, rng.random(400))
    rows = top1(confidence, rng.random(800) < confidence, rng.integers(0, 5, 800).astype(str))
    if weighted:
        rows = rows.with_weights(rng.integers(0, 4, 800).astype(float))
    found = score_by_group(rows, "site", closed=closed)
    with use_backend("fallback"):
        known = score_by_group(rows, "site", closed=closed)
    for one, other in zip(found, known, strict=True):
        assert one.name == other.name
        assert one[1:] == pytest.approx(other[1:], rel=1e-9, abs=1e-12)
