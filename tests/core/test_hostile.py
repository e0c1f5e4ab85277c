"""Hundreds of damaged files: each reads, or is refused in one sentence; nothing else ever escapes."""

import numpy as np
import pytest

from equipoise import iter_predictions, read_predictions, write_predictions
from equipoise.core import EquipoiseError, Predictions
from equipoise.core.formats import WRITERS


def made(kind, n=30):
    generator = np.random.default_rng(0)
    probs = generator.dirichlet(np.ones(3), n).astype(np.float32)
    scores = {"top1": {"predicted": probs.argmax(1), "confidence": probs.max(1)}}.get(kind, {kind: probs})
    return Predictions(
        **scores,
        labels=np.arange(n) % 3,
        weights=np.ones(n),
        groups={"site": np.array(["a", "bb", "c"])[np.arange(n) % 3], "age": np.arange(n)},
        class_names=["cat", "dog", "eel"],
        ids=np.arange(n),
        split="calib",
    )


def damaged(content, generator, how):
    data = bytearray(content)
    place, length = int(generator.integers(len(data))), int(generator.integers(1, 60))
    if how == "cut":
        return bytes(data[:place])
    if how == "flip":
        data[place] ^= 1 << int(generator.integers(8))
    elif how == "drop":
        del data[place : place + length]
    elif how == "insert":
        data[place:place] = generator.bytes(length)
    elif how == "repeat":
        data[place:place] = data[place : place + length]
    else:
        data[place : place + length] = generator.bytes(length)
    return bytes(data)


def complaint(read, path):
    try:
        read(path)
    except EquipoiseError as error:
        return str(error)
    return None


@pytest.mark.parametrize("how", ["cut", "flip", "drop", "insert", "repeat", "overwrite"])
@pytest.mark.parametrize("ending", sorted(WRITERS))
def test_damaged_files(tmp_path, ending, how):
    generator = np.random.default_rng([*ending.encode(), *how.encode()])
    path, complaints = tmp_path / f"a{ending}", []
    for kind in ("logits", "probs", "top1"):
        write_predictions(made(kind), path)
        content = path.read_bytes()
        for _ in range(8):
            path.write_bytes(damaged(content, generator, how))
            complaints.append(complaint(read_predictions, path))
            complaints.append(complaint(lambda path: list(iter_predictions(path, chunk_rows=7)), path))
    refused = [text for text in complaints if text is not None]
    assert refused
    assert all(text.startswith(path.name) and "\n" not in text and len(text) < 700 for text in refused)
