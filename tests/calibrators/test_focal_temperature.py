"""Focal temperature scaling: the authors' values, temperature scaling as its limit, and finite numbers everywhere."""

import numpy as np
import pytest

from equipoise.calibrators import FocalRecovery, FocalTemperatureScaling, TemperatureScaling
from equipoise.calibrators.result import FitResult
from equipoise.core.array_functions import softmax

LOGITS = np.array([[2.0, 0.5, -1.0], [0.2, 1.4, 0.1], [-0.5, 0.3, 2.2], [1.0, 1.0, 0.0], [12.5, 0.0, -3.0]])
#: Of the authors' code, gamma = 2 and T = 1.5.
EXPECTED = [
    [0.8837632827496028, 0.08751208959164569, 0.028724627658751584],
    [0.15278217191583704, 0.7072707286317698, 0.13994709945239311],
    [0.03122404326711421, 0.05606644856136477, 0.9127095081715211],
    [0.4238787904760466, 0.4238787904760466, 0.15224241904790686],
    [0.9999999999392595, 5.3481470974598636e-11, 7.259027483321739e-12],
]


def at(temperature, gamma):
    found = FitResult(
        parameters={"temperature": np.array(temperature), "gamma": np.array(gamma)},
        words="",
        nll_before=1,
        nll_after=1,
    )
    return FocalTemperatureScaling()._restored(found, 3, None, None)


def test_values_are_those_of_the_authors():
    np.testing.assert_allclose(softmax(at(1.5, 2.0)(LOGITS)), EXPECTED, rtol=1e-8)


@pytest.mark.parametrize("gamma", [0.5, 2.0, 3.0])
def test_it_is_a_temperature_and_then_focal_recovery(gamma):
    np.testing.assert_allclose(
        softmax(at(1.5, gamma)(LOGITS)), FocalRecovery(gamma=gamma)(LOGITS / 1.5), rtol=1e-9
    )


def test_without_gamma_it_is_temperature_scaling():
    np.testing.assert_allclose(softmax(at(2.0, 0.0)(LOGITS)), softmax(LOGITS / 2.0), rtol=1e-12)


@pytest.mark.parametrize("gamma", [0.0, 0.5, 3.0])
def test_extreme_logits_stay_finite_and_ordered(gamma):
    logits = np.array([[1e4, -1e4, 0.0], [0.0, 0.0, 0.0], [700.0, 690.0, -700.0]])
    found = at(1.0, gamma)(logits)
    assert np.isfinite(found).all()
    np.testing.assert_array_equal(found.argmax(axis=1), logits.argmax(axis=1))


def test_the_fit_explains_rows_as_well_as_the_truth_and_better_than_a_temperature():
    rng = np.random.default_rng(0)
    logits = 2 * rng.normal(size=(20_000, 3))
    truth = at(1.5, 3.0)(logits)
    labels = (truth + rng.gumbel(size=truth.shape)).argmax(axis=1)
    fitted = FocalTemperatureScaling().fit(logits, labels)
    temperature = TemperatureScaling().fit(logits, labels)
    assert fitted.result.nll_after < temperature.result.nll_after - 1e-4
    # Gamma and temperature can replace each other in part: the likelihood is compared, not the parameters.
    true_nll = -np.log(softmax(truth)[np.arange(len(labels)), labels]).mean()
    assert fitted.result.nll_after <= true_nll
    assert fitted.result.converged
