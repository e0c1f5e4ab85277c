"""Two processes over gloo against one process on the same global batches."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from training import two_processes

# What the processes of one host add up is tested every day in tests/metrics and tests/losses.
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def ranks(tmp_path_factory):
    """The histories that each of two processes saw."""
    folder = tmp_path_factory.mktemp("ranks")
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
        "OMP_NUM_THREADS": "1",
    }
    done = subprocess.run(
        [*command, two_processes.__file__, str(folder)],
        env=environment,
        capture_output=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr.decode()[-4000:]
    return [json.loads(Path(folder, f"rank{rank}.json").read_text()) for rank in range(2)]


@pytest.fixture(scope="module")
def alone():
    return two_processes.histories()


def test_both_processes_see_the_same_history(ranks):
    assert ranks[0] == ranks[1]


@pytest.mark.parametrize("name", two_processes.CASES)
def test_two_processes_see_what_one_sees(name, ranks, alone):
    for mine, theirs in zip(ranks[0][name], alone[name], strict=True):
        assert mine == pytest.approx(theirs, rel=1e-5, abs=1e-6)
