"""Files that change while they are read: the right numbers or an error of ours, never others."""

import os

import numpy as np
import pytest

from equipoise import iter_predictions, read_predictions, write_predictions
from equipoise.core import DataError, Predictions
from equipoise.core.reading.formats import WRITERS
from equipoise.core.reading.formats.immutable_file import ImmutableFile

N = 30_000
LOGITS = np.random.default_rng(0).normal(size=(N, 4)).astype(np.float32)
LABELS = np.arange(N) % 4
ENDINGS = [*sorted(WRITERS), ".npy"]


def written(tmp_path, ending, logits=LOGITS):
    predictions = Predictions(logits=logits, labels=LABELS)
    if ending != ".npy":
        write_predictions(predictions, tmp_path / f"a{ending}")
        return tmp_path / f"a{ending}", tmp_path / f"a{ending}"
    pair = (tmp_path / "a_logits.npy", tmp_path / "a_labels.npy")
    write_predictions(predictions, pair)
    return pair, pair[0]


def cut(path):
    os.truncate(path, path.stat().st_size // 2)


def overwrite(path):
    with path.open("r+b") as stream:
        stream.write(b"\x00" * path.stat().st_size)
    # A clock that ticks too slowly must not hide the change.
    os.utime(path, ns=(1, 1))


@pytest.mark.parametrize("change", [cut, overwrite])
@pytest.mark.parametrize("ending", ENDINGS)
def test_what_was_read_stays_as_it_was(tmp_path, ending, change):
    source, path = written(tmp_path, ending)
    predictions = read_predictions(source)
    change(path)
    np.testing.assert_array_equal(predictions.scores, LOGITS)
    np.testing.assert_array_equal(predictions.labels, LABELS)


@pytest.mark.parametrize("change", [cut, overwrite])
@pytest.mark.parametrize("ending", ENDINGS)
def test_a_change_between_chunks_is_an_error(tmp_path, ending, change):
    source, path = written(tmp_path, ending)
    chunks = iter_predictions(source, chunk_rows=5_000)
    np.testing.assert_array_equal(next(chunks).scores, LOGITS[:5_000])
    change(path)
    complaint = ""
    read = [LOGITS[:5_000]]
    try:
        read += [chunk.scores for chunk in chunks]
    except DataError as error:
        complaint = str(error)
    # Arrow may have read a small file ahead, which is then as it was.
    assert "has changed while it was read" in complaint or ending in (".parquet", ".jsonl", ".ndjson")
    assert complaint or np.array_equal(np.concatenate(read), LOGITS)


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_file_put_in_its_place_is_another_file(tmp_path, ending):
    source, path = written(tmp_path, ending)
    chunks = iter_predictions(source, chunk_rows=5_000)
    first = next(chunks)
    path.unlink()
    path.write_bytes(b"other")
    read = np.concatenate([first.scores, *(chunk.scores for chunk in chunks)])
    np.testing.assert_array_equal(read, LOGITS)


def test_bytes_that_are_not_there(tmp_path):
    (tmp_path / "a.bin").write_bytes(b"1234")
    with ImmutableFile(tmp_path / "a.bin") as file:
        assert bytes(file.take(4, 0)) == b""
        for place, count in ((0, 5), (5, 0), (2, -1)):
            with pytest.raises(DataError, match=r"a\.bin is cut off"):
                file.take(place, count)


def test_fortran_order_in_chunks(tmp_path):
    cube = np.asfortranarray(np.random.default_rng(1).normal(size=(11, 3, 2, 5)))
    labels = np.asfortranarray(np.random.default_rng(2).integers(0, 3, (11, 2, 5)))
    paths = (tmp_path / "logits.npy", tmp_path / "labels.npy")
    for path, array in zip(paths, (cube, labels), strict=True):
        np.save(path, array)
    whole = Predictions(logits=cube, labels=labels)
    chunks = list(iter_predictions(paths, chunk_rows=4))
    for name in ("scores", "labels"):
        np.testing.assert_array_equal(
            np.concatenate([getattr(chunk, name) for chunk in chunks]), getattr(whole, name)
        )


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_limit_of_the_caller_holds_for_every_format(tmp_path, ending):
    source, _ = written(tmp_path, ending)
    with pytest.raises(DataError, match=r"would grow from \d+ to \d+ bytes in memory, more than 1000\."):
        read_predictions(source, max_bytes=1000)
    assert len(read_predictions(source, max_bytes=1 << 28)) == N


def test_a_csv_gives_each_row_the_room_of_the_longest_text(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("probs,labels,group_a\n" + f"0.5,1,{'x' * 250}\n" + "0.5,1,y\n" * 2_000)
    with pytest.raises(DataError, match="would grow from"):
        read_predictions(path, max_bytes=1 << 20)
    assert len(read_predictions(path)) == 2_001
