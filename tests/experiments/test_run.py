"""Runs: stages that can be repeated alone, resumed, and never run twice."""

import json
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
import torch

from equipoise.core.errors import DataError, SpecError
from equipoise.experiments import ModelSpec, RunFolder, Spec, find_runs, run
from equipoise.experiments.build.run_parts import build, make_network
from equipoise.experiments.specs.run import write_spec
from helpers.daily import daily
from helpers.tiny_runs import FAILING, quick_options, results_of


def test_a_run_writes_what_it_promises(spec, quick, tmp_path):
    done = run(spec, tmp_path, **quick)
    assert done.name == spec.identity
    assert done.status() == "finished"
    assert done.splits() == ["calib", "test", "tune"]
    assert done.calibrators() == ["identity", "temperature"]
    assert len(done.history()) == spec.recipe.epochs
    rows = done.rows()
    assert {row["split"] for row in rows if row["calibrator"] == "identity"} == {"calib", "test", "tune"}
    assert {row["split"] for row in rows if row["calibrator"] == "temperature"} == {"test"}
    assert all(row["low"] <= row["value"] <= row["high"] for row in rows if row["value"] is not None)
    environment = json.loads((done.path / "environment.json").read_text())
    assert environment["data"]["rows"]["test"] > 0
    assert environment["packages"]["torch"]


def test_a_finished_run_is_not_touched(spec, quick, tmp_path):
    done = run(spec, tmp_path, **quick)
    before = {
        file: file.stat().st_mtime_ns
        for file in done.path.rglob("*")
        if file.is_file() and file.name != ".lock"
    }
    run(spec, tmp_path, **quick)
    assert before == {file: file.stat().st_mtime_ns for file in before}


@pytest.mark.parametrize(
    "lost",
    daily(
        [
            "scores/temperature.json",
            "scores.csv",
            "calibrators/temperature.json",
            "predictions/test.npz",
            "history.csv",
            "environment.json",
            "manifest.json",
            "spec.toml",
        ],
        keep=["calibrators/temperature.json", "history.csv", "manifest.json"],
    ),
)
def test_a_lost_stage_is_made_again_and_equal(spec, quick, tmp_path, lost):
    done = run(spec, tmp_path, **quick)
    before = results_of(done)
    (done.path / lost).unlink()
    run(spec, tmp_path, **quick)
    assert done.status() == "finished"
    assert results_of(done) == before


@pytest.mark.parametrize(("keep", "lost"), [("last", "last.pt"), ("best", "best.pt")])
@pytest.mark.parametrize("cut", daily([True, False], keep=[True]))
def test_a_checkpoint_that_is_needed_and_lost_starts_training_over(table, quick, tmp_path, keep, lost, cut):
    table["recipe"]["keep"] = keep
    spec = Spec.from_table(table)
    done = run(spec, tmp_path, **quick)
    before = results_of(done)
    done.clear_stages("predicted")
    (done.path / lost).write_bytes(b"PK") if cut else (done.path / lost).unlink()
    assert (done.status() == "broken") is cut
    run(spec, tmp_path, **quick)
    assert results_of(done) == before


def test_a_spec_that_was_edited_is_noticed_and_written_again(spec, quick, tmp_path):
    done = run(spec, tmp_path, **quick)
    file = done.path / "spec.toml"
    before = file.read_bytes()
    file.write_text(file.read_text().replace("seed = 0", "seed = 5"))
    assert done.status() == "broken"
    assert "spec.toml: damaged" in done.problem()
    run(spec, tmp_path, **quick)
    assert file.read_bytes() == before


def test_a_folder_named_for_another_run_is_refused(table, quick, tmp_path):
    done = run(Spec.from_table(table), tmp_path, **quick)
    other = Spec.from_table({**table, "seed": 5})
    done.path.rename(tmp_path / other.identity)
    assert RunFolder(tmp_path / other.identity).status() == "broken"
    with pytest.raises(SpecError, match="Was the folder renamed"):
        run(other, tmp_path, **quick)


def test_an_old_failure_is_forgotten_when_work_goes_on(spec, quick, tmp_path):
    folder = RunFolder(tmp_path / spec.identity)
    folder.path.mkdir()
    folder.write_error("train", ValueError("no disk"), "")
    run(spec, tmp_path, **quick)
    assert folder.error() is None


def test_listing_writes_nothing(spec, quick, tmp_path):
    done = run(spec, tmp_path, **quick)
    (done.path / ".lock").unlink(missing_ok=True)
    before = sorted(done.path.rglob("*"))
    assert done.status() == "finished"
    assert sorted(done.path.rglob("*")) == before


def test_a_folder_that_may_only_be_read_can_be_listed(spec, quick, tmp_path, monkeypatch):
    done = run(spec, tmp_path, **quick)
    (done.path / ".lock").touch()

    class Refusing:
        def acquire(self, timeout):
            raise PermissionError("read-only")

    monkeypatch.setattr(RunFolder, "_lock", lambda self: Refusing())
    assert done.status() == "finished"


def test_a_running_run_is_not_removed(spec, tmp_path):
    folder = RunFolder(tmp_path / spec.identity)
    with folder.locked():
        folder.write_error("train", ValueError("bad"), "")
        write_spec(spec, folder.path / "spec.toml")
        assert RunFolder(folder.path).remove() is None
        assert folder.path.exists()
    assert folder.remove() is not None
    assert not folder.path.exists()


def test_threads_are_given_back(spec, quick, tmp_path):
    before = torch.get_num_threads()
    run(spec, tmp_path, **quick_options(threads=before + 1))
    assert torch.get_num_threads() == before


def test_an_unknown_calibrator_is_refused_before_training(spec, quick, tmp_path):
    with pytest.raises(SpecError, match="did you mean 'temperature'"):
        run(spec, tmp_path, **quick_options(calibrators=("temprature",)))
    assert list(tmp_path.iterdir()) == []


def test_the_best_epoch_needs_data_to_judge_by(table):
    table["recipe"]["keep"] = "best"
    table["data"]["options"]["tune"] = 0.0
    with pytest.raises(SpecError, match="need a 'tune' split"):
        build(Spec.from_table(table))


def test_an_empty_split_is_no_split(table, quick, tmp_path):
    table["data"]["options"] |= {"tune": 0.0, "calib": 0.0}
    done = run(Spec.from_table(table), tmp_path, **quick_options(calibrators=("identity",)))
    assert done.splits() == ["test"]


def test_a_run_is_not_finished_before_all_is_scored(spec, quick, tmp_path, monkeypatch):
    """A crash between two calibrators leaves a run that is trained, and the same command finishes it."""
    from equipoise.experiments.runs import scoring

    real, calls = scoring.score, []

    def crash(predictions, **settings):
        calls.append(predictions.split)
        if len(calls) == 4:
            raise KeyboardInterrupt
        return real(predictions, **settings)

    with monkeypatch.context() as patch:
        patch.setattr(scoring, "score", crash)
        with pytest.raises(KeyboardInterrupt):
            run(spec, tmp_path, **quick)
    [folder] = find_runs(tmp_path)
    assert calls == ["calib", "test", "tune", "test"]
    assert folder.calibrators() == []
    assert folder.status() == "trained"
    assert run(spec, tmp_path, **quick).status() == "finished"


def test_a_failure_is_kept_and_named(quick, tmp_path):
    with pytest.raises(SpecError, match="need a 'tune' split"):
        run(Spec.from_table(FAILING), tmp_path, **quick)
    [folder] = find_runs(tmp_path)
    assert folder.status() == "failed"
    assert folder.error()["stage"] == "start"
    assert "need a 'tune' split" in folder.error()["message"]


def test_data_that_are_missing_are_named_before_anything_is_made(table, quick, tmp_path):
    table["data"] = {"name": "npz", "options": {"path": "nowhere.npz"}}
    with pytest.raises(DataError, match=r"nowhere\.npz"):
        run(Spec.from_table(table), tmp_path, **quick)
    assert list(tmp_path.iterdir()) == []


def test_a_broken_folder_is_found(spec, quick, tmp_path):
    done = run(spec, tmp_path, **quick)
    (done.path / "spec.toml").write_text("data = [")
    assert RunFolder(done.path).status() == "broken"


def test_a_lock_keeps_others_out_and_dies_with_its_process(spec, tmp_path):
    folder = RunFolder(tmp_path / spec.identity)
    code = (
        "import sys, time; from pathlib import Path; from equipoise.experiments import RunFolder\n"
        "with RunFolder(Path(sys.argv[1])).locked():\n"
        "    print('locked', flush=True); time.sleep(60)"
    )
    holder = subprocess.Popen(
        [sys.executable, "-c", code, str(folder.path)], stdout=subprocess.PIPE, text=True
    )
    assert holder.stdout.readline() == "locked\n"
    assert folder.is_locked()
    holder.kill()
    holder.wait()
    holder.stdout.close()
    assert not folder.is_locked()


def test_two_at_once_do_the_work_once(spec, quick, tmp_path):
    folders = []
    threads = [
        threading.Thread(target=lambda: folders.append(run(spec, tmp_path, **quick))) for _ in range(2)
    ]
    for thread in threads:
        thread.start()
        time.sleep(0.05)
    for thread in threads:
        thread.join()
    assert len({folder.path for folder in folders}) == 1
    assert len(folders[0].history()) == spec.recipe.epochs


def test_initial_weights_follow_the_seed(table):
    one, same, other = (
        build(Spec.from_table({**table, "seed": seed})).objective.network().state_dict() for seed in (0, 0, 1)
    )
    assert all(np.array_equal(one[key], same[key]) for key in one)
    assert any(not np.array_equal(one[key], other[key]) for key in one)


@pytest.mark.parametrize(
    "method",
    ["focal+mdca", "adafocal", "mutual_learning", "gamma_net", "pruned", "deep_ensemble", "sample_adaptive"],
)
def test_kinds_of_methods_run_to_the_end(table, quick, tmp_path, method):
    table["method"] = method
    table["recipe"]["epochs"] = 1
    assert run(Spec.from_table(table), tmp_path, **quick).status() == "finished"


def test_networks_take_sizes_from_the_data():
    data = build(Spec.from_table({"data": "digits", "model": "mlp"})).data
    for name in ("resnet8", "small_cnn", "mlp"):
        assert make_network(ModelSpec(name=name), data).n_classes == 10


def test_what_a_killed_process_left_half_written_is_swept_up(spec, quick, tmp_path):
    done = run(spec, tmp_path, **quick)
    before = results_of(done)
    leftover = done.path / "predictions" / ".test-x1y2z3.npz"
    leftover.write_bytes(b"half a file")
    run(spec, tmp_path, **quick)
    assert not leftover.exists()
    assert results_of(done) == before
