"""Each thing is computed once and read afterwards, from the runs to the table and the report."""

import shutil
from collections import Counter

import numpy as np
import pytest

from equipoise import Predictions
from equipoise.calibrators import Calibrator, TemperatureScaling
from equipoise.cli import main
from equipoise.experiments import ComparisonSpec, make_tables, report_of_runs, run_comparison
from equipoise.experiments.runs import folder, scoring
from equipoise.experiments.runs.folder import RunFolder
from equipoise.metrics import CalibrationState
from equipoise.report import report_of, to_html
from equipoise.training.epoch_scores import scores_on_test, tune_scores
from helpers.tiny_runs import QUICK, TABLE


@pytest.fixture
def counted(monkeypatch):
    """Count fits of calibrators on ``calib`` (training fits some on ``tune``), and reads of prediction files."""
    counts = Counter()

    def watch(owner, name, key):
        real = getattr(owner, name)

        def call(*args, **settings):
            counts[key] += key != "fits" or args[1].split == "calib"
            return real(*args, **settings)

        monkeypatch.setattr(owner, name, call)

    watch(Calibrator, "fit", "fits")
    watch(folder, "read_predictions", "reads")
    watch(scoring, "draw_rows", "draws")
    return counts


def test_ten_runs_and_two_calibrators_are_twenty_fits(counted, tmp_path):
    table = {
        **TABLE,
        "method": ["ce", "focal", "brier", "label_smoothing", "dual_focal"],
        "seed": [0, 1],
        "calibrators": ["temperature", "vector"],
        "recipe": {"name": "quick", "epochs": 1},
    }
    result = run_comparison(ComparisonSpec.from_table(table), tmp_path, **QUICK, workers=1)
    assert len(result.summary.done) == 10
    assert counted["fits"] == 20
    once = {"fits": 20, "reads": 30, "draws": 30}
    assert counted == once, (
        "each split is read once, each run resampled once before and after each calibrator"
    )
    for report in report_of_runs(result.summary.done, tables=result.tables).values():
        assert to_html(report)
    assert make_tables(result.summary.done) == result.tables
    assert [to_html(one) for one in report_of_runs(result.summary.done).values()]
    assert counted == once


@pytest.fixture
def calls(monkeypatch):
    """Return a function that counts the calls of a method, by what the caller says of each."""

    def watch(owner, name, key):
        real, counts = getattr(owner, name), Counter()

        def call(self, *args, **settings):
            counts[key(self, *args)] += 1
            return real(self, *args, **settings)

        monkeypatch.setattr(owner, name, call)
        return counts

    return watch


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    path = tmp_path_factory.mktemp("once")
    table = {
        **TABLE,
        "method": ["ce", {"name": "focal", "choose": {"gamma": [1.0, 3.0]}, "by": "nll_scaled"}],
        "seed": [0, 1],
        "calibrators": ["temperature"],
        "recipe": {"name": "quick", "epochs": 1},
    }
    return path, table, run_comparison(ComparisonSpec.from_table(table), path, **QUICK, workers=1)


def test_a_report_reads_each_history_and_spec_once(calls, finished):
    _, _, outcome = finished
    histories = calls(RunFolder, "history", lambda run: run.name)
    reports = report_of_runs(outcome.summary.done)
    told = [run for report in reports.values() for method in report.methods for run in method.runs]
    assert sum(histories.values()) == len(told) == 4
    assert set(histories.values()) == {1}
    specs = calls(RunFolder, "spec", lambda run: run.name)
    report_of_runs(outcome.summary.done)
    assert set(specs.values()) == {1}


def test_a_table_on_the_screen_reads_each_score_once(calls, finished, capsys):
    path, _, _ = finished
    scores = calls(RunFolder, "scores", lambda run, *name: (run.name, *name))
    assert main(["table", str(path)]) == 0
    assert set(scores.values()) == {1}
    assert "ce" in capsys.readouterr().out


def test_a_choice_reads_and_scales_each_tune_once(calls, finished, tmp_path):
    path, table, before = finished
    shutil.copytree(path, tmp_path, dirs_exist_ok=True)
    (tmp_path / "comparison.choices.json").unlink()
    reads = calls(RunFolder, "predictions", lambda run, split: (run.name, split))
    fits = calls(TemperatureScaling, "fit", lambda self, rows, *_: rows.split)
    after = run_comparison(ComparisonSpec.from_table(table), tmp_path, **QUICK, workers=1)
    assert {count for (_, split), count in reads.items() if split == "tune"} == {1}
    assert fits["tune"] == 4, "two settings of two seeds"
    assert [group.choices for group in after.groups] == [group.choices for group in before.groups]


def test_a_comparison_that_is_done_computes_nothing_again(calls, counted, finished):
    path, table, before = finished
    reads = calls(RunFolder, "predictions", lambda run, split: (run.name, split))
    fits = calls(TemperatureScaling, "fit", lambda self, rows, *_: rows.split)
    sums = calls(CalibrationState, "_add", lambda *_: "pass")
    after = run_comparison(ComparisonSpec.from_table(table), path, **QUICK, workers=1)
    assert not reads
    assert not fits
    assert not sums
    assert not counted
    assert after.tables == before.tables
    assert [group.choices for group in after.groups] == [group.choices for group in before.groups]


def test_clean_rows_are_mapped_once_however_many_foreign_sets_there_are(calls, tmp_path):
    foreign = [
        {"data": "digits", "kind": "ood", "name": name, "options": {"noise": noise}}
        for name, noise in (("near", 0.5), ("far", 1.0))
    ]
    table = {
        **TABLE,
        "recipe": {"name": "quick", "epochs": 1},
        "calibrators": ["temperature"],
        "shift": foreign,
    }
    maps = calls(Calibrator, "__call__", lambda self, rows, *_: (rows.split, rows.rows.fingerprint))
    outcome = run_comparison(ComparisonSpec.from_table(table), tmp_path, **QUICK, workers=1)
    scores = outcome.summary.done[0].scores("temperature")
    assert set(scores.detection) == {"near", "far"}
    test = outcome.summary.done[0].predictions("test")
    assert maps["test", test.rows.fingerprint] == 1


def test_an_epoch_is_summed_once(calls):
    rows = Predictions(logits=[[2.0, 0.0], [1.0, 0.0], [0.0, 3.0]] * 4, labels=[0, 1, 1] * 4, split="tune")
    sums = calls(CalibrationState, "_add", lambda *_: "pass")
    found = tune_scores(rows)
    assert sums["pass"] == 1
    assert scores_on_test(rows.with_split("test"))["test_nll"] == found["tune_nll"]
    assert sums["pass"] == 2


def test_the_advisor_does_not_fit_its_choice_again(calls):
    generator = np.random.default_rng(0)
    logits = 2 * generator.normal(size=(800, 3))
    labels = (logits + generator.gumbel(size=logits.shape)).argmax(1)
    both = Predictions(logits=3 * logits, labels=labels, ids=np.arange(800))
    calib, test = both.take(slice(0, 400)).with_split("calib"), both.take(slice(400, 800))
    fits = calls(Calibrator, "fit", lambda self, rows, *_: (self.kind, len(rows)))
    method = report_of(test, calib=calib, candidates=["temperature"], n_resamples=20).methods[0]
    assert method.advice.chosen == "temperature"
    assert fits["temperature", 400] == 1
