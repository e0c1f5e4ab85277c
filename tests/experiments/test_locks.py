"""A lock that a stopped process holds is reported with the process, instead of a silent wait."""

import os
import signal
import subprocess
import sys
import threading

import pytest

from equipoise.experiments import RunFolder
from equipoise.kernels import cache, locks

HOLD_RUN = (
    "from pathlib import Path; from equipoise.experiments import RunFolder; "
    "lock = RunFolder(Path(sys.argv[1])).locked()"
)
HOLD_CACHE = "from equipoise.kernels import cache; lock = cache.single_process()"


@pytest.fixture
def stop(monkeypatch):
    """Start a process that takes a lock, and stop it."""
    monkeypatch.setattr(locks, "PATIENCE", 0.1)
    started = []

    def start(code, *words):
        script = f"import sys, time; {code}\nwith lock: print('held', flush=True); time.sleep(600)"
        process = subprocess.Popen([sys.executable, "-c", script, *words], stdout=subprocess.PIPE, text=True)
        started.append(process)
        assert process.stdout.readline() == "held\n"
        os.kill(process.pid, signal.SIGSTOP)
        return process

    yield start
    for process in started:
        process.kill()
        process.wait()
        process.stdout.close()


@pytest.mark.parametrize("kind", ["run", "cache"])
def test_a_stopped_holder_is_named(kind, stop, tmp_path, monkeypatch):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    cache._cache_folder.cache_clear()
    process = stop(HOLD_RUN, str(tmp_path / "run")) if kind == "run" else stop(HOLD_CACHE)
    waiting = RunFolder(tmp_path / "run").locked() if kind == "run" else cache.single_process()
    end = threading.Timer(2.0, process.kill)
    end.start()
    with pytest.warns(locks.LockWarning, match=rf"lock .*held by process {process.pid}\b"), waiting:
        pass
    end.join()
    cache._cache_folder.cache_clear()
