"""The pass gives the same whatever the length of a block; processors choose it, so here it is set."""

import os
import subprocess
import sys

import pytest

from equipoise.compiled.dispatch import why_plain

pytestmark = pytest.mark.skipif(why_plain() is not None, reason="nothing is compiled here")

COMPARE = """
import sys
import numpy as np
import torch
from equipoise.compiled import blocks

blocks.BLOCK = int(sys.argv[1])
from equipoise import Predictions
from equipoise.compiled.dispatch import going
from equipoise.metrics import CalibrationState

rng = np.random.default_rng(0)
dtype = np.dtype(sys.argv[2])
for k in (2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 33, 64, 100, 1001):
    for n, weighted in ((1, False), (150, False), (150, True)):
        # Rows that are not aligned to anything.
        logits = rng.normal(0, 3, n * k + 1).astype(dtype)[1:].reshape(n, k)
        probs = torch.softmax(torch.tensor(logits), 1).numpy()
        labels, weights = rng.integers(0, k, n), rng.random(n) if weighted else None
        for scores in ({"logits": logits}, {"probs": probs}):
            rows = Predictions(**scores, labels=labels, weights=weights)
            found = {}
            for way in ("compiled", "plain"):
                with going(way):
                    found[way] = CalibrationState.of(rows).sums.parts()
            close = {"rtol": 5e-6, "atol": 1e-4} if dtype == np.float32 else {"rtol": 1e-9, "atol": 1e-9}
            if "logits" in scores:
                # A softmax in single precision may be on the other side of an edge of the sketch.
                for parts in found.values():
                    parts["sketch"] = parts["sketch"].sum(0)
            for name, part in found["compiled"].items():
                torch.testing.assert_close(part, found["plain"][name], **close)
"""


@pytest.mark.deep
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("block", [16, 32, 64])
def test_any_length_of_a_block_gives_what_the_oracle_does(block, dtype, tmp_path):
    # Another folder for machine code: its name does not tell the length that is set here.
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    command = [sys.executable, "-c", COMPARE, str(block), dtype]
    done = subprocess.run(command, check=False, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
