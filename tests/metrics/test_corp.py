import json
from pathlib import Path

import numpy as np
import pytest
from scipy.special import softmax

from equipoise.metrics import (
    area_under_generalized_risk_coverage,
    area_under_risk_coverage,
    corp_curve,
    corp_split,
    coverage_at_risk,
    excess_area_under_risk_coverage,
    risk_at_coverage,
)
from helpers.metric_samples import draw

GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "decisions.json").read_text())
PROBS, LABELS = softmax(np.array(GOLDEN["logits"]), axis=1), np.array(GOLDEN["labels"])


def test_worked_values():
    want = GOLDEN["corp_top_label_brier"]
    found = corp_split(PROBS, LABELS)
    assert found == pytest.approx((want["score"], want["mcb"], want["dsc"], want["unc"]))
    assert area_under_risk_coverage(PROBS, LABELS) == pytest.approx(GOLDEN["aurc_mean_over_prefixes"])
    assert area_under_generalized_risk_coverage(PROBS, LABELS) == pytest.approx(
        GOLDEN["augrc_mean_over_prefixes"]
    )


@pytest.mark.parametrize("score", ["brier", "log"])
@pytest.mark.parametrize("event", ["top", "positive"])
def test_parts_add_up_and_are_not_negative(score, event):
    rng = np.random.default_rng(0)
    probs = rng.uniform(0.01, 0.99, 200)
    labels = (rng.random(200) < probs**2).astype(int)
    found = corp_split(probs, labels, score=score, event=event)
    assert found.score == pytest.approx(found.miscalibration - found.discrimination + found.uncertainty)
    assert found.miscalibration >= 0
    assert found.discrimination >= 0
    assert found.refinement == pytest.approx(found.score - found.miscalibration)


def test_recalibrated_forecasts_have_no_miscalibration():
    rng = np.random.default_rng(1)
    probs = rng.uniform(0, 1, 300)
    labels = (rng.random(300) < probs**2).astype(int)
    curve = corp_curve(probs, labels, event="positive")
    recalibrated = curve.frequency[np.searchsorted(curve.high, probs)]
    found = corp_split(recalibrated, labels, event="positive")
    assert found.miscalibration == pytest.approx(0, abs=1e-12)
    assert found.score == pytest.approx(corp_split(probs, labels, event="positive").refinement)


def test_curve_never_decreases_and_holds_all_rows():
    curve = corp_curve(PROBS, LABELS)
    assert (np.diff(curve.frequency) >= 0).all()
    assert curve.weight.sum() == len(LABELS)
    assert (curve.low <= curve.forecast).all()
    assert (curve.forecast <= curve.high).all()


def test_a_certain_mistake_has_infinite_log_loss():
    assert corp_split([1.0, 0.2], [0, 1], score="log", event="positive").score == np.inf


def test_weights_repeat_rows():
    probs, labels = draw(60)
    weights = np.random.default_rng(2).integers(0, 4, 60)
    repeated = np.repeat(np.arange(60), weights)
    for metric in (
        corp_split,
        area_under_generalized_risk_coverage,
        excess_area_under_risk_coverage,
        lambda *a, **k: risk_at_coverage(*a, coverage=0.4, **k),
        lambda *a, **k: coverage_at_risk(*a, risk=0.2, **k),
    ):
        weighted = metric(probs, labels, sample_weight=weights)
        assert weighted == pytest.approx(metric(probs[repeated], labels[repeated]))


def test_positive_event_requires_two_classes():
    with pytest.raises(ValueError, match="Use 'top'"):
        corp_split(PROBS, LABELS, event="positive")


def test_generalized_area_equals_the_loop():
    probs, labels = draw(150)
    wrong = (probs.argmax(1) != labels)[np.argsort(-probs.max(1))]
    assert area_under_generalized_risk_coverage(probs, labels) == pytest.approx(np.cumsum(wrong).mean() / 150)


def test_excess_is_zero_for_the_best_order_and_the_area_without_mistakes_is_zero():
    confidence = np.linspace(0.99, 0.51, 50)
    probs = np.stack([confidence, 1 - confidence], axis=1)
    labels = (np.arange(50) >= 40).astype(int)
    assert excess_area_under_risk_coverage(probs, labels) == pytest.approx(0, abs=1e-12)
    assert excess_area_under_risk_coverage(probs, labels[::-1]) > 0.1


def test_risk_and_coverage_at_points_of_the_curve():
    confidence = np.linspace(0.99, 0.51, 50)
    probs = np.stack([confidence, 1 - confidence], axis=1)
    labels = (np.arange(50) >= 40).astype(int)
    assert risk_at_coverage(probs, labels, coverage=0.8) == 0
    assert risk_at_coverage(probs, labels, coverage=1) == pytest.approx(0.2)
    assert coverage_at_risk(probs, labels, risk=0.0) == pytest.approx(0.8)
    assert coverage_at_risk(probs, 1 - labels, risk=0.5) == 0
    with pytest.raises(ValueError, match="coverage"):
        risk_at_coverage(probs, labels, coverage=0)
    with pytest.raises(ValueError, match="risk"):
        coverage_at_risk(probs, labels, risk=1.5)
