"""A process forked from one that used several threads goes on alone."""

import os
import subprocess
import sys

import pytest

from helpers.daily import daily

FORK = """
import os, signal, sys
import numpy as np
import torch
from equipoise import Predictions, score

torch.set_num_threads(2)
logits = np.random.default_rng(0).normal(size=(20_000, 50)).astype(np.float32)
labels = np.zeros(20_000, int)
before = score(Predictions(logits=logits, labels=labels))
child = os.fork()
if child:
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
signal.alarm(240)  # nobody else ends a child that waits for ever
after = score(Predictions(logits=logits, labels=labels))
same = all(np.isclose(before[name].value, after[name].value) for name in before.scores)
os._exit(0 if same and torch.get_num_threads() == 1 else 1)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.parametrize("plain", daily(["0", "1"], keep=["0"]))
def test_scoring_in_a_forked_child_does_not_wait_for_threads_it_lacks(plain):
    environment = {**os.environ, "EQUIPOISE_PLAIN": plain, "OMP_NUM_THREADS": "2"}
    done = subprocess.run(
        [sys.executable, "-c", FORK],
        check=False,
        env=environment,
        timeout=300,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(("setting", "expected"), [("3", 3), ("2,1", 2), ("", None), ("many", None)])
def test_the_number_of_threads_without_torch(setting, expected):
    code = "import sys; sys.modules['torch'] = None\nfrom equipoise.kernels.threads import n_threads as n; print(n())"
    done = subprocess.run(
        [sys.executable, "-c", code],
        check=True,
        env={**os.environ, "OMP_NUM_THREADS": setting},
        timeout=60,
        capture_output=True,
        text=True,
    )
    assert int(done.stdout) == (expected or len(os.sched_getaffinity(0)))
