import numpy as np
import pytest

from equipoise import Predictions
from equipoise.metrics.consistency import consistency_test
from helpers.daily import daily
from helpers.metric_samples import draw


@pytest.mark.parametrize("metric", daily(["ece", "rms_ce", "classwise_ece"], keep=["ece"]))
def test_p_values_are_even_under_calibration(metric):
    found = np.array(
        [
            consistency_test(*draw(800, 3, sharpness=1.0, seed=s), metric=metric, n_resamples=200).p_value
            for s in range(60)
        ]
    )
    # Of 60 even numbers the mean is within 0.5 +- 0.11, three standard errors, and 6 +- 5 lie below 0.1.
    assert 0.37 < found.mean() < 0.66
    assert np.count_nonzero(found < 0.1) <= 12


@pytest.mark.parametrize("metric", ["ece", "mce", "rms_ce", "avg_ce", "classwise_ece"])
def test_p_values_are_small_under_distortion(metric):
    assert consistency_test(*draw(3000, 2, sharpness=2.0), metric=metric, n_bins=5).p_value < 0.02


def test_expected_is_between_zero_and_the_highest():
    found = consistency_test(*draw(500, 3, sharpness=1.0))
    assert 0 < found.expected < found.highest
    assert found.metric == "ece"


def test_weights_count_as_rows_they_are_worth():
    probs, labels = draw(2000, 3, sharpness=1.25)
    plain = consistency_test(probs, labels)
    few = consistency_test(probs, labels, sample_weight=np.where(np.arange(2000) < 60, 1.0, 1e-6))
    assert few.expected > 3 * plain.expected


def test_refusals():
    with pytest.raises(ValueError, match="did you mean 'rms_ce'"):
        consistency_test([[0.9, 0.1]], [0], metric="rmsce")
    with pytest.raises(ValueError, match="1000 is usual"):
        consistency_test([[0.9, 0.1]], [0], n_resamples=0)
    top1 = Predictions(predicted=[0], confidence=[0.9], labels=[0], n_classes=2)
    assert consistency_test(top1).p_value == 1.0
    with pytest.raises(ValueError, match="no testable error"):
        consistency_test(top1, metric="classwise_ece")
