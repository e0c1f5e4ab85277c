"""Parquet: scalar columns or lists, batch by batch."""

import subprocess
import sys

import numpy as np
import pytest

from equipoise import iter_predictions, read_predictions, write_predictions
from equipoise.core import DataError, MissingExtraError, Predictions

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

GENERATOR = np.random.default_rng(0)
PROBS = GENERATOR.dirichlet(np.ones(3), 40).astype(np.float32)
LABELS = GENERATOR.integers(0, 3, 40)


@pytest.fixture
def parquet(tmp_path):
    def save(columns, **options):
        pq.write_table(pa.table(columns), tmp_path / "a.parquet", **options)
        return tmp_path / "a.parquet"

    return save


def as_lists(kind):
    flat = pa.array(PROBS.reshape(-1))
    if kind == "fixed":
        return pa.FixedSizeListArray.from_arrays(flat, 3)
    offsets = pa.array(np.arange(0, 121, 3), pa.int32() if kind == "list" else pa.int64())
    return (pa.ListArray if kind == "list" else pa.LargeListArray).from_arrays(offsets, flat)


@pytest.mark.parametrize("kind", ["fixed", "list", "large"])
@pytest.mark.parametrize("rows", [None, 1, 7, 100])
def test_lists_of_scores(parquet, kind, rows):
    path = parquet({"probs": as_lists(kind), "label": LABELS}, row_group_size=16)
    chunks = [read_predictions(path)] if rows is None else list(iter_predictions(path, chunk_rows=rows))
    np.testing.assert_array_equal(np.concatenate([chunk.scores for chunk in chunks]), PROBS)
    np.testing.assert_array_equal(np.concatenate([chunk.labels for chunk in chunks]), LABELS)
    assert all(len(chunk) <= (rows or 40) for chunk in chunks)


def test_a_column_per_class(parquet):
    names = np.array(["cat", "dog", "eel"])
    columns = {f"p_{name}": PROBS[:, number] for number, name in enumerate(names)}
    predictions = read_predictions(parquet({**columns, "y_true": names[LABELS]}))
    assert predictions.class_names == ("cat", "dog", "eel")
    assert predictions.scores.dtype == np.float32
    np.testing.assert_array_equal(predictions.labels, LABELS)


@pytest.mark.parametrize("dictionary", [False, True])
def test_text_columns(parquet, dictionary):
    sites = pa.array(["a", "bb"] * 20)
    path = parquet(
        {
            "true_label": pa.array(["x", "y"] * 20),
            "pred_label": pa.array(["y", "y"] * 20),
            "confidence": np.full(40, 0.5),
            "group_site": sites.dictionary_encode() if dictionary else sites,
        }
    )
    predictions = read_predictions(path)
    assert predictions.class_names == ("x", "y")
    assert predictions.groups["site"].tolist() == ["a", "bb"] * 20


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"label": pa.array([1, None] * 20)}, r"`label` has a missing value in row 1. Drop or fill"),
        ({"probs": pa.array([[0.5, 0.5, 0.0]] * 39 + [[1.0]])}, r"must hold lists of one length"),
        ({"probs": pa.array([[0.5, 0.5, 0.0]] * 39 + [[0.5, None, 0.5]])}, r"missing value in a list"),
        ({"probs": pa.array([[]] * 40, pa.list_(pa.float32()))}, r"holds empty lists"),
        ({"probs": pa.array([[[0.5]]] * 40)}, r"numbers, text or lists of numbers"),
        ({"probs": pa.array([b"x"] * 40)}, r"numbers, text or lists of numbers, its type is binary"),
        ({"label": pa.array([1.5] * 40)}, r"integer class numbers, got dtype float64"),
        ({"label": pa.array([7] * 40)}, r"got 7 in row 0"),
        ({"group_g": pa.array(["x" * 300] * 40)}, r"at most 256 characters"),
    ],
)
def test_bad_columns(parquet, changed, message):
    path = parquet({"probs": as_lists("fixed"), "label": LABELS, **changed})
    for read in (read_predictions, lambda path: list(iter_predictions(path, chunk_rows=9))):
        with pytest.raises(DataError, match=rf"^a\.parquet: .*{message}"):
            read(path)


def test_missing_values_name_the_row_of_the_file(parquet):
    path = parquet({"probs": as_lists("fixed"), "label": pa.array([1] * 30 + [None] + [1] * 9)})
    with pytest.raises(DataError, match="missing value in row 30"):
        list(iter_predictions(path, chunk_rows=8))


def test_no_rows(parquet):
    with pytest.raises(DataError, match="holds no rows"):
        read_predictions(parquet({"probs": pa.array([], pa.float32()), "label": pa.array([], pa.int64())}))


def test_a_name_twice(tmp_path):
    table = pa.Table.from_arrays([pa.array(LABELS), pa.array(LABELS)], names=["label", "label"])
    pq.write_table(table, tmp_path / "a.parquet")
    with pytest.raises(DataError, match="holds the column 'label' twice"):
        read_predictions(tmp_path / "a.parquet")


def test_cut_off_anywhere(parquet):
    path = parquet({"probs": as_lists("fixed"), "label": LABELS})
    content = path.read_bytes()
    for length in (0, 3, 4, 8, 12, len(content) // 2, len(content) - 8, len(content) - 1):
        path.write_bytes(content[:length])
        with pytest.raises(
            DataError, match=r"^a\.parquet: is cut off, damaged, or no Parquet file"
        ) as caught:
            read_predictions(path)
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize("content", [b"PAR1" * 10, b"PAR1" + b"\xff" * 50 + b"PAR1", b"<html>" * 9])
def test_wrong_content(tmp_path, content):
    (tmp_path / "a.parquet").write_bytes(content)
    with pytest.raises(DataError, match="no Parquet file"):
        read_predictions(tmp_path / "a.parquet")


@pytest.mark.parametrize("kind", ["fixed", "list"])
def test_a_small_file_of_endless_rows_is_refused(parquet, kind):
    n = 200_000
    probs = pa.FixedSizeListArray.from_arrays(pa.array(np.full(4 * n, 0.25, np.float32)), 4)
    probs = probs if kind == "fixed" else probs.cast(pa.list_(pa.float32()))
    path = parquet({"probs": probs, "label": np.zeros(n, np.int8), "unread": np.zeros(n)})
    assert path.stat().st_size < 100_000
    for read in (read_predictions, lambda path, **limit: list(iter_predictions(path, **limit))):
        with pytest.raises(DataError, match=r"would grow from \d+ to \d+ bytes.*allow it: max_bytes=\d+"):
            read(path, max_bytes=1 << 20)
    assert len(read_predictions(path)) == n


@pytest.mark.parametrize("letters", [200, 100_000])
def test_a_text_is_not_repeated_without_limit(parquet, letters):
    n = 20_000
    texts = pa.DictionaryArray.from_arrays(pa.array(np.zeros(n, np.int32)), ["x" * letters])
    path = parquet({"probs": np.full(n, 0.5), "label": np.zeros(n, np.int8), "group_a": texts})
    before = pa.total_allocated_bytes()
    for read in (read_predictions, lambda path, **limit: list(iter_predictions(path, **limit))):
        with pytest.raises(DataError, match=r"would grow from|at most 256 characters"):
            read(path, max_bytes=8 << 20)
    assert pa.total_allocated_bytes() - before < 8 << 20


def test_texts_in_an_encoding_that_pyarrow_does_not_read(parquet):
    columns = {"probs": [0.5], "label": ["a"], "group_x": ["a"]}
    path = parquet(columns, use_dictionary=False, column_encoding={"group_x": "DELTA_LENGTH_BYTE_ARRAY"})
    with pytest.raises(DataError, match="Not yet implemented"):
        read_predictions(path)


DAMAGED = """
import sys
from pathlib import Path
from equipoise import read_predictions
from equipoise.core import EquipoiseError
path = Path(sys.argv[1])
content, answers = path.read_bytes(), set()
length = int.from_bytes(content[-8:-4], "little")
for place in range(len(content) - 8 - length, len(content)):
    for change in (1, 16, 64):
        path.write_bytes(content[:place] + bytes([content[place] ^ change]) + content[place + 1 :])
        try:
            answers.add(len(read_predictions(path)))
        except EquipoiseError:
            answers.add("refused")
print(sorted(answers, key=str))
"""


@pytest.mark.slow
def test_no_damage_to_the_table_of_contents_ends_the_process(parquet):
    path = parquet({"probs": as_lists("list"), "label": LABELS}, store_schema=False)
    done = subprocess.run(
        [sys.executable, "-c", DAMAGED, str(path)], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout.strip()) == (0, "[40, 'refused']"), done.stderr[-2000:]


def test_a_flipped_bit_in_a_page_is_found(parquet, tmp_path):
    path = tmp_path / "a.parquet"
    predictions = Predictions(probs=PROBS, labels=LABELS)
    write_predictions(predictions, path)
    content = path.read_bytes()
    place = content.index(PROBS.astype(np.float32).tobytes()[:8])
    path.write_bytes(content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :])
    with pytest.raises(DataError, match="could not verify page integrity"):
        read_predictions(path)


def test_an_entry_that_a_dictionary_lacks_is_damage(parquet):
    names = np.array(["bird", "cat", "dog"])
    columns = {"label": names[LABELS], **{f"prob_{one}": PROBS[:, i] for i, one in enumerate(names)}}
    path = parquet(columns, compression="none")
    page = pq.ParquetFile(path).metadata.row_group(0).column(0)
    whole, refused = path.read_bytes(), []
    for place in range(page.data_page_offset, page.dictionary_page_offset + page.total_compressed_size):
        path.write_bytes(whole[:place] + b"\xff" + whole[place + 1 :])
        try:
            read_predictions(path)
        except DataError as error:
            refused.append(str(error))
    assert any("out of bounds" in reason for reason in refused)


def test_one_large_row_group_is_not_held_whole(parquet):
    n = 1_000_000
    probs = pa.FixedSizeListArray.from_arrays(pa.array(np.tile(np.float32([0.25, 0.75]), n)), 2)
    columns = {"probs": probs, "label": np.zeros(n, int)}
    path = parquet(columns, compression="none", use_dictionary=False, row_group_size=n)
    before, peak, rows = pa.total_allocated_bytes(), 0, 0
    for chunk in iter_predictions(path, chunk_rows=10_000):
        peak = max(peak, pa.total_allocated_bytes() - before)
        rows += len(chunk)
    assert rows == n
    assert peak < path.stat().st_size / 2


def test_without_pyarrow(parquet, monkeypatch):
    path = parquet({"probs": as_lists("fixed"), "label": LABELS})
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(
        MissingExtraError, match=r"pyarrow is needed to read \.parquet files.*equipoise\[parquet\]"
    ):
        read_predictions(path)
