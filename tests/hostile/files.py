"""Files of predictions, damaged at random or told to lie."""

import io
import json
import re
import struct
import zipfile
from pathlib import Path

import numpy as np

from equipoise import Predictions, iter_predictions, read_predictions, write_predictions
from equipoise.core.reading.formats import WRITERS
from equipoise.metrics import CalibrationState
from hostile.campaign import Wrong
from hostile_files import WAYS, damaged, made

Contents = dict[tuple[str, str], bytes]

#: Numbers that sizes, offsets and counts in headers are replaced by.
LIES = (0, 1, 2, 7, 255, 2**16, 2**31 - 1, 2**31, 2**40, 2**63 - 1, -1, -(2**31))


def prepare_files(folder: Path) -> Contents:
    found = {}
    for ending in WRITERS:
        for kind in ("logits", "probs", "top1"):
            path = folder / f"good{ending}"
            write_predictions(made(kind), path)
            CalibrationState.of(read_predictions(path))
            found[ending, kind] = path.read_bytes()
    return found


def try_file(contents: Contents, chance: np.random.Generator, folder: Path) -> None:
    """Damage one file, read it whole and in chunks, and score what was read."""
    (ending, kind), content = list(contents.items())[chance.integers(len(contents))]
    how = str(chance.choice([*WAYS, "splice", "lie", "lie", "bits"]))
    path = folder / f"a{ending}"
    path.write_bytes(_changed(content, contents, chance, how))
    if chance.random() < 0.5:
        found = list(iter_predictions(path, chunk_rows=int(chance.integers(1, 40))))
    else:
        found = [read_predictions(path)]
    if how in ("cut", "flip", "bits") and ending == ".npz":  # its sums of bytes can tell
        _check_same(found, made(kind))
    state = CalibrationState(found[0].n_classes)
    for part in found:
        state.update(part)


def _changed(content: bytes, contents: Contents, chance: np.random.Generator, how: str) -> bytes:
    if how == "bits":
        for _ in range(int(chance.integers(1, 9))):
            content = damaged(content, chance, "flip")
        return content
    if how == "splice":
        other = list(contents.values())[chance.integers(len(contents))]
        return content[: chance.integers(len(content))] + other[chance.integers(len(other)) :]
    if how == "lie":
        return lying(content, chance)
    return damaged(content, chance, how)


def lying(content: bytes, chance: np.random.Generator) -> bytes:
    """Replace a number of the file, written as text or as a little-endian integer, by another."""
    lie = int(chance.choice(LIES))
    numbers = list(re.finditer(rb"\d+", content[:2000]))
    if numbers and chance.random() < 0.7:
        at = numbers[chance.integers(len(numbers))]
        return content[: at.start()] + str(lie).encode() + content[at.end() :]
    size = int(chance.choice([1, 2, 4, 8]))
    place = int(chance.integers(max(1, len(content) - size)))
    return content[:place] + (lie % 256**size).to_bytes(size, "little") + content[place + size :]


def _check_same(found: list[Predictions], wanted: Predictions) -> None:
    for name in ("labels", "weights", "scores", "confidence"):
        whole = getattr(wanted, name)
        parts = [getattr(part, name) for part in found]
        if any((part is None) != (whole is None) for part in parts):
            raise Wrong(f"{name} came or went")
        if whole is not None and not np.array_equal(np.concatenate(parts), whole):
            raise Wrong(f"{name} changed")
    if any(set(part.groups) != set(wanted.groups) or part.split != wanted.split for part in found):
        raise Wrong("groups or split changed")


def prepare_bombs(folder: Path) -> None:
    prepare_files(folder)


def try_bomb(_: None, chance: np.random.Generator, folder: Path) -> None:
    """Read a small file that claims, or unfolds to, far more than it is."""
    make = BOMBS[chance.integers(len(BOMBS))]
    path = folder / "bomb"
    path = make(path, int(chance.integers(20, 29)))
    if path.stat().st_size > 1 << 20:
        raise Wrong("this bomb is not small")
    for part in iter_predictions(path) if chance.random() < 0.5 else [read_predictions(path)]:
        CalibrationState(part.n_classes).update(part)


def _npy_head(shape: tuple[int, ...], dtype: str) -> bytes:
    text = f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': {shape}, }}".ljust(117) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text.encode()


def npz_bomb(path: Path, size: int) -> Path:
    """Zeros that deflate to a thousandth."""
    path = path.with_suffix(".npz")
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        with archive.open("logits.npy", "w", force_zip64=True) as member:
            member.write(_npy_head((1 << size, 2), "<f4"))
            for _ in range(max(1, (8 << size) >> 24)):
                member.write(bytes(min(8 << size, 1 << 24)))
        stream = io.BytesIO()
        np.save(stream, np.zeros(4, np.int64))
        archive.writestr("labels.npy", stream.getvalue())
    if path.stat().st_size > 1 << 20:
        return npz_bomb(path, size - 1)
    return path


def npy_bomb(path: Path, size: int) -> Path:
    path = path.with_suffix(".npy")
    path.write_bytes(_npy_head((1 << size, 1 << size), "<f8"))
    path.with_name("labels.npy").write_bytes(_npy_head((1 << size,), "<i8"))
    return path


def safetensors_bomb(path: Path, size: int) -> Path:
    path = path.with_suffix(".safetensors")
    head = {
        name: {"dtype": "F32", "shape": [1 << size, 9], "data_offsets": [0, 36 << size]}
        for name in ("logits", "labels")
    }
    text = json.dumps(head).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text)
    return path


def parquet_lists(path: Path, size: int) -> Path:
    """One row group of lists that a dictionary and runs fold to nothing."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = path.with_suffix(".parquet")
    n, k = 1 << (size - 10), 1 << 10
    values = pa.array(np.zeros(n * k, np.float32))
    offsets = pa.array(np.arange(0, n * k + 1, k, dtype=np.int32))
    table = pa.table({"logits": pa.ListArray.from_arrays(offsets, values), "labels": np.zeros(n, np.int64)})
    pq.write_table(table, path, compression="zstd")
    return path


def parquet_text(path: Path, size: int) -> Path:
    """Long words in a column of groups."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = path.with_suffix(".parquet")
    n = 1 << (size - 8)
    zeros = np.zeros(n, np.int32)
    words = pa.DictionaryArray.from_arrays(pa.array(zeros), pa.array(["x" * 20_000]))
    columns = {"labels": zeros, "predicted": zeros, "confidence": np.full(n, 0.5, np.float32)}
    pq.write_table(pa.table({**columns, "group_site": words}), path, compression="zstd")
    return path


BOMBS = (npz_bomb, npy_bomb, safetensors_bomb, parquet_lists, parquet_text)
