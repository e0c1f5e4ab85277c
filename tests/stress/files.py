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
from helpers.hostile_files import WAYS, damaged, made, npy_header
from stress.judge import Wrong

Contents = dict[tuple[str, str], bytes]

#: Numbers that sizes, offsets and counts in headers are replaced by.
LIES = (0, 1, 2, 7, 255, 2**16, 2**31 - 1, 2**31, 2**40, 2**63 - 1, -1, -(2**31))


def prepare_files(folder: Path) -> Contents:
    found = {}
    for ending in WRITERS:
        for kind in ("logits", "probs", "top1", "confidence"):
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
    state = CalibrationState(found[0].n_classes or 0)
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
    if any(set(part.groups) != set(wanted.groups) for part in found):
        raise Wrong("groups changed")
    if any((part.split, part.class_names) != (wanted.split, wanted.class_names) for part in found):
        raise Wrong("split or class names changed")


def prepare_bombs(folder: Path) -> list[dict[str, bytes]]:
    """Files by name, the first of them to be read."""
    prepare_files(folder)
    found = []
    for make in BOMBS:
        place = folder / make.__name__
        place.mkdir()
        make(place)
        found.append({file.name: file.read_bytes() for file in sorted(place.iterdir())})
        if sum(map(len, found[-1].values())) > 1 << 20:
            raise ValueError(f"{make.__name__} is not small.")
    return found


def try_bomb(bombs: list[dict[str, bytes]], chance: np.random.Generator, folder: Path) -> None:
    """Read a small file that claims, or unfolds to, far more than it is."""
    bomb = bombs[chance.integers(len(bombs))]
    for name, content in bomb.items():
        (folder / name).write_bytes(lying(content, chance) if chance.random() < 0.3 else content)
    path = folder / next(iter(bomb))
    for part in iter_predictions(path) if chance.random() < 0.5 else [read_predictions(path)]:
        CalibrationState(part.n_classes or 0).update(part)


def npz_of_zeros(folder: Path) -> None:
    """256 MB that deflate to a thousandth."""
    n = 1 << 25
    labels = io.BytesIO()
    np.save(labels, np.zeros(4, np.int64))
    with zipfile.ZipFile(folder / "a.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        with archive.open("logits.npy", "w", force_zip64=True) as member:
            member.write(npy_header((n, 2), "<f4"))
            for _ in range(8 * n >> 24):
                member.write(bytes(1 << 24))
        archive.writestr("labels.npy", labels.getvalue())


def npy_of_nothing(folder: Path) -> None:
    (folder / "a.npy").write_bytes(npy_header((1 << 30, 1 << 20), "<f8"))
    (folder / "labels.npy").write_bytes(npy_header((1 << 30,), "<i8"))


def safetensors_of_nothing(folder: Path) -> None:
    place = {"dtype": "F32", "shape": [1 << 30, 9], "data_offsets": [0, 36 << 30]}
    text = json.dumps({"logits": place, "labels": place}).encode()
    (folder / "a.safetensors").write_bytes(struct.pack("<Q", len(text)) + text)


def parquet_of_lists(folder: Path) -> None:
    """Half a gigabyte of equal numbers in lists, which runs fold to nothing."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    n, k = 1 << 14, 1 << 10
    offsets = pa.array(np.arange(0, n * k + 1, k, dtype=np.int32))
    lists = pa.ListArray.from_arrays(offsets, pa.array(np.zeros(n * k, np.float32)))
    table = pa.table({"logits": lists, "labels": np.zeros(n, np.int64)})
    with pq.ParquetWriter(folder / "a.parquet", table.schema, compression="zstd") as writer:
        for _ in range(8):
            writer.write_table(table)


def parquet_of_words(folder: Path) -> None:
    """Five gigabytes of one long word."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    zeros = np.zeros(1 << 18, np.int32)
    words = pa.DictionaryArray.from_arrays(pa.array(zeros), pa.array(["x" * 20_000]))
    columns = {"labels": zeros, "predicted": zeros, "confidence": np.full(len(zeros), 0.5, np.float32)}
    pq.write_table(pa.table({**columns, "group_site": words}), folder / "a.parquet", compression="zstd")


BOMBS = (npz_of_zeros, npy_of_nothing, safetensors_of_nothing, parquet_of_lists, parquet_of_words)
