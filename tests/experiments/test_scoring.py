"""Scores of a run: every number of it is made with the same settings."""

from __future__ import annotations

import pytest

from equipoise import Predictions
from equipoise.experiments import ScoringOptions
from equipoise.experiments.runs.scoring import score_plain


@pytest.mark.parametrize("closed", ["left", "right"])
def test_slices_have_the_bins_of_the_card(closed: str) -> None:
    # All rows are predicted as one class, and some confidences stand on an edge of the four bins.
    confidences = [0.5] * 8 + [0.625] * 8 + [0.75] * 8
    labels = [0] * 8 + [0] * 1 + [1] * 7 + [0] * 8
    rows = Predictions(probs=[[p, 1 - p] for p in confidences], labels=labels)
    found = score_plain({"test": rows}, ScoringOptions(n_bins=4, n_resamples=20, closed=closed))
    assert [part.ece for part in found.classes] == pytest.approx([found.test["ece"].value])
    assert found.test["ece"].value == pytest.approx({"left": 2 / 24, "right": 6 / 24}[closed])
