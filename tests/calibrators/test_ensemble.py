"""Averages of predictions."""

from __future__ import annotations

import numpy as np
import pytest

from equipoise import Predictions
from equipoise.calibrators import TemperatureScaling, average_predictions
from equipoise.core.errors import DataError, SplitError
from helpers.calibration_data import nll, sample
from helpers.golden import arrays, expected

SECOND_MEMBER = [[1.0, 0.5, 0.0], [0.0, 1.0, 0.2], [0.3, 0.3, 0.9], [1.0, 0.0, 0.0], [0.2, 0.1, 1.2]]


def test_golden_values() -> None:
    logits, labels = arrays("A")
    want = expected("ensemble.A")
    mean = average_predictions([Predictions(logits=one, labels=labels) for one in (logits, SECOND_MEMBER)])
    np.testing.assert_allclose(mean.probs, want["probs"], rtol=1e-9)
    assert nll(np.log(mean.probs), labels) == pytest.approx(want["nll"], rel=1e-9)


def test_one_member_is_itself() -> None:
    logits, labels = sample(10, 3)
    one = Predictions(logits=logits, labels=labels, split="test", ids=np.arange(10))
    mean = average_predictions([one])
    np.testing.assert_allclose(mean.probs, one.probs)
    assert mean.split == "test"
    assert mean.fingerprint == one.fingerprint


def test_one_column_stays_one_column() -> None:
    mean = average_predictions([Predictions(probs=[p], labels=[1]) for p in (0.2, 0.6)])
    assert mean.one_column
    assert mean.scores[0] == pytest.approx(0.4)


def test_other_rows_are_refused() -> None:
    logits, labels = sample(10, 3)
    one = Predictions(logits=logits, labels=labels, ids=np.arange(10))
    for other, why in (
        (Predictions(logits=logits, labels=(labels + 1) % 3, ids=np.arange(10)), "other labels"),
        (Predictions(logits=logits, labels=labels, ids=np.arange(10) + 5), "other ids"),
        (Predictions(logits=np.c_[logits, logits[:, 0]], labels=labels), "4 classes"),
    ):
        with pytest.raises(DataError, match=why):
            average_predictions([one, other])
    with pytest.raises(DataError, match="no predictions"):
        average_predictions([])


def test_a_member_calibrated_on_these_rows_is_refused() -> None:
    logits, labels = sample(30, 3)
    rows = Predictions(logits=logits, labels=labels)
    leaked = TemperatureScaling().fit(rows)(rows)
    with pytest.raises(SplitError, match="member 1"):
        average_predictions([rows, leaked])
