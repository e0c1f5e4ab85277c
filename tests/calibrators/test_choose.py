"""The advisor."""

from __future__ import annotations

import numpy as np
import pytest

from equipoise import Predictions
from equipoise.calibrators import TemperatureScaling, VectorScaling, choose
from equipoise.core.errors import SpecError, SplitError
from helpers.calibration_data import sample

SOME = ("temperature", "svs", "vector", "histogram")


def test_calibrated_predictions_are_left_alone() -> None:
    logits, labels = sample(600, 4)
    choice = choose(Predictions(logits=logits, labels=labels), candidates=SOME)
    assert choice.calibrator.kind == "identity"
    assert "Leave it alone" in str(choice)
    assert choice.interval[0] <= 0


def test_an_overconfident_model_gets_a_temperature() -> None:
    logits, labels = sample(600, 4)
    choice = choose(Predictions(logits=3 * logits, labels=labels), candidates=SOME)
    assert choice.calibrator.kind == "temperature"
    assert choice.calibrator.temperature == TemperatureScaling().fit(3 * logits, labels).temperature
    assert choice.interval[0] > 0


def test_classes_that_err_differently_get_a_map_per_class() -> None:
    logits, labels = sample(1500, 4)
    bent = logits + np.array([2.0, -2.0, 0.0, 0.0])
    choice = choose(Predictions(logits=bent, labels=labels), candidates=SOME)
    assert choice.calibrator.kind in ("svs", "vector")


@pytest.mark.parametrize("seed", range(3))
def test_a_rule_takes_the_best_or_the_simplest_near_it(seed) -> None:
    logits, labels = sample(400, 4, seed=seed)
    rows = Predictions(logits=1.3 * logits + np.array([0.3, -0.3, 0.0, 0.0]), labels=labels)
    cautious, bold = (choose(rows, candidates=SOME, rule=rule) for rule in ("one_standard_error", "best"))
    lines = {trial.name: trial for trial in bold.trials}
    best = min((t for t in bold.trials if np.isfinite(t.log_loss)), key=lambda trial: trial.log_loss)
    assert bold.calibrator.kind == best.name
    assert "lowest held-out log-loss" in bold.reason
    assert lines[cautious.calibrator.kind].n_parameters <= best.n_parameters
    assert [trial.log_loss for trial in cautious.trials] == [trial.log_loss for trial in bold.trials]
    with pytest.raises(ValueError, match="`rule` must be"):
        choose(rows, rule="bset")


def test_the_best_may_be_to_leave_alone() -> None:
    logits, labels = sample(4000, 4)
    choice = choose(Predictions(logits=logits, labels=labels), candidates=["histogram"], rule="best")
    assert choice.calibrator.kind == "identity"
    assert choice.reason == "Leave it alone: no calibrator lowers the held-out log-loss."


def test_the_expected_gain_is_what_new_rows_show() -> None:
    logits, labels = sample(800, 4)
    choice = choose(Predictions(logits=3 * logits, labels=labels), candidates=SOME)
    fresh, truth = sample(20_000, 4, seed=1)
    before = Predictions(logits=3 * fresh, labels=truth)
    after = choice.calibrator(before)
    rows = np.arange(len(truth))
    gain = (after.log_probs[rows, truth] - before.log_probs[rows, truth]).mean()
    assert choice.interval[0] - 0.05 < gain < choice.interval[1] + 0.05


def test_maps_too_large_for_the_rows_are_refused_with_a_reason() -> None:
    logits, labels = sample(100, 10)
    choice = choose(
        Predictions(logits=3 * logits, labels=labels), candidates=["temperature", "matrix", "svs"]
    )
    notes = {trial.name: trial.note for trial in choice.trials}
    assert notes["matrix"] == "left out: 110 parameters need 1,100 rows, there are 100"
    assert "left out" not in notes["svs"]
    few = Predictions(logits=sample(30, 40)[0], labels=sample(30, 40)[1])
    assert "fewer rows than classes" in str(choose(few, candidates=["svs"]))


def test_a_handful_of_rows_is_no_basis() -> None:
    logits, labels = sample(5, 3)
    choice = choose(Predictions(logits=logits, labels=labels))
    assert choice.calibrator.kind == "identity"
    assert "5 rows are too few" in choice.reason


def test_same_seed_same_choice_and_settings_are_kept() -> None:
    logits, labels = sample(200, 3)
    rows = Predictions(logits=3 * logits, labels=labels, weights=np.ones(200))
    own = TemperatureScaling(criterion="ece")
    one, two = (choose(rows, candidates=[own, VectorScaling()], seed=7) for _ in range(2))
    assert str(one) == str(two)
    assert any("criterion='ece'" in trial.name for trial in one.trials)


def test_ece_is_told_and_not_the_criterion() -> None:
    logits, labels = sample(800, 4)
    choice = choose(Predictions(logits=3 * logits, labels=labels), candidates=SOME)
    by_loss = min((t for t in choice.trials), key=lambda t: t.log_loss)
    chosen = next(t for t in choice.trials if t.note == "chosen")
    assert chosen.log_loss - by_loss.log_loss < 0.02
    assert all(np.isfinite(t.ece) for t in choice.trials)


def test_the_default_candidates_run_for_two_classes() -> None:
    logits, labels = sample(150, 2)
    column = 3 * (logits[:, 1] - logits[:, 0])
    assert "calibrator" in str(choose(Predictions(logits=column, labels=labels)))


def test_test_rows_and_unknown_names_are_refused() -> None:
    logits, labels = sample(50, 3)
    with pytest.raises(SplitError, match="Choose on 'calib'"):
        choose(Predictions(logits=logits, labels=labels, split="test"))
    with pytest.raises(SpecError, match="did you mean 'temperature'"):
        choose(Predictions(logits=logits, labels=labels), candidates=["temprature"])


def test_with_few_rows_a_rich_calibrator_must_clearly_beat_a_temperature() -> None:
    for seed in range(6):
        logits, labels = sample(400, 4, seed=seed)
        rows = Predictions(logits=2 * logits + np.array([0.2, -0.2, 0.0, 0.0]), labels=labels)
        choice = choose(rows, candidates=SOME)
        lines = {trial.name: trial.log_loss for trial in choice.trials}
        if choice.calibrator.kind not in ("identity", "temperature"):
            assert "lowest held-out log-loss" in choice.reason
        else:
            assert lines[choice.calibrator.kind] == min(lines["identity"], lines["temperature"])
        assert choose(rows, candidates=SOME, rule="best").calibrator.kind == min(
            (name for name in lines if np.isfinite(lines[name])), key=lines.__getitem__
        )


def test_curves_of_one_confidence_need_two_thousand_rows() -> None:
    rng = np.random.default_rng(0)
    for n_rows, refused in ((1999, True), (2000, False)):
        confidence = rng.uniform(0.2, 1.0, n_rows)
        rows = Predictions(confidence=confidence, correct=rng.random(n_rows) < confidence**2)
        notes = {trial.name: trial.note for trial in choose(rows).trials}
        for name in ("isotonic", "histogram", "spline"):
            assert ("requires 2,000 rows" in notes[name]) == refused
        assert "left out" not in notes["beta"]
