"""The user's own calibrators, metrics and test sets in a spec: fitted once, known by content, run everywhere."""

import shutil
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from equipoise import Predictions, compare_seeds
from equipoise.calibrators import Calibrator, OwnCalibrator, load
from equipoise.core.errors import DataError, SpecError
from equipoise.experiments import (
    ComparisonSpec,
    RunFolder,
    format_tables,
    make_tables,
    report_of_runs,
    run_comparison,
)
from equipoise.experiments.build.preparation import code_files, refuse_code
from equipoise.experiments.code.source import load_code
from equipoise.experiments.engines.worker import decode_job, encode_job
from equipoise.experiments.specs.calibrators import make_calibrator, parse_calibrator
from helpers.own_code import JUDGE, own_table, write_code
from helpers.tiny_runs import QUICK, quick_options

SCALED = {"name": "judge.py:Scaled", "options": {"steps": 20}}
KEY = "judge.py-Scaled(steps=20)"
HITS = {"name": "judge:hits", "options": {"above": 0.3}}
COLUMN = "judge:hits(above=0.3)"
NOISE = {"data": "judge.py:noise", "kind": "ood"}
JUDGED = {"calibrators": [SCALED], "metrics": ["accuracy", "ece", HITS], "shift": [NOISE]}


def comparison(home, **changes):
    table = own_table(method=["ce", "mine.py:Smoothed"], recipe={"name": "quick", "epochs": 1})
    return ComparisonSpec.from_table({**table, **JUDGED, **changes}, base_dir=str(home))


def compared(home, out, *, options=QUICK, workers=1, **changes):
    result = run_comparison(comparison(home, **changes), out, **options, workers=workers)
    assert result.summary.failed == {}
    return result


@pytest.fixture(scope="module")
def first(tmp_path_factory):
    """Done once; tests that go on work on copies."""
    home, runs = write_code(tmp_path_factory.mktemp("home")), tmp_path_factory.mktemp("runs")
    return home, runs, compared(home, runs)


@pytest.fixture
def again(first, tmp_path):
    home, runs, result = first
    shutil.copytree(home, tmp_path / "home")
    shutil.copytree(runs, tmp_path / "runs")
    return tmp_path / "home", tmp_path / "runs", result


@pytest.fixture
def counted(monkeypatch):
    """Count the calibrators that are fitted on ``calib``."""
    fits, real = Counter(), Calibrator.fit

    def fit(self, predictions, *more):
        fits[type(self).__name__] += isinstance(predictions, Predictions) and len(predictions) < 60
        return real(self, predictions, *more)

    monkeypatch.setattr(Calibrator, "fit", fit)
    return fits


def test_the_table_has_the_map_the_metric_and_the_foreign_set(first):
    _, _, result = first
    [table] = result.tables
    assert [row.calibrator for row in table.rows] == ["identity", "identity", KEY, KEY]
    assert table.metrics == ("accuracy", "ece", COLUMN)
    assert "hits %" in format_tables(result.tables)
    [folder, _] = result.summary.done
    raw, after = folder.predictions("test"), folder.calibrated(KEY)
    number = folder.scores(KEY).extras[COLUMN]
    assert number.value == pytest.approx(after.correct[after.confidence >= 0.3].mean())
    assert 0 <= number.low <= number.value <= number.high <= 1
    factor = folder.scores(KEY).words
    assert factor.startswith(f"{KEY}: factor = ")
    np.testing.assert_allclose(after.logits / raw.logits, float(factor.split()[-1]), rtol=1e-3)
    assert set(folder.scores(KEY).detection) == {"noise"}
    assert len(folder.predictions("test-noise")) == 60


def test_jobs_carry_them_to_other_processes(first):
    home, _, _ = first
    named = comparison(home)
    options = quick_options(calibrators=named.calibrators[1:], metrics=named.extra_metrics)
    scoring = options["scoring"].pinned()
    spec, folder, found, _ = decode_job(
        encode_job(named.specs[0], Path("runs"), scoring, options["execution"])
    )
    assert (spec, folder, found) == (named.specs[0], "runs", scoring)
    assert all(one.digest for one in (*found.calibrator_list, *found.metric_list))


def test_finished_runs_are_read_without_the_code(again):
    home, runs, result = again
    shutil.rmtree(home)
    folders = [RunFolder(runs / run.name) for run in result.summary.done]
    tables = make_tables(folders, metrics=("accuracy", "ece", COLUMN))
    assert format_tables(tables) == format_tables(result.tables)
    assert {folder.status() for folder in folders} == {"finished"}
    assert list(report_of_runs(folders))
    with pytest.raises(
        DataError, match=r"holds what 'judge\.py-Scaled\(steps=20\)' learned.*load\(path, own="
    ):
        folders[0].calibrator(KEY)


def test_a_second_command_computes_nothing(again, counted):
    home, runs, result = again
    files = {file: file.stat().st_mtime_ns for file in runs.glob("*/**/*.*") if file.name != ".lock"}
    assert compared(home, runs).tables == result.tables
    assert {file: file.stat().st_mtime_ns for file in files} == files
    assert counted["OwnCalibrator"] == 0


def test_other_settings_read_the_map_that_was_fitted(again, counted):
    home, runs, _ = again
    compared(home, runs, options=quick_options(n_resamples=21))
    assert counted["OwnCalibrator"] == 0


def test_changed_code_is_fitted_and_computed_anew_and_nothing_is_trained(again, counted):
    home, runs, result = again
    changed = JUDGE.replace(
        'return {"factor": factors[losses.argmin()]', 'return {"factor": factors[losses.argmin()] + 0.01'
    )
    (home / "judge.py").write_text(changed.replace("predictions.correct[", "0.5 * predictions.correct["))
    trained = {file: file.stat().st_mtime_ns for file in runs.glob("*/last.pt")}
    after = compared(home, runs)
    assert {file: file.stat().st_mtime_ns for file in trained} == trained
    assert counted["OwnCalibrator"] == 2
    old, new = (found.tables[0].rows[2].cells for found in (result, after))
    assert new[COLUMN].mean == pytest.approx(old[COLUMN].mean / 2, rel=0.05)
    assert new["ece"].mean != old["ece"].mean


def test_what_is_not_named_any_more_stays_until_runs_are_scored_again(again):
    home, runs, _ = again
    plain = {"calibrators": ["vector"], "metrics": ["accuracy", "ece"], "shift": []}
    [folder, _] = compared(home, runs, **plain).summary.done
    assert folder.calibrators() == ["identity", KEY, "vector"]
    options = quick_options(n_resamples=21)
    [folder, _] = compared(home, runs, options=options, **plain).summary.done
    assert folder.calibrators() == ["identity", "vector"]
    assert folder.scores().extras == {}
    assert folder.status() == "finished"
    assert compared(home, runs).tables[0].metrics == ("accuracy", "ece", COLUMN)


@pytest.mark.parametrize("name", [f"calibrated/{KEY}.npz", f"calibrators/{KEY}.json", f"scores/{KEY}.json"])
def test_what_is_lost_or_damaged_is_made_again(again, name):
    home, runs, result = again
    [folder, other] = [RunFolder(runs / run.name) for run in result.summary.done]
    (folder.path / name).unlink()
    (other.path / name).write_bytes(b"damaged")
    after = compared(home, runs)
    assert after.tables == result.tables
    assert {found.status() for found in after.summary.done} == {"finished"}


def test_a_foreign_set_that_changed_is_predicted_anew(again):
    home, runs, result = again
    (home / "judge.py").write_text(JUDGE.replace("manual_seed(1)", "manual_seed(2)"))
    before = result.summary.done[0].predictions("test-noise").logits
    [folder, _] = compared(home, runs).summary.done
    assert not np.array_equal(folder.predictions("test-noise").logits, before)


def test_a_shifted_set_has_the_classes_of_the_data(again):
    home, runs, _ = again
    [folder, _] = compared(
        home, runs, shift=[{"data": "judge.py:two_classes", "kind": "shifted"}]
    ).summary.done
    assert folder.scores().cards["test-two_classes"].n_samples == 20


def test_files_are_named_and_refused(first):
    home, _, _ = first
    named = comparison(home, data="digits", model="mlp", method="ce")
    assert [file.name for file in code_files(named.specs, extra=named.extra_code)] == ["judge.py"]
    assert set(named.extra_code) == {"calibrators", "metrics", "shift"}
    with pytest.raises(
        SpecError, match=r"names code that would be run, 'judge\.py:Scaled', 'judge:hits', 'judge"
    ):
        refuse_code(named.specs, where="a.toml", extra=named.extra_code)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"calibrators": ["judge.py:Scald"]}, r"own\.calibrators: .*did you mean 'Scaled'"),
        ({"calibrators": ["nowhere.py:Scaled"]}, r"own\.calibrators: .*no file .*nowhere\.py"),
        ({"calibrators": [{"name": "judge.py:Scaled", "options": {"step": 3}}]}, r"did you mean 'steps'"),
        (
            {"calibrators": ["judge.py:two_classes"]},
            r"own\.calibrators: .*a calibrator with the methods learn.*got tuple",
        ),
        ({"calibrators": ["judge.py:NoNumbers"]}, r"own\.calibrators: .*`factor` must be a finite number"),
        (
            {"calibrators": ["judge.py:OneColumn"]},
            r"must return a tensor of the logits' shape \(60, 3\), got \(60, 1\)",
        ),
        ({"calibrators": ["judge.py:Alike"]}, r"the kind 'temperature' is taken"),
        (
            {"metrics": ["judge.py:nothing"]},
            r"own\.metrics: .*expected one finite number for 60 rows, got nan",
        ),
        ({"metrics": ["judge.py:said_wrong"]}, r"own\.metrics: .*did you mean 'title'"),
        ({"metrics": [{"name": "judge.py:hits", "options": {"abov": 3}}]}, r"did you mean 'above'"),
        ({"shift": [{"data": "judge.py:wide"}]}, r"own\.shift: .*inputs of one shape, got \(5,\).*\(7,\)"),
        ({"shift": [{"corruption": "contrast"}]}, r"own\.shift: .*images in memory are needed"),
    ],
)
def test_mistakes_are_said_before_the_first_run(first, changes, sentence, tmp_path):
    home, _, _ = first
    wanted = comparison(
        home, **{"calibrators": [], "metrics": ["ece"], "shift": [], "method": "ce", **changes}
    )
    with pytest.raises((SpecError, DataError), match=sentence):
        run_comparison(
            wanted.__class__(**{**vars(wanted), "where": "own"}), tmp_path / "runs", **QUICK, workers=1
        )
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"calibrators": ["judge.py:"]}, "is not a name of code"),
        ({"metrics": [":hits"]}, "is not a name of code"),
        ({"metrics": [{"name": "ece", "options": {"k": 1}}]}, "'ece' takes no options"),
        ({"metrics": [{"name": "ece", "digest": "1"}]}, "no key 'digest'; known: name, options"),
        ({"calibrators": [{"name": "vector", "option": {}}]}, "did you mean 'options'"),
        ({"metrics": ["eec"]}, "did you mean 'ece'"),
        ({"shift": [{"data": "judge.py:3"}]}, "is not a name of code"),
        ({"calibrators": ["a/b.py:C", "a-b.py:C"]}, "two would be called 'a-b.py-C'"),
    ],
)
def test_what_cannot_be_is_refused_when_the_spec_is_read(first, changes, sentence):
    with pytest.raises(SpecError, match=sentence):
        comparison(first[0], **changes)


def test_a_saved_map_is_read_with_its_code(first, tmp_path):
    home, _, _ = first
    made = make_calibrator(parse_calibrator(SCALED, where="test", base_dir=str(home)))
    assert isinstance(made, OwnCalibrator)
    logits, labels = [[3.0, 0.0]] * 4, [0, 0, 0, 1]
    made.fit(logits, labels).save(tmp_path / "map.json")
    own = load_code("judge.py:Scaled", str(home))()
    read = load(tmp_path / "map.json", own=own)
    np.testing.assert_array_equal(read(logits), made(logits))
    assert read.result.words == made.result.words
    np.testing.assert_allclose(made.as_module()(np_tensor(logits)).numpy(), made(logits))


def np_tensor(values):
    import torch

    return torch.tensor(values, dtype=torch.float64)


def test_objects_in_python():
    rng = np.random.default_rng(0)
    logits, labels = 3 * rng.normal(size=(2, 80, 3)), rng.integers(0, 3, (2, 80))
    [calib, test] = [Predictions(logits=z, labels=y) for z, y in zip(logits, labels, strict=True)]

    class Zero:
        def learn(self, logits, labels):
            return {}

        def map(self, logits, parameters):
            return 0 * logits

    def middle(predictions):
        return np.median(predictions.confidence)

    found = compare_seeds(
        {"a": test}, calib={"a": calib}, calibrators=[Zero()], metrics=["nll", middle], n_resamples=20
    )
    assert [row.calibrator for row in found.table.rows] == ["identity", "Zero"]
    assert found.table.rows[1].cells["middle"].mean == pytest.approx(1 / 3)
    assert found.table.rows[1].cells["nll"].mean == pytest.approx(np.log(3))
