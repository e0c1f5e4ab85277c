"""Files of .npy, in pairs or alone."""

import pickle

import numpy as np
import pytest

from equipoise import iter_predictions, read_predictions, score, write_predictions
from equipoise.core import DataError, Predictions
from helpers.hostile_files import Bomb

GENERATOR = np.random.default_rng(0)
LOGITS = GENERATOR.normal(size=(50, 4)).astype(np.float32)
LABELS = GENERATOR.integers(0, 4, 50)


@pytest.fixture
def pair(tmp_path):
    np.save(tmp_path / "val_logits.npy", LOGITS)
    np.save(tmp_path / "val-labels.npy", LABELS)
    return tmp_path / "val_logits.npy", tmp_path / "val-labels.npy"


def test_a_pair_is_named_by_its_file_names(pair):
    for given in (pair, list(map(str, pair)), pair[::-1]):
        predictions = read_predictions(given)
        assert predictions.kind == "logits"
        np.testing.assert_array_equal(predictions.scores, LOGITS)
        np.testing.assert_array_equal(predictions.labels, LABELS)


def test_a_pattern_of_a_pair(pair):
    assert len(read_predictions(pair[0].parent / "val*.npy")) == 50


def test_a_mapping_says_which_is_which(pair):
    assert read_predictions({"probs": pair[0], "labels": pair[1]}, logits="probs").kind == "logits"


@pytest.mark.parametrize("rows", [1, 7, 50, 99])
@pytest.mark.parametrize("order", ["C", "F"])
def test_chunks_are_the_whole(pair, rows, order):
    np.save(pair[0], np.asarray(LOGITS, order=order))
    chunks = list(iter_predictions(pair, chunk_rows=rows))
    assert len(chunks) == -(-50 // rows)
    np.testing.assert_array_equal(np.concatenate([chunk.scores for chunk in chunks]), LOGITS)


def test_the_file_may_go_away_after_reading(pair):
    predictions = read_predictions(pair)
    pair[0].write_bytes(b"")
    np.testing.assert_array_equal(predictions.scores, LOGITS)


def test_several_pairs_are_one_stream(tmp_path, pair):
    other = tmp_path / "b_logits.npy", tmp_path / "b_labels.npy"
    write_predictions(Predictions(logits=LOGITS[:5], labels=LABELS[:5]), other)
    assert sum(len(chunk) for chunk in iter_predictions([pair, other])) == 55
    assert len(read_predictions([pair, other])) == 55


def test_cut_off_anywhere(pair):
    content = pair[0].read_bytes()
    for length in (0, 1, 5, 6, 8, 9, 10, 50, 127, 128, 200, len(content) - 1):
        pair[0].write_bytes(content[:length])
        with pytest.raises(DataError, match=r"^val_logits\.npy (is|ends)"):
            read_predictions(pair)


def test_trailing_bytes_are_noticed(pair):
    pair[0].write_bytes(pair[0].read_bytes() + b"x")
    with pytest.raises(DataError, match="claims 800 bytes of numbers, 801 are there"):
        read_predictions(pair)


def test_a_pickle_is_never_loaded(pair):
    np.save(pair[1], np.array([Bomb()] * 50, dtype=object), allow_pickle=True)
    with pytest.raises(
        DataError, match=r"val-labels\.npy holds Python objects, a pickle, which is never loaded"
    ):
        read_predictions(pair)
    pair[1].write_bytes(pickle.dumps(Bomb()))
    with pytest.raises(DataError, match="is no NumPy array"):
        read_predictions(pair)


def test_scores_alone_have_no_labels(pair):
    found = read_predictions(pair[0])
    np.testing.assert_array_equal(found.scores, LOGITS)
    assert not found.has_labels
    with pytest.raises(DataError, match=r"val_logits\.npy: holds no labels.*it holds 'logits'"):
        score(found)


def test_an_array_of_unknown_name_is_named_by_the_caller(tmp_path):
    np.save(tmp_path / "out.npy", LOGITS)
    with pytest.raises(DataError, match=r"out\.npy: holds no scores under a known name; it holds 'out'"):
        read_predictions(tmp_path / "out.npy")
    assert read_predictions(tmp_path / "out.npy", logits="out").kind == "logits"


def test_labels_alone_are_no_predictions(pair):
    with pytest.raises(DataError, match=r"val-labels\.npy: holds no scores"):
        read_predictions(pair[1])


def test_two_files_of_the_same_name(tmp_path, pair):
    np.save(tmp_path / "test_logits.npy", LOGITS)
    with pytest.raises(DataError, match=r"would both be `logits`. Say which is which"):
        read_predictions([pair[0], tmp_path / "test_logits.npy", pair[1]])


def test_lengths_differ(pair):
    np.save(pair[1], LABELS[:49])
    with pytest.raises(DataError, match="`logits` has 50, `labels` has 49"):
        read_predictions(pair)


def test_a_mapping_takes_only_npy(tmp_path):
    (tmp_path / "a.csv").write_text("labels\n1\n")
    with pytest.raises(DataError, match=r"only \.npy files are given by column"):
        read_predictions({"labels": tmp_path / "a.csv"})


def test_round_trip(tmp_path):
    paths = tmp_path / "probs.npy", tmp_path / "labels.npy"
    write_predictions(Predictions(probs=[0.25, 0.5], labels=[0, 1]), paths)
    assert read_predictions(paths).scores.tolist() == [0.25, 0.5]


def test_a_pair_refuses_what_it_cannot_hold(tmp_path):
    paths = tmp_path / "probs.npy", tmp_path / "labels.npy"
    with pytest.raises(DataError, match=r"these predictions have more.*Write \.npz"):
        write_predictions(Predictions(probs=[0.25, 0.5], labels=[0, 1], split="test"), paths)
    with pytest.raises(DataError, match=r"only \.npy files are written in pairs"):
        write_predictions(Predictions(probs=[0.25], labels=[0]), (tmp_path / "a.csv", paths[1]))
    assert list(tmp_path.iterdir()) == []
