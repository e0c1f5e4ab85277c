"""Small files of predictions in every form, and ways to damage them."""

import io
import struct

import numpy as np

from equipoise.core import Predictions

WAYS = ("cut", "flip", "drop", "insert", "repeat", "overwrite")


def made(kind, n=30):
    generator = np.random.default_rng(0)
    probs = generator.dirichlet(np.ones(3), n).astype(np.float32)
    scores = {"top1": {"predicted": probs.argmax(1), "confidence": probs.max(1)}}.get(kind, {kind: probs})
    truth = {"labels": np.arange(n) % 3, "class_names": ["cat", "dog", "eel"]}
    if kind == "confidence":
        scores, truth = {"confidence": probs.max(1)}, {"correct": np.arange(n) % 3 > 0}
    return Predictions(
        **scores,
        **truth,
        weights=np.ones(n),
        groups={"site": np.array(["a", "bb", "c"])[np.arange(n) % 3], "age": np.arange(n)},
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


class Bomb:
    """A pickle that would be noticed if it were loaded."""

    def __reduce__(self):
        return (exec, ("raise SystemExit('a pickle was loaded')",))


def npy(array, **options):
    stream = io.BytesIO()
    np.save(stream, array, **options)
    return stream.getvalue()


def npy_header(shape, dtype="<f4"):
    """Give what stands before the numbers; the shape may be a lie, or any text."""
    text = f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': {shape}, }}".ljust(117) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text.encode()
