"""The example of a language model runs, finds the overconfident subject, and corrects the confidence."""

import runpy
from pathlib import Path

import pytest

from equipoise.calibrators import PlattScaling
from equipoise.evaluate import audit

EXAMPLE = Path(__file__).parents[2] / "examples" / "language_model.py"


def test_it_runs_and_names_the_subjects(capsys):
    runpy.run_path(str(EXAMPLE), run_name="__main__")
    before, after = capsys.readouterr().out.split("After platt")
    assert "Overconfident by" in before
    assert "Groups by subject: 3 of 3 are off" in before
    assert "Overconfident by" not in after


def test_the_calibrator_removes_the_gap():
    generate = runpy.run_path(str(EXAMPLE))["generate_answers"]
    today = generate(3000, 1, "test")
    calibrated = PlattScaling().fit(generate(2000, 0, "calib"))(today)
    before, after = (audit(part, n_resamples=20).card["ece"].value for part in (today, calibrated))
    assert after < before / 3
    assert audit(calibrated, by=["subject"], n_resamples=20).groups["subject"][0].name == "law"
    assert calibrated.correct.tolist() == today.correct.tolist()
    assert before == pytest.approx(0.15, abs=0.03)
