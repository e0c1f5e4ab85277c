"""CIFAR in its three forms, on tiny files of the same format."""

import os
import pickle

import numpy as np
import pytest

from equipoise.core.errors import DataError
from equipoise.data import load
from equipoise.data.readers.cifar import read_python_batch
from equipoise.data.readers.safe_pickle import read_plain_pickle
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


def python2_batch(pixels, labels, key="labels"):
    """The bytes of a batch as Python 2 wrote it: protocol 2, byte strings, the old module of NumPy."""
    content = pickle.dumps({"data": pixels.reshape(len(pixels), -1), key: labels.tolist()}, protocol=2)
    return content.replace(b"numpy._core.multiarray", b"numpy.core.multiarray")


def write_python(root, name="cifar10"):
    folder = root / {"cifar10": "cifar-10-batches-py", "cifar100": "cifar-100-python"}[name]
    folder.mkdir()
    if name == "cifar10":
        for number, (pixels, labels) in enumerate(TRAIN, start=1):
            (folder / f"data_batch_{number}").write_bytes(python2_batch(pixels, labels))
        (folder / "test_batch").write_bytes(python2_batch(*TEST))
    else:
        (folder / "train").write_bytes(python2_batch(IMAGES[:50], LABELS[:50], "fine_labels"))
        (folder / "test").write_bytes(python2_batch(*TEST, "fine_labels"))
    return folder


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


@pytest.mark.parametrize("write", [write_python, write_binary, write_npz])
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


def test_cifar100_has_fine_labels_in_both_forms(tmp_path):
    (tmp_path / "a").mkdir()
    write_python(tmp_path / "a", "cifar100")
    one = read(tmp_path / "a", "cifar100")
    folder = tmp_path / "cifar-100-binary"
    folder.mkdir()
    (folder / "train.bin").write_bytes(records(IMAGES[:50], LABELS[:50], 2))
    (folder / "test.bin").write_bytes(records(*TEST, 2))
    two = read(tmp_path, "cifar100")
    assert one.n_classes == 100
    assert one.fingerprints == two.fingerprints
    assert np.array_equal(two.labels.numpy(), LABELS)


def test_the_focal_recipe_is_offered(tmp_path):
    write_python(tmp_path)
    assert read(tmp_path, recipe="focal").rows("tune").tolist() != read(tmp_path).rows("tune").tolist()


def test_nothing_there_says_what_to_put_where(tmp_path, monkeypatch):
    with pytest.raises(DataError, match=r"cifar-10-batches-py/.*cifar10.npz.*download=True"):
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
    (tmp_path / "cifar-10-python.tar.gz").write_bytes(b"x")
    with pytest.raises(DataError, match=r"to check and unpack cifar-10-python\.tar\.gz"):
        read(tmp_path)


@pytest.mark.parametrize("cut", [1, 3000, -1])
@pytest.mark.parametrize("write", [write_python, write_binary])
def test_a_truncated_batch_is_named(tmp_path, write, cut):
    folder = write(tmp_path)
    file = sorted(folder.iterdir())[1]
    file.write_bytes(file.read_bytes()[:cut])
    with pytest.raises(DataError, match=file.name):
        read(tmp_path)


def test_a_binary_batch_cut_between_records_is_named(tmp_path):
    file = write_binary(tmp_path) / "data_batch_3.bin"
    file.write_bytes(file.read_bytes()[: 3073 * 4])
    with pytest.raises(DataError, match=r"data_batch_3.bin: 10 images were wanted, got 4"):
        read(tmp_path)


def test_a_missing_batch_is_named(tmp_path):
    (write_python(tmp_path) / "data_batch_2").unlink()
    with pytest.raises(DataError, match="data_batch_2: no such file"):
        read(tmp_path)


@pytest.mark.parametrize(
    "batch",
    [
        [1, 2],
        {"data": np.zeros((2, 3072), np.uint8)},
        {"data": np.zeros((2, 3072), np.float32), "labels": [0, 1]},
        {"data": np.zeros((2, 3071), np.uint8), "labels": [0, 1]},
        {"data": np.zeros((3, 3072), np.uint8), "labels": [0, 1]},
        {"data": "text", "labels": [0, 1]},
    ],
)
def test_a_batch_that_holds_something_else_is_named(tmp_path, batch):
    file = write_python(tmp_path) / "data_batch_1"
    file.write_bytes(pickle.dumps(batch))
    with pytest.raises(DataError, match="data_batch_1"):
        read(tmp_path)


def test_a_label_out_of_range_is_refused(tmp_path):
    file = write_python(tmp_path) / "data_batch_1"
    file.write_bytes(python2_batch(TRAIN[0][0], TRAIN[0][1] + 5))
    with pytest.raises(DataError, match="must lie in"):
        read(tmp_path)


class Hostile:
    def __reduce__(self):
        return os.mkdir, ("owned",)


def test_a_hostile_pickle_is_refused_before_it_acts(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    file = write_python(tmp_path) / "data_batch_1"
    file.write_bytes(pickle.dumps({"data": Hostile(), "labels": []}))
    with pytest.raises(DataError, match=r"data_batch_1.*mkdir"):
        read(tmp_path)
    assert not (tmp_path / "owned").exists()


ARRAY = (
    b"cnumpy.core.multiarray\n_reconstruct\n(cnumpy\nndarray\n(I0\ntS'b'\ntR(I1\n%scnumpy\ndtype\n(%sI0\nI1\ntR"
    b"(I3\nS'|'\nNNNI-1\nI-1\nI0\ntbI00\n%stb."
)


def test_an_array_that_is_used_twice_is_one(tmp_path):
    array = np.arange(6, dtype=">i4").reshape(2, 3, order="F")
    (tmp_path / "batch").write_bytes(pickle.dumps([array, array], protocol=2))
    first, second = read_plain_pickle(tmp_path / "batch")
    assert first is second
    assert np.array_equal(first, array)
    (tmp_path / "batch").write_bytes(ARRAY % (b"(I2\nt", b"S'u1'\n", b"S'12'\n"))
    assert read_plain_pickle(tmp_path / "batch").tolist() == [49, 50]


@pytest.mark.parametrize("labels", [7, [[1]], ["a"], [2**70], [True], [1.5], None])
def test_labels_that_are_no_class_numbers(tmp_path, labels):
    content = {"data": np.zeros((1, 3072), np.uint8), "labels": labels}
    (tmp_path / "batch").write_bytes(pickle.dumps(content, protocol=2))
    with pytest.raises(DataError, match="'labels' must be a list of class numbers"):
        read_python_batch(tmp_path / "batch", label_key="labels")


@pytest.mark.parametrize(
    "content",
    [
        b"cbuiltins\neval\n(S'1'\ntR.",
        b"cnumpy\nload\n(S'x'\ntR.",
        b"cnumpy.core.multiarray\nscalar\n.",
        b"c_codecs\nencode\n(Vx\nVrot13\ntR.",
        b"\x80\x02]q",
        b"",
        # an object dtype by way of its state, then an array of raw pointers
        b"cnumpy\ndtype\n(S'O8'\nI0\nI1\ntR.",
        b"cnumpy\ndtype\n(S'i8'\nI0\nI1\ntR(I3\nS'|'\nNN(S'x'\ntI-1\nI-1\nI63\ntb.",
        b"cnumpy\ndtype\n(S'i8'\nI0\nI1\ntR(I3\nS'|'\nNNNI-1\nI-1\nI63\ntb.",
        # memory that nobody has filled
        b"\x80\x02cnumpy\nndarray\n((I9\nttR.",
        b"\x80\x02cnumpy\nndarray\n((I9\ntt\x81.",
        b"\x80\x02cnumpy\ndtype\nS'i8'\n\x85\x81.",
        # BUILD on anything else
        b"\x80\x02]}S'a'\nI1\nsb.",
        b"\x80\x02c_codecs\nencode\n}S'name'\nI1\nsb.",
        b"\x80\x02cnumpy\nndarray\nN}S'name'\nI1\ns\x86b.",
        # arrays that promise more than they hold, or less than nothing
        ARRAY % (b"(I9\nt", b"S'u1'\n", b"S'12'\n"),
        ARRAY % (b"(I-2\nt", b"S'u1'\n", b"S'12'\n"),
        ARRAY % (b"(I2\nt", b"S'O8'\n", b"S'12'\n"),
        ARRAY % (b"(I1\nt", b"S'u1'\n", b"(lI7\na"),
        # a place in the memory that would need gigabytes
        b"\x80\x02]r\xff\xff\xff\x7fj\xff\xff\xff\x7f\x81.",
        b"\x80\x04\x8e" + b"\xff" * 7 + b"\x7f.",
        b"(" * 100_000,
        b"I" + b"9" * 10_000 + b"\n.",
    ],
)
def test_what_data_never_needs_is_refused(tmp_path, content):
    file = tmp_path / "batch"
    file.write_bytes(content)
    with pytest.raises(DataError, match="plain arrays"):
        read_plain_pickle(file)


def test_a_pickle_of_todays_numpy_is_read(tmp_path):
    array = np.arange(6, dtype=np.uint8).reshape(2, 3)
    for protocol in range(2, 5):
        (tmp_path / "batch").write_bytes(pickle.dumps({"a": array}, protocol=protocol))
        assert np.array_equal(read_plain_pickle(tmp_path / "batch")["a"], array)


@pytest.mark.parametrize(
    "change",
    [
        {"x_train": np.zeros((50, 32, 32), np.uint8)},
        {"x_train": np.zeros((50, 32, 32, 3), np.float32)},
        {"x_test": np.zeros((19, 32, 32, 3), np.uint8)},
        {"y_test": np.zeros(19, np.uint8)},
        {"y_test": np.zeros(20)},
    ],
)
def test_a_wrong_npz_is_named(tmp_path, change):
    write_npz(tmp_path)
    with np.load(tmp_path / "cifar10.npz") as stored:
        np.savez(tmp_path / "cifar10.npz", **{**dict(stored), **change})
    with pytest.raises(DataError, match=r"cifar10\.npz"):
        read(tmp_path)


def test_an_npz_without_test_images_is_named(tmp_path):
    np.savez(tmp_path / "cifar10.npz", x_train=IMAGES)
    with pytest.raises(DataError, match="must hold x_train, y_train, x_test, y_test"):
        read(tmp_path)


def test_half_an_npz_is_named(tmp_path):
    write_npz(tmp_path)
    content = (tmp_path / "cifar10.npz").read_bytes()
    (tmp_path / "cifar10.npz").write_bytes(content[: len(content) // 2])
    with pytest.raises(DataError, match=r"cifar10\.npz"):
        read(tmp_path)
