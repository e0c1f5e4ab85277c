"""Our metrics agree with other packages where those are right."""

import numpy as np
import pytest
import torch

from equipoise import metrics
from helpers.metric_samples import draw

pytestmark = [pytest.mark.reference, pytest.mark.filterwarnings("ignore")]


@pytest.mark.parametrize("k", [2, 10])
@pytest.mark.parametrize(
    ("norm", "ours"),
    [
        ("l1", metrics.expected_calibration_error),
        ("l2", metrics.root_mean_square_calibration_error),
        ("max", metrics.maximum_calibration_error),
    ],
)
def test_torchmetrics(norm, ours, k):
    peer = pytest.importorskip("torchmetrics.functional.classification")
    probs, labels = draw(3000, k)  # No confidence of exactly one, for which it has a bin of its own.
    found = peer.multiclass_calibration_error(
        torch.tensor(probs), torch.tensor(labels), k, n_bins=15, norm=norm
    )
    assert ours(probs, labels) == pytest.approx(float(found), rel=1e-5)


def test_torchmetrics_binary_is_the_positive_class():
    peer = pytest.importorskip("torchmetrics.functional.classification")
    probs, labels = draw(3000, 2)
    found = peer.binary_calibration_error(torch.tensor(probs[:, 1]), torch.tensor(labels), n_bins=15)
    ours = metrics.expected_calibration_error(probs, labels, target="positive")
    assert ours == pytest.approx(float(found), rel=1e-5)


def test_scikit_learn_scores():
    peer = pytest.importorskip("sklearn.metrics")
    probs, labels = draw(2000, 5)
    weight = np.random.default_rng(0).random(2000)
    assert metrics.negative_log_likelihood(probs, labels, sample_weight=weight) == pytest.approx(
        peer.log_loss(labels, probs, sample_weight=weight)
    )
    correct = probs.argmax(1) == labels
    assert metrics.error_auroc(probs, labels, sample_weight=weight) == pytest.approx(
        peer.roc_auc_score(correct, probs.max(1), sample_weight=weight)
    )
    assert metrics.top_k_accuracy(probs, labels, k=2) == pytest.approx(
        peer.top_k_accuracy_score(labels, probs, k=2)
    )
    two, binary = draw(2000, 2)
    assert metrics.brier_score(two, binary, target="positive") == pytest.approx(
        peer.brier_score_loss(binary, two[:, 1])
    )


def test_scikit_learn_curve():
    peer = pytest.importorskip("sklearn.calibration")
    probs, labels = draw(2000, 2)
    frequency, mean = peer.calibration_curve(labels, probs[:, 1], n_bins=15)
    curve = metrics.reliability_curve(probs, labels, target="positive")
    filled = curve.weight > 0
    np.testing.assert_allclose(curve.frequency[filled], frequency)
    np.testing.assert_allclose(curve.confidence[filled], mean)


def test_netcal():
    peer = pytest.importorskip("netcal.metrics")
    probs, labels = draw(2000, 6)
    assert metrics.expected_calibration_error(probs, labels) == pytest.approx(
        float(peer.ECE(15).measure(probs, labels)), rel=1e-6
    )
    assert metrics.maximum_calibration_error(probs, labels) == pytest.approx(
        float(peer.MCE(15).measure(probs, labels)), rel=1e-6
    )


def test_relplot():
    peer = pytest.importorskip("relplot")
    probs, labels = draw(3000, 4)
    found = peer.smECE(probs.max(1), (probs.argmax(1) == labels).astype(float))
    # It rounds confidences to a grid and stops the search for the width early.
    assert metrics.smooth_calibration_error(probs, labels) == pytest.approx(float(found), abs=1e-3)
