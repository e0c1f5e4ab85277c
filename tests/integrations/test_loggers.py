"""Run folders, finished or growing, and epochs as they happen, in loggers; nothing leaves the machine."""

import json
import math
import shutil

import pytest
import torch
from torch import nn

from equipoise.cli import main
from equipoise.experiments import RunFolder, Spec, run
from equipoise.integrations.run_log import epoch_values, read_run
from equipoise.objectives import Supervised
from equipoise.training import Hardware, fit
from helpers.tiny_runs import QUICK, TABLE

# Loggers warn of one another's future; it is theirs to mend.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::PendingDeprecationWarning")


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """One finished run, and the same as it was before its last epoch was judged."""
    folder = tmp_path_factory.mktemp("runs")
    finished = run(Spec.from_table(TABLE), folder / "finished", **QUICK)
    growing = folder / "growing" / finished.name
    shutil.copytree(finished.path, growing)
    RunFolder(growing).clear_stages("trained")
    lines = (growing / "history.csv").read_text().splitlines(keepends=True)
    (growing / "history.csv").write_text("".join(lines[:-1]))
    return folder


@pytest.fixture(scope="module")
def wanted(runs):
    """What a logger must hold: steps of every series, and scores."""
    [folder] = (runs / "finished").iterdir()
    log = read_run(RunFolder(folder))
    series = {}
    for row in log.epochs:
        epoch, values = epoch_values(row)
        for name, value in values.items():
            series.setdefault(name, {})[epoch] = value
    return series, dict(log.scores)


def test_columns_of_test_are_logged_as_those_of_test():
    row = {"epoch": 2, "loss": 0.5, "tune_ece": 0.1, "test_ece": 0.2, "tuned": 1.0}
    assert epoch_values(row)[1] == {"train/loss": 0.5, "tune/ece": 0.1, "test/ece": 0.2, "train/tuned": 1.0}


def from_tensorboard(out):
    event_accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    [folder] = [path for path in out.iterdir() if path.is_dir()]
    read = event_accumulator.EventAccumulator(str(folder)).Reload()
    series = {name: {one.step: one.value for one in read.Scalars(name)} for name in read.Tags()["scalars"]}
    scores = {name: series.pop(name)[0] for name in list(series) if name.count("/") == 2}
    return series, scores


def from_mlflow(out):
    from mlflow.tracking import MlflowClient

    client = MlflowClient(tracking_uri=f"sqlite:///{out / 'mlflow.db'}")
    [found] = client.search_runs([one.experiment_id for one in client.search_experiments()])
    assert found.data.params["method.name"] == "ce"
    histories = {name: client.get_metric_history(found.info.run_id, name) for name in found.data.metrics}
    series = {name: {one.step: one.value for one in history} for name, history in histories.items()}
    assert all(len(history) == len(series[name]) for name, history in histories.items())  # nothing twice
    return series, {name: series.pop(name)[0] for name in list(series) if name.count("/") == 2}


HOSTS = {"tensorboard": from_tensorboard, "mlflow": from_mlflow}


@pytest.mark.parametrize("host", ["tensorboard", pytest.param("mlflow", marks=pytest.mark.integrations)])
def test_a_growing_run_is_exported_and_completed_later(host, runs, wanted, tmp_path, capsys):
    pytest.importorskip(host)
    out = tmp_path / "logs"
    assert main(["runs", "export", str(runs / "growing"), "--to", host, "--out", str(out), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert [one["epochs"] for one in told["runs"]] == [1]
    series, scores = HOSTS[host](out)
    assert {name: list(steps) for name, steps in series.items()} == {name: [0] for name in wanted[0]}
    assert scores == {}
    for _ in range(2):
        assert main(["runs", "export", str(runs / "finished"), "--to", host, "--out", str(out)]) == 0
        assert capsys.readouterr().out.startswith(host)
    series, scores = HOSTS[host](out)
    assert series == {name: pytest.approx(steps, rel=1e-6) for name, steps in wanted[0].items()}
    known = {name: value for name, value in wanted[1].items() if not math.isnan(value)}
    assert {name: scores[name] for name in known} == pytest.approx(known, rel=1e-6)


@pytest.mark.integrations
def test_wandb_logs_offline_and_keeps_one_log_of_a_run(runs, tmp_path, capsys):
    pytest.importorskip("wandb")
    for part in ("growing", "finished"):
        assert main(["runs", "export", str(runs / part), "--to", "wandb", "--out", str(tmp_path)]) == 0
    [folder] = tmp_path.glob("wandb/offline-run-*")
    [log] = folder.glob("*.wandb")
    content = log.read_bytes()
    assert b"tune/ece" in content
    assert b"test/temperature/ece" in content


def tiny_fit(on_epoch):
    batches = [(torch.eye(2), torch.tensor([0, 1]))]
    objective = Supervised(nn.Linear(2, 2), nn.CrossEntropyLoss())
    return fit(
        objective,
        batches,
        epochs=3,
        tune=batches,
        hardware=Hardware(accelerator="cpu"),
        quiet=True,
        on_epoch=on_epoch,
    )


def test_tensorboard_sees_epochs_as_they_happen(tmp_path):
    pytest.importorskip("tensorboard")
    from equipoise.integrations.tensorboard import TensorBoardLog

    seen = []

    def on_epoch(row):
        log(row)
        seen.append(len(from_tensorboard(tmp_path)[0]["tune/nll"]))

    with TensorBoardLog(tmp_path / "mine") as log:
        history = tiny_fit(on_epoch)
    assert seen == [1, 2, 3]
    assert list(from_tensorboard(tmp_path)[0]["train/loss"].values()) == pytest.approx(history.column("loss"))


@pytest.mark.integrations
def test_mlflow_sees_epochs_as_they_happen(tmp_path):
    pytest.importorskip("mlflow")
    from equipoise.integrations.mlflow import MlflowLog

    with MlflowLog(f"sqlite:///{tmp_path / 'mlflow.db'}", name="mine", settings={"method.name": "ce"}) as log:
        history = tiny_fit(log)
    assert list(from_mlflow(tmp_path)[0]["train/loss"].values()) == history.column("loss")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["runs", "export", "{runs}/nowhere", "--to", "tensorboard"], "no such folder"),
        (["runs", "export", "{runs}/finished"], "--to"),
        (["runs", "export", "{runs}/finished", "--to", "tensorbord"], "tensorboard"),
    ],
)
def test_what_cannot_be_exported_is_said(words, message, runs, capsys):
    pytest.importorskip("tensorboard")
    assert main([word.format(runs=runs) for word in words]) == 2
    assert message in capsys.readouterr().err


def test_a_damaged_run_is_left_out_and_named(runs, tmp_path, capsys):
    pytest.importorskip("tensorboard")
    shutil.copytree(runs / "finished", tmp_path / "runs")
    [folder] = (tmp_path / "runs").iterdir()
    shutil.copytree(runs / "finished" / folder.name, tmp_path / "runs" / "renamed")
    words = ["runs", "export", str(tmp_path / "runs"), "--to", "tensorboard", "--out", str(tmp_path / "logs")]
    assert main(words) == 0
    assert "1 runs are left out" in capsys.readouterr().err
    assert len(list((tmp_path / "logs").iterdir())) == 1


def test_a_missing_logger_is_told_with_its_extra(runs, monkeypatch, capsys):
    monkeypatch.setitem(__import__("sys").modules, "tensorboard", None)
    monkeypatch.delitem(__import__("sys").modules, "equipoise.integrations.tensorboard", raising=False)
    monkeypatch.delitem(__import__("sys").modules, "torch.utils.tensorboard", raising=False)
    assert main(["runs", "export", str(runs / "finished"), "--to", "tensorboard"]) == 2
    assert "pip install 'equipoise[tensorboard]'" in capsys.readouterr().err
