"""Finding files, and several files as one stream."""

import json
import os
from types import SimpleNamespace

import numpy as np
import pytest

from equipoise import iter_predictions, read_predictions, write_predictions
from equipoise.core import DataError, Predictions, SplitError
from equipoise.core.reading.conversion import UniqueIds
from equipoise.core.reading.formats import READERS, WRITERS
from equipoise.core.reading.formats.base import Chunk
from equipoise.core.reading.formats.notes import Notes

ENDINGS = sorted(WRITERS)


def made(seed, n=10, k=3, **more):
    generator = np.random.default_rng(seed)
    return Predictions(logits=generator.normal(size=(n, k)), labels=generator.integers(0, k, n), **more)


@pytest.fixture
def parts(tmp_path):
    """Four parts of one stream, in four formats."""
    predictions = made(0, n=43, weights=np.arange(43.0), groups={"g": np.arange(43) % 5}, split="test")
    bounds = [0, 10, 11, 30, 43]
    paths = []
    for start, stop, ending in zip(
        bounds, bounds[1:], (".npz", ".csv", ".parquet", ".safetensors"), strict=False
    ):
        paths.append(tmp_path / f"part-{start:02d}{ending}")
        write_predictions(predictions.take(slice(start, stop)), paths[-1])
    return predictions, paths


def test_every_ending_is_read_and_written():
    assert set(READERS) == set(WRITERS)


@pytest.mark.parametrize("rows", [1, 4, 1000])
def test_several_files_are_one_stream(parts, rows):
    whole, paths = parts
    chunks = list(iter_predictions(paths, chunk_rows=rows))
    for name in ("scores", "labels", "weights"):
        joined = np.concatenate([getattr(chunk, name) for chunk in chunks])
        np.testing.assert_array_equal(joined, getattr(whole, name))
    assert {chunk.split for chunk in chunks} == {"test"}


def test_several_files_as_a_whole(parts):
    whole, paths = parts
    predictions = read_predictions(paths)
    np.testing.assert_array_equal(predictions.scores, whole.scores)
    assert predictions.fingerprint == whole.fingerprint


def test_patterns_are_sorted(parts):
    whole, paths = parts
    predictions = read_predictions(paths[0].parent / "part-*")
    np.testing.assert_array_equal(predictions.scores, whole.scores)
    assert len(read_predictions([str(paths[0].parent / "*.npz"), paths[1]])) == 11


def test_a_name_that_looks_like_a_pattern(tmp_path):
    write_predictions(made(0), tmp_path / "run[1].npz")
    assert len(read_predictions(tmp_path / "run[1].npz")) == 10


@pytest.mark.parametrize(
    ("other", "message"),
    [
        ({"k": 4}, "n_classes must be as in a.npz, 3, got 4"),
        ({"split": "calib"}, "split must be as in a.npz, 'test', got 'calib'"),
        ({"class_names": list("abc")}, "class_names must be as in a.npz"),
        ({"weights": np.ones(10)}, "same groups and weights as a.npz"),
        ({"groups": {"g": np.ones(10)}}, "same groups and weights as a.npz"),
    ],
)
def test_files_of_one_stream_must_agree(tmp_path, other, message):
    write_predictions(made(0, split="test"), tmp_path / "a.npz")
    write_predictions(made(1, **{"split": "test", **other}), tmp_path / "b.npz")
    for read in (read_predictions, lambda path: list(iter_predictions(path))):
        with pytest.raises(DataError, match=rf"^b\.npz: .*{message}"):
            read([tmp_path / "a.npz", tmp_path / "b.npz"])


def test_kinds_of_one_stream_must_agree(tmp_path):
    write_predictions(made(0), tmp_path / "a.npz")
    write_predictions(Predictions(probs=np.full((2, 3), 1 / 3), labels=[0, 1]), tmp_path / "b.csv")
    with pytest.raises(DataError, match=r"kind must be as in a.npz, 'logits', got 'probs'"):
        read_predictions(tmp_path / "*")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("nothing.npz", r"nothing\.npz: there is no such file\.$"),
        ("tset.npz", r"there is no such file. Did you mean 'test.npz'"),
        ("x-*.npz", r"no file matches this pattern"),
        ("folder", r"is a directory without .parquet files. Name the file in it, or a pattern"),
        ("folder.npz", r"is a directory"),
        ("pipe.npz", r"is no regular file"),
        ("a.txt", r"the ending must be one of \.npz.*got \.txt"),
        ("a", r"the ending must be one of .* got none"),
        ("a.parqet", r"Did you mean \.parquet"),
        ("a.pkl", r"\.pkl files are pickles, which can run programs and are never loaded.*numpy\.savez"),
        ("a.pt", r"\.pt files are pickles"),
        ("x" * 300 + ".npz", r"cannot be read|no such file"),
        ("a\0b.npz", r"cannot be read|no such file"),
    ],
)
def test_paths_that_lead_nowhere(tmp_path, name, message):
    write_predictions(made(0), tmp_path / "test.npz")
    for folder in ("folder", "folder.npz"):
        (tmp_path / folder).mkdir()
    os.mkfifo(tmp_path / "pipe.npz")
    for read in (read_predictions, iter_predictions):
        with pytest.raises(DataError, match=message):
            read(tmp_path / name)


@pytest.mark.parametrize("nothing", [[], (), {}])
def test_no_path_at_all(nothing):
    with pytest.raises(DataError, match="no file was named"):
        read_predictions(nothing)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read(tmp_path):
    write_predictions(made(0), tmp_path / "a.npz")
    (tmp_path / "a.npz").chmod(0)
    with pytest.raises(DataError, match="cannot be read"):
        read_predictions(tmp_path / "a.npz")


def test_wrong_arguments_are_refused_before_reading():
    with pytest.raises(ValueError, match="`chunk_rows` must be 1 or more, got 0"):
        iter_predictions("missing.npz", chunk_rows=0)
    with pytest.raises(SplitError, match="Did you mean 'test'"):
        read_predictions("missing.npz", split="tests")


@pytest.mark.parametrize("ending", ENDINGS)
def test_chunks_in_which_every_row_is_ignored_are_left_out(tmp_path, ending):
    path = tmp_path / f"a{ending}"
    columns = {"logits": np.zeros((6, 2)), "labels": np.array([0, 0, 9, 9, 1, 9])}
    WRITERS[ending](path, columns, Notes())
    assert [len(chunk) for chunk in iter_predictions(path, chunk_rows=2, ignore_index=9)] == [2, 1]
    with pytest.raises(DataError, match="got 9 in"):
        list(iter_predictions(path, chunk_rows=2))
    WRITERS[ending](path, {**columns, "labels": np.full(6, 9)}, Notes())
    with pytest.raises(DataError, match="no rows to score"):
        list(iter_predictions(path, chunk_rows=2, ignore_index=9))


def test_a_chunk_may_weigh_nothing_but_not_all_of_them(tmp_path):
    columns = {"logits": np.zeros((4, 2)), "labels": np.zeros(4, int)}
    np.savez(tmp_path / "a.npz", **columns, weights=[0.0, 0, 1, 0])
    chunks = list(iter_predictions(tmp_path / "a.npz", chunk_rows=2))
    assert [chunk.weights.tolist() for chunk in chunks] == [[0, 0], [1, 0]]
    np.savez(tmp_path / "a.npz", **columns, weights=np.zeros(4))
    for read in (read_predictions, lambda path: list(iter_predictions(path, chunk_rows=2))):
        with pytest.raises(DataError, match=r"every weight is zero. Give some row a weight"):
            read(tmp_path / "a.npz")


def test_default_chunks_are_of_moderate_size(tmp_path):
    n = 300_000
    np.savez(
        tmp_path / "a.npz", confidence=np.full(n, 0.5), predicted=np.zeros(n, int), labels=np.zeros(n, int)
    )
    assert [len(chunk) for chunk in iter_predictions(tmp_path / "a.npz")] == [262_144, 37_856]


def test_expected_calibration_error_of_a_published_layout(tmp_path):
    """Two bins by hand: |0.9 + 0.8 - 1| / 4 + |0.3 + 0.4 - 1| / 4 = 0.25."""
    path = tmp_path / "top1.csv"
    path.write_text("true_label,pred_label,confidence\n1,1,0.9\n2,1,0.8\n3,3,0.3\n0,1,0.4\n")
    predictions = read_predictions(path)
    high = predictions.confidence > 0.5
    gap = predictions.confidence - predictions.correct
    assert abs(gap[high].sum()) / 4 + abs(gap[~high].sum()) / 4 == pytest.approx(0.25)


@pytest.mark.parametrize(
    ("header", "columns", "roles"),
    [
        ("x,confidence", {"labels": "x", "predicted": "x"}, "labels and predicted"),
        ("label,confidence", {"predicted": "label"}, "labels and predicted"),
        ("labels,x", {"probs": "x", "weights": "x"}, "scores and weights"),
        ("labels,probs", {"ids": "labels"}, "labels and ids"),
        ("labels,p_a,p_b", {"probs": ["p_a", "p_a"]}, "scores twice"),
        ("predicted,confidence,labels", {"weights": "confidence"}, "confidence and weights"),
    ],
)
def test_a_column_has_one_role(header, columns, roles, tmp_path):
    path = tmp_path / "a.csv"
    path.write_text(f"{header}\n{','.join(['1'] * len(header.split(',')))}\n")
    with pytest.raises(DataError, match=roles):
        read_predictions(path, **columns)


def test_labels_may_be_a_group_too(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("labels,probs\n1,0.5\n")
    assert read_predictions(path, groups=["labels"]).groups["labels"].tolist() == [1]


@pytest.mark.parametrize("chunk_rows", [1, 2, 3, 100])
def test_an_id_that_occurs_twice_is_an_error(chunk_rows, tmp_path):
    rows = "".join(f"{number},1,0.5\n" for number in [*range(40), 7, 8, *range(50, 60)])
    path = tmp_path / "a.csv"
    path.write_text(f"id,labels,probs\n{rows}")
    with pytest.raises(DataError, match=r"a\.csv: `id` .* 2 rows repeat an id, first '7' in line 42\."):
        read_predictions(path, ids="id")
    with pytest.raises(DataError, match=r"first '7' in line 42\."):
        list(iter_predictions(path, ids="id", chunk_rows=chunk_rows))
    assert len(read_predictions(path)) == 52


def test_an_id_in_two_files_of_a_stream_is_an_error(tmp_path):
    for name, ids in (("a", "xy"), ("b", "zx")):
        np.savez(tmp_path / f"{name}.npz", ids=list(ids), labels=[0, 1], probs=[0.5, 0.5])
    paths = [tmp_path / "a.npz", tmp_path / "b.npz"]
    with pytest.raises(DataError, match=r"b\.npz: `ids` .* 1 row repeats an id, first 'x' in row 1\."):
        read_predictions(paths, ids="ids")
    assert len(read_predictions(paths[0], ids="ids")) == 2


@pytest.mark.parametrize("seed", range(3))
def test_ids_are_compared_over_chunks_of_any_size(seed):
    random = np.random.default_rng(seed)
    ids, unique = random.permutation(400), UniqueIds()
    reader = SimpleNamespace(fail=DataError)
    stops = np.sort(random.choice(400, 30, replace=False))
    for part in filter(len, np.split(ids, stops)):
        unique.add(reader, Chunk({"id": part}, 0), "id")
    for number in random.choice(400, 20):
        with pytest.raises(DataError, match=f"'{number}'"):
            unique.add(reader, Chunk({"id": np.array([1000, number])}, 0), "id")


@pytest.mark.parametrize("names", ["text", {"a": 1}, [1, 2], [None], [[[]]], 7, True])
def test_class_names_in_notes_are_a_list_of_text(names):
    with pytest.raises(DataError, match="notes under `equipoise` are damaged"):
        Notes.from_json(json.dumps({"class_names": names}), where="a.csv")
