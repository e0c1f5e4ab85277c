"""One labelled set as two."""

import numpy as np
import pytest

from equipoise import Predictions
from equipoise.core.errors import DataError
from equipoise.core.predictions.combine import divide
from equipoise.core.rows import check_disjoint


def made(n=200, **arguments):
    generator = np.random.default_rng(3)
    return Predictions(logits=generator.normal(size=(n, 3)), labels=np.arange(n) % 3, **arguments)


@pytest.mark.parametrize("share", [0.001, 0.3, 0.999])
def test_every_row_is_on_one_side(share):
    rows = made(ids=np.arange(200), weights=np.ones(200))
    ((fit, judged),) = divide([rows], share, seed=5)
    assert len(fit) == min(max(1, round(200 * share)), 199)
    assert sorted([*fit.rows.hashes, *judged.rows.hashes]) == sorted(rows.rows.hashes)
    assert (fit.split, judged.split) == ("calib", "test")


def test_the_seed_decides():
    rows = made()
    first, again, other = (divide([rows], 0.5, seed=seed)[0][0] for seed in (1, 1, 2))
    assert first.fingerprint == again.fingerprint != other.fingerprint


def test_rows_with_the_same_id_stay_together():
    probs = np.tile(np.linspace(0.1, 0.9, 40), 5)
    rows = Predictions(probs=probs, labels=np.tile(np.arange(40) % 2, 5), ids=np.arange(200) % 40)
    ((fit, judged),) = divide([rows], 0.5)
    assert len(fit) == len(judged) == 100
    check_disjoint(judged.rows, fit.rows, where="test")


def test_rows_of_equal_values_are_divided_like_others():
    """A small tree predicts few different rows; which side a row goes to must not depend on its values."""
    probs = np.repeat([0.1, 0.4, 0.9], [100, 300, 600])
    rows = Predictions(probs=probs, labels=np.arange(1000) % 2)
    ((fit, judged),) = divide([rows], 0.5)
    assert len(fit) == len(judged) == 500
    for value in (0.1, 0.4, 0.9):
        share = np.mean(fit.scores == value)
        assert abs(share - np.mean(probs == value)) < 0.06  # four standard errors
    check_disjoint(judged.rows, fit.rows, where="test")


def test_clusters_go_to_one_side():
    clusters = np.repeat(np.arange(20), [1, 5, 9, 25] * 5)
    ((fit, judged),) = divide([made(200, groups={"author": clusters})], 0.3, clusters=clusters)
    assert not set(fit.groups["author"]) & set(judged.groups["author"])
    assert abs(len(fit) - 60) <= 12
    with pytest.raises(DataError, match="one cluster cannot be divided"):
        divide([made()], 0.3, clusters=np.zeros(200))


def test_models_are_divided_alike():
    rows = made()
    (one, _), (two, _) = divide([rows, rows.with_scores(logits=rows.logits * 2)], 0.3)
    np.testing.assert_allclose(two.logits, one.logits * 2)
    with pytest.raises(DataError, match="must be of the same rows"):
        divide([rows, rows.take(slice(0, 9))], 0.3)


@pytest.mark.parametrize(
    ("split", "judged"), [("train", "train"), ("tune", "tune"), ("calib", "test"), (None, "test")]
)
def test_rows_of_the_training_stay_known_as_such(split, judged):
    assert divide([made(split=split)], 0.3)[0][1].split == judged


def test_what_cannot_be_divided():
    with pytest.raises(ValueError, match="`share` must be between 0 and 1, got 1"):
        divide([made()], 1)
    with pytest.raises(DataError, match="one row cannot be divided"):
        divide([Predictions(probs=[0.5], labels=[1])], 0.5)
    with pytest.raises(DataError, match="no labels"):
        divide([Predictions(probs=[0.5, 0.4]), Predictions(probs=[0.5, 0.4])], 0.5)
