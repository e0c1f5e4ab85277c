import numpy as np
import pytest

from equipoise.core.errors import DataError, SpecError
from equipoise.data import load
from helpers.official import set_counts

IMAGES = np.random.default_rng(0).integers(0, 256, (20, 32, 32, 3), dtype=np.uint8)
LABELS = np.arange(20, dtype=np.uint8) % 10


@pytest.fixture(autouse=True)
def _small(monkeypatch):
    set_counts(monkeypatch, cifar10c=(0, 4), cifar100c=(0, 4))


def write(root, base="CIFAR-10-C"):
    (root / base).mkdir()
    np.save(root / base / "fog.npy", IMAGES)
    np.save(root / base / "labels.npy", LABELS)
    return root / base


@pytest.mark.parametrize(("name", "base"), [("cifar10c", "CIFAR-10-C"), ("cifar100c", "CIFAR-100-C")])
def test_a_severity_is_a_slice(tmp_path, name, base):
    write(tmp_path, base)
    data = load(name, root=tmp_path, options={"corruption": "fog", "severity": 2})
    assert np.array_equal(data.inputs.numpy(), IMAGES[4:8].transpose(0, 3, 1, 2))
    assert data.labels.tolist() == LABELS[4:8].tolist()
    assert list(data.splits) == ["test"]
    every = load(name, root=tmp_path, options={"corruption": "fog", "severity": None})
    assert len(every) == 20


def test_an_unknown_corruption_gives_the_nearest(tmp_path):
    write(tmp_path)
    with pytest.raises(SpecError, match="did you mean 'fog'"):
        load("cifar10c", root=tmp_path, options={"corruption": "fogg"})


@pytest.mark.parametrize("severity", [0, 6])
def test_a_severity_out_of_range_is_refused(tmp_path, severity):
    write(tmp_path)
    with pytest.raises(ValueError, match="severity"):
        load("cifar10c", root=tmp_path, options={"corruption": "fog", "severity": severity})


def test_missing_labels_are_asked_for(tmp_path):
    (write(tmp_path) / "labels.npy").unlink()
    with pytest.raises(DataError, match=r"labels\.npy"):
        load("cifar10c", root=tmp_path, options={"corruption": "fog"})


@pytest.mark.parametrize("array", [IMAGES[:19], IMAGES.astype(np.float32), IMAGES[:, :31], LABELS])
def test_wrong_images_are_named(tmp_path, array):
    np.save(write(tmp_path) / "fog.npy", array)
    with pytest.raises(DataError, match=r"fog\.npy"):
        load("cifar10c", root=tmp_path, options={"corruption": "fog"})


@pytest.mark.parametrize("keep", [0, 5, 200, -1])
def test_a_truncated_file_is_named(tmp_path, keep):
    file = write(tmp_path) / "fog.npy"
    file.write_bytes(file.read_bytes()[:keep])
    with pytest.raises(DataError, match=r"fog\.npy"):
        load("cifar10c", root=tmp_path, options={"corruption": "fog"})


def test_python_objects_are_refused(tmp_path):
    np.save(write(tmp_path) / "fog.npy", np.array([{}], dtype=object), allow_pickle=True)
    with pytest.raises(DataError, match=r"fog\.npy"):
        load("cifar10c", root=tmp_path, options={"corruption": "fog"})
