"""Safetensors: slices of named tensors."""

import json
import struct
import sys

import numpy as np
import pytest
import torch

from equipoise import iter_predictions, read_predictions, write_predictions
from equipoise.core import DataError, MissingExtraError, Predictions

pytest.importorskip("safetensors")
from safetensors.torch import save_file

LOGITS = torch.randn(40, 3, generator=torch.Generator().manual_seed(0))
LABELS = torch.arange(40) % 3


@pytest.fixture
def safetensors(tmp_path):
    def save(**tensors):
        save_file(tensors, tmp_path / "a.safetensors")
        return tmp_path / "a.safetensors"

    return save


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("rows", [None, 1, 7, 100])
def test_any_precision_in_chunks(safetensors, dtype, rows):
    path = safetensors(logits=LOGITS.to(dtype), labels=LABELS)
    chunks = [read_predictions(path)] if rows is None else list(iter_predictions(path, chunk_rows=rows))
    np.testing.assert_array_equal(
        np.concatenate([chunk.scores for chunk in chunks]), LOGITS.to(dtype).to(torch.float64)
    )
    np.testing.assert_array_equal(np.concatenate([chunk.labels for chunk in chunks]), LABELS)


def test_half_precision_probabilities_keep_their_tolerance(safetensors):
    probs = torch.softmax(3 * torch.randn(100, 200, generator=torch.Generator().manual_seed(1)), 1).bfloat16()
    assert len(read_predictions(safetensors(probs=probs, labels=torch.zeros(100, dtype=torch.int64)))) == 100


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (LABELS[:39], "`labels` has 39"),
        (LABELS.float() + 0.5, "integer class numbers"),
        (LABELS.to(torch.float8_e4m3fn), "must hold plain numbers, its type is F8_E4M3"),
        (torch.tensor(1), "it is a single number"),
        (torch.zeros(0, dtype=torch.int64), "`labels` is empty"),
        (LABELS + 1, "run from 1 to 3"),
    ],
)
def test_bad_labels(safetensors, labels, message):
    with pytest.raises(DataError, match=rf"^a\.safetensors.*{message}"):
        read_predictions(safetensors(logits=LOGITS, labels=labels))


def test_groups_come_back_in_their_order(tmp_path):
    groups = {name: np.arange(3) for name in ("site", "1.0", "age")} | {"clinic": np.array(["a", "b", "c"])}
    rows = Predictions(probs=np.full((3, 2), 0.5), labels=[0, 1, 0], groups=groups)
    write_predictions(rows, tmp_path / "a.safetensors")
    assert list(read_predictions(tmp_path / "a.safetensors").groups) == list(groups)


@pytest.mark.parametrize("columns", [7, ["labels", 7, "nowhere"], ["labels", "labels"]])
def test_a_damaged_order_of_columns_loses_none(tmp_path, columns):
    metadata = {"equipoise": json.dumps({"columns": columns})}
    save_file({"logits": LOGITS, "labels": LABELS}, tmp_path / "a.safetensors", metadata=metadata)
    np.testing.assert_array_equal(read_predictions(tmp_path / "a.safetensors").labels, LABELS)


def test_cut_off_anywhere(safetensors):
    path = safetensors(logits=LOGITS, labels=LABELS)
    content = path.read_bytes()
    for length in (0, 1, 7, 8, 20, 100, len(content) // 2, len(content) - 1):
        path.write_bytes(content[:length])
        with pytest.raises(DataError, match="cut off, damaged, or not a safetensors file") as caught:
            read_predictions(path)
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "head",
    [
        b"[]",
        b"{" * 1000,
        b'{"labels": 3}',
        b'{"labels": {"dtype": "I64", "shape": [1], "data_offsets": [0, 99999999]}}',
        b'{"labels": {"dtype": "I64", "shape": [9223372036854775807, 9], "data_offsets": [0, 8]}}',
        b'{"labels": {"dtype": 7, "shape": [1], "data_offsets": [0, 8]}}',
        b'{"labels": {"dtype": "I64", "shape": [1], "data_offsets": [0, 4]}}',
        b'{"labels": {"dtype": "I64", "shape": [-1], "data_offsets": [0, 8]}}',
        b'{"labels": {"dtype": "I64", "shape": [true], "data_offsets": [0, 8]}}',
        b'{"labels": {"dtype": "I32", "shape": [1], "data_offsets": [4, 8]}}',
        b'{"a": {"dtype": "I64", "shape": [1], "data_offsets": [0, 8]}, '
        b'"b": {"dtype": "I64", "shape": [1], "data_offsets": [0, 8]}}',
        b'{"a": {"dtype": "I32", "shape": [1], "data_offsets": [0, 4]}, '
        b'"a": {"dtype": "I32", "shape": [1], "data_offsets": [4, 8]}}',
    ],
)
def test_hostile_headers(tmp_path, head):
    (tmp_path / "a.safetensors").write_bytes(struct.pack("<Q", len(head)) + head + b"\0" * 8)
    with pytest.raises(DataError, match="cut off, damaged, or not a safetensors file"):
        read_predictions(tmp_path / "a.safetensors")


@pytest.mark.parametrize("length", [0, 1, 2**32, 2**63 + 5, 17 << 20])
def test_a_header_of_absurd_length(tmp_path, length):
    (tmp_path / "a.safetensors").write_bytes(struct.pack("<Q", length) + b"{}" + b" " * 50)
    with pytest.raises(DataError, match="or not a safetensors file"):
        read_predictions(tmp_path / "a.safetensors")


@pytest.mark.parametrize("words", [["a"], [], 3, {"x": 1}])
def test_words_that_do_not_fit(tmp_path, words):
    save_file(
        {"probs": torch.tensor([0.5, 0.5]), "labels": torch.tensor([0, 1]), "group_g": torch.tensor([0, 1])},
        tmp_path / "a.safetensors",
        metadata={"equipoise": json.dumps({"words": {"group_g": words}})},
    )
    with pytest.raises(DataError, match="does not fit its words"):
        read_predictions(tmp_path / "a.safetensors")


def test_text_is_kept_as_words(tmp_path):
    groups = {"site": ["b", "a", "b"], "empty": ["", "x", ""]}
    write_predictions(
        Predictions(probs=[0.5, 0.25, 0.75], labels=[0, 1, 1], groups=groups), tmp_path / "a.safetensors"
    )
    for chunk, site in zip(iter_predictions(tmp_path / "a.safetensors", chunk_rows=1), "bab", strict=True):
        assert chunk.groups["site"].tolist() == [site]


def test_reading_and_writing_need_the_package(safetensors, monkeypatch):
    path = safetensors(logits=LOGITS, labels=LABELS)
    predictions = read_predictions(path)
    monkeypatch.setitem(sys.modules, "safetensors", None)
    with pytest.raises(MissingExtraError, match=r"equipoise\[safetensors\]"):
        read_predictions(path)
    with pytest.raises(MissingExtraError, match=r"equipoise\[safetensors\]"):
        write_predictions(predictions, path)


def test_a_long_word_is_not_repeated_for_every_row(tmp_path):
    tensors = {"probs": torch.full((50_000,), 0.5), "labels": torch.zeros(50_000, dtype=torch.int64)}
    words = {"group_g": ["x" * 100_000]}
    path = tmp_path / "a.safetensors"
    save_file(
        tensors | {"group_g": torch.zeros(50_000, dtype=torch.uint8)},
        path,
        metadata={"equipoise": json.dumps({"words": words})},
    )
    with pytest.raises(DataError, match="texts of at most 256 characters"):
        read_predictions(path)
