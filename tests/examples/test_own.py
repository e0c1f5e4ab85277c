"""The example with everything of one's own: two workers, killed and resumed, and on Ray; and the page's files."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from equipoise.experiments import ScoringOptions, code_files, prepare, read_comparison, run_comparison
from helpers.tiny_runs import QUICK

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "own" / "compare.toml"


@pytest.fixture(scope="module")
def straight(tmp_path_factory):
    """Done in one process without a break: what every other way must give, byte for byte."""
    folder = tmp_path_factory.mktemp("straight")
    result = run_comparison(read_comparison(EXAMPLE), folder, **QUICK, workers=1)
    assert result.summary.failed == {}
    return result


@pytest.mark.slow
def test_the_table_holds_all_methods(straight):
    assert straight.tables[0].metrics[-1] == "metric.py:worst_class(least=5)"
    calibrators = list(dict.fromkeys(row.calibrator for row in straight.tables[0].rows))
    assert calibrators == ["identity", "temperature", "shrink.py-Shrunk(steps=100)"]
    assert set(straight.summary.done[0].scores().detection) == {"noise"}
    labels = list(dict.fromkeys(row.method for row in straight.tables[0].rows))
    assert labels == [
        "ce",
        "loss.py:Tempered(temperature=1.5)",
        "loss.py:squared",
        "focal+0.5*loss.py:squared",
    ]


@pytest.mark.slow
def test_killed_and_resumed_with_two_workers_it_gives_the_same(straight, tmp_path):
    command = ["compare", str(EXAMPLE), "--workers", "2", "--threads", "1", "--resamples", "20", "--quiet"]
    call = [sys.executable, "-m", "equipoise", *command, "--accelerator", "cpu", "--out", str(tmp_path)]
    first = subprocess.Popen(call, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while not list(tmp_path.glob("*/history.csv")) and first.poll() is None:
        time.sleep(0.02)
    os.kill(first.pid, signal.SIGKILL)
    first.wait()
    assert not (tmp_path / "own.results.csv").exists()
    assert subprocess.run(call, check=False, capture_output=True).returncode == 0
    assert (tmp_path / "own.results.csv").read_bytes() == straight.results.read_bytes()


@pytest.mark.slow
@pytest.mark.xdist_group("ray")
@pytest.mark.filterwarnings("ignore")
def test_on_ray_it_gives_the_same(straight, tmp_path):
    ray = pytest.importorskip("ray")
    os.environ["RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO"] = "0"
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, configure_logging=False)
    try:
        found = run_comparison(read_comparison(EXAMPLE), tmp_path, **QUICK, engine="ray")
    finally:
        ray.shutdown()
    assert found.summary.failed == {}
    assert found.results.read_bytes() == straight.results.read_bytes()


def test_the_files_of_the_page_are_a_comparison_that_can_begin(tmp_path, monkeypatch):
    page = (EXAMPLE.parents[2] / "docs" / "your-own.md").read_text()
    monkeypatch.chdir(tmp_path)
    exec(page.partition("```python\n")[2].partition("```")[0], {})
    found = read_comparison("mine.toml")
    files = [file.name for file in code_files(found.specs, extra=found.extra_code)]
    assert f"mine.toml runs code: {', '.join(files)}\n" in page
    scoring = ScoringOptions(calibrators=found.calibrators, metrics=found.extra_metrics, shift=found.shift)
    ready = prepare(found.specs, scoring=scoring)
    assert len(ready) == len(found.specs) == 6
