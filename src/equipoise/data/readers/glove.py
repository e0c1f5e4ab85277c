"""GloVe word vectors, from the official text file or a .npz file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from equipoise.core.errors import DataError
from equipoise.core.progress import progress
from equipoise.data.folders import check_count, missing, read_npz_arrays
from equipoise.data.official import OFFICIAL

__all__ = ["find_glove", "read_glove"]

_TEXT = "glove.6B.100d.txt"


def find_glove(root: Path) -> Path:
    """Return the file of word vectors in the data folder.

    Args:
        root: The data folder.

    Returns:
        The text file if it is there, else the first .npz file of the folder ``glove``.

    Raises:
        DataError: If there is none: what to put where.

    Example:
        >>> find_glove(Path("."))
        Traceback (most recent call last):
        ...
        equipoise.core.errors.DataError: glove: not found in .. Put there glove/glove.6B.100d.txt ...
    """
    options = [root / "glove" / _TEXT, root / _TEXT, *sorted((root / "glove").glob("*.npz"))]
    found = next((path for path in options if path.is_file()), None)
    if found is None:
        raise missing("glove", root)
    return found


def read_glove(path: Path, vocabulary: Mapping[str, int]) -> Tensor:
    """Read the vectors of a vocabulary.

    Args:
        path: ``glove.6B.100d.txt``, or a .npz file with ``words`` and ``vectors``.
        vocabulary: Word to number.

    Returns:
        One row per number, float32; rows of padding and of words without a vector are zero.

    Raises:
        DataError: If the file is damaged or truncated.

    Example:
        >>> import tempfile
        >>> file = Path(tempfile.mkdtemp()) / "v.npz"
        >>> np.savez(file, words=np.array(["a", "b"]), vectors=np.eye(2))
        >>> read_glove(file, {"b": 1, "x": 2})
        tensor([[0., 0.],
                [0., 1.],
                [0., 0.]])
    """
    vectors = _from_npz(path, vocabulary) if path.suffix == ".npz" else _from_text(path, vocabulary)
    width = len(next(iter(vectors.values()))) if vectors else 100
    rows = np.zeros((max(vocabulary.values(), default=0) + 1, width), dtype=np.float32)
    for number, vector in vectors.items():
        rows[number] = vector
    return torch.from_numpy(rows)


def _from_npz(path: Path, vocabulary: Mapping[str, int]) -> dict[int, NDArray[np.float32]]:
    stored = read_npz_arrays(path, ("words", "vectors"))
    words, vectors = stored["words"], stored["vectors"]
    if vectors.ndim != 2 or len(words) != len(vectors):
        raise DataError(
            f"{path}: must hold one vector per word, got {words.shape} words and {vectors.shape} vectors. "
            "Save it again."
        )
    values = vectors.astype(np.float32)
    return {
        vocabulary[word]: values[place] for place, word in enumerate(words.tolist()) if word in vocabulary
    }


def _from_text(path: Path, vocabulary: Mapping[str, int]) -> dict[int, NDArray[np.float32]]:
    found: dict[int, NDArray[np.float32]] = {}
    total = OFFICIAL["glove"].counts[0]
    count, width = 0, 0
    with path.open(encoding="utf-8", errors="strict", newline="\n") as stream:
        for count, line in enumerate(
            progress(stream, label="reading GloVe", total=total, unit="words"), start=1
        ):
            word, _, rest = line.rstrip("\n").partition(" ")
            width = width or rest.count(" ")
            if rest.count(" ") != width or not line.endswith("\n"):
                raise DataError(
                    f"{path}: line {count} must hold a word and {width + 1} numbers. It is cut off."
                )
            if word in vocabulary:
                found[vocabulary[word]] = _vector(rest, path, count)
    check_count(count, total, where=str(path), what="words")
    return found


def _vector(text: str, path: Path, count: int) -> NDArray[np.float32]:
    try:
        return np.array(text.split(" "), dtype=np.float32)
    except ValueError:
        raise DataError(f"{path}: line {count} must hold a word and numbers. Get the file again.") from None
