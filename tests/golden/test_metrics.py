"""Metrics agree with the worked values."""

import numpy as np
import pytest

from equipoise import metrics as m
from helpers.golden import CASES, probabilities


@pytest.mark.parametrize("name", ["metrics.D.4", "metrics.R.15"])
def test_metric_family(name):
    case = CASES[name]
    want, n_bins = case["expected"], case["params"]["bins"]
    probs, labels = probabilities(case["batch"])
    arguments = (probs, labels)
    found = {
        "accuracy": m.accuracy(*arguments),
        "ece": m.expected_calibration_error(*arguments, n_bins=n_bins),
        "ece_left_closed": m.expected_calibration_error(*arguments, n_bins=n_bins, closed="left"),
        "mce": m.maximum_calibration_error(*arguments, n_bins=n_bins),
        "avg_ce_nonempty": m.average_calibration_error(*arguments, n_bins=n_bins),
        "rms_ce": m.root_mean_square_calibration_error(*arguments, n_bins=n_bins),
        "ada_ece_interp": m.adaptive_calibration_error(*arguments, n_bins=n_bins, keep_minimum=False),
        "ada_edges": m.adaptive_edges(*arguments, n_bins=n_bins),
        "ada_ece_chunks": m.adaptive_calibration_error(*arguments, n_bins=n_bins, construction="chunks"),
        "classwise_ece": m.classwise_calibration_error(*arguments, n_bins=n_bins),
        "classwise_per_class": m.classwise_calibration_errors(*arguments, n_bins=n_bins),
        "classwise_left_closed": m.classwise_calibration_error(*arguments, n_bins=n_bins, closed="left"),
        "overconfidence_error": m.over_confidence_error(*arguments, n_bins=n_bins),
        "brier_sum": m.brier_score(*arguments),
        "brier_mean_over_classes": m.brier_score(*arguments, target="classwise"),
        "rbs": m.root_brier_score(*arguments),
        "brier_top": m.brier_score(*arguments, target="top_label"),
        "ks": m.kolmogorov_smirnov_error(*arguments),
        "auroc_conf": m.error_auroc(*arguments),
        "ace": m.thresholded_adaptive_calibration_error(*arguments, n_bins=n_bins, keep_minimum=False),
        "bin_counts": m.reliability_curve(*arguments, n_bins=n_bins).weight,
        "bin_acc": np.nan_to_num(m.reliability_curve(*arguments, n_bins=n_bins).frequency),
        "bin_conf": np.nan_to_num(m.reliability_curve(*arguments, n_bins=n_bins).confidence),
    }
    if "nll" in want:
        found["nll"] = m.negative_log_likelihood(*arguments)
    for key, value in found.items():
        np.testing.assert_allclose(value, want[key], rtol=1e-8, atol=1e-10, err_msg=key)


def test_smooth_calibration_error_is_the_exact_one():
    probs, labels = probabilities("R")
    want = CASES["smece.R"]["expected"]
    assert m.smooth_calibration_error(probs, labels) == pytest.approx(want["fixed_point_exact"], rel=1e-6)
    for width in (0.05, 0.1):
        found = m.smooth_calibration_error(probs, labels, bandwidth=width)
        assert found == pytest.approx(want[f"sigma_{width}_exact"], rel=1e-6)
        assert found == pytest.approx(want[f"sigma_{width}_relplot"], rel=5e-3)


@pytest.mark.parametrize("name", ["kde_ece_h0.1.A", "kde_ece_h0.01.A"])
@pytest.mark.parametrize(
    ("target", "key"), [("canonical", "canonical"), ("classwise", "marginal"), ("top_label", "top_label")]
)
@pytest.mark.parametrize("power", [1, 2])
def test_kernel_calibration_error(name, target, key, power):
    case = CASES[name]
    found = m.kernel_calibration_error(
        *probabilities("A"), bandwidth=case["params"]["bandwidth"], target=target, power=power
    )
    assert found == pytest.approx(case["expected"][f"{key}_p{power}"], rel=1e-8)


def test_bandwidth_choice():
    case = CASES["kde_bandwidth.R"]
    probs, labels = probabilities("R")
    chosen = m.choose_bandwidth(probs, candidates=case["params"]["candidates"], normalizer="published")
    assert chosen == pytest.approx(case["expected"]["official_choice"])
    error = m.kernel_calibration_error(probs, labels, bandwidth=chosen)
    assert error == pytest.approx(case["expected"]["ece_kde_canonical_p1"], rel=1e-8)


@pytest.mark.parametrize("name", ["sece_h0.01_self.A", "sece_h0.1_self.A"])
def test_gaussian_calibration_error(name):
    case = CASES[name]
    found = m.gaussian_calibration_error(*probabilities("A"), bandwidth=case["params"]["bandwidth"])
    assert found == pytest.approx(case["expected"]["sece"], rel=1e-8)
