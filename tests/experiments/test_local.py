"""The local engine: workers that die are replaced and heard, and a signal leaves nobody at work."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from equipoise.experiments import ComparisonSpec, RunFolder, Spec
from equipoise.experiments.engines.local import run_locally, usable_cores
from helpers.tiny_runs import FAILING, QUICK, TABLE

PAIR = [Spec.from_table({**TABLE, "seed": seed}) for seed in (0, 1)]


def test_last_words_of_a_worker_that_dies_at_once_are_reported(tmp_path, monkeypatch):
    broken = tmp_path / "python"
    broken.write_text("#!/bin/sh\necho 'libgone.so: cannot open' >&2\nexit 3\n")
    broken.chmod(0o755)
    (tmp_path / PAIR[0].identity).mkdir()
    monkeypatch.setattr(sys, "executable", str(broken))
    report = run_locally(PAIR, tmp_path, **QUICK, workers=2)
    assert len(report.failed) == 2
    assert all("died 3 times" in sentence for sentence in report.failed.values())
    assert all("libgone.so: cannot open" in sentence for sentence in report.failed.values())
    assert RunFolder(tmp_path / PAIR[0].identity).error()["stage"] == "process"


def test_a_worker_that_cannot_be_started_is_a_failure(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "executable", str(tmp_path / "nowhere"))
    report = run_locally(PAIR, tmp_path, **QUICK, workers=2)
    assert len(report.failed) == 2
    assert not report.is_whole


def test_runs_of_one_label_do_not_hide_each_other(tmp_path):
    """Runs that differ only in an option of their data both fail, and both are named."""
    data = [{"name": "digits", "options": {"tune": 0.0, "noise": noise}} for noise in (0.2, 0.3)]
    comparison = ComparisonSpec.from_table({**FAILING, "data": data})
    report = run_locally(comparison.specs, tmp_path, **QUICK, workers=1)
    assert len(report.failed) == 2


def test_any_error_of_one_run_leaves_the_others_running(tmp_path, monkeypatch):
    from equipoise.experiments.engines import local

    def fail(spec, base, *, scoring, execution):
        if spec.seed == 0:
            raise KeyError("surprise")
        return RunFolder(Path(base) / spec.identity)

    monkeypatch.setattr(local, "run", fail)
    report = run_locally(PAIR, tmp_path, **QUICK, workers=1)
    assert len(report.done) == 1
    assert "surprise" in next(iter(report.failed.values()))


def test_cores_are_those_this_process_may_use():
    if hasattr(os, "sched_getaffinity"):
        assert usable_cores() == len(os.sched_getaffinity(0))


def children(pid):
    found = []
    for entry in filter(str.isdigit, os.listdir("/proc")):
        try:
            parent = Path(f"/proc/{entry}/stat").read_text().rpartition(")")[2].split()[1]
        except OSError:
            continue
        if int(parent) == pid:
            found.append(int(entry))
    return found


def is_running(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks for processes in /proc")
@pytest.mark.slow
@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_signal_saves_and_leaves_nobody_at_work(tmp_path, number, code):
    spec = tmp_path / "long.toml"
    spec.write_text(
        'data = "digits"\nmodel = "mlp"\nmethod = "ce"\nseed = [0, 1]\n'
        'recipe = { name = "quick", epochs = 100000 }\n'
    )
    words = [
        "compare",
        str(spec),
        "--out",
        str(tmp_path / "runs"),
        "--workers",
        "2",
        "--threads",
        "1",
        "--quiet",
    ]
    process = subprocess.Popen(
        [sys.executable, "-m", "equipoise", *words], stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    until(lambda: len(list(tmp_path.glob("runs/*/last.pt"))) == 2)
    workers = children(process.pid)
    assert len(workers) == 2
    os.killpg(process.pid, number)
    _, words = process.communicate(timeout=60)
    assert process.returncode == code
    assert "Traceback" not in words
    assert not any(is_running(pid) for pid in workers)
    folders = [RunFolder(path) for path in (tmp_path / "runs").iterdir() if path.is_dir()]
    assert [folder.status() for folder in folders] == ["started"] * 2


def until(is_true, seconds=90):
    end = time.monotonic() + seconds
    while not is_true():
        assert time.monotonic() < end, "waited too long"
        time.sleep(0.1)
