"""The advisor in a report: fitted on held-out rows, judged on others."""

import json

import numpy as np
import pytest

from equipoise import Predictions, score, write_predictions
from equipoise.calibrators import TemperatureScaling, choose
from equipoise.cli import main
from equipoise.core.errors import SpecError, SplitError
from equipoise.report import advice_of, report_of, to_html


@pytest.fixture(scope="module")
def halves():
    rng = np.random.default_rng(0)
    logits = 2 * rng.normal(size=(1600, 4))
    labels = (logits + rng.gumbel(size=logits.shape)).argmax(1)
    both = Predictions(logits=3 * logits, labels=labels, ids=np.arange(1600))
    return both.take(slice(0, 800)).with_split("calib"), both.take(slice(800, 1600)).with_split("test")


def test_temperature_is_recommended_judged_and_better(halves):
    calib, test = halves
    method = report_of(test, calib=calib, candidates=["temperature"], n_resamples=100).methods[0]
    (after,) = method.calibrated
    wanted = score(TemperatureScaling().fit(calib)(test), n_resamples=100)
    assert after.score("ece").value == pytest.approx(wanted["ece"].value)
    assert {row.metric: row.verdict for row in after.versus}["nll"] == "better"
    assert method.advice.recommendation.startswith("Use temperature")
    assert "TemperatureScaling().fit(calib)" in method.advice.code


def test_every_trial_of_the_advisor_is_reported(halves):
    choice = choose(halves[0], candidates=["temperature", "isotonic"])
    advice = advice_of(choice)
    assert [(one.name, one.note) for one in advice.options] == [(one.name, one.note) for one in choice.trials]


def test_a_calibrated_model_is_left_alone(halves):
    calib, test = (part.with_scores(logits=part.logits / 3) for part in halves)
    method = report_of(test, calib=calib, candidates=["vector"], n_resamples=100).methods[0]
    assert method.advice.recommendation.startswith("Leave it alone")
    assert method.advice.code == ""


def test_the_page_shows_what_it_adds(halves):
    calib, test = halves
    page = to_html(report_of({"net": test}, calib={"net": calib}, candidates=["temperature"], n_resamples=50))
    assert 'id="posthoc"' in page
    assert "divide logits by" in page


def test_without_held_out_rows_the_page_says_how_to_get_advice(halves):
    page = to_html(report_of(halves[1], n_resamples=50))
    assert "report_of(predictions, calib=held_out)" in page


def test_judged_rows_may_not_be_fitted_on(halves):
    with pytest.raises(SplitError):
        report_of(halves[1], calib=halves[1], n_resamples=20)
    with pytest.raises(SplitError):
        report_of(halves[1], calib=halves[1].with_split("calib"), candidates=["temperature"], n_resamples=20)


def test_held_out_rows_of_an_unknown_model_are_refused(halves):
    with pytest.raises(SpecError, match="did you mean 'net'"):
        report_of({"net": halves[1]}, calib={"nett": halves[0]}, n_resamples=20)


def test_report_and_calibrate_choose_alike(halves, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    calib, test = halves
    write_predictions(calib, "calib.npz")
    assert main(["calibrate", "calib.npz", "-o", "map.json", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    advice = report_of(test, calib=calib, n_resamples=20).methods[0].advice
    assert [(one.name, one.note) for one in advice.options] == [
        (one["name"], one["note"]) for one in told["trials"]
    ]
    assert advice.recommendation.startswith(told["reason"])
    assert advice.chosen == told["method"]


def test_a_report_on_confidences_is_advised_too():
    rng = np.random.default_rng(0)
    confidence = rng.choice([0.6, 0.8, 0.9, 1.0], 2000)
    right = (rng.random(2000) < 0.7 * confidence).astype(int)
    rows = Predictions(labels=np.ones(2000, int), predicted=right, confidence=confidence, ids=np.arange(2000))
    method = report_of(rows.take(slice(0, 1000)), calib=rows.take(slice(1000, 2000)), n_resamples=50).methods[
        0
    ]
    (after,) = method.calibrated
    assert after.name == method.advice.chosen
    assert "rounded to 1 decimal; an exact 0 or 1 counts as 0.05 away from it" in after.words
    assert after.score("ece").value < method.score("ece").value / 3
