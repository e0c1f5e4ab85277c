"""JSON Lines: an object per line, streamed, every error with its line and key."""

import json

import numpy as np
import pytest

from equipoise import iter_predictions, read_predictions
from equipoise.core.errors import DataError
from equipoise.core.reading.formats import jsonl, text


@pytest.fixture
def lines(tmp_path):
    def write(*rows, name="a.jsonl"):
        path = tmp_path / name
        texts = [row if isinstance(row, str) else json.dumps(row) for row in rows]
        path.write_text("\n".join(texts) + "\n", encoding="utf-8")
        return path

    return write


def test_confidences(lines):
    path = lines(
        {"id": "q1", "prompt": {"text": ["why?"]}, "confidence": 0.9, "correct": True},
        "",
        {"correct": False, "confidence": 1, "id": "q2"},
        name="a.ndjson",
    )
    rows = read_predictions(path, ids="id")
    assert (rows.confidence.tolist(), rows.correct.tolist()) == ([0.9, 1.0], [True, False])


@pytest.mark.parametrize("chunk_rows", [1, 2, 100])
def test_lists_of_scores(lines, chunk_rows):
    generator = np.random.default_rng(0)
    logits, labels = generator.normal(size=(9, 4)), generator.integers(0, 4, 9)
    path = lines(*({"logits": row.tolist(), "label": int(y)} for row, y in zip(logits, labels, strict=True)))
    chunks = list(iter_predictions(path, chunk_rows=chunk_rows))
    np.testing.assert_array_equal(np.concatenate([chunk.logits for chunk in chunks]), logits)
    np.testing.assert_array_equal(np.concatenate([chunk.labels for chunk in chunks]), labels)


def test_names_and_true_labels(lines):
    named = lines({"p_cat": 0.2, "p_dog": 0.8, "label": "dog"}, {"p_cat": 0.7, "p_dog": 0.3, "label": "cat"})
    assert read_predictions(named).labels.tolist() == [1, 0]
    assert read_predictions(
        lines({"prob": 0.2, "label": True}, {"prob": 0.5, "label": False})
    ).labels.tolist() == [1, 0]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ((), r"is empty. Every line must hold an object"),
        (("[1, 2]",), r"line 1 must hold an object.*got list"),
        (({"confidence": 0.5, "correct": 1}, "{"), r"line 2 cannot be read as JSON"),
        (
            ('{"confidence": 0.5, "confidence": 0.6, "correct": 1}',),
            r"line 1.*the key 'confidence' occurs twice",
        ),
        (
            ({"confidence": 0.5, "correct": 1}, {"confidence": 0.5}),
            r"line 2, key 'correct' must hold true or false.*null",
        ),
        (
            ({"confidence": 0.5, "correct": 1}, {"confidence": "x", "correct": 1}),
            r"line 2, key 'confidence'.*got 'x'",
        ),
        (
            ({"confidence": 0.5, "correct": 1}, {"confidence": [1], "correct": 1}),
            r"line 2, key 'confidence'.*got '\[1\]'",
        ),
        (
            ({"probs": [0.5, 0.5], "y": 1}, {"probs": [1.0], "y": 0}),
            r"line 2, key 'probs' must hold a list of 2.*list of 1",
        ),
        (({"probs": [0.5, 0.5], "y": 1}, {"probs": None, "y": 0}), r"line 2, key 'probs'.*got null"),
        (
            ({"probs": [0.5, 0.5], "y": 1}, {"probs": [0.5, "a"], "y": 0}),
            r"line 2, key 'probs'.*got \"a\" in it",
        ),
        (({"probs": [0.5, 0.5], "y": 1}, {"probs": [0.5, None], "y": 0}), r"line 2, key 'probs'.*null"),
        (({"probs": [0.5, 0.5], "y": 1}, {"probs": [0.5, 0.9], "y": 0}), r"line 2 sums to 1.4"),
        (('{"confidence": 0.5, "correct": ' + "[" * 100_000,), r"line 1 cannot be read as JSON"),
        (('{"confidence": ' + "9" * 5000 + ', "correct": 1}',), r"line 1 cannot be read as JSON"),
        (('{"confidence": 0.5, "correct": 1, "equipoise": 3}',), r"notes under `equipoise`"),
    ],
)
def test_bad_files_in_one_sentence(lines, rows, message):
    with pytest.raises(DataError, match=message) as found:
        read_predictions(lines(*rows))
    assert "\n" not in str(found.value)


def test_a_line_without_end_is_not_read_to_its_end(tmp_path, monkeypatch):
    for module in (jsonl, text):
        monkeypatch.setattr(module, "LONGEST_LINE", 1000)
    (tmp_path / "a.jsonl").write_bytes(b'{"confidence": 0.5, "correct": 1, "x": "' + b"a" * 5000)
    with pytest.raises(DataError, match="line 1 is longer than 1000 bytes"):
        read_predictions(tmp_path / "a.jsonl")


def test_text_that_is_not_utf8(tmp_path):
    (tmp_path / "a.jsonl").write_bytes(b'{"confidence": 0.5, "correct": 1, "x": "\xff"}\n')
    with pytest.raises(DataError, match="line 1 is not UTF-8"):
        read_predictions(tmp_path / "a.jsonl")


def test_missing_values_are_left_out(lines):
    path = lines(
        {"probs": None, "y": 1},
        {"probs": [0.5, 0.5], "y": 1},
        {"probs": [0.5, None], "y": 1},
        {"probs": [1, 0]},
    )
    rows = read_predictions(path, drop_missing=True)
    assert (rows.probs.tolist(), rows.n_dropped) == ([[0.5, 0.5]], 3)


def test_memory_is_bounded_by_what_is_read(lines):
    path = lines(*({"confidence": 0.5, "correct": 1, "prompt": "x" * 5000} for _ in range(50)))
    record = next(jsonl.JsonlReader(path).records())[1]
    assert set(jsonl.JsonlReader(path).pruned(record, {"confidence": "number"})) == {"confidence"}
