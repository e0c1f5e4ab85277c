"""Our calibrators beside those of other packages, where these are installed."""

from __future__ import annotations

import warnings
from types import ModuleType

import numpy as np
import pytest

from equipoise.calibrators import (
    IsotonicCalibration,
    MatrixScaling,
    PlattScaling,
    StructuredMatrixScaling,
    StructuredVectorScaling,
    TemperatureScaling,
    VectorScaling,
)
from helpers.calibration_data import nll, probs, sample

pytestmark = pytest.mark.reference


def rows() -> tuple[np.ndarray, np.ndarray]:
    logits, labels = sample(400, 4)
    return 2.5 * logits + [0.0, 0.6, -0.6, 0.0], labels


def peer(name: str) -> ModuleType:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pytest.importorskip(name)


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (StructuredVectorScaling, "SVSCalibrator"),
        (StructuredMatrixScaling, "SMSCalibrator"),
        (TemperatureScaling, "TemperatureScalingCalibrator"),
    ],
)
def test_probmetrics_gives_the_same_probabilities(ours: type, theirs: str) -> None:
    logits, labels = rows()
    other = getattr(peer("probmetrics.calibrators"), theirs)()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        other.fit(probs(logits), labels)
        want = other.predict_proba(probs(logits))
    np.testing.assert_allclose(probs(ours().fit(logits, labels)(logits)), want, atol=2e-3)


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [(VectorScaling, "VectorScalingCalibrator"), (MatrixScaling, "MatrixScalingCalibrator")],
)
def test_probmetrics_is_never_ahead(ours: type, theirs: str) -> None:
    torch = pytest.importorskip("torch")
    logits, labels = rows()
    other = getattr(peer("probmetrics.calibrators"), theirs)()
    told = peer("probmetrics.distributions").CategoricalLogits(torch.from_numpy(logits))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        other.fit_torch(told, torch.from_numpy(labels))
        want = other.predict_proba_torch(told).get_probs().numpy()
    found = ours().fit(logits, labels)
    assert found.result.nll_after <= nll(np.log(want), labels) + 1e-9
    np.testing.assert_allclose(probs(found(logits)), want, atol=5e-3)


def test_scikit_learn_isotonic_regression() -> None:
    isotonic = peer("sklearn.isotonic")
    logits, labels = rows()
    parameters = IsotonicCalibration().fit(logits, labels).result.parameters
    p = probs(logits)
    asked = np.linspace(0, 1, 501)
    for j in range(4):
        curve = isotonic.IsotonicRegression(out_of_bounds="clip").fit(p[:, j], labels == j)
        ours = np.interp(asked, parameters["knots"][j], parameters["values"][j])
        np.testing.assert_allclose(ours, curve.predict(asked), atol=1e-6)


def test_scikit_learn_sigmoid() -> None:
    calibration = peer("sklearn.calibration")
    logits, labels = sample(300, 2)
    column = 2 * (logits[:, 1] - logits[:, 0])
    curve = calibration._SigmoidCalibration().fit(column, labels)
    ours = PlattScaling().fit(column, labels)
    np.testing.assert_allclose(1 / (1 + np.exp(-ours(column))), curve.predict(column), atol=1e-5)


def test_netcal_temperature() -> None:
    netcal = peer("netcal.scaling")
    logits, labels = rows()
    other = netcal.TemperatureScaling()
    other.fit(probs(logits), labels)
    want = other.transform(probs(logits))
    np.testing.assert_allclose(probs(TemperatureScaling().fit(logits, labels)(logits)), want, atol=1e-3)
