"""Maps of one confidence: what the named class is worth, from top-1 predictions."""

import copy
import pickle

import numpy as np
import pytest

from equipoise import Predictions, read_predictions, score, write_predictions
from equipoise.calibrators import (
    BetaCalibration,
    HistogramBinning,
    IsotonicCalibration,
    PlattScaling,
    SplineCalibration,
    TemperatureScaling,
)
from equipoise.calibrators.loading import from_artifact, load
from equipoise.calibrators.selection import choose
from equipoise.calibrators.spline import fit_spline
from equipoise.cli import main
from equipoise.core.errors import DataError, SplitError

MAPS = [PlattScaling(), BetaCalibration(), IsotonicCalibration(), HistogramBinning(), SplineCalibration()]


def claims(n=4000, seed=0, split="calib", **extra):
    rng = np.random.default_rng(seed)
    confidence = rng.uniform(0.3, 0.999, n)
    predicted = rng.integers(0, 5, n)
    right = rng.random(n) < 0.2 + 0.5 * confidence
    labels = np.where(right, predicted, (predicted + 1) % 5)
    return Predictions(labels=labels, predicted=predicted, confidence=confidence, split=split, **extra)


@pytest.mark.parametrize("calibrator", MAPS, ids=lambda one: one.kind)
def test_confidence_becomes_the_chance_of_being_right(calibrator):
    fitted = copy.deepcopy(calibrator).fit(claims())
    judged = claims(seed=1, split="test", groups={"site": ["a", "b"] * 2000})
    mapped = fitted(judged)
    assert score(mapped, n_resamples=10)["ece"].value < 0.035 < score(judged, n_resamples=10)["ece"].value
    assert mapped.kind == "top1"
    assert np.array_equal(mapped.predicted, judged.predicted)
    assert mapped.groups.keys() == judged.groups.keys()
    low = mapped.confidence[judged.confidence < 0.4].mean()
    assert low == pytest.approx(0.2 + 0.5 * 0.35, abs=0.05)


@pytest.mark.parametrize("calibrator", MAPS[:-1], ids=lambda one: one.kind)
def test_it_is_what_the_two_class_map_gives(calibrator):
    rows = claims()
    binary = Predictions(probs=rows.confidence, labels=rows.correct.astype(int), split="calib")
    mapped = copy.deepcopy(calibrator).fit(rows)(rows)
    expected = copy.deepcopy(calibrator).fit(binary)(binary)
    assert mapped.confidence == pytest.approx(expected.probs[:, 1], abs=1e-9)


def test_a_spline_follows_the_confidence_of_the_class_named_below_one_half_too():
    rows = claims()
    knots, values = fit_spline(rows.confidence, rows.correct.astype(float), n_knots=6)
    judged = claims(300, seed=3, split="test")
    mapped = SplineCalibration().fit(rows)(judged).confidence
    np.testing.assert_allclose(mapped, np.interp(judged.confidence, knots, values), atol=1e-9)
    assert (judged.confidence < 0.5).any()


def test_a_spline_of_claims_is_no_map_of_two_classes(tmp_path):
    fitted = SplineCalibration().fit(claims())
    content = {**fitted.to_artifact(), "n_classes": 2}
    with pytest.raises(DataError, match="knots"):
        from_artifact(content)


@pytest.mark.parametrize("calibrator", MAPS, ids=lambda one: one.kind)
def test_a_file_and_a_pickle_give_the_same(calibrator, tmp_path):
    fitted = copy.deepcopy(calibrator).fit(claims())
    judged = claims(200, seed=2, split="test")
    fitted.save(tmp_path / "map.json")
    for back in (load(tmp_path / "map.json"), pickle.loads(pickle.dumps(fitted))):
        assert np.array_equal(back(judged).confidence, fitted(judged).confidence)
        with pytest.raises(DataError, match="confidence alone"):
            back(Predictions(logits=np.zeros((2, 2)), labels=[0, 1]))


def test_rows_it_was_fitted_on_are_not_scored():
    rows = claims()
    with pytest.raises(SplitError):
        score(PlattScaling().fit(rows)(rows))


@pytest.mark.parametrize(
    "calibrator",
    [
        TemperatureScaling(),
        HistogramBinning(share="top_label"),
        IsotonicCalibration(share="pooled"),
    ],
    ids=repr,
)
def test_maps_that_make_no_sense_there_are_refused(calibrator):
    with pytest.raises(DataError, match="platt, beta, isotonic, histogram"):
        calibrator.fit(claims())


def test_maps_do_not_cross_over():
    logits = np.random.default_rng(0).normal(size=(100, 2))
    binary = PlattScaling().fit(logits, (logits[:, 1] > 0).astype(int))
    with pytest.raises(DataError, match="fitted on scores of every class"):
        binary(claims(10))
    one = PlattScaling().fit(claims())
    with pytest.raises(DataError, match="confidence alone"):
        one(logits)
    with pytest.raises(DataError, match="does not go behind a network"):
        one.as_module()


def test_the_commands_calibrate_a_top1_file(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    write_predictions(claims(), "last.csv")
    write_predictions(claims(seed=1, split="test"), "today.csv")
    assert main(["calibrate", "last.csv", "--method", "platt", "-o", "map.json"]) == 0
    assert main(["apply", "map.json", "today.csv", "-o", "believed.csv"]) == 0
    before, after = (
        score(read_predictions(name), n_resamples=10)["ece"].value for name in ("today.csv", "believed.csv")
    )
    assert after < before / 3
    capsys.readouterr()
    assert main(["calibrate", "last.csv", "--method", "temperature", "-o", "other.json"]) == 2
    assert "platt, beta, isotonic, histogram" in capsys.readouterr().err
    assert not (tmp_path / "other.json").exists()


def test_the_advisor_chooses_among_calibrators_of_one_confidence():
    choice = choose(claims())
    tried = {trial.name: trial for trial in choice.trials}
    assert set(tried) == {"identity", "platt", "beta", "isotonic", "histogram", "spline"}
    assert choice.calibrator.kind != "identity"
    held = claims(seed=1)
    before, after = (
        np.mean((part.confidence - part.correct) ** 2) for part in (held, choice.calibrator(held))
    )
    assert after < before
    assert tried[choice.calibrator.kind].ece < tried["identity"].ece
    (named,) = [
        trial for trial in choose(claims(), candidates=["temperature"]).trials if trial.name != "identity"
    ]
    assert named.note == "left out: it needs the scores of every class"
