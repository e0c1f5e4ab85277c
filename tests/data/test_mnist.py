import gzip
import struct

import numpy as np
import pytest

from equipoise.core.errors import DataError
from equipoise.data import load
from helpers.official import set_counts

NAMES = (
    "train-images-idx3-ubyte",
    "train-labels-idx1-ubyte",
    "t10k-images-idx3-ubyte",
    "t10k-labels-idx1-ubyte",
)
IMAGES = np.random.default_rng(0).integers(0, 256, (60, 28, 28), dtype=np.uint8)
LABELS = (np.arange(60) % 10).astype(np.uint8)
ARRAYS = (IMAGES[:40], LABELS[:40], IMAGES[40:], LABELS[40:])


@pytest.fixture(autouse=True)
def _small(monkeypatch):
    set_counts(monkeypatch, mnist=(40, 20), fashion_mnist=(40, 20))


def idx(array):
    return struct.pack(f">4B{array.ndim}I", 0, 0, 8, array.ndim, *array.shape) + array.tobytes()


def write(root, name, *, zipped):
    folder = root / name
    folder.mkdir()
    for file, array in zip(NAMES, ARRAYS, strict=True):
        if zipped:
            (folder / f"{file}.gz").write_bytes(gzip.compress(idx(array)))
        else:
            (folder / file).write_bytes(idx(array))
    return folder


def read(root, name="mnist"):
    return load(name, root=root, options={"tune": 10, "calib": 10})


@pytest.mark.parametrize("name", ["mnist", "fashion_mnist"])
@pytest.mark.parametrize("form", ["plain", "zipped", "npz"])
def test_all_forms_give_the_same_images(tmp_path, name, form):
    if form == "npz":
        np.savez(
            tmp_path / f"{name}.npz",
            **dict(zip(("x_train", "y_train", "x_test", "y_test"), ARRAYS, strict=True)),
        )
    else:
        write(tmp_path, name, zipped=form == "zipped")
    data = read(tmp_path, name)
    assert np.array_equal(data.inputs.numpy()[:, 0], IMAGES)
    assert np.array_equal(data.labels.numpy(), LABELS)
    assert [len(data.rows(split)) for split in ("train", "tune", "calib", "test")] == [20, 10, 10, 20]
    assert data.name == name


def test_class_names_differ(tmp_path):
    write(tmp_path, "mnist", zipped=True)
    write(tmp_path, "fashion_mnist", zipped=True)
    assert read(tmp_path).class_names[0] == "0"
    assert read(tmp_path, "fashion_mnist").class_names[9] == "ankle boot"


def test_one_missing_file_is_named(tmp_path):
    (write(tmp_path, "mnist", zipped=True) / f"{NAMES[3]}.gz").unlink()
    with pytest.raises(DataError, match="t10k-labels-idx1-ubyte"):
        read(tmp_path)


def test_nothing_there_says_what_to_put_where(tmp_path):
    with pytest.raises(DataError, match=r"mnist/ with train-images-idx3-ubyte.*or pass download=True"):
        read(tmp_path)


@pytest.mark.parametrize("keep", [0, 3, 10, 100, -1])
def test_a_truncated_file_is_named(tmp_path, keep):
    file = write(tmp_path, "mnist", zipped=False) / NAMES[0]
    file.write_bytes(file.read_bytes()[:keep])
    with pytest.raises(DataError, match=NAMES[0]):
        read(tmp_path)


def test_a_truncated_gzip_is_named(tmp_path):
    file = write(tmp_path, "mnist", zipped=True) / f"{NAMES[0]}.gz"
    file.write_bytes(file.read_bytes()[:-20])
    with pytest.raises(DataError, match=NAMES[0]):
        read(tmp_path)


@pytest.mark.parametrize(
    "content",
    [
        b"\x00\x00\x0d\x03" + b"\x00" * 100,
        b"PK\x03\x04" + b"\x00" * 100,
        idx(LABELS),
        idx(IMAGES[:39]),
        idx(IMAGES[:40, :27]),
        idx(IMAGES[:40]) + b"x",
    ],
)
def test_wrong_magic_shape_count_or_length_is_named(tmp_path, content):
    (write(tmp_path, "mnist", zipped=False) / NAMES[0]).write_bytes(content)
    with pytest.raises(DataError, match=NAMES[0]):
        read(tmp_path)
