"""Predictions of several models for the same samples."""

import numpy as np
import pytest

from equipoise import Predictions
from equipoise.core.errors import DataError
from equipoise.core.predictions.combine import UnmatchedIdsError, align, align_all
from equipoise.evaluate import compare
from equipoise.experiments import compare_seeds
from equipoise.report import report_of

NAMES = ("cat", "dog", "owl")


def made(order=(0, 1, 2), ids=range(200), names=NAMES, sharper=1.0):
    """Return the same samples with classes and rows in some order."""
    generator = np.random.default_rng(0)
    logits = generator.normal(size=(200, 3))
    labels = (logits + generator.gumbel(size=(200, 3))).argmax(1)
    rows, number = np.array(list(ids)), np.argsort(order)
    return Predictions(
        logits=sharper * logits[rows][:, list(order)],
        labels=number[labels[rows]],
        class_names=[names[place] for place in order] if names else None,
        ids=rows,
    )


def test_rows_and_classes_are_matched():
    one, two = made(), made((2, 0, 1), np.random.default_rng(1).permutation(200))
    same, other = align(one, two, where="doc")
    assert same is one
    np.testing.assert_array_equal(other.logits, one.logits)
    np.testing.assert_array_equal(other.labels, one.labels)
    np.testing.assert_array_equal(other.rows.hashes, one.rows.hashes)


def test_pairs_are_compared_whatever_their_order():
    one, two = made(), made(sharper=3.0)
    shuffled = made((1, 2, 0), np.random.default_rng(1).permutation(200), sharper=3.0)
    assert list(compare(one, shuffled, n_resamples=50)) == list(compare(one, two, n_resamples=50))
    tables = [
        compare_seeds({"a": one, "b": other}, n_resamples=50).table.records() for other in (two, shuffled)
    ]
    assert tables[0] == tables[1]
    reports = [report_of({"a": one, "b": other}, n_resamples=50) for other in (two, shuffled)]
    assert reports[0].methods[1].versus == reports[1].methods[1].versus


def test_ids_that_one_of_them_lacks_are_counted():
    with pytest.raises(
        UnmatchedIdsError, match=r"5 of 200 ids of the first are not in the second \(first in row 195\)"
    ):
        align(made(), made(ids=range(195)), where="doc")
    with pytest.raises(DataError, match="1 of 200 ids of the second are not in the first"):
        compare(made(ids=range(199)), made())


def test_other_classes_are_an_error():
    with pytest.raises(DataError, match="only one of them has 'emu', 'owl'"):
        align(made(), made(names=("cat", "dog", "emu")), where="doc")


def test_classes_that_only_one_top1_file_names_are_added():
    one = Predictions(predicted=[0, 1], confidence=[0.9, 0.8], labels=[0, 0], class_names=["a", "c"])
    two = Predictions(predicted=[0, 1], confidence=[0.9, 0.8], labels=[0, 0], class_names=["a", "b"])
    first, second = align(one, two, where="doc")
    assert first.class_names == second.class_names == ("a", "c", "b")
    assert (first.predicted.tolist(), second.predicted.tolist()) == ([0, 1], [0, 2])


def test_other_labels_are_an_error():
    one = Predictions(probs=[0.9, 0.2], labels=[1, 0])
    with pytest.raises(DataError, match="must be of the same rows"):
        align_all([one, Predictions(probs=[0.9, 0.2], labels=[1, 1])], where="doc")
