import dataclasses

import numpy as np
import pytest
from scipy.io import savemat

from equipoise.core.errors import DataError
from equipoise.data import load, ood_pair
from helpers.official import set_counts

IMAGES = np.random.default_rng(0).integers(0, 256, (60, 32, 32, 3), dtype=np.uint8)
DIGITS = np.arange(60) % 10


@pytest.fixture(autouse=True)
def _small(monkeypatch):
    set_counts(monkeypatch, svhn=(40, 20))


def write(root, **changes):
    (root / "svhn").mkdir()
    for part, rows in (("train", slice(0, 40)), ("test", slice(40, 60))):
        labels = np.where(DIGITS[rows] == 0, 10, DIGITS[rows])[:, None]
        content = {"X": IMAGES[rows].transpose(1, 2, 3, 0), "y": labels, **changes}
        savemat(root / "svhn" / f"{part}_32x32.mat", content, do_compression=True)
    return root / "svhn"


def read(root):
    return load("svhn", root=root, options={"tune": 10, "calib": 10})


def test_images_and_digits_come_as_they_are_and_ten_is_zero(tmp_path):
    write(tmp_path)
    data = read(tmp_path)
    assert np.array_equal(data.inputs.numpy(), IMAGES.transpose(0, 3, 1, 2))
    assert np.array_equal(data.labels.numpy(), DIGITS)
    assert [len(data.rows(split)) for split in ("train", "tune", "calib", "test")] == [20, 10, 10, 20]


def test_missing_files_are_asked_for(tmp_path):
    with pytest.raises(DataError, match=r"train_32x32\.mat"):
        read(tmp_path)


@pytest.mark.parametrize("keep", [0, 50, 200, -100])
def test_a_truncated_file_is_named(tmp_path, keep):
    file = write(tmp_path) / "test_32x32.mat"
    file.write_bytes(file.read_bytes()[:keep])
    with pytest.raises(DataError, match=r"test_32x32\.mat"):
        read(tmp_path)


@pytest.mark.parametrize(
    "changes",
    [
        {"X": np.zeros((32, 32, 3, 39), np.uint8)},
        {"X": np.zeros((32, 32, 3, 40))},
        {"X": np.zeros((28, 28, 1, 40), np.uint8)},
        {"y": np.full((40, 1), 11)},
    ],
)
def test_wrong_shapes_types_and_digits_are_named(tmp_path, changes):
    write(tmp_path, **changes)
    with pytest.raises(DataError, match=r"train_32x32\.mat"):
        read(tmp_path)


def test_too_few_images_are_named(tmp_path, monkeypatch):
    write(tmp_path)
    set_counts(monkeypatch, svhn=(41, 20))
    with pytest.raises(DataError, match="expected 41 images, got 40"):
        read(tmp_path)


def test_foreign_images_are_normalized_as_known_ones(tmp_path):
    write(tmp_path)
    known = read(tmp_path)
    shifted = dataclasses.replace(known, name="known", mean=known.mean + 1)
    pair = ood_pair(shifted, known)
    assert pair.outside.mean is shifted.mean
