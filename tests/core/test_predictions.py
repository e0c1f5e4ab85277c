"""Predictions at the door: what is refused, what is shared, what survives."""

import copy
import pickle

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from equipoise.core import DataError, Predictions, Rows, SplitError
from equipoise.kernels.dispatch import use_backend

PROBS = np.array([[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.3, 0.3, 0.4], [0.25, 0.5, 0.25]])
LABELS = np.array([0, 1, 2, 0])


def test_top_label_by_hand():
    predictions = Predictions(probs=PROBS, labels=LABELS)
    assert predictions.predicted.tolist() == [0, 1, 2, 1]
    assert predictions.confidence.tolist() == [0.7, 0.8, 0.4, 0.5]
    assert predictions.correct.tolist() == [True, True, True, False]
    assert (predictions.n_classes, len(predictions), predictions.kind) == (3, 4, "probs")


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("way", ["compiled", "fallback"])
def test_of_equals_the_first_is_likeliest_among_many_rows(way, dtype):
    logits = np.random.default_rng(0).integers(0, 4, (120_000, 9)).astype(dtype)
    with use_backend(way):
        found = Predictions(logits=logits, labels=np.zeros(len(logits), int))
        assert found.predicted.tolist() == np.argmax(logits, axis=1).tolist()
        np.testing.assert_allclose(found.confidence, found.probs.max(axis=1), rtol=1e-6)


def test_logits_give_their_softmax():
    logits = np.array([[2.0, 0.0], [0.0, 1.0]])
    predictions = Predictions(logits=logits, labels=[0, 1])
    expected = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(predictions.probs, expected, rtol=1e-15)
    np.testing.assert_allclose(predictions.log_probs, np.log(expected), rtol=1e-14)
    np.testing.assert_allclose(predictions.confidence, expected.max(axis=1), rtol=1e-15)


def test_huge_logits_stay_finite():
    predictions = Predictions(logits=[[1e4, -1e4], [-1e4, 1e4]], labels=[0, 0])
    assert np.isfinite(predictions.log_probs).all()
    assert predictions.confidence.tolist() == [1.0, 1.0]


def test_probs_of_zero_have_finite_logits():
    assert np.isfinite(Predictions(probs=[[1.0, 0.0]], labels=[1]).logits).all()


@pytest.mark.parametrize("shape", [(4,), (4, 1)])
def test_one_column_of_probs_is_the_positive_class(shape):
    column = np.array([0.9, 0.2, 0.5, 0.6])
    predictions = Predictions(probs=column.reshape(shape), labels=[1, 0, 0, 0])
    assert predictions.one_column
    np.testing.assert_allclose(predictions.probs, np.stack([1 - column, column], axis=1))
    assert predictions.predicted.tolist() == [1, 0, 0, 1]
    np.testing.assert_allclose(predictions.confidence, [0.9, 0.8, 0.5, 0.6])


@pytest.mark.parametrize("shape", [(3,), (3, 1)])
def test_one_column_of_logits_is_log_odds(shape):
    column = np.array([2.0, -1.0, 0.0])
    predictions = Predictions(logits=column.reshape(shape), labels=[1, 0, 0])
    np.testing.assert_allclose(predictions.probs[:, 1], 1 / (1 + np.exp(-column)), rtol=1e-12)
    assert predictions.predicted.tolist() == [1, 0, 0]


def test_dense_output_equals_its_hand_flattened_twin():
    generator = np.random.default_rng(0)
    logits = generator.normal(size=(2, 3, 4, 5))
    labels = generator.integers(0, 3, (2, 4, 5))
    labels[0, 1, 2] = labels[1, 3, 4] = 255
    weights = np.array([1.0, 2.0])
    dense = Predictions(
        logits=logits, labels=labels, weights=weights, ignore_index=255, groups={"g": ["a", "b"]}
    )
    rows, flat, row_weights, groups = [], [], [], []
    for n in range(2):
        for i in range(4):
            for j in range(5):
                if labels[n, i, j] != 255:
                    rows.append(logits[n, :, i, j])
                    flat.append(labels[n, i, j])
                    row_weights.append(weights[n])
                    groups.append("ab"[n])
    twin = Predictions(logits=rows, labels=flat, weights=row_weights, groups={"g": groups})
    np.testing.assert_array_equal(dense.scores, twin.scores)
    np.testing.assert_array_equal(dense.labels, twin.labels)
    np.testing.assert_array_equal(dense.weights, twin.weights)
    np.testing.assert_array_equal(dense.groups["g"], twin.groups["g"])
    assert len(dense) == 38


def test_dense_binary_channel():
    probs = np.full((2, 1, 3), 0.75)
    predictions = Predictions(probs=probs, labels=np.ones((2, 3), int))
    assert predictions.one_column
    assert len(predictions) == 6


def test_dense_ids_differ_by_place():
    predictions = Predictions(logits=np.zeros((2, 2, 3)), labels=np.zeros((2, 3), int), ids=["a", "b"])
    assert len(np.unique(predictions.rows.hashes)) == 6


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_torch_of_any_precision(dtype):
    logits = torch.tensor([[1.5, -0.5], [0.25, 2.0]], dtype=dtype, requires_grad=True)
    predictions = Predictions(logits=logits, labels=torch.tensor([0, 1], dtype=torch.uint8))
    np.testing.assert_array_equal(predictions.scores, [[1.5, -0.5], [0.25, 2.0]])
    assert predictions.scores.dtype == (np.float64 if dtype == torch.float64 else np.float32)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_numpy_of_any_precision(dtype):
    assert Predictions(probs=PROBS.astype(dtype), labels=LABELS).predicted.tolist() == [0, 1, 2, 1]


@pytest.mark.parametrize("make", [lambda x: x.astype(np.float16), lambda x: torch.tensor(x).bfloat16()])
def test_half_precision_rows_may_miss_one_by_rounding(make):
    generator = np.random.default_rng(1)
    probs = generator.dirichlet(np.full(50, 0.3), size=200)
    assert len(Predictions(probs=make(probs), labels=np.zeros(200, int))) == 200


@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.int32, np.uint64, bool])
def test_labels_of_any_width(dtype):
    assert Predictions(probs=[0.5, 0.5], labels=np.array([0, 1], dtype=dtype)).labels.dtype == np.int64


def test_big_endian_arrays():
    predictions = Predictions(logits=np.array([[1.0, 2.0]], dtype=">f4"), labels=np.array([1], dtype=">i8"))
    assert predictions.confidence[0] == pytest.approx(1 / (1 + np.exp(-1)))


def test_memory_is_shared_and_read_only():
    probs = PROBS.astype(np.float32)
    predictions = Predictions(probs=probs, labels=LABELS)
    assert np.shares_memory(predictions.scores, probs)
    assert np.shares_memory(predictions.labels, LABELS)
    assert probs.flags.writeable
    for array in (predictions.scores, predictions.probs, predictions.labels, predictions.confidence):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0
    tensor = torch.tensor(probs)
    assert Predictions(probs=tensor, labels=LABELS).scores.ctypes.data == tensor.data_ptr()


def test_fields_and_groups_cannot_be_set():
    predictions = Predictions(probs=PROBS, labels=LABELS, groups={"g": [1, 2, 3, 4]}, weights=[1, 1, 1, 2])
    with pytest.raises(AttributeError):
        predictions.labels = LABELS
    with pytest.raises(TypeError):
        predictions.groups["h"] = LABELS
    with pytest.raises(ValueError, match="read-only"):
        predictions.groups["g"][0] = 7
    with pytest.raises(ValueError, match="read-only"):
        predictions.weights[0] = 7


@pytest.mark.parametrize("again", [lambda x: pickle.loads(pickle.dumps(x)), copy.deepcopy])
def test_travels_between_processes(again):
    for form in ({"probs": PROBS}, {"predicted": LABELS, "confidence": PROBS[:, 0]}):
        predictions = Predictions(
            **form, labels=LABELS, groups={"g": list("abca")}, ids=[1, 2, 3, 4], split="test"
        )
        twin = again(predictions)
        assert twin.fingerprint == predictions.fingerprint
        assert (twin.split, twin.groups["g"].tolist()) == ("test", list("abca"))
        np.testing.assert_array_equal(twin.confidence, predictions.confidence)
        assert not twin.labels.flags.writeable
        assert not twin.confidence.flags.writeable


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"probs": [[0.5, np.nan], [0.5, 0.5]]}, r"`probs` must lie in \[0, 1\], got nan in row 0, column 1"),
        ({"probs": [[0.5, 0.5], [np.inf, 0]]}, r"got inf in row 1, column 0"),
        ({"probs": [[0.5, 0.5], [-0.25, 1.25]]}, r"got -0.25 in row 1, column 0.*logits="),
        ({"probs": [[0.5, 0.5], [3.0, -2.0]]}, r"got 3.0 in row 1.*look like logits.*logits="),
        ({"probs": [[0.5, 0.5], [0.5, 0.4]]}, r"row 1 sums to 0.9\."),
        ({"probs": [[0.9, 0.9], [0.5, 0.5]]}, r"row 0 sums to 1.8.*[Ss]igmoids"),
        ({"probs": [0.5, 1.0005]}, r"got 1.0005 in row 1"),
        ({"probs": [0.5, -0.1]}, r"got -0.1 in row 1"),
        ({"logits": [[0.0, 1.0], [np.nan, 0.0]]}, r"`logits` must be finite, got nan in row 1, column 0"),
        ({"logits": [[0.0, -np.inf], [1.0, 0.0]]}, r"got -inf in row 0, column 1.*-1e4"),
        ({"logits": [0.0, np.inf]}, r"got inf in row 1"),
        ({"predicted": [0, 1], "confidence": [0.5, 85.0]}, r"got 85.0 in row 1.*Divide by 100"),
        ({"predicted": [0, 1], "confidence": [0.5, np.nan]}, r"got nan in row 1. Drop"),
        ({"predicted": [0, -1], "confidence": [0.5, 0.5]}, r"`predicted` must be 0 or more, got -1 in row 1"),
    ],
)
def test_bad_scores_name_the_row_and_a_remedy(given, message):
    with pytest.raises(DataError, match=message):
        Predictions(**given, labels=[0, 1])


@pytest.mark.parametrize(
    ("labels", "error", "message"),
    [
        (
            [0, 3, 1],
            DataError,
            r"`labels` must lie in \[0, 3\), got 3 in row 1. If they run from 1 to 3.*ignore_index",
        ),
        ([0, 7, 1], DataError, r"got 7 in row 1. To leave rows out.*ignore_index"),
        ([0, -100, 1], DataError, r"got -100 in row 1.*ignore_index"),
        ([1, 2, 3], DataError, r"They run from 1 to 3: pass labels - 1"),
        ([0.0, 1.5, 2.0], TypeError, r"integer class numbers, got dtype float64.*soft labels"),
        (["a", "b", "c"], DataError, r"`labels` hold texts, such as 'a'.*Pass class_names="),
        (np.eye(3, dtype=int), ValueError, r"These are one-hot: pass labels.argmax\(1\)"),
        ([[0], [1], [2]], ValueError, r"Pass labels\[:, 0\]"),
        ([0, 1], ValueError, r"There are 2 labels for 3 rows of probs"),
    ],
)
def test_bad_labels_name_the_row_and_a_remedy(labels, error, message):
    with pytest.raises(error, match=message):
        Predictions(probs=PROBS[:3], labels=labels)


def test_labels_of_minus_one_and_one():
    with pytest.raises(DataError, match="pass labels > 0"):
        Predictions(probs=[0.5, 0.5], labels=[-1, 1])


def test_labels_in_one_column_are_no_one_hot_labels():
    with pytest.raises(ValueError, match=r"Pass labels\[:, 0\]"):
        Predictions(probs=[[0.5], [0.5]], labels=[[0], [1]])


@pytest.mark.parametrize("empty", [{"probs": np.empty((0, 3))}, {"logits": np.empty(0)}])
def test_nothing_to_score(empty):
    with pytest.raises(DataError, match="no rows to score"):
        Predictions(**empty, labels=np.empty(0, int), ids=np.empty(0, int))


def test_all_ignored():
    with pytest.raises(DataError, match="no rows to score"):
        Predictions(probs=PROBS, labels=[9] * 4, ignore_index=9)


def test_the_row_named_is_the_callers_although_rows_are_ignored():
    probs = PROBS.copy()
    probs[3] = [0.5, 0.5, 0.5]
    with pytest.raises(DataError, match=r"row 3 sums to 1\.5"):
        Predictions(probs=probs, labels=[0, -100, 0, 0], ignore_index=-100)


def test_ignored_rows_may_hold_anything():
    logits = np.array([[1.0, 0.0], [np.nan, np.nan]])
    assert len(Predictions(logits=logits, labels=[0, -100], ignore_index=-100)) == 1


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "none of them"),
        ({"logits": PROBS, "probs": PROBS}, "logits and probs"),
        ({"predicted": LABELS}, "predicted"),
        ({"probs": PROBS, "confidence": PROBS[:, 0]}, "probs and confidence"),
    ],
)
def test_exactly_one_form(given, message):
    with pytest.raises(ValueError, match=f"give exactly one of.*got {message}"):
        Predictions(**given, labels=LABELS)


@pytest.mark.parametrize(
    ("extra", "error", "message"),
    [
        ({"weights": [1, 1, 1]}, ValueError, r"`weights` must have shape \(4,\)"),
        ({"weights": [1, -1, 1, 1]}, DataError, r"got -1.0 in row 1"),
        ({"weights": [1, np.nan, 1, 1]}, DataError, r"got nan in row 1"),
        ({"weights": [0, 0, 0, 0]}, DataError, r"all zero"),
        ({"weights": list("abcd")}, TypeError, r"real numbers"),
        ({"groups": {"g": [1, 2]}}, ValueError, r"groups\['g'\]` must have shape \(4,\)"),
        ({"groups": {"g": [1, None, "a", 2.0]}}, TypeError, r"numbers or text"),
        ({"class_names": ["a", "b"]}, ValueError, r"must have 3 names, one per class, got 2"),
        ({"n_classes": 5}, ValueError, r"`n_classes` is 5, but the scores are for 3"),
        ({"split": "valid"}, SplitError, r"train, tune, calib, test"),
        ({"ids": [0.5, 1.5, 2.5, 3.5]}, TypeError, r"integers or text"),
        ({"ids": [1, 2, 3]}, ValueError, r"`ids` must have shape \(4,\)"),
    ],
)
def test_bad_company(extra, error, message):
    with pytest.raises(error, match=message):
        Predictions(probs=PROBS, labels=LABELS, **extra)


@pytest.mark.parametrize(
    ("shape", "remedy"),
    [
        ((4, 3, 1), r"One label per row goes with `probs` of shape \(n, k\); dense outputs are"),
        ((5, 3), r"There are 4 labels for 5 rows of probs: are they from the same split\?"),
        ((2, 3, 2, 1), r"There are 4 labels for 2 rows"),
    ],
)
def test_scores_of_another_shape_are_told_why(shape, remedy):
    with pytest.raises(ValueError, match=remedy):
        Predictions(probs=np.full(shape, 1 / 3), labels=LABELS)


def test_groups_of_text_objects_become_text():
    predictions = Predictions(probs=PROBS, labels=LABELS, groups={"g": np.array(list("abca"), dtype=object)})
    assert predictions.groups["g"].dtype.kind == "U"


def test_class_names_tell_the_number_of_classes_in_the_top1_form():
    form = {"predicted": [0, 1], "confidence": [0.5, 0.5], "class_names": ["a", "b"]}
    assert Predictions(**form, labels=[0, 1]).n_classes == 2
    with pytest.raises(DataError, match=r"must lie in \[0, 2\), got 2"):
        Predictions(**form, labels=[0, 2])


def test_top1_says_what_cannot_be_known():
    predictions = Predictions(predicted=[0, 1], confidence=[0.5, 0.75], labels=[0, 0])
    assert predictions.correct.tolist() == [True, False]
    with pytest.raises(DataError, match=r"only the predicted class.*Save logits or probabilities"):
        _ = predictions.probs


def test_confidence_beyond_one_by_rounding_is_cut_off():
    above = np.nextafter(np.float32(1), np.float32(2))
    assert Predictions(predicted=[0], confidence=[above], labels=[0]).confidence.max() == 1
    probs = np.array([[above, 0.0]], dtype=np.float32)
    assert Predictions(probs=probs, labels=[0]).confidence.max() == 1


@given(st.lists(st.integers(0, 3), max_size=6))
def test_take_equals_indexing(index):
    predictions = Predictions(
        probs=PROBS, labels=LABELS, weights=[1, 2, 3, 4], groups={"g": list("abca")}, ids=[5, 6, 7, 8]
    )
    part = predictions.take(index)
    np.testing.assert_array_equal(part.scores, PROBS[np.array(index, dtype=int)])
    np.testing.assert_array_equal(part.labels, LABELS[np.array(index, dtype=int)])
    np.testing.assert_array_equal(part.weights, np.array([1.0, 2, 3, 4])[np.array(index, dtype=int)])
    np.testing.assert_array_equal(part.rows.hashes, predictions.rows.hashes[np.array(index, dtype=int)])


def test_take_a_mask_or_a_slice_or_backwards():
    logits = Predictions(logits=PROBS, labels=LABELS)
    assert logits.take(np.array([True, False, False, True])).labels.tolist() == [0, 0]
    assert np.shares_memory(logits.take(slice(1, 3)).scores, logits.scores)
    np.testing.assert_allclose(logits.take(slice(None, None, -1)).probs, logits.probs[::-1], rtol=1e-15)
    with pytest.raises(ValueError, match="list of row numbers"):
        logits.take(2)


def test_blocks_are_the_whole_in_order():
    predictions = Predictions(predicted=LABELS, confidence=PROBS[:, 0], labels=LABELS)
    blocks = list(predictions.blocks(3))
    assert [len(block) for block in blocks] == [3, 1]
    np.testing.assert_array_equal(np.concatenate([block.confidence for block in blocks]), PROBS[:, 0])
    with pytest.raises(ValueError, match="`n_rows` must be 1 or more"):
        next(predictions.blocks(0))


def test_with_scores_keeps_everything_else():
    raw = Predictions(
        probs=PROBS, labels=LABELS, weights=[1, 2, 3, 4], groups={"g": list("abca")}, class_names=list("xyz"),
        split="test",
    )  # fmt: skip
    fresh = raw.with_scores(logits=np.zeros((4, 3)))
    assert fresh.kind == "logits"
    assert (fresh.split, fresh.class_names, fresh.fingerprint) == ("test", ("x", "y", "z"), raw.fingerprint)
    np.testing.assert_array_equal(fresh.weights, raw.weights)
    np.testing.assert_array_equal(fresh.groups["g"], raw.groups["g"])
    assert fresh.take([0, 1]).rows.hashes.tolist() == raw.rows.hashes[:2].tolist()


def test_every_fit_is_remembered():
    raw = Predictions(probs=PROBS, labels=LABELS, ids=[1, 2, 3, 4])
    once = raw.with_scores(probs=PROBS, fitted_on=Rows.from_ids([5, 6]))
    twice = once.with_scores(probs=PROBS, fitted_on=Rows.from_ids([7]))
    assert twice.fitted_on.shared(Rows.from_ids([5])) == 1
    assert twice.fitted_on.shared(Rows.from_ids([7])) == 1
    assert twice.with_scores(probs=PROBS).fitted_on.shared(Rows.from_ids([6])) == 1


def test_fingerprint_follows_the_set_of_rows_not_their_order():
    predictions = Predictions(probs=PROBS, labels=LABELS)
    assert predictions.take([3, 1, 0, 2]).fingerprint == predictions.fingerprint
    assert predictions.take([0, 1, 2]).fingerprint != predictions.fingerprint
    other = Predictions(probs=PROBS, labels=[1, 1, 2, 0])
    assert other.fingerprint != predictions.fingerprint


def test_fingerprint_survives_another_precision():
    probs = PROBS.astype(np.float32)
    narrow, wide = (Predictions(probs=values, labels=LABELS) for values in (probs, probs.astype(np.float64)))
    assert narrow.fingerprint == wide.fingerprint


def test_with_split_checks_the_word():
    predictions = Predictions(probs=PROBS, labels=LABELS, split="tune")
    assert predictions.with_split("calib").split == "calib"
    assert predictions.split == "tune"
    with pytest.raises(SplitError, match="'test'"):
        predictions.with_split("tests")
