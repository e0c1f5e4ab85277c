import itertools

import numpy as np
import pytest
from hypothesis import given

from equipoise.metrics import area_under_risk_coverage, risk_coverage
from helpers.metric_samples import draw, rows, top_label


def area(wrong):
    return np.mean(np.cumsum(wrong) / np.arange(1, len(wrong) + 1))


def test_value_by_hand():
    # Most confident first: right, wrong, right. Risks 0, 1/2, 1/3.
    probs = [[0.9, 0.1], [0.8, 0.2], [0.6, 0.4]]
    assert area_under_risk_coverage(probs, [0, 1, 0]) == pytest.approx((0 + 1 / 2 + 1 / 3) / 3)


def test_equals_the_loop_without_ties():
    probs, labels = draw(150)
    confidence, correct = (np.array(part) for part in top_label(probs, labels))
    want = area(1 - correct[np.argsort(-confidence)])
    assert area_under_risk_coverage(probs, labels) == pytest.approx(want)


@given(rows(max_rows=6))
def test_ties_share_their_mistakes_evenly(sample):
    confidence, correct = top_label(*sample)
    orders = [
        order
        for order in itertools.permutations(range(len(correct)))
        if all(confidence[a] >= confidence[b] for a, b in itertools.pairwise(order))
    ]
    want = np.mean([area([1 - correct[i] for i in order]) for order in orders])
    assert area_under_risk_coverage(*sample) == pytest.approx(want, abs=1e-12)


def test_limits():
    probs, _ = draw(30)
    assert area_under_risk_coverage(probs, probs.argmax(1)) == 0.0
    assert area_under_risk_coverage(probs, probs.argmin(1)) == pytest.approx(1.0)


def test_curve_ends_at_the_error_rate():
    probs, labels = draw(100)
    curve = risk_coverage(probs, labels)
    assert curve.coverage[-1] == 1.0
    assert curve.risk[-1] == pytest.approx((probs.argmax(1) != labels).mean())
    assert (np.diff(curve.threshold) < 0).all()


def test_weights_that_sum_to_one_are_no_single_row():
    probs, labels = draw(200)
    share = np.full(200, 1 / 200)
    found = area_under_risk_coverage(probs, labels, sample_weight=share)
    assert found == pytest.approx(area_under_risk_coverage(probs, labels))


def test_refuses_weights_below_zero():
    with pytest.raises(ValueError, match="give it weight 0"):
        area_under_risk_coverage([[0.9, 0.1]], [0], sample_weight=[-1.0])
