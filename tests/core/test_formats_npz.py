"""NumPy archives: read in chunks, and never trusted."""

import pickle
import struct
import tracemalloc
import zipfile

import numpy as np
import pytest

from equipoise import iter_predictions, read_predictions, write_predictions
from equipoise.core import DataError
from helpers.hostile_files import Bomb, made, npy

GENERATOR = np.random.default_rng(0)
LOGITS = GENERATOR.normal(size=(50, 4)).astype(np.float32)
LABELS = GENERATOR.integers(0, 4, 50)


def header(shape, descr="<f4", version=1, fortran=False):
    text = f"{{'descr': {descr!r}, 'fortran_order': {fortran}, 'shape': {shape}, }}\n".encode()
    size = struct.pack("<H" if version == 1 else "<I", len(text))
    return b"\x93NUMPY" + bytes([version, 0]) + size + text


@pytest.fixture
def archive(tmp_path):
    def save(members, compression=zipfile.ZIP_STORED):
        path = tmp_path / "a.npz"
        items = members.items() if isinstance(members, dict) else members
        with zipfile.ZipFile(path, "w", compression) as file:
            for name, content in items:
                file.writestr(name, content)
        return path

    return save


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
@pytest.mark.parametrize("rows", [1, 7, 50, 1000])
def test_chunks_are_the_whole(tmp_path, save, rows):
    save(tmp_path / "a.npz", logits=LOGITS, labels=LABELS)
    chunks = list(iter_predictions(tmp_path / "a.npz", chunk_rows=rows))
    assert max(len(chunk) for chunk in chunks) == min(rows, 50)
    np.testing.assert_array_equal(np.concatenate([chunk.scores for chunk in chunks]), LOGITS)
    np.testing.assert_array_equal(np.concatenate([chunk.labels for chunk in chunks]), LABELS)


@pytest.mark.parametrize(
    "array",
    [np.asfortranarray(LOGITS), LOGITS.astype(">f8"), LOGITS.astype(np.float16), LOGITS.astype("<f8")],
)
def test_any_layout(tmp_path, array):
    np.savez(tmp_path / "a.npz", logits=array, labels=LABELS.astype(np.uint8))
    whole = read_predictions(tmp_path / "a.npz")
    np.testing.assert_array_equal(whole.scores, array)
    chunks = list(iter_predictions(tmp_path / "a.npz", chunk_rows=8))
    np.testing.assert_array_equal(np.concatenate([chunk.scores for chunk in chunks]), array)


def test_softmax_predictions_and_ground_truth(tmp_path):
    """The layout of a published calibration framework: softmax `predictions`, `ground_truth`."""
    probs = np.random.default_rng(1).dirichlet(np.ones(3), 20)
    np.savez(tmp_path / "a.npz", predictions=probs, ground_truth=np.arange(20) % 3)
    predictions = read_predictions(tmp_path / "a.npz")
    assert predictions.kind == "probs"
    np.testing.assert_array_equal(predictions.scores, probs)


def test_dense_arrays_in_chunks(tmp_path):
    logits, labels = np.zeros((5, 3, 2, 2)), np.zeros((5, 2, 2), int)
    labels[3, 1, 0] = 7
    np.savez(tmp_path / "a.npz", logits=logits, labels=labels)
    with pytest.raises(DataError, match="got 7 in row 14"):
        list(iter_predictions(tmp_path / "a.npz", chunk_rows=2))
    assert len(read_predictions(tmp_path / "a.npz", ignore_index=7)) == 19


@pytest.mark.parametrize("how", [read_predictions, lambda path: list(iter_predictions(path, chunk_rows=3))])
def test_a_pickle_is_never_loaded(tmp_path, how):
    objects = np.array([Bomb()], dtype=object)
    np.savez(tmp_path / "a.npz", logits=np.zeros((1, 2)), labels=objects, allow_pickle=True)
    with pytest.raises(
        DataError, match=r"`labels` holds Python objects, a pickle, which is never loaded.*astype"
    ):
        how(tmp_path / "a.npz")


def test_a_pickle_that_nobody_asks_for_does_no_harm(tmp_path):
    objects = np.array([Bomb()], dtype=object)
    np.savez(tmp_path / "a.npz", logits=np.zeros((1, 2)), labels=[0], notes=objects, allow_pickle=True)
    assert len(read_predictions(tmp_path / "a.npz")) == 1


def test_a_bare_pickle_under_the_name(tmp_path):
    (tmp_path / "a.npz").write_bytes(pickle.dumps({"logits": [1]}))
    with pytest.raises(DataError, match=r"a\.npz is cut off, damaged, or no \.npz archive"):
        read_predictions(tmp_path / "a.npz")


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_cut_off_anywhere(tmp_path, save):
    save(tmp_path / "whole.npz", logits=LOGITS, labels=LABELS)
    content = (tmp_path / "whole.npz").read_bytes()
    for length in {0, 1, 4, 30, 100, len(content) // 2, len(content) - 30, len(content) - 1}:
        (tmp_path / "a.npz").write_bytes(content[:length])
        with pytest.raises(DataError, match=r"^a\.npz.*(damaged|cut off).*again\.$") as caught:
            read_predictions(tmp_path / "a.npz")
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_a_flipped_bit_is_noticed(tmp_path, save):
    save(tmp_path / "a.npz", logits=LOGITS, labels=LABELS)
    content = bytearray((tmp_path / "a.npz").read_bytes())
    content[400] ^= 0x10
    (tmp_path / "a.npz").write_bytes(content)
    with pytest.raises(DataError, match=r"^a\.npz.*damaged.*again\.$"):
        read_predictions(tmp_path / "a.npz")


@pytest.mark.parametrize(
    "content",
    [b"", b"\n", b"<html>no</html>" * 20, b"\x93NUMPY\x01\x00", b"PK\x03\x04" + b"\0" * 100, b"\0" * 4096],
)
def test_wrong_magic(tmp_path, content):
    (tmp_path / "a.npz").write_bytes(content)
    with pytest.raises(DataError, match=r"^a\.npz"):
        read_predictions(tmp_path / "a.npz")


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (b"", r"`labels` is no NumPy array"),
        (b"hello world", r"`labels` is no NumPy array"),
        (b"\x93NUMPY", r"ends within its header"),
        (b"\x93NUMPY\x01\x00\x76", r"ends within its header"),
        (b"\x93NUMPY\x03\x00" + b"\0" * 60, r"version 3 of NumPy's format"),
        (b"\x93NUMPY\x02\x00\xff\xff\xff\xff" + b" " * 99, r"header of 4294967295 bytes"),
        (b"\x93NUMPY\x01\x00\x10\x00" + b"(" * 16, r"damaged header"),
        (header("(50,)", "<i8")[:-9] + b"x" * 9, r"damaged header|promises"),
        (header("(-1,)", "<i8"), r"shape \(-1,\) is impossible"),
        (header("(True,)", "|i1") + b"\0", r"shape \(True,\) is impossible"),
        (header("(1.5,)", "<i8"), r"damaged header"),
        (header("(50,)", "<i8"), r"claims 400 bytes of numbers, the archive holds 0"),
        (header("(1000000000000,)", "<i8") + b"\0" * 400, r"claims 8000000000000 bytes"),
        (header("(50,)", "<i8") + b"\0" * 401, r"claims 400 bytes.*holds 401"),
        (header("(1000000000000, 0)", "<i8"), r"`labels` is empty"),
        (header("()", "<i8") + b"\0" * 8, r"it is a single number"),
        (header("(0,)", "<i8"), r"`labels` is empty"),
        (header("(50,)", "<M8[s]") + b"\0" * 400, r"must hold numbers or text, its type is datetime64"),
        (header("(50,)", "|S8") + b"\0" * 400, r"must hold numbers or text"),
        (header("(50,)", "<U1") + b"\xff\xff\xff\xff" * 50, r"impossible characters"),
        (header("(50,)", "<U1") + b"\x00\xd8\x00\x00" * 50, r"impossible characters"),
        (npy(np.zeros(50, dtype=[("a", "i4"), ("b", "i4")])), r"must hold numbers or text.*each field"),
        (npy(np.zeros(49, int)), r"as many rows: `logits` has 50, `labels` has 49"),
        (npy(np.zeros((50, 4), int)), r"Several labels per row are not supported"),
        (npy(np.full(50, 0.5)), r"integer class numbers, got dtype float64"),
    ],
)
def test_hostile_members(archive, labels, message):
    path = archive({"logits.npy": npy(LOGITS), "labels.npy": labels})
    with pytest.raises(DataError, match=message) as caught:
        read_predictions(path)
    assert str(caught.value).startswith("a.npz")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "name", ["../labels.npy", "/etc/labels.npy", "a/labels.npy", "a\\labels.npy", "..npy"]
)
def test_names_with_paths(archive, name):
    with pytest.raises(DataError, match="a path in its name"):
        read_predictions(archive({"logits.npy": npy(LOGITS), name: npy(LABELS)}))


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_a_name_twice(archive):
    members = [("logits.npy", npy(LOGITS)), ("labels.npy", npy(LABELS)), ("labels.npy", npy(LABELS * 0))]
    with pytest.raises(DataError, match="holds `labels` twice"):
        read_predictions(archive(members))


def test_no_arrays_at_all(archive):
    with pytest.raises(DataError, match=r"holds no arrays.*numpy\.savez"):
        read_predictions(archive({}))


def test_a_member_that_is_no_array_is_refused(archive):
    members = {"logits.npy": npy(LOGITS), "labels.npy": npy(LABELS), "weights.npx": npy(LABELS)}
    with pytest.raises(DataError, match=r"holds 'weights.npx', which is not an array"):
        read_predictions(archive(members))


def test_notes_that_cannot_be_understood_are_refused(archive):
    members = {"logits.npy": npy(LOGITS), "labels.npy": npy(LABELS)}
    for name, array in (("split", np.array(3)), ("n_classes", np.array("x")), ("fitted_on_id_hash", LOGITS)):
        with pytest.raises(DataError, match=f"`{name}` has the type .* which cannot be understood"):
            read_predictions(archive(members | {f"{name}.npy": npy(array)}))


def test_a_flipped_bit_never_gives_other_numbers(tmp_path):
    path = tmp_path / "a.npz"
    write_predictions(made("logits", n=4), path)
    content, truth = path.read_bytes(), read_predictions(path)
    directory = content.index(b"PK\x01\x02")
    lengths = [place + content.index(b"PK\x01\x02", directory) for place in (28, 30, 32)]
    other = []
    for place in (*range(0, directory, 23), *range(directory, len(content), 3), *lengths):
        bit = place % 8
        path.write_bytes(content[:place] + bytes([content[place] ^ 1 << bit]) + content[place + 1 :])
        try:
            read = read_predictions(path)
        except DataError:
            continue
        fields = ("kind", "class_names", "split", "fingerprint", "n_classes")
        same = all(getattr(read, name) == getattr(truth, name) for name in fields)
        same &= all(
            np.array_equal(getattr(read, name), getattr(truth, name)) for name in ("scores", "weights")
        )
        same &= {name: list(column) for name, column in read.groups.items()} == {
            name: list(column) for name, column in truth.groups.items()
        }
        other += [] if same else [(place, bit)]
    assert other == []


def test_encrypted(archive):
    path = archive({"logits.npy": npy(LOGITS), "labels.npy": npy(LABELS)})
    content = bytearray(path.read_bytes())
    place = content.index(b"PK\x01\x02")
    content[place + 8] |= 1
    path.write_bytes(content)
    with pytest.raises(DataError, match="is encrypted"):
        read_predictions(path)


@pytest.mark.parametrize("compression", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_packed_in_a_foreign_way(archive, compression):
    with pytest.raises(DataError, match="packed in a way that numpy does not use"):
        read_predictions(archive({"logits.npy": npy(LOGITS), "labels.npy": npy(LABELS)}, compression))


def peak_of(call):
    tracemalloc.start()
    try:
        call()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.fixture
def zip_bomb(tmp_path):
    """400 MB of zeros in 400 kB."""
    path = tmp_path / "bomb.npz"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        with file.open("logits.npy", "w", force_zip64=True) as stream:
            stream.write(header("(50000000, 2)", "<f4"))
            for _ in range(400):
                stream.write(bytes(1_000_000))
        file.writestr("labels.npy", npy(LABELS))
    return path


def test_a_zip_bomb_is_refused_in_little_memory(zip_bomb):
    def read():
        with pytest.raises(DataError, match=r"would grow from \d+ to 400\d+ bytes.*allow it: max_bytes=400"):
            read_predictions(zip_bomb)

    assert peak_of(read) < 20e6


def test_a_header_bomb_is_refused_in_little_memory(tmp_path):
    path = tmp_path / "a.npz"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("logits.npy", npy(LOGITS))
        with file.open("labels.npy", "w") as stream:
            stream.write(b"\x93NUMPY\x02\x00" + struct.pack("<I", 100_000_000))
            for _ in range(100):
                stream.write(b" " * 1_000_000)

    def read():
        with pytest.raises(DataError, match="header of 100000000 bytes"):
            read_predictions(path)

    assert peak_of(read) < 20e6


def test_a_directory_of_absurd_length_is_refused_before_it_is_read(tmp_path):
    path = tmp_path / "a.npz"
    entry = (
        struct.pack("<IHHHHHHIIIHHHHHII", 0x02014B50, 20, 20, 0, 0, 0, 33, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0)
        + b"x.npy"
    )
    directory = entry * 100_000
    end = struct.pack("<IHHHHIIH", 0x06054B50, 0, 0, 65535, 65535, len(directory), 0, 0)
    path.write_bytes(directory + end)

    def read():
        with pytest.raises(DataError, match="has a directory of 5100000 bytes"):
            read_predictions(path)

    assert peak_of(read) < 5e6


def test_claimed_size_beyond_the_file(archive):
    path = archive({"logits.npy": npy(LOGITS), "labels.npy": npy(LABELS)})
    content = bytearray(path.read_bytes())
    place = content.index(b"PK\x01\x02")
    content[place + 20 : place + 28] = struct.pack("<II", 10**9, 10**9)
    path.write_bytes(content)
    with pytest.raises(DataError, match="claims to be larger than the file"):
        read_predictions(path)


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_chunks_take_bounded_memory(tmp_path, save):
    n = 200_000
    probs = np.random.default_rng(0).dirichlet(np.ones(10), n).astype(np.float32)
    save(tmp_path / "a.npz", probs=probs, labels=np.zeros(n, int))

    def stream():
        assert sum(len(chunk) for chunk in iter_predictions(tmp_path / "a.npz", chunk_rows=2000)) == n

    stream()
    assert peak_of(stream) < probs.nbytes / 2


def test_errors_name_the_row_in_the_file(tmp_path):
    logits = LOGITS.copy()
    logits[33, 2] = np.nan
    np.savez(tmp_path / "a.npz", logits=logits, labels=LABELS)
    for read in (read_predictions, lambda path: list(iter_predictions(path, chunk_rows=10))):
        with pytest.raises(DataError, match=r"^a\.npz: `logits` must be finite, got nan in row 33, column 2"):
            read(tmp_path / "a.npz")


def test_class_names_of_other_writers(tmp_path):
    np.savez(
        tmp_path / "a.npz", logits=LOGITS, labels=np.array(list("abcd"))[LABELS], class_names=list("abcd")
    )
    predictions = read_predictions(tmp_path / "a.npz")
    assert predictions.class_names == ("a", "b", "c", "d")
    np.testing.assert_array_equal(predictions.labels, LABELS)


def test_an_unknown_split_word_in_the_file(tmp_path):
    np.savez(tmp_path / "a.npz", logits=LOGITS, labels=LABELS, split="val")
    with pytest.raises(ValueError, match=r"a\.npz.*`split` must be one of train, tune, calib, test"):
        read_predictions(tmp_path / "a.npz")
    assert read_predictions(tmp_path / "a.npz", split="tune").split == "tune"


def test_thousands_of_members(archive):
    with pytest.raises(DataError, match=r"holds 5000 members. Save scores as one array"):
        read_predictions(archive({f"x{number}.npy": b"" for number in range(5000)}))


def test_a_file_larger_than_memory(tmp_path, monkeypatch):
    np.savez(tmp_path / "a.npz", logits=LOGITS, labels=LABELS)

    def full(*_):
        raise MemoryError

    monkeypatch.setattr("equipoise.core.reading.formats.npz.NpzReader._take", full)
    with pytest.raises(
        DataError, match=r"does not fit into memory. Read it in chunks, with iter_predictions"
    ):
        read_predictions(tmp_path / "a.npz")


@pytest.mark.parametrize("extra", [{"weights": np.array(["a"] * 50)}, {"weights": np.ones((50, 2))}])
def test_bad_weights(tmp_path, extra):
    np.savez(tmp_path / "a.npz", logits=LOGITS, labels=LABELS, **extra)
    with pytest.raises(DataError, match=r"^a\.npz: `weights` must"):
        list(iter_predictions(tmp_path / "a.npz", chunk_rows=10, ignore_index=7))
