"""A real Ray on this machine: the same scores as the local engine, and a killed worker loses nothing."""

import os
import signal
import threading
import time

import pytest

from equipoise.experiments import ComparisonSpec, run_comparison
from helpers.tiny_runs import DIVERGING

pytest.importorskip("ray")


# A cluster of its own takes a while to start.
pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("ray")]


@pytest.fixture(scope="module")
def cluster():
    import ray

    os.environ["RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO"] = "0"
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, configure_logging=False)
    yield ray
    ray.shutdown()


@pytest.mark.filterwarnings("ignore")
def test_same_scores_as_local_and_a_killed_worker_loses_nothing(cluster, table, quick, tmp_path):
    table["recipe"]["epochs"] = 12
    comparison = ComparisonSpec.from_table({**table, "name": "tiny", "method": ["ce", "focal"]})
    local = run_comparison(comparison, tmp_path / "local", **quick, workers=1)
    stop = threading.Event()
    killed = threading.Thread(
        target=kill_a_worker, args=(tmp_path / "ray", comparison.specs[0].identity, stop)
    )
    killed.start()
    found = run_comparison(comparison, tmp_path / "ray", **quick, engine="ray")
    stop.set()
    killed.join()
    assert found.summary.failed == {}
    assert found.results.read_bytes() == local.results.read_bytes()


@pytest.mark.filterwarnings("ignore")
def test_a_failure_is_told_in_the_words_of_the_local_engine(cluster, quick, tmp_path):
    comparison = ComparisonSpec.from_table(DIVERGING)
    local = run_comparison(comparison, tmp_path / "local", **quick, workers=1)
    found = run_comparison(comparison, tmp_path / "ray", **quick, engine="ray")
    assert found.summary.failed == local.summary.failed
    assert found.summary.failed


def kill_a_worker(folder, name, stop):
    """Kill the process that holds a run's lock once it has made an epoch."""
    while not stop.is_set():
        if (folder / name / "history.csv").exists():
            for pid in (int(entry) for entry in os.listdir("/proc") if entry.isdigit()):
                if holds(pid, str(folder / name / ".lock")):
                    os.kill(pid, signal.SIGKILL)
                    return
        time.sleep(0.01)


def holds(pid, path):
    if pid == os.getpid():
        return False
    try:
        return any(os.readlink(f"/proc/{pid}/fd/{fd}") == path for fd in os.listdir(f"/proc/{pid}/fd"))
    except OSError:
        return False
