"""One run on several processes: one folder, every row scored once, the numbers of one process."""

import json
import threading

import numpy as np
import pytest

from equipoise.core.errors import SpecError
from equipoise.experiments import Execution, RunFolder, ScoringOptions, Spec, run
from equipoise.experiments.engines import local
from equipoise.experiments.engines.gpus import share_gpus, visible_gpus
from equipoise.experiments.runs.finding import find_runs
from equipoise.experiments.runs.stages import hardware_of
from helpers.limited import run_limited
from helpers.tiny_runs import QUICK, TABLE, quick_options

SPEC = """
name = "tiny"
data = { name = "digits", options = { noise = 0.3 } }
model = { name = "mlp", options = { hidden = [16] } }
method = "adafocal"
recipe = { name = "quick", epochs = 2 }
execution = { accelerator = "cpu", loader_workers = 0 }
"""
TRAIN = ["-m", "equipoise", "train", "run.toml", "--resamples", "20", "--out", "runs", "--json"]
TORCHRUN = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """The same run in one process."""
    table = {**TABLE, "method": "adafocal"}
    return run(Spec.from_table(table), tmp_path_factory.mktemp("alone"), **QUICK)


def assert_same_run(folder, alone, processes):
    """One run folder, whose predictions hold every row once, in order, and say what one process says."""
    [found] = find_runs(folder)
    assert found.name == alone.name
    assert found.status() == "finished"
    assert found.record("trained")["processes"] == processes
    for split in alone.splits():
        mine, theirs = (np.load(one.path / "predictions" / f"{split}.npz") for one in (found, alone))
        assert {"labels", "id_hash", "logits"} <= set(theirs)
        for name in ("labels", "id_hash"):
            assert mine[name].tolist() == theirs[name].tolist()
        np.testing.assert_allclose(mine["logits"], theirs["logits"], rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize(
    "command",
    [[*TORCHRUN, *TRAIN], [*TRAIN, "--devices", "2", "--strategy", "ddp"]],
    ids=["torchrun", "plain"],
)
def test_train_on_two_processes(command, alone, tmp_path):
    (tmp_path / "run.toml").write_text(SPEC)
    out = json.loads(run_limited(command, folder=tmp_path))  # one document: one process prints
    assert out["name"] == "tiny"
    assert_same_run(tmp_path / "runs", alone, 2)


@pytest.mark.slow
def test_compare_gives_each_run_several_processes(alone, tmp_path):
    (tmp_path / "run.toml").write_text(SPEC + "seed = [0, 1]\n")
    command = [
        "-m",
        "equipoise",
        "compare",
        "run.toml",
        "--resamples",
        "20",
        "--out",
        "runs",
        "--devices",
        "2",
    ]
    run_limited([*command, "--workers", "1"], folder=tmp_path, seconds=400)
    found = {one.name: one for one in find_runs(tmp_path / "runs")}
    assert len(found) == 2
    assert found[alone.name].record("trained")["processes"] == 2


def test_execution_is_no_part_of_the_identity_and_options_come_before_the_spec():
    plain = Spec.from_table(TABLE)
    spec = Spec.from_table({**TABLE, "execution": {"devices": 4, "compile": True, "loader_workers": 3}})
    assert spec.identity == plain.identity
    assert "execution" not in spec.to_table()
    chosen = hardware_of(spec, Execution(devices=2))
    assert (chosen.devices, chosen.compile, chosen.strategy) == (2, True, "auto")


def test_batch_norm_in_each_process_is_another_run():
    plain = Spec.from_table(TABLE)
    apart = Spec.from_table({**TABLE, "recipe": {**TABLE["recipe"], "sync_batchnorm": False}})
    assert apart.identity != plain.identity
    assert not hardware_of(apart, Execution()).sync_batchnorm


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"devcies": 2}, "did you mean 'devices'"),
        ({"devices": 0}, "must be at least 1"),
        ({"loader_workers": -1}, "must be at least 0"),
        ({"compile": "yes"}, "must be bool"),
    ],
)
def test_mistakes_in_execution_are_named(given, message):
    with pytest.raises(SpecError, match=rf"spec\.execution.*{message}"):
        Spec.from_table({**TABLE, "execution": given})


def test_a_comparison_refuses_several_machines_and_torchrun(tmp_path, monkeypatch):
    specs = [Spec.from_table(TABLE)]
    with pytest.raises(SpecError, match="--part"):
        local.run_locally(specs, tmp_path, scoring=ScoringOptions(), execution=Execution(nodes=2))
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "2")
    with pytest.raises(SpecError, match="torchrun"):
        local.run_locally(specs, tmp_path, **QUICK)


@pytest.mark.parametrize(
    ("gpus", "n_workers", "devices", "wanted"),
    [
        (["2", "5"], 2, 1, ["2", "5"]),
        (["2", "5"], 3, 1, ["2", "5", "2"]),
        (["0", "1", "2", "3", "4"], 2, 2, ["0,1", "2,3"]),
        ([], 2, 1, [None, None]),
    ],
)
def test_workers_get_cards_of_their_own(gpus, n_workers, devices, wanted):
    assert share_gpus(gpus, n_workers, devices=devices) == wanted


def test_cards_are_those_that_this_process_may_use():
    assert visible_gpus("cuda", {"CUDA_VISIBLE_DEVICES": "3, GPU-1"}) == ["3", "GPU-1"]
    assert visible_gpus("gpu", {"CUDA_VISIBLE_DEVICES": "3,-1,4"}) == ["3"]
    assert visible_gpus("cuda", {"CUDA_VISIBLE_DEVICES": ""}) == []
    assert visible_gpus("cpu", {"CUDA_VISIBLE_DEVICES": "0"}) == []


def test_the_process_of_a_worker_sees_its_card_only(tmp_path, monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "4,7")
    seen, both = [], threading.Barrier(2, timeout=60)

    class Worker:
        def __init__(self, environment):
            seen.append(environment["CUDA_VISIBLE_DEVICES"])

        def is_alive(self):
            return True

        def ask(self, job):
            both.wait()  # so that neither worker does all runs
            return {"path": str(tmp_path / "run")}

        def close(self):
            pass

    monkeypatch.setattr(local, "_Worker", Worker)
    specs = [Spec.from_table({**TABLE, "seed": seed}) for seed in range(4)]
    options = quick_options(accelerator="cuda")
    summary = local.run_locally(specs, tmp_path, **options, workers=2)
    assert summary.done == [RunFolder(tmp_path / "run")] * 4
    assert sorted(set(seen)) == ["4", "7"]
