"""A real Ray on this machine: the same audit as in one process, and a killed worker costs only time."""

import json
import os
import signal
import threading
import time

import numpy as np
import pytest

from equipoise import Predictions, iter_predictions, write_predictions
from equipoise.cli import main
from equipoise.core.errors import DataError
from equipoise.evaluate import audit

ray = pytest.importorskip("ray")
from equipoise.integrations.ray import sum_on_ray  # noqa: E402

# A cluster of its own takes a while to start, and of two that start together one may end the process that uses it.
pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("ray"), pytest.mark.filterwarnings("ignore")]


@pytest.fixture(scope="module")
def cluster():
    os.environ["RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO"] = "0"
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, configure_logging=False)
    yield ray
    ray.shutdown()


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("parts")
    for number in range(5):
        generator = np.random.default_rng(number)
        logits = 2 * generator.normal(size=(300, 3))
        labels = (logits + generator.gumbel(size=logits.shape)).argmax(1)
        groups = {"site": np.array(["north", "south"])[generator.integers(0, 2, 300)]}
        write_predictions(
            Predictions(logits=2 * logits, labels=labels, groups=groups), folder / f"{number}.npz"
        )
    return folder


def close(one, two):
    if isinstance(one, dict):
        return one.keys() == two.keys() and all(close(one[key], two[key]) for key in one)
    if isinstance(one, list):
        return len(one) == len(two) and all(map(close, one, two))
    return one == pytest.approx(two, rel=1e-9, abs=1e-12) if isinstance(one, float) else one == two


def test_as_in_one_process_by_class_and_group_too(cluster, files):
    found = audit(sum_on_ray(str(files / "*.npz")), n_resamples=40).to_dict()
    expected = audit(iter_predictions(str(files / "*.npz")), n_resamples=40).to_dict()
    assert close(found, expected)
    again = audit(sum_on_ray(str(files / "*.npz")), n_resamples=40).to_dict()
    assert again == found


def test_the_commands_spread_files(cluster, files, capsys):
    pattern = str(files / "*.npz")
    for command in ("audit", "score"):
        assert main([command, pattern, "--engine", "ray", "--json", "--resamples", "20"]) == 0
        spread = json.loads(capsys.readouterr().out)
        assert main([command, pattern, "--json", "--resamples", "20"]) == 0
        here = json.loads(capsys.readouterr().out)
        assert spread["settings"]["n_samples"] == 1500
        assert close(spread["scores"]["ece"], here["scores"]["ece"])
    assert main(["audit", pattern, "--engine", "ray", "--against", str(files / "0.npz")]) == 2
    assert "baseline.state" in capsys.readouterr().err


def test_text_labels_are_numbered_alike_in_every_file(cluster, tmp_path):
    (tmp_path / "a.csv").write_text("label,predicted,confidence\ncat,cat,0.9\ndog,cat,0.6\n")
    (tmp_path / "b.csv").write_text("label,predicted,confidence\nant,ant,0.8\ndog,dog,0.7\n")
    found = audit(sum_on_ray(str(tmp_path / "*.csv")), n_resamples=10)
    assert sorted(part.name for part in found.classes) == ["ant", "cat", "dog"]


def test_a_damaged_file_is_told_as_if_it_were_read_here(cluster, files, tmp_path):
    (tmp_path / "bad.npz").write_bytes((files / "0.npz").read_bytes()[:500])
    with pytest.raises(DataError, match=r"bad\.npz"):
        sum_on_ray([str(files / "0.npz"), str(tmp_path / "bad.npz")])
    write_predictions(Predictions(probs=[[0.9, 0.1]], labels=[0]), tmp_path / "other.npz")
    with pytest.raises(DataError, match=r"other\.npz: \w+ must be the same"):
        sum_on_ray([str(files / "0.npz"), str(tmp_path / "other.npz")])


@pytest.mark.slow
def test_a_killed_worker_costs_only_time(cluster, files, tmp_path):
    """One file is a pipe's worth of patience: a worker that has it open is killed, and another reads it again."""
    slow = tmp_path / "slow.csv"
    with slow.open("w") as file:
        file.write("label,predicted,confidence\n")
        file.writelines(f"{n % 3},{n % 3 if n % 5 else (n + 1) % 3},0.8\n" for n in range(600_000))
    killed = []
    stop = threading.Event()
    thread = threading.Thread(target=kill_reader, args=(str(slow), stop, killed))
    thread.start()
    found = sum_on_ray([str(slow)])
    stop.set()
    thread.join()
    assert killed
    assert found.n_samples == 600_000


def kill_reader(path, stop, killed):
    while not stop.is_set() and not killed:
        for pid in (int(entry) for entry in os.listdir("/proc") if entry.isdigit()):
            if pid != os.getpid() and reads(pid, path):
                os.kill(pid, signal.SIGKILL)
                killed.append(pid)
                return
        time.sleep(0.005)


def reads(pid, path):
    try:
        return any(os.readlink(f"/proc/{pid}/fd/{fd}") == path for fd in os.listdir(f"/proc/{pid}/fd"))
    except OSError:
        return False
