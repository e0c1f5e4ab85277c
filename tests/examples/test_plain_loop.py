"""The first example runs as its reader would run it, and stays short."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "plain_loop.py"


@pytest.mark.slow
def test_plain_loop_prints_one_row_per_loss():
    path = os.pathsep.join([str(EXAMPLE.parents[1] / "src"), os.environ.get("PYTHONPATH", "")])
    result = subprocess.run(
        [sys.executable, EXAMPLE],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": path},
    )
    rows = [line.rsplit(maxsplit=2) for line in result.stdout.splitlines()[1:]]
    assert len(rows) == 5
    for _, accuracy, gap in rows:
        assert float(accuracy) > 0.6
        assert abs(float(gap)) < 0.3


def test_it_fits_on_a_page():
    assert len(EXAMPLE.read_text().splitlines()) <= 60
