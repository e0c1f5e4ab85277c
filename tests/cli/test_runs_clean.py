"""``equipoise runs --clean`` removes failed runs of ours and nothing else."""

import io
import json
import os
import shutil

import pytest

from equipoise.catalogue import plugins
from equipoise.cli import main
from equipoise.experiments import RunFolder, Spec, find_runs, run
from helpers.tiny_runs import FAILING, QUICK, TABLE


@pytest.fixture(scope="module")
def originals(tmp_path_factory):
    """One finished and one failed run."""
    folder = tmp_path_factory.mktemp("originals")
    run(Spec.from_table(TABLE), folder, **QUICK)
    with pytest.raises(ValueError, match="tune"):
        run(Spec.from_table(FAILING), folder, **QUICK)
    return folder


@pytest.fixture
def runs(originals, tmp_path):
    shutil.copytree(originals, tmp_path / "runs")
    return tmp_path / "runs"


def by_status(folder):
    return {found.status(): found for found in find_runs(folder)}


def clean(folder, *words):
    return main(["runs", str(folder), "--clean", "--yes", *words])


def test_only_the_failed_run_is_moved_and_the_output_names_its_new_place(runs, capsys):
    before = by_status(runs)
    assert set(before) == {"finished", "failed"}
    assert clean(runs, "--json") == 0
    [(name, place)] = json.loads(capsys.readouterr().out)["trash"].items()
    assert name == before["failed"].name
    assert os.path.dirname(place) == str(runs / ".trash")
    assert RunFolder(runs / ".trash" / os.path.basename(place)).error()["stage"]
    assert set(by_status(runs)) == {"finished"}


def test_a_comparison_file_among_its_runs_does_not_make_their_folder_a_run(runs):
    (runs / "spec.toml").write_text('data = "digits"\nmodel = "mlp"\nmethod = ["ce", "focal"]\n')
    finished = by_status(runs)["finished"]
    assert clean(runs) == 0
    assert finished.status() == "finished"
    assert (runs / "spec.toml").exists()


@pytest.mark.parametrize("name", ["project", "0123456789abcdef"])
@pytest.mark.parametrize("also", [(), ("manifest.json",)])
def test_a_folder_with_any_spec_is_never_removed(tmp_path, name, also):
    folder = tmp_path / name
    folder.mkdir()
    for file in ("spec.toml", "thesis.tex", *also):
        (folder / file).write_text("data = [")
    assert clean(tmp_path) == 0
    assert clean(folder) == 0
    assert (folder / "thesis.tex").exists()


def test_a_missing_plugin_is_no_damage(runs, capsys):
    finished = by_status(runs)["finished"]
    spec = finished.path / "spec.toml"
    spec.write_text(spec.read_text().replace('name = "ce"', 'name = "of_a_plugin"'))
    finished.write_record("started", ["spec.toml", "environment.json"])
    assert finished.status() == "unreadable"
    assert clean(runs) == 0
    printed = capsys.readouterr().out
    assert "cannot be read here" in printed
    assert "no method 'of_a_plugin'" in printed
    assert finished.path.exists()


@pytest.mark.filterwarnings("ignore::equipoise.core.errors.EquipoiseWarning")
def test_a_plugin_that_fails_to_import_marks_no_run_as_broken(runs, monkeypatch):
    class Point:
        name, dist = "losses.theirs", None

        def load(self):
            raise ImportError("libgone.so")

    monkeypatch.setattr(plugins, "_tried", [])
    monkeypatch.setattr(plugins, "_failures", {})
    points = (Point(),)
    monkeypatch.setattr(plugins, "_points", lambda: points)
    assert clean(runs) == 0
    assert "finished" in by_status(runs)


@pytest.mark.parametrize("answer", ["n\n", "y\n"])
def test_the_user_is_asked_first(runs, answer, monkeypatch, capsys):
    terminal = io.StringIO(answer)
    terminal.isatty = lambda: True
    monkeypatch.setattr("sys.stdin", terminal)
    failed = by_status(runs)["failed"]
    assert main(["runs", str(runs), "--clean"]) == 0
    captured = capsys.readouterr()
    assert str(failed.path) in captured.err
    assert failed.path.exists() is (answer == "n\n")
    assert ("Nothing was removed" in captured.out) is (answer == "n\n")


@pytest.mark.parametrize("words", [(), ("--json",)])
def test_without_a_terminal_nothing_is_removed(runs, words, monkeypatch, capsys):
    monkeypatch.setattr("sys.stdin", io.StringIO("y\n"))
    assert main(["runs", str(runs), "--clean", *words]) == 2
    captured = capsys.readouterr()
    assert "Add --yes" in captured.err
    assert captured.out == ""
    assert "failed" in by_status(runs)


def test_yes_alone_is_refused(runs, capsys):
    assert main(["runs", str(runs), "--yes"]) == 2
    assert "--yes goes with --clean" in capsys.readouterr().err


def test_a_run_that_holds_other_runs_stays(runs):
    failed, finished = (by_status(runs)[key] for key in ("failed", "finished"))
    finished.path.rename(failed.path / finished.name)
    assert clean(runs) == 0
    assert clean(failed.path) == 0
    assert (failed.path / finished.name / "scores.csv").exists()


def test_a_link_to_a_failed_run_stays_and_so_does_its_target(runs, tmp_path):
    failed = by_status(runs)["failed"]
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    moved = failed.path.rename(elsewhere / failed.name)
    failed.path.symlink_to(moved)
    assert clean(runs) == 0
    assert failed.path.is_symlink()
    assert (moved / "manifest.json").exists()


def test_the_current_folder_stays(runs, monkeypatch):
    failed = by_status(runs)["failed"]
    monkeypatch.chdir(failed.path)
    assert clean(".") == 0
    assert clean(runs) == 0
    assert (failed.path / "manifest.json").exists()


def test_a_run_that_another_process_works_on_stays(runs):
    failed = by_status(runs)["failed"]
    with failed.locked():
        assert clean(runs) == 0
    assert failed.path.exists()


def test_a_run_that_was_finished_after_it_was_listed_stays(runs, monkeypatch):
    failed = by_status(runs)["failed"]
    real = RunFolder.locked

    def finished_by_then(self, **options):
        self.clear_error()
        return real(self, **options)

    monkeypatch.setattr(RunFolder, "locked", finished_by_then)
    assert failed.remove() is None
    assert failed.path.exists()


def test_a_failed_run_under_another_name_stays(runs):
    failed = by_status(runs)["failed"]
    kept = failed.path.rename(runs / "kept-for-the-appendix")
    assert clean(runs) == 0
    assert kept.exists()


def test_a_damaged_run_stays_for_the_command_that_repairs_it(runs):
    finished = by_status(runs)["finished"]
    (finished.path / "scores.csv").write_text("damaged")
    assert finished.status() == "broken"
    assert clean(runs) == 0
    assert finished.path.exists()


def test_a_cleaned_run_starts_over(runs):
    assert clean(runs) == 0
    with pytest.raises(ValueError, match="tune"):
        run(Spec.from_table(FAILING), runs, **QUICK)
    assert set(by_status(runs)) == {"finished", "failed"}
