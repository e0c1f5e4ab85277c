"""Hundreds of damaged files: each reads, or is refused in one sentence; nothing else ever escapes."""

import numpy as np
import pytest

from equipoise import iter_predictions, read_predictions, write_predictions
from equipoise.core import EquipoiseError
from equipoise.core.reading.formats import WRITERS
from helpers.hostile_files import WAYS, damaged, made


def complaint(read, path):
    try:
        read(path)
    except EquipoiseError as error:
        return str(error)
    return None


@pytest.mark.parametrize("how", WAYS)
@pytest.mark.parametrize("ending", sorted(WRITERS))
def test_damaged_files(tmp_path, ending, how):
    generator = np.random.default_rng([*ending.encode(), *how.encode()])
    path, complaints = tmp_path / f"a{ending}", []
    for kind in ("logits", "probs", "top1", "confidence"):
        write_predictions(made(kind), path)
        content = path.read_bytes()
        for _ in range(8):
            path.write_bytes(damaged(content, generator, how))
            complaints.append(complaint(read_predictions, path))
            complaints.append(complaint(lambda path: list(iter_predictions(path, chunk_rows=7)), path))
    refused = [text for text in complaints if text is not None]
    assert refused
    assert all(text.startswith(path.name) and "\n" not in text and len(text) < 700 for text in refused)
