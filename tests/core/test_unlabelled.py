"""Predictions without labels, as in production: everything works but what needs the truth."""

import pickle

import numpy as np
import pytest

from equipoise import Predictions, iter_predictions, metrics, read_predictions, score, write_predictions
from equipoise.calibrators import TemperatureScaling, average_predictions, choose
from equipoise.core.errors import DataError
from equipoise.core.predictions.combine import concatenate
from equipoise.core.reading.formats import WRITERS
from equipoise.evaluate import audit, compare

LOGITS = np.random.default_rng(0).normal(size=(40, 3)).astype(np.float32)
TOP = {"predicted": LOGITS.argmax(1), "confidence": np.full(40, 0.5), "n_classes": 3}
FORMS = {
    "logits": {"logits": LOGITS},
    "probs": {"probs": np.full((40, 3), 1 / 3)},
    "column": {"logits": LOGITS[:, 0]},
    "top1": TOP,
}


def made(form="logits", **more):
    return Predictions(**FORMS[form], groups={"site": np.arange(40) % 2}, split="test", **more)


@pytest.mark.parametrize("form", FORMS)
def test_what_needs_no_truth_is_known(form):
    rows = made(form)
    assert (len(rows), rows.has_labels) == (40, False)
    assert repr(rows).endswith("split=test, no labels)")
    assert rows.predicted.shape == rows.confidence.shape == (40,)
    assert len(rows.fingerprint) == 24
    assert [len(block) for block in rows.blocks(30)] == [30, 10]
    assert rows.with_weights(np.ones(40)).weights.tolist() == [1.0] * 40
    assert repr(pickle.loads(pickle.dumps(rows))) == repr(rows)


def test_dense_outputs_are_rows():
    dense = Predictions(logits=np.zeros((2, 3, 4, 5)), ids=["a", "b"])
    assert (len(dense), dense.n_classes, len(set(dense.rows.hashes.tolist()))) == (40, 3, 40)


def test_rows_with_and_without_labels_are_not_the_same_rows():
    assert made().rows.shared(Predictions(logits=LOGITS, labels=np.zeros(40, int)).rows) == 0


@pytest.mark.parametrize(
    "use",
    [
        lambda rows: rows.labels,
        lambda rows: rows.correct,
        score,
        audit,
        lambda rows: compare(rows, rows),
        metrics.expected_calibration_error,
        metrics.CalibrationState.of,
        TemperatureScaling().fit,
        lambda rows: choose(rows.with_split("calib")),
    ],
)
def test_what_needs_the_truth_is_refused_in_one_sentence(use):
    with pytest.raises(DataError, match=r"these rows have no labels.*Give labels=\.$"):
        use(made())


def test_rows_cannot_be_left_out_by_labels_that_are_not_there():
    with pytest.raises(
        ValueError, match="`ignore_index` leaves rows out by their labels, and there are none"
    ):
        made(ignore_index=3)


@pytest.mark.parametrize("ending", WRITERS)
@pytest.mark.parametrize("form", FORMS)
def test_files_keep_them(ending, form, tmp_path):
    rows, path = made(form, ids=np.arange(40)), tmp_path / f"a{ending}"
    write_predictions(rows, path)
    whole, parts = read_predictions(path), list(iter_predictions(path, chunk_rows=15))
    for found in (whole, concatenate(parts)):
        assert not found.has_labels
        assert (found.kind, found.split, found.fingerprint) == (rows.kind, "test", rows.fingerprint)
        np.testing.assert_array_equal(found.predicted, rows.predicted)
        np.testing.assert_array_equal(found.groups["site"], rows.groups["site"])


def test_who_needs_the_labels_of_a_file_is_told_what_it_holds(tmp_path):
    np.savez(tmp_path / "a.npz", logits=LOGITS, lable=np.zeros(40, int))
    found = read_predictions(tmp_path / "a.npz").take(slice(0, 9))
    with pytest.raises(
        DataError, match=r"a\.npz: holds no labels.*'lable' is near 'label'.*labels=\"\.\.\.\""
    ):
        score(found)


def test_a_bad_row_is_named(tmp_path):
    bad = LOGITS.copy()
    bad[7, 1] = np.nan
    np.savez(tmp_path / "a.npz", logits=bad)
    with pytest.raises(DataError, match=r"a\.npz: `logits` must be finite, got nan in row 7, column 1"):
        list(iter_predictions(tmp_path / "a.npz", chunk_rows=4))


def test_two_files_of_one_stream_agree(tmp_path):
    write_predictions(made(), tmp_path / "a.npz")
    write_predictions(made(labels=np.zeros(40, int)), tmp_path / "b.npz")
    with pytest.raises(DataError, match=r"b\.npz: has_labels must be as in a\.npz, False, got True"):
        read_predictions(str(tmp_path / "*.npz"))


def test_a_pair_of_arrays_has_labels(tmp_path):
    with pytest.raises(DataError, match="have no labels to write"):
        write_predictions(Predictions(logits=LOGITS), (tmp_path / "a.npy", tmp_path / "b.npy"))


def test_maps_and_averages_apply():
    labels = np.arange(40) % 3
    fitted = TemperatureScaling().fit(Predictions(logits=LOGITS, labels=labels, ids=np.arange(40)))
    raw = made(ids=np.arange(40, 80))
    mapped = fitted(raw)
    assert not mapped.has_labels
    assert mapped.fingerprint == raw.fingerprint
    np.testing.assert_allclose(mapped.logits, fitted(LOGITS), rtol=1e-6)
    np.testing.assert_allclose(average_predictions([raw, raw]).probs, raw.probs, rtol=1e-6)
    with pytest.raises(DataError, match="must have labels if the first has"):
        average_predictions([raw, Predictions(logits=LOGITS, labels=labels)])
