"""Checksums: the same for the same content in any container, another one for any other content."""

import json

import numpy as np
import pytest
import torch

from equipoise.core.checksums import content_checksum


@pytest.mark.parametrize(
    "content",
    [
        {"a": 1, "b": [1.5, None, "x"], "c": {"d": True}},
        {"b": (), "a": {}, "nested": [[1, [2]], [[1, 2]]]},
        {"value": 0.1 + 0.2, "large": 10**20},
    ],
)
def test_content_that_went_through_json_keeps_its_checksum(content):
    assert content_checksum(json.loads(json.dumps(content))) == content_checksum(content)


def test_arrays_and_tensors_of_the_same_values_are_the_same():
    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    expected = content_checksum(array)
    assert content_checksum(torch.from_numpy(array)) == expected
    assert content_checksum(array.astype(">f4")) == expected
    assert content_checksum(np.asfortranarray(array)) == expected
    assert content_checksum(torch.zeros(2, dtype=torch.bfloat16)) != content_checksum(torch.zeros(2))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"a": 1}, {"a": 1.0}),
        ({"a": 1}, {"a": True}),
        ([[1], 2], [[1, 2]]),
        (["ab", "c"], ["a", "bc"]),
        ({"a": "1"}, {"a": 1}),
        (np.zeros(4), np.zeros((2, 2))),
        (np.zeros(2), np.zeros(2, dtype=np.float32)),
    ],
)
def test_other_content_has_another_checksum(one, other):
    assert content_checksum(one) != content_checksum(other)


def test_anything_else_raises():
    with pytest.raises(TypeError, match="expected plain values and arrays, got object"):
        content_checksum({"a": object()})
