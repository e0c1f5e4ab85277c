"""Exact zeros and rounded probabilities: what calibrators are fitted on and applied to."""

import json
import pickle

import numpy as np
import pytest
import torch

from equipoise import Predictions, write_predictions
from equipoise.calibrators import (
    HistogramBinning,
    Identity,
    IsotonicCalibration,
    PlattScaling,
    TemperatureScaling,
    average_predictions,
    choose,
)
from equipoise.calibrators.artifact import pack
from equipoise.calibrators.loading import KINDS, from_artifact, load
from equipoise.cli import main
from equipoise.core.errors import DataError
from equipoise.metrics import expected_calibration_error, sweep_temperatures
from equipoise.report import report_of, to_html

TRUE_TEMPERATURE = 3.0


def network(n_classes=10, n=4000, seed=0, decimals=None, dtype=np.float64):
    """Return predictions that are overconfident by a temperature of 3, rounded or not; in two halves."""
    rng = np.random.default_rng(seed)
    logits = 2 * rng.normal(size=(n, n_classes))
    labels = (logits + rng.gumbel(size=logits.shape)).argmax(axis=1)
    probs = Predictions(logits=TRUE_TEMPERATURE * logits).probs
    if decimals is not None:
        probs = np.round(probs, decimals)
        probs = probs if decimals > 3 else probs / probs.sum(axis=1, keepdims=True)
    rows = Predictions(probs=probs.astype(dtype), labels=labels, ids=np.arange(n))
    return rows.take(slice(0, n // 2)), rows.take(slice(n // 2, n))


def forest(n=3000, trees=25, seed=0):
    """Return the shares of trees that vote for class 1: drawn towards one half, and exactly 0 or 1 at times."""
    rng = np.random.default_rng(seed)
    log_odds = 3 * rng.normal(size=n)
    labels = (rng.random(n) < 1 / (1 + np.exp(-log_odds))).astype(int)
    shrunk = 1 / (1 + np.exp(-0.6 * log_odds))
    votes = rng.binomial(trees, shrunk) / trees
    surprise = rng.random(n) < 0.005  # rows on which all trees agree on the wrong class
    rows = Predictions(probs=np.where(surprise, 1.0 - labels, votes), labels=labels)
    return rows.take(slice(0, n // 2)), rows.take(slice(n // 2, n))


def brier(predictions):
    return float(
        np.mean(np.sum((predictions.probs - np.eye(predictions.probs.shape[1])[predictions.labels]) ** 2, 1))
    )


@pytest.mark.parametrize("n_classes", [2, 10])
@pytest.mark.parametrize("decimals", [4, 3, 2])
def test_rounding_does_not_change_the_temperature_materially(n_classes, decimals):
    calib, test = network(n_classes, decimals=decimals)
    fitted = TemperatureScaling().fit(calib)
    assert fitted.temperature == pytest.approx(TRUE_TEMPERATURE, rel=0.12)
    whole = TemperatureScaling().fit(network(n_classes)[0])
    unrounded = expected_calibration_error(whole(network(n_classes)[1]))
    assert expected_calibration_error(fitted(test)) < unrounded + 0.015


def test_an_underconfident_forest_is_not_called_overconfident():
    calib, test = forest()
    fitted = TemperatureScaling().fit(calib)
    assert fitted.result.words.startswith("underconfident")
    assert brier(fitted(test)) < brier(test)
    assert brier(PlattScaling().fit(calib)(test)) < brier(test)


def test_the_result_reports_what_a_zero_counts_as():
    calib, _ = network(decimals=4)
    n_rows = int((calib.probs == 0).any(axis=1).sum())
    result = TemperatureScaling().fit(calib).result
    (note,) = result.notes
    (floor,) = result.floor
    assert 0 < floor <= 0.00005
    assert note == (
        f"probabilities are rounded to 4 decimals; an exact 0 counts as {floor:.2g}, in {n_rows:,} of 2,000 rows"
    )
    assert note in str(result)
    assert note in result._repr_html_()


def test_nothing_is_reported_without_zeros():
    calib, _ = network()
    result = TemperatureScaling().fit(calib).result
    assert result.notes == ()
    assert result.floor == ()


def test_zeros_that_are_never_wrong_do_not_count_as_impossible():
    rng = np.random.default_rng(0)
    sure = np.tile([[1.0, 0.0, 0.0]], (200, 1))
    unsure = rng.dirichlet([1.0, 1.0, 1.0], 200).round(2)
    unsure[:, 0] = (1 - unsure[:, 1:].sum(axis=1)).round(2)
    labels = np.concatenate([np.zeros(200, int), [rng.choice(3, p=row / row.sum()) for row in unsure]])
    fitted = TemperatureScaling().fit(Predictions(probs=np.concatenate([sure, unsure]), labels=labels))
    wrong = 1 - float(fitted(Predictions(probs=[[1.0, 0.0, 0.0]])).confidence[0])
    assert 1e-4 < wrong < 0.03


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "focal_recovery"])
@pytest.mark.parametrize("ending", ["json", "safetensors"])
def test_a_saved_calibrator_reads_one_row_as_it_reads_the_file(kind, ending, tmp_path):
    calib, test = network(3, n=1200, decimals=3)
    fitted = KINDS[kind]().fit(calib)
    fitted.save(tmp_path / f"calibrator.{ending}")
    again = load(tmp_path / f"calibrator.{ending}")
    assert again.result.floor == fitted.result.floor != ()
    assert again.result.notes == fitted.result.notes
    whole = fitted(test).probs
    row = int(np.flatnonzero((test.probs == 0).any(axis=1))[0])
    one = Predictions(probs=test.probs[row : row + 1])
    for calibrator in (fitted, again, pickle.loads(pickle.dumps(fitted))):
        np.testing.assert_allclose(calibrator(one).probs[0], whole[row], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(
    "method", [TemperatureScaling(), PlattScaling(), IsotonicCalibration(), HistogramBinning()]
)
def test_the_module_behind_a_network_reads_small_probabilities_alike(method):
    calib, test = network(3, n=1200, decimals=3)
    fitted = method.fit(calib)
    mapped = fitted.as_module()(torch.from_numpy(np.log(np.maximum(test.probs, 1e-30))))
    probs = mapped.softmax(1) if fitted.gives == "logits" else mapped
    np.testing.assert_allclose(probs.numpy(), fitted(test).probs, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize(
    "floor", [[0.0], [0.7], [float("nan")], ["a"], [], [0.1, 0.1, 0.1], 0.1, [0.01, 0.01]]
)
def test_a_forged_floor_is_refused(floor):
    content = TemperatureScaling().fit(network(3, n=1200, decimals=3)[0]).to_artifact()
    content["result"]["floor"] = floor
    with pytest.raises(DataError, match="floor"):
        from_artifact(content)


def test_earlier_packages_are_sent_for_an_upgrade_only_where_zeros_matter():
    plain, zeros = (TemperatureScaling().fit(network(3, n=1200, decimals=d)[0]) for d in (None, 3))
    versions = [
        pack(kind="temperature", settings={}, n_classes=3, fingerprint=None, result=one.result)["version"]
        for one in (plain, zeros)
    ]
    assert versions == [1, 2]


def test_no_calibration_leaves_exact_zeros():
    calib, test = network(3, n=1200, decimals=3)
    for calibrator in (Identity(), Identity().fit(calib)):
        after = calibrator(test)
        assert after.kind == "probs"
        np.testing.assert_array_equal(after.probs, test.probs)


def test_confidences_of_one_do_not_flatten_platt_scaling():
    rng = np.random.default_rng(0)
    confidence = rng.choice([0.6, 0.7, 0.8, 0.9, 0.95, 1.0], 4000)
    right = rng.random(4000) < 0.1 + 0.75 * confidence
    labels = np.ones(4000, int)
    claims = Predictions(
        labels=labels, predicted=right.astype(int), confidence=confidence, ids=np.arange(4000)
    )
    calib, test = claims.take(slice(0, 2000)), claims.take(slice(2000, 4000))
    for calibrator in (PlattScaling(), KINDS["beta"](), KINDS["isotonic"]()):
        after = calibrator.fit(calib)(test)
        gaps = [
            abs(float(after.confidence[test.confidence == value].mean()) - (0.1 + 0.75 * value))
            for value in np.unique(test.confidence)
        ]
        assert max(gaps) < 0.07, calibrator.kind
    assert "multiples of 0.05" in PlattScaling().fit(calib).result.notes[0]


def test_saturated_sigmoids_in_single_precision_count_as_what_the_format_can_hold():
    rng = np.random.default_rng(0)
    log_odds = 2 * rng.normal(size=4000)
    labels = (rng.random(4000) < 1 / (1 + np.exp(-log_odds))).astype(int)
    column = (1 / (1 + np.exp(-6 * log_odds))).astype(np.float32)
    assert (column == 1).any()
    assert TemperatureScaling().fit(Predictions(probs=column, labels=labels)).temperature == pytest.approx(
        6, rel=0.15
    )


def test_averages_of_rounded_members_are_read_by_the_same_rule():
    members = [network(3, n=1200, decimals=4)[0]] * 2
    assert TemperatureScaling().fit(average_predictions(members)).result.floor


def test_rows_of_weight_zero_do_not_set_the_floor():
    calib, _ = network(3, n=1200, decimals=3)
    weights = (np.arange(len(calib)) < 300).astype(float)
    weighted = TemperatureScaling().fit(calib.with_weights(weights))
    alone = TemperatureScaling().fit(calib.take(slice(0, 300)))
    assert weighted.result.floor == alone.result.floor
    assert weighted.temperature == pytest.approx(alone.temperature)


def test_a_fit_that_depends_on_the_zeros_warns():
    rng = np.random.default_rng(0)
    probs = np.where(rng.random(600) < 0.5, 1.0, rng.choice([0.6, 0.7, 0.8, 0.9], 600))
    labels = (rng.random(600) < np.where(probs == 1, 0.75, probs)).astype(int)
    driven = TemperatureScaling().fit(Predictions(probs=probs, labels=labels))
    (warning,) = [one for one in driven.result.warnings if "driven" in one]
    assert f"the {int((probs == 1).sum())} rows with a probability of exactly 0 or 1" in warning
    calib, _ = network(10, decimals=4)
    assert not any("driven" in one for one in IsotonicCalibration().fit(calib).result.warnings)
    assert not TemperatureScaling().fit(network(10)[0]).result.warnings


def test_a_calibrator_that_hurts_held_out_rows_warns():
    calib, _ = network(10, n=300)
    calibrated = Predictions(logits=np.log(calib.probs) / TRUE_TEMPERATURE, labels=calib.labels)
    rows = Predictions(probs=calibrated.probs, labels=calib.labels)
    (warning,) = KINDS["matrix"]().fit(rows).result.warnings
    assert warning.startswith("on held-out rows (5-fold cross-validation) it is worse than none, log-loss")
    assert not TemperatureScaling().fit(calib).result.warnings


def test_a_calibrator_that_changes_nothing_for_the_better_warns():
    calib, _ = network(3, n=3000)
    honest = Predictions(logits=np.log(calib.probs) / TRUE_TEMPERATURE).probs
    (warning,) = TemperatureScaling().fit(Predictions(probs=honest, labels=calib.labels)).result.warnings
    assert "no improvement is shown" in warning or "worse than none" in warning


def test_the_advisor_does_not_choose_by_the_zeros_alone():
    calib, _ = network(3, n=3000)
    honest = Predictions(logits=np.log(calib.probs) / TRUE_TEMPERATURE).probs.round(2)
    rows = Predictions(probs=honest / honest.sum(axis=1, keepdims=True), labels=calib.labels)
    assert (rows.probs == 0).any()
    choice = choose(rows, candidates=["temperature"])
    assert choice.calibrator.kind == "identity"
    assert choice.trials[0].log_loss < 1


def test_a_temperature_sweep_is_lowest_near_the_true_temperature():
    _, test = network(10, decimals=4)
    sweep = sweep_temperatures(test)
    assert 2 < sweep.temperature[sweep.nll.argmin()] < 4


def test_the_command_the_json_and_the_report_name_the_rule(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    calib, test = network(3, n=1200, decimals=4)
    write_predictions(calib, "calib.csv")
    assert main(["calibrate", "calib.csv", "--method", "temperature", "-o", "map.json"]) == 0
    assert "probabilities are rounded to 4 decimals; an exact 0 counts as" in capsys.readouterr().out
    assert main(["calibrate", "calib.csv", "--method", "temperature", "-o", "map.json", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["notes"][0].startswith("probabilities are rounded to 4 decimals")
    assert told["zero_counts_as"] == list(load("map.json").result.floor)
    page = to_html(report_of(test, calib=calib, candidates=["temperature"], n_resamples=20))
    assert "probabilities are rounded to 4 decimals" in page
