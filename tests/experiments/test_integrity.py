"""One flipped bit in any file of a run is noticed, named, and mended by the same command; no traceback anywhere."""

import os
import random
import shutil

import numpy as np
import pytest
import torch

from equipoise.cli import main
from equipoise.core.checksums import file_checksum
from equipoise.core.errors import DataError
from equipoise.experiments import RunFolder, Spec, find_runs, run
from equipoise.experiments import run as run_function
from equipoise.experiments.runs import manifest
from helpers.tiny_runs import QUICK, TABLE, quick_options, results_of

FILES = [
    "spec.toml",
    "environment.json",
    "history.csv",
    "last.pt",
    "best.pt",
    "predictions/test.npz",
    "predictions/calib.npz",
    "calibrators/temperature.json",
    "scores/identity.json",
    "scores/temperature.json",
    "scores.csv",
    "manifest.json",
]


def flip(path, place=None):
    content = bytearray(path.read_bytes())
    place = len(content) * 4 if place is None else place
    content[place // 8] ^= 1 << place % 8
    path.write_bytes(content)


def place_of_weights(path):
    """Return a bit that tells; others of a checkpoint only pad it."""
    content = torch.load(path, weights_only=True)
    table = content.get("network", content.get("objective"))
    weights = max((v for v in table.values() if isinstance(v, torch.Tensor)), key=torch.numel)
    return 8 * path.read_bytes().index(weights.numpy().tobytes()) + 6


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    spec = Spec.from_table(TABLE)
    return run(spec, tmp_path_factory.mktemp("original"), **QUICK)


@pytest.fixture
def copy(original, tmp_path):
    shutil.copytree(original.path, tmp_path / original.name)
    return RunFolder(tmp_path / original.name)


def again(folder, **changes):
    return run(Spec.from_table(TABLE), folder.path.parent, **quick_options(**changes))


def test_every_file_is_looked_at(original):
    made = {str(f.relative_to(original.path)) for f in original.path.rglob("*") if f.is_file()}
    assert made == {*FILES, "predictions/tune.npz", ".lock"} or made == {*FILES, "predictions/tune.npz"}


@pytest.mark.parametrize("name", FILES)
def test_a_flipped_bit_is_noticed_named_and_mended(copy, original, name):
    flip(copy.path / name)
    assert copy.status() == "broken"
    assert f"{name}: damaged" in copy.problem()
    again(copy)
    assert copy.status() == "finished"
    assert results_of(copy) == results_of(original)


def test_bits_anywhere_are_noticed(copy):
    rng = random.Random(0)
    for name in FILES:
        whole = (copy.path / name).read_bytes()
        for _ in range(4):
            flip(copy.path / name, rng.randrange(8 * len(whole)))
            assert copy.status() == "broken", name
            (copy.path / name).write_bytes(whole)
    assert copy.status() == "finished"


@pytest.mark.parametrize("read", [lambda f: f.predictions("test"), lambda f: f.calibrated("temperature")])
def test_damaged_predictions_are_never_read(copy, read):
    flip(copy.path / "predictions" / "test.npz")
    with pytest.raises(DataError, match=r"test\.npz: lost or damaged"):
        read(copy)


HOSTILE = [
    b"",
    b"{}",
    b"[]",
    b"null",
    b'{"files": 5}',
    b"[" * 100_000,
    b"a = " + b"[" * 100_000,
    b"a." * 50_000 + b"a = 1",
    b"a,b\n" + b"x" * 200_000 + b",1\n",
    b"site,date\nnorth,2026\n",
    b"\0" * 50,
    b"\xff\xfe",
    b'{"run": "x", "files": {"../../x": {}}, "stages": {}, "checksum": "00"}',
]


@pytest.mark.parametrize("content", HOSTILE, ids=range(len(HOSTILE)))
def test_nothing_in_a_run_folder_ends_in_a_traceback(copy, content, capsys):
    """Whatever stands in a file, listing and tables answer, and the run is broken, or failed to be read."""
    for name in FILES:
        whole = (copy.path / name).read_bytes()
        (copy.path / name).write_bytes(content)
        assert copy.status() == "broken", name
        if name in ("spec.toml", "history.csv", "manifest.json"):
            assert main(["runs", str(copy.path.parent), "--why"]) == 0
            assert main(["table", str(copy.path.parent)]) == 2
        (copy.path / name).write_bytes(whole)
    capsys.readouterr()


def test_a_damaged_spec_does_not_cost_the_record_of_the_machine(copy):
    before = (copy.path / "environment.json").read_bytes()
    flip(copy.path / "spec.toml")
    again(copy)
    assert (copy.path / "environment.json").read_bytes() == before
    flip(copy.path / "environment.json")
    again(copy)
    assert '"remade": "the first record was lost"' in (copy.path / "environment.json").read_text()


def test_a_table_says_that_runs_are_left_out(copy, table, quick, capsys):
    run(Spec.from_table({**table, "seed": 1}), copy.path.parent, **quick)
    flip(copy.path / "scores.csv")
    assert main(["table", str(copy.path.parent)]) == 0
    assert "1 runs are left out" in capsys.readouterr().err


def test_a_spec_without_records_that_cannot_be_read_is_listed_and_made_again(copy):
    for file in copy.path.glob("*.json"):
        file.unlink()
    (copy.path / "spec.toml").write_bytes(b"a = " + b"[" * 100_000)
    [found] = find_runs(copy.path.parent)
    assert found.status() == "unreadable"
    assert again(copy).status() == "finished"


@pytest.fixture
def half(tmp_path, monkeypatch):
    """A run that was killed after its last epoch, before it was written down that training is over."""
    real = RunFolder.write_record

    def die(self, stage, files, **facts):
        if stage == "trained":
            raise KeyboardInterrupt
        real(self, stage, files, **facts)

    with monkeypatch.context() as patch:
        patch.setattr(RunFolder, "write_record", die)
        with pytest.raises(KeyboardInterrupt):
            run_function(Spec.from_table(TABLE), tmp_path, **QUICK)
    [folder] = find_runs(tmp_path)
    return folder


@pytest.mark.parametrize("name", ["last.pt", "best.pt", "history.csv", None])
def test_a_flipped_bit_is_noticed_before_training_goes_on(half, original, name):
    assert half.status() == "started"
    if name is not None:
        flip(half.path / name, place_of_weights(half.path / name) if name.endswith(".pt") else None)
        assert half.status() == "broken"
        assert f"{name}: damaged" in half.problem()
    again(half)
    assert results_of(half) == results_of(original)


def test_other_settings_of_scoring_score_again_without_fitting(copy, monkeypatch):
    from equipoise.calibrators import Calibrator

    monkeypatch.setattr(Calibrator, "fit", lambda *_: pytest.fail("fitted again"))
    before = copy.scores("temperature").test
    again(copy, n_resamples=40, calibrators=("identity",))
    after = copy.scores("temperature").test
    assert (before.n_resamples, after.n_resamples) == (20, 40)
    assert before["ece"].value == after["ece"].value
    assert before["ece"].low != after["ece"].low
    assert {row["n_resamples"] for row in copy.rows()} == {40}
    assert copy.record("scored")["settings"] == {
        "n_bins": 15,
        "level": 0.95,
        "n_resamples": 40,
        "seed": 0,
        "closed": "right",
        "metrics": [],
    }


@pytest.fixture
def arrays(tmp_path):
    def write(seed):
        rng = np.random.default_rng(seed)
        labels = rng.integers(0, 3, 300)
        np.savez(tmp_path / "mine.npz", x=rng.normal(size=(300, 4)) + labels[:, None], y=labels)
        return Spec.from_table(
            {**TABLE, "data": {"name": "npz", "options": {"path": str(tmp_path / "mine.npz")}}}
        )

    return write


def test_other_data_behind_the_same_path_are_another_run(arrays, tmp_path):
    first = run(arrays(0), tmp_path / "runs", **QUICK)
    again = run(arrays(0), tmp_path / "runs", **QUICK)
    other = run(arrays(1), tmp_path / "runs", **QUICK)
    assert first.name == again.name != other.name
    assert first.spec().data.digest != other.spec().data.digest


def test_data_that_changed_under_a_run_are_refused(arrays, tmp_path):
    from equipoise.experiments.build.data import load_data
    from equipoise.experiments.build.preparation import pin

    spec = pin(arrays(0))
    arrays(1)
    with pytest.raises(DataError, match="not the ones this run was begun with"):
        load_data(spec.data)


def keep_size_and_time(path, change):
    """Change a file in a way that only its checksum shows."""
    times = path.stat()
    change(path)
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))


@pytest.mark.parametrize("name", ["predictions/test.npz", "scores/identity.json", "last.pt"])
def test_files_of_the_recorded_size_and_time_are_hashed_on_request_only(copy, original, name):
    keep_size_and_time(copy.path / name, flip)
    assert copy.status() == "finished"
    assert copy.status(verify=True) == "broken"
    assert f"{name}: damaged" in copy.problem(verify=True)
    again(copy, verify=True)
    assert copy.status(verify=True) == "finished"
    assert results_of(copy) == results_of(original)


def test_a_copy_with_other_times_is_hashed_and_found_whole(copy, monkeypatch):
    hashed = []
    monkeypatch.setattr(manifest, "file_checksum", lambda path: hashed.append(path) or file_checksum(path))
    assert copy.status() == "finished"
    assert hashed == []
    os.utime(copy.path / "predictions" / "test.npz")
    assert copy.status() == "finished"
    assert [file.name for file in hashed] == ["test.npz"]


@pytest.mark.parametrize("command", ["table", "runs", "report"])
def test_commands_hash_files_on_request(copy, command, capsys, tmp_path):
    keep_size_and_time(copy.path / "predictions" / "test.npz", flip)
    words = [command, str(copy.path.parent), "--verify"]
    words += ["--output", str(tmp_path / "report.html")] if command == "report" else []
    assert main(words[:2] + words[3:]) == 0
    assert main(words) == (0 if command == "runs" else 2)
    assert ("broken" if command == "runs" else "no finished run") in "".join(capsys.readouterr())
