"""CIFAR in its two forms, on tiny files of the same format."""

import numpy as np
import pytest

from equipoise.core.errors import DataError
from equipoise.data import load
from helpers.official import set_counts

PER_BATCH, N_TEST = 10, 20
OPTIONS = {"tune": 10, "calib": 10}


@pytest.fixture(autouse=True)
def _small(monkeypatch):
    set_counts(monkeypatch, **dict.fromkeys(("cifar10", "cifar100"), (5 * PER_BATCH, N_TEST)))


def planes(n, seed):
    return np.random.default_rng(seed).integers(0, 256, (n, 3, 32, 32), dtype=np.uint8)


TRAIN = [(planes(PER_BATCH, k), np.arange(PER_BATCH) % 10) for k in range(5)]
TEST = (planes(N_TEST, 9), np.arange(N_TEST) % 10)
IMAGES = np.concatenate([pixels for pixels, _ in [*TRAIN, TEST]])
LABELS = np.concatenate([labels for _, labels in [*TRAIN, TEST]])


def records(pixels, labels, label_bytes):
    numbers = np.zeros((len(labels), label_bytes), np.uint8)
    numbers[:, -1] = labels
    return np.concatenate([numbers, pixels.reshape(len(pixels), -1)], axis=1).tobytes()


def write_binary(root):
    folder = root / "cifar-10-batches-bin"
    folder.mkdir()
    for number, (pixels, labels) in enumerate(TRAIN, start=1):
        (folder / f"data_batch_{number}.bin").write_bytes(records(pixels, labels, 1))
    (folder / "test_batch.bin").write_bytes(records(*TEST, 1))
    return folder


def write_npz(root):
    pixels = IMAGES.transpose(0, 2, 3, 1)
    np.savez(
        root / "cifar10.npz",
        x_train=pixels[:50],
        y_train=LABELS[:50],
        x_test=pixels[50:],
        y_test=LABELS[50:, None],
    )
    return root


def read(root, name="cifar10", **options):
    return load(name, root=root, options={**OPTIONS, **options})


@pytest.mark.parametrize("write", [write_binary, write_npz])
def test_all_forms_give_the_same_images(tmp_path, write):
    write(tmp_path)
    data = read(tmp_path)
    assert np.array_equal(data.inputs.numpy(), IMAGES)
    assert np.array_equal(data.labels.numpy(), LABELS)
    assert data.class_names[3] == "cat"
    assert {split: len(rows) for split, rows in data.splits.items()} == {
        "train": 30,
        "tune": 10,
        "calib": 10,
        "test": 20,
    }
    assert data.class_counts("tune").tolist() == [1] * 10
    assert all(len(record.sha256) == 64 and record.size > 0 for record in data.provenance)


def test_cifar100_has_fine_labels(tmp_path):
    folder = tmp_path / "cifar-100-binary"
    folder.mkdir()
    (folder / "train.bin").write_bytes(records(IMAGES[:50], LABELS[:50], 2))
    (folder / "test.bin").write_bytes(records(*TEST, 2))
    data = read(tmp_path, "cifar100")
    assert data.n_classes == 100
    assert np.array_equal(data.labels.numpy(), LABELS)


def test_the_focal_recipe_is_offered(tmp_path):
    write_binary(tmp_path)
    assert read(tmp_path, recipe="focal").rows("tune").tolist() != read(tmp_path).rows("tune").tolist()


def test_nothing_there_says_what_to_put_where(tmp_path, monkeypatch):
    with pytest.raises(DataError, match=r"cifar-10-batches-bin/.*cifar10.npz.*download=True"):
        read(tmp_path)
    monkeypatch.delenv("EQUIPOISE_DATA", raising=False)
    with pytest.raises(DataError, match="EQUIPOISE_DATA"):
        load("cifar10")
    monkeypatch.setenv("EQUIPOISE_DATA", str(tmp_path / "nowhere"))
    with pytest.raises(DataError, match="does not exist"):
        load("cifar10")


def test_the_folder_may_come_from_the_environment(tmp_path, monkeypatch):
    write_npz(tmp_path)
    monkeypatch.setenv("EQUIPOISE_DATA", str(tmp_path))
    assert len(load("cifar10", options=OPTIONS)) == 70


def test_an_archive_that_waits_is_mentioned(tmp_path):
    (tmp_path / "cifar-10-binary.tar.gz").write_bytes(b"x")
    with pytest.raises(DataError, match=r"to check and unpack cifar-10-binary\.tar\.gz"):
        read(tmp_path)


@pytest.mark.parametrize("cut", [1, 3000, -1])
def test_a_truncated_batch_is_named(tmp_path, cut):
    folder = write_binary(tmp_path)
    file = sorted(folder.iterdir())[1]
    file.write_bytes(file.read_bytes()[:cut])
    with pytest.raises(DataError, match=file.name):
        read(tmp_path)


def test_a_binary_batch_cut_between_records_is_named(tmp_path):
    file = write_binary(tmp_path) / "data_batch_3.bin"
    file.write_bytes(file.read_bytes()[: 3073 * 4])
    with pytest.raises(DataError, match=r"data_batch_3.bin: expected 10 images, got 4"):
        read(tmp_path)


def test_a_missing_batch_is_named(tmp_path):
    (write_binary(tmp_path) / "data_batch_2.bin").unlink()
    with pytest.raises(DataError, match=r"data_batch_2\.bin: no such file"):
        read(tmp_path)


def test_a_label_out_of_range_is_an_error(tmp_path):
    file = write_binary(tmp_path) / "data_batch_1.bin"
    file.write_bytes(records(TRAIN[0][0], TRAIN[0][1] + 5, 1))
    with pytest.raises(DataError, match="must lie in"):
        read(tmp_path)


@pytest.mark.parametrize(
    ("name", "folder", "binary"),
    [
        ("cifar10", "cifar-10-batches-py", "cifar-10-batches-bin"),
        ("cifar100", "cifar-100-python", "cifar-100-binary"),
    ],
)
def test_the_pickled_version_is_not_read(tmp_path, name, folder, binary):
    (tmp_path / folder).mkdir()
    with pytest.raises(DataError, match=f"pickles, which can run code.*{binary}/, or pass download=True"):
        read(tmp_path, name)
