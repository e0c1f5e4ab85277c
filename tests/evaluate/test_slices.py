"""Slices: sums of chunks are sums of the whole, gaps and intervals by hand, few rows are not certain."""

import numpy as np
import pytest

from equipoise.core import DataError, Predictions, SpecError
from equipoise.evaluate import SliceSums, score_by_class, score_by_group


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
