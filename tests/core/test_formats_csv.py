"""CSV: bounded memory, and a line number in every complaint."""

import json
import tracemalloc

import numpy as np
import pytest

from equipoise import iter_predictions, read_predictions
from equipoise.core import DataError

TOP1 = "true_label,pred_label,confidence\n"


@pytest.fixture
def csv(tmp_path):
    def save(content, name="a.csv"):
        content = content.encode() if isinstance(content, str) else content
        (tmp_path / name).write_bytes(content)
        return tmp_path / name

    return save


def test_top1_by_hand(csv):
    """The layout of published files: true_label, pred_label, confidence."""
    predictions = read_predictions(csv(TOP1 + "3,3,0.9999994039535522\n8,5,0.6\n8,8,1\n"))
    assert predictions.kind == "top1"
    assert predictions.labels.tolist() == [3, 8, 8]
    assert predictions.predicted.tolist() == [3, 5, 8]
    assert predictions.confidence.tolist() == [0.9999994039535522, 0.6, 1.0]
    assert predictions.n_classes is None


@pytest.mark.parametrize(
    "content",
    [
        "true_label;pred_label;confidence\n1;0;0.5\n",
        "true_label\tpred_label\tconfidence\n1\t0\t0.5\n",
        "\ufefftrue_label,pred_label,confidence\n1,0,0.5\n",
        "true_label,pred_label,confidence\r\n1,0,0.5\r\n",
        "true_label, pred_label, confidence\n 1, 0, 0.5\n",
        '"true_label","pred_label","confidence"\n"1","0","0.5"\n',
        "TRUE_LABEL,Pred_Label,Confidence\n1,0,5e-1",
        "true_label,pred_label,confidence\n\n1,0,0.5\n\n",
        "id,true_label,pred_label,confidence,note\nx,1,0,.5,\n",
    ],
)
def test_dialects(csv, content):
    predictions = read_predictions(csv(content))
    assert (predictions.labels[0], predictions.predicted[0], predictions.confidence[0]) == (1, 0, 0.5)
    assert len(predictions) == 1


@pytest.mark.parametrize("rows", [1, 2, 3, 100])
def test_chunks_are_the_whole(csv, rows):
    path = csv("p_a,p_b,label,group_g\n" + "".join(f"0.{n}5,0.{9 - n}5,{n % 2},g{n}\n" for n in range(10)))
    whole = read_predictions(path)
    chunks = list(iter_predictions(path, chunk_rows=rows))
    assert [len(chunk) for chunk in chunks[:-1]] == [rows] * (len(chunks) - 1)
    np.testing.assert_array_equal(np.concatenate([chunk.scores for chunk in chunks]), whole.scores)
    np.testing.assert_array_equal(np.concatenate([chunk.groups["g"] for chunk in chunks]), whole.groups["g"])


def test_wide_rows_are_converted_block_by_block(csv, monkeypatch):
    monkeypatch.setattr("equipoise.core.reading.formats.text.MOST_CELLS", 12)
    path = csv("logit_0,logit_1,label\n" + "".join(f"{n},0,0\n" for n in range(25)))
    assert [len(chunk) for chunk in iter_predictions(path, chunk_rows=10)] == [10, 10, 5]
    assert read_predictions(path).scores[:, 0].tolist() == list(range(25))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", r"is empty, or its first line is"),
        (b"\n\n", r"is empty, or its first line is"),
        (b"\xef\xbb\xbf", r"is empty, or its first line is"),
        (TOP1, r"a header and no rows"),
        ("1,0,0.5\n1,0,0.5\n", r"line 1 holds numbers, not names. Put a header"),
        ("label,prob,label\n1,0.5,1\n", r"line 1 names the column 'label' twice"),
        ('label,"prob\n1,0.5\n', r"line 1 cannot be read as column names"),
        (TOP1 + "1,0,0.5\n1,0\n", r"line 3 has 2 cells, the header names 3 columns"),
        (TOP1 + "1,0,0.5\n1,0,0.5,9\n", r"line 3 has 4 cells"),
        (TOP1 + "1,0,0.5\n\n1,0,high\n", r"line 4, column 'confidence' must hold a number, got 'high'"),
        (TOP1 + "1,0,0.5\n1,0,\n", r"line 3, column 'confidence' must hold a number, got an empty cell"),
        (TOP1 + "1,0,1_0\n", r"line 2, column 'confidence' must hold a number, got '1_0'"),
        (TOP1 + "1,0,0.5\n1,0,nan\n", r"`confidence` must lie in \[0, 1\], got nan in line 3"),
        (TOP1 + "1,0,0.5\n1,0,85\n", r"got 85.0 in line 3. Percent"),
        (TOP1 + "1,0,0.5\n-1,0,0.5\n", r"`labels` must be 0 or more, got -1 in line 3"),
        (
            TOP1 + "1,0,0.5\n1.5,0,0.5\n",
            r"line 3, column 'true_label' must hold class numbers, integers, got '1.5'",
        ),
        (TOP1 + "1.5,0,0.5\n", r"line 2, column 'true_label' must hold class names or integers, got '1.5'"),
        (
            TOP1 + "1,0,0.5\ncat,0,0.5\n",
            r"line 3, column 'true_label' must hold class numbers, integers, got 'cat'",
        ),
        (TOP1 + "99999999999999999999,0,0.5\n", r"line 2, column 'true_label' must hold class numbers"),
        (
            TOP1 + ",0,0.5\n",
            r"line 2, column 'true_label' must hold class names or integers, got an empty cell",
        ),
        (b"true_label,pred_label,confidence\n1,0,0.5\n1,0,\xff\n", r"line 3 is not UTF-8 text"),
        ((TOP1 + "1,0,0.5\n").encode("utf-16"), r"line 1 is not UTF-8 text"),
        (TOP1 + '1,0,0.5\n1,"0"x,0.5\n', r"line 3 cannot be read"),
        (TOP1 + '1,0,0.5\n1,"0,0.5\n', r"line 3 cannot be read"),
        (TOP1 + "1,0,0.5\r1,0,0.5\r", r"line 2 cannot be read"),
        (TOP1 + "1,0," + "9" * 200_000 + "\n", r"line 2 cannot be read.*field limit"),
        (TOP1 + '1,0,0.5\n1,0,"' + "9,\n" * 100_000, r"cannot be read.*field limit"),
        (TOP1 + "1,0," + "9" * 100_000 + "\n", r"got inf in line 2"),
        (TOP1 + "1,0,abc" + "d" * 100_000 + "\n", r"must hold a number, got 'abcd{30,40}\.\.\.'"),
        ("a" * (1 << 22) + "\n", r"line 1 is longer than 4194304 bytes"),
        (TOP1 + "1" * (1 << 22), r"line 2 is longer than 4194304 bytes"),
        ("p_a,p_b,y\n0.5,0.5,a\n0.5,0.6,b\n", r"line 3 sums to 1\.1"),
        ("p_a,p_b,y\n0.5,0.5,a\n0.5,0.5,c\n", r"`y` must name a class, got 'c' in line 3.*'a', 'b'"),
        ("p_cat,p_dog,y\n0.5,0.5,cta\n", r"got 'cta' in line 2. Did you mean 'cat'"),
        (
            "prob_0,prob_1,y\n0.5,0.5,cat\n",
            r"holds class names, but their order is not known. Pass class_names=",
        ),
        ("logit_0,logit_1,y\n1,2,0\n1,inf,0\n", r"must be finite, got inf in line 3, column 1"),
        ("logit_0,logit_1,y\n1,2,1\n1,3,2\n", r"must lie in \[0, 2\), got 2 in line 3.*run from 1 to 2"),
        ("equipoise,label,prob\n{,1,0.5\n", r"must be a JSON object"),
        ('equipoise,label,prob\n"{""class_names"": 3}",1,0.5\n', r"notes under `equipoise` are damaged"),
        ('equipoise,label,prob\n"{""fitted_on"": ""x""}",1,0.5\n', r"notes under `equipoise` are damaged"),
    ],
)
def test_bad_files_in_one_sentence(csv, content, message):
    path = csv(content)
    for read in (read_predictions, lambda path: list(iter_predictions(path, chunk_rows=1))):
        with pytest.raises(DataError, match=message) as caught:
            read(path)
        assert str(caught.value).startswith("a.csv: ")
        assert len(str(caught.value)) < 400
        assert "\n" not in str(caught.value)


def test_text_labels_of_the_top1_form_are_the_sorted_union(csv):
    path = csv(TOP1 + "dog,cat,0.5\ndog,dog,0.75\neel,ape,0.5\n")
    predictions = read_predictions(path)
    assert predictions.class_names == ("ape", "cat", "dog", "eel")
    assert predictions.labels.tolist() == [2, 2, 3]
    assert predictions.predicted.tolist() == [1, 2, 0]


def test_text_labels_are_numbered_alike_in_every_chunk_and_file(csv):
    one = csv(TOP1 + "dog,cat,0.5\ndog,dog,0.75\n", "a.csv")
    two = csv(TOP1 + "eel,ape,0.5\n", "b.csv")
    chunks = list(iter_predictions([one, two], chunk_rows=1))
    assert {chunk.class_names for chunk in chunks} == {("ape", "cat", "dog", "eel")}
    assert [int(chunk.labels[0]) for chunk in chunks] == [2, 2, 3]
    assert read_predictions([one, two]).labels.tolist() == [2, 2, 3]


def test_given_class_names_decide_the_order(csv):
    path = csv(TOP1 + "dog,cat,0.5\n")
    predictions = read_predictions(path, class_names=["dog", "cat", "eel"])
    assert (predictions.labels[0], predictions.predicted[0], predictions.n_classes) == (0, 1, 3)
    with pytest.raises(DataError, match="must name a class, got 'dog' in line 2"):
        read_predictions(path, class_names=["cat", "cow"])
    with pytest.raises(DataError, match="two classes have the same name"):
        read_predictions(path, class_names=["cat", "dog", "dog"])


def test_digits_among_names_are_names_if_one_column_starts_with_text(csv):
    predictions = read_predictions(csv(TOP1 + "A,3,0.5\n3,3,0.5\n"))
    assert predictions.class_names == ("3", "A")
    assert predictions.correct.tolist() == [False, True]


def test_ids_mistaken_for_labels(csv, monkeypatch):
    monkeypatch.setattr("equipoise.core.reading.conversion._MOST_CLASSES", 100)
    rows = "".join(f"x{n},y{n},0.5\n" for n in range(60))
    with pytest.raises(DataError, match=r"more than 100 different texts. Are these ids"):
        read_predictions(csv(TOP1 + rows))


def test_text_cells_have_a_limit(csv):
    path = csv("label,prob,group_g\n1,0.5,a\n1,0.5," + "b" * 300 + "\n")
    with pytest.raises(DataError, match="line 3, column 'group_g' must hold at most 256 characters"):
        read_predictions(path)


def test_ids_from_text_equal_ids_from_numbers(csv, tmp_path):
    np.savez(tmp_path / "a.npz", labels=[1, 0], probs=[0.5, 0.5], ids=[17, 18])
    text = read_predictions(csv("id,label,prob\n17,1,0.5\n18,0,0.5\n"), ids="id")
    assert text.fingerprint == read_predictions(tmp_path / "a.npz", ids="ids").fingerprint


@pytest.mark.parametrize(
    ("header", "message"),
    [
        (",".join(["a"] * 500_000), r"names the column 'a' twice"),
        (
            ",".join(f"x{number}" for number in range(300_000)),
            r"no scores under a known name.*and 299988 more",
        ),
        ("x" * 100_000, r"no scores under a known name"),
    ],
    ids=["doubled", "many", "long"],
)
def test_absurd_headers_are_refused_without_long_thought(csv, header, message):
    with pytest.raises(DataError, match=message) as caught:
        read_predictions(csv(header + "\n" + ",".join(["1"] * (header.count(",") + 1)) + "\n"))
    assert len(str(caught.value)) < 700


@pytest.mark.parametrize("dtype", ["U999999999", "O", "V8", "<M8[s]", "S99999999", 7, ["f4"]])
def test_notes_cannot_ask_for_strange_types(csv, dtype):
    notes = json.dumps({"dtypes": {"group_g": dtype, "prob": dtype}}).replace('"', '""')
    predictions = read_predictions(csv(f'label,prob,group_g,equipoise\n1,0.5,a,"{notes}"\n'))
    assert predictions.groups["g"].tolist() == ["a"]


def test_lines_count_through_quoted_line_breaks(csv):
    path = csv('note,label,prob\n"two\nlines",1,0.5\nplain,1,2.5\n')
    with pytest.raises(DataError, match=r"got 2.5 in line 4"):
        read_predictions(path)


def test_chunks_take_bounded_memory(csv):
    path = csv("p_a,p_b,label\n" + "0.123456789,0.876543211,1\n" * 30_000)

    def stream():
        return sum(len(chunk) for chunk in iter_predictions(path, chunk_rows=1000))

    tracemalloc.start()
    try:
        assert stream() == 30_000
        assert (
            tracemalloc.get_traced_memory()[1] < 1.5e6
        )  # the file alone has 2.6 MB, its rows as text ten times that
    finally:
        tracemalloc.stop()
