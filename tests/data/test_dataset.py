import dataclasses

import numpy as np
import pytest
import torch

from equipoise.core.errors import DataError, SplitError
from equipoise.data import Dataset, from_arrays


def toy(n=40, **changes):
    return from_arrays(torch.arange(n * 3.0).view(n, 3), torch.arange(n) % 4, name="toy", **changes)


def test_class_counts_by_hand():
    data = toy(splits={"train": torch.tensor([0, 1, 4]), "test": torch.tensor([2])})
    assert data.class_counts("train").tolist() == [2, 1, 0, 0]


def test_fingerprints_tell_rows_labels_and_content_apart():
    one = toy().fingerprints
    assert one == toy().fingerprints
    assert len(set(one.values())) == 4
    assert one["test"] != toy(seed=1).fingerprints["test"]
    data = toy()
    changed = data.inputs.clone()
    changed[data.rows("test")[0], 0] += 1
    assert dataclasses.replace(data, inputs=changed).fingerprints["test"] != one["test"]
    assert dataclasses.replace(data, inputs=changed).fingerprints["train"] == one["train"]


def test_fingerprints_do_not_depend_on_memory_order():
    images = torch.randint(0, 256, (20, 3, 4, 5), dtype=torch.uint8)
    labels = torch.arange(20) % 2
    one = from_arrays(images, labels, name="a")
    two = from_arrays(images.contiguous(memory_format=torch.channels_last), labels, name="a")
    assert one.fingerprints == two.fingerprints


def test_overlapping_splits_are_refused():
    with pytest.raises(SplitError, match="Make the splits disjoint"):
        toy(splits={"train": torch.tensor([0, 1]), "test": torch.tensor([1])})
    with pytest.raises(SplitError, match="Make the splits disjoint"):
        toy(splits={"train": torch.tensor([0, 0])})


def test_unknown_and_absent_splits_are_refused():
    with pytest.raises(SplitError, match="must be one of train"):
        toy(splits={"valid": torch.tensor([0])})
    with pytest.raises(SplitError, match="no such rows"):
        toy(splits={"train": torch.tensor([0])}).rows("test")


@pytest.mark.parametrize("rows", [torch.tensor([40]), torch.tensor([-1])])
def test_rows_outside_are_refused(rows):
    with pytest.raises(DataError, match="must lie in"):
        toy(splits={"train": rows})


def test_a_mask_in_place_of_rows_is_refused():
    with pytest.raises(DataError, match="nonzero"):
        toy(splits={"train": torch.ones(40, dtype=torch.bool)})


@pytest.mark.parametrize(
    ("inputs", "labels", "remedy"),
    [
        (torch.zeros(4, 2), torch.eye(4), "argmax"),
        (torch.zeros(4, 2), torch.ones(4, 3), "Several labels per row are not supported"),
        (torch.zeros(4, 2), torch.zeros(3, dtype=torch.int64), "one per input"),
        (torch.zeros(4, 3, 2, 2), torch.zeros(4, dtype=torch.int64), "uint8"),
        (torch.tensor([[1.0], [torch.nan]]), torch.zeros(2, dtype=torch.int64), "row 1"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(inputs, labels, remedy):
    with pytest.raises(DataError, match=remedy):
        from_arrays(inputs, labels, name="mine")


def test_a_label_beyond_the_class_names_is_refused():
    with pytest.raises(DataError, match="number them from zero"):
        from_arrays(torch.zeros(4, 1), torch.tensor([0, 1, 2, 3]), name="mine", class_names=["a", "b"])


def test_numpy_arrays_are_taken_as_they_are():
    data = from_arrays(
        np.zeros((30, 8, 8, 3), np.uint8).transpose(0, 3, 1, 2), np.arange(30) % 3, name="mine"
    )
    assert data.kind == "image"
    assert tuple(data.inputs.shape) == (30, 3, 8, 8)


def test_an_empty_dataset_is_refused():
    with pytest.raises(DataError, match="at least one row"):
        Dataset(
            name="none",
            kind="features",
            inputs=torch.zeros(0, 2),
            labels=torch.zeros(0, dtype=torch.int64),
            class_names=("a",),
            splits={},
        )
