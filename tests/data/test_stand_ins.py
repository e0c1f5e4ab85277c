"""Stand-ins for public datasets: their shapes, classes and splits, and nothing that has to be there."""

import pytest
import torch

from equipoise.core.errors import SpecError
from equipoise.data import READERS, STAND_INS, Dataset, batches, load, stand_in
from helpers import toys

SHAPES = {
    "cifar10": (10, (3, 32, 32)),
    "cifar100": (100, (3, 32, 32)),
    "cifar10c": (10, (3, 32, 32)),
    "imagenet": (1000, (3, 224, 224)),
    "imagenet_lt": (1000, (3, 224, 224)),
    "svhn": (10, (3, 32, 32)),
    "tiny_imagenet": (200, (3, 64, 64)),
    "voc2012": (21, (3, 512, 512)),
}


def test_stand_ins_are_for_known_datasets():
    assert set(STAND_INS) == {*SHAPES, "newsgroups"}
    assert set(STAND_INS) <= set(READERS)


@pytest.mark.parametrize("name", sorted(SHAPES))
def test_images_have_the_shape_and_the_classes_of_the_dataset(name):
    data = load(name, options={"stand_in": True})
    n_classes, shape = SHAPES[name]
    batch = next(iter(batches(data, "test", batch_size=2, seed=0, **toys.WHERE)))
    assert (data.name, data.n_classes, tuple(batch.inputs.shape[1:])) == (name, n_classes, shape)


def test_text_has_words_of_two_classes_and_a_vector_for_each():
    data = load("newsgroups", options={"stand_in": True})
    assert data.embedding.shape[1] == 100
    assert int(data.inputs.max()) < len(data.embedding)
    assert torch.equal(data.inputs[:, 0] % 2, data.labels.int())


def test_masks_name_classes_and_void_pixels():
    data = load("voc2012", options={"stand_in": 64, "size": 512})
    batch = next(iter(batches(data, "test", batch_size=2, seed=0, **toys.WHERE)))
    assert batch.targets.unique().tolist() == [0, 1, 2, 255]
    assert data.ignore_index == 255
    assert tuple(batch.inputs.shape) == (2, 3, 64, 64)


def test_splits_follow_the_options():
    assert set(stand_in("cifar10", tune=0, calib=0).splits) == {"train", "test"}
    assert set(stand_in("cifar10c").splits) == {"test"}
    assert len(load("tiny_imagenet", options={"stand_in": 16}).splits["calib"]) == 402
    sized = {"stand_in": 16, "tune": 5000, "calib": 5000, "validation": "whole"}
    assert len(load("tiny_imagenet", options=sized).splits["tune"]) == 4
    whole = load("cifar10", options={"stand_in": True, "validation": "whole"})
    assert {name: len(rows) for name, rows in whole.splits.items()} == {"train": 4, "tune": 4, "test": 4}


def test_another_seed_gives_other_rows_of_the_same_classes():
    one, other = (stand_in("cifar10", seed=seed) for seed in (0, 1))
    assert isinstance(one, Dataset)
    assert one.fingerprints != other.fingerprints
    assert torch.equal(one.labels, other.labels)
    assert one.fingerprints == stand_in("cifar10").fingerprints


def test_a_dataset_without_a_stand_in_is_an_error_with_the_nearest_name():
    with pytest.raises(SpecError, match="did you mean 'cifar10'"):
        stand_in("cifar1")
    with pytest.raises(SpecError, match="no stand-in for the dataset 'digits'"):
        load("digits", options={"stand_in": True})
