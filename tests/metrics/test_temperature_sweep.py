"""ECE and NLL over temperatures."""

import numpy as np
import pytest

from equipoise import Predictions
from equipoise.metrics import expected_calibration_error, negative_log_likelihood, sweep_temperatures


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    logits = 2 * rng.normal(size=(2000, 4))
    labels = (logits + rng.gumbel(size=logits.shape)).argmax(1)
    return Predictions(logits=3 * logits, labels=labels)


def test_temperature_one_is_the_model_itself(rows):
    sweep = sweep_temperatures(rows, temperatures=[1.0])
    assert sweep.ece[0] == pytest.approx(expected_calibration_error(rows))
    assert sweep.nll[0] == pytest.approx(negative_log_likelihood(rows))


def test_finds_the_temperature_that_was_put_in(rows):
    sweep = sweep_temperatures(rows)
    assert sweep.temperature[sweep.nll.argmin()] == pytest.approx(3.0, rel=0.2)


@pytest.mark.parametrize("bad", [[], [0.0], [-1.0], [np.nan], [[1.0]]])
def test_refuses_what_is_no_temperature(rows, bad):
    with pytest.raises(ValueError, match="above 0"):
        sweep_temperatures(rows, temperatures=bad)
