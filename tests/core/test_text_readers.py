"""Arrow and the reader of single lines agree on every file: the same values, or the same error."""

import json

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

pytest.importorskip("pyarrow")

from equipoise import Predictions, iter_predictions, read_predictions, write_predictions
from equipoise.core.errors import DataError
from equipoise.core.reading.formats import text

NUMBERS = [
    "0.5",
    "0.25",
    "1",
    "0",
    ".5",
    "1.",
    "5e-1",
    "+0.5",
    " 0.5",
    "0.5 ",
    '"0.5"',
    "0,5",
    "nan",
    "NA",
    "",
]
ODD_NUMBERS = ["1_0", "inf", "1e400", "1e-400", "0x1", "high", "50%", "-0.1", "٠.٥", "0.50000000000000000001"]
LABELS = [
    "0",
    "1",
    "01",
    " 1",
    "+1",
    "1.0",
    "0.0",
    "1.5",
    "-100",
    "2",
    "nan",
    "",
    "cat",
    "99999999999999999999",
]
NAMES = ["cat", "dog", " cat", '"dog"', '"a,b"', '"do""g"', "Cat", "", "1", "0.5", "ß", "x" * 300]
BREAKS = ["\n", "\n", "\n", "\r\n", "\n\n"]


def both(path, monkeypatch, **columns):
    """Return what each way of reading gives: arrays, or the message of the error."""
    found = []
    for least in (0, 1 << 60):
        monkeypatch.setattr(text, "ARROW_BYTES", least)
        try:
            rows = list(iter_predictions(path, chunk_rows=3, **columns))
            found.append([_content(row) for row in rows])
        except DataError as error:
            found.append(str(error))
    return found


def _content(rows):
    columns = {"scores": rows.scores, "labels": rows.labels if rows.has_labels else None, **rows.groups}
    if rows.scores is None:
        columns |= {"confidence": rows.confidence, "predicted": rows.predicted}
    return [(name, None if column is None else column.tolist()) for name, column in columns.items()] + [
        rows.class_names,
        rows.n_dropped,
        rows.fingerprint,
    ]


@pytest.fixture(scope="module")
def patch():
    with pytest.MonkeyPatch.context() as monkeypatch:
        yield monkeypatch


cells = st.tuples(
    st.sampled_from(NUMBERS * 3 + ODD_NUMBERS),
    st.sampled_from(LABELS),
    st.sampled_from(NAMES),
    st.sampled_from(BREAKS),
)
usual = st.tuples(
    st.sampled_from(["0.5", "0.25", "1"]),
    st.sampled_from(["0", "1"]),
    st.sampled_from(["cat", "dog"]),
    st.just("\n"),
)
rows_of_cells = st.lists(st.one_of(usual, usual, usual, usual, cells), min_size=1, max_size=12)


@settings(max_examples=300)
@given(rows_of_cells, st.booleans(), st.sampled_from(",;\t"), st.booleans())
@example([("0.5", "1", "cat", "\n"), ("0,5", "1", "cat", "\n")], False, ";", False)
@example([("1", "1", "cat", "\n"), ("0,5", "1", "cat", "\n")], False, ";", False)
@example([("0,5", "1", "cat", "\n"), ("0.5", "1", "cat", "\n")], False, ";", False)
def test_csv_with_a_probability_and_a_group(tmp_path_factory, patch, rows, drop, delimiter, mark):
    path = tmp_path_factory.mktemp("csv") / "a.csv"
    lines = "".join(delimiter.join(row[:3]) + row[3] for row in rows)
    start = "\ufeff" if mark else ""
    path.write_text(
        f"{start}probs{delimiter}label{delimiter}group_kind\n{lines}", encoding="utf-8", newline=""
    )
    fast, slow = both(path, patch, drop_missing=drop)
    assert fast == slow


@settings(max_examples=200)
@given(rows_of_cells, st.booleans())
def test_csv_with_class_names(tmp_path_factory, patch, rows, drop):
    path = tmp_path_factory.mktemp("csv") / "a.csv"
    lines = "".join(",".join([row[0], row[2], rows[0][2]]) + row[3] for row in rows)
    path.write_text(f"confidence,pred_label,true_label\n{lines}", encoding="utf-8", newline="")
    fast, slow = both(path, patch, drop_missing=drop)
    assert fast == slow


values = st.sampled_from([0.5, 0.25, 1, 0, "0.5", None, True, 1e-3, "cat", [0.5], {"a": 1}, 10**30])
labels = st.sampled_from([0, 1, 1.0, 1.5, "1", "cat", True, None, -100])
lists = st.sampled_from([[0.5, 0.5], [1, 0], [0.25, 0.75], [0.5], [0.5, None], [0.5, "a"], [[0.5], 0.5], 0.5])
usual_object = st.fixed_dictionaries(
    {
        "probs": st.just([0.25, 0.75]),
        "labels": st.sampled_from([0, 1]),
        "group_kind": st.sampled_from(["a", "b"]),
    }
)
odd_object = st.fixed_dictionaries(
    {}, optional={"probs": lists, "labels": labels, "group_kind": values, "prompt": values}
)


@settings(max_examples=300)
@given(
    st.lists(st.one_of(usual_object, usual_object, usual_object, odd_object), min_size=1, max_size=10),
    st.booleans(),
)
def test_json_lines_with_lists(tmp_path_factory, patch, objects, drop):
    path = tmp_path_factory.mktemp("jsonl") / "a.jsonl"
    path.write_text("".join(json.dumps(one) + "\n" for one in objects), encoding="utf-8")
    fast, slow = both(path, patch, drop_missing=drop)
    assert fast == slow


@pytest.mark.parametrize("ending", ["csv", "jsonl"])
def test_usual_files_are_not_read_by_line(tmp_path, patch, monkeypatch, ending):
    scores = np.random.default_rng(0).random(5000)
    rows = Predictions(
        probs=scores, labels=np.arange(5000) % 2, groups={"site": ["a", "b"] * 2500}, ids=range(5000)
    )
    write_predictions(rows, tmp_path / f"a.{ending}")
    patch.setattr(text, "ARROW_BYTES", 0)
    monkeypatch.setattr(text.TextReader, "_chunks_by_line", None)
    found = read_predictions(tmp_path / f"a.{ending}")
    np.testing.assert_array_equal(found.scores, scores)
    np.testing.assert_array_equal(found.labels, rows.labels)
    np.testing.assert_array_equal(found.groups["site"], rows.groups["site"])
    assert found.fingerprint == rows.fingerprint


def test_an_error_far_down_names_its_line(tmp_path, patch):
    path = tmp_path / "a.csv"
    path.write_text("confidence,correct\n" + "0.5,1\n" * 300_000 + "\n0.5,maybe\n")
    patch.setattr(text, "ARROW_BYTES", 0)
    with pytest.raises(
        DataError, match=r"line 300003, column 'correct' must hold true or false, or 1 or 0, got 'maybe'"
    ):
        read_predictions(path)
    path.write_text("confidence,correct\n" + "0.5,1\n" * 300_000 + "\n85,1\n")
    with pytest.raises(DataError, match=r"got 85.0 in line 300003"):
        read_predictions(path)
