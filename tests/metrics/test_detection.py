import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from equipoise import Predictions
from equipoise.metrics import area_under_roc, error_auroc, out_of_distribution_auroc
from helpers.metric_samples import draw, rows, top_label, weights_for


def pairs(scores, positives, weight):
    up = [(s, w) for s, p, w in zip(scores, positives, weight, strict=True) if p]
    down = [(s, w) for s, p, w in zip(scores, positives, weight, strict=True) if not p]
    total = sum(w * v for _, w in up for _, v in down)
    won = sum(w * v * ((s > t) + 0.5 * (s == t)) for s, w in up for t, v in down)
    return won / total if total else math.nan


def test_value_by_hand():
    # Pairs: 0.9 over 0.5 wins, 0.5 over 0.5 is half.
    assert area_under_roc([0.9, 0.5, 0.5], [True, True, False]) == 0.75


@given(rows().flatmap(lambda r: st.tuples(st.just(r), weights_for(len(r[1])))))
def test_equals_the_loop(sample):
    (probs, labels), weight = sample
    want = pairs(*top_label(probs, labels), weight)
    found = error_auroc(probs, labels, sample_weight=weight)
    assert found == pytest.approx(want, nan_ok=True)


def test_limits():
    assert area_under_roc(torch.tensor([1.0, 2.0]), torch.tensor([False, True])) == 1.0
    assert area_under_roc([1.0, 1.0, 1.0], [False, True, True]) == 0.5
    assert math.isnan(area_under_roc([0.1, 0.2], [True, True]))


def test_known_against_unknown():
    known = Predictions(probs=[[0.9, 0.1, 0.0], [0.6, 0.2, 0.2]], labels=[0, 0])
    unknown = Predictions(probs=[[0.6, 0.4, 0.0]], labels=[2])
    # Confidence: 0.9 wins, 0.6 ties. Entropy: the second known row is less sure than the unknown one.
    assert out_of_distribution_auroc(known, unknown) == 0.75
    assert out_of_distribution_auroc(known, unknown, score="entropy") == 0.5


def test_known_rows_bring_their_weights():
    known = Predictions(probs=[[0.9, 0.1], [0.5, 0.5]], labels=[0, 0], weights=[3.0, 1.0])
    unknown = Predictions(probs=[[0.6, 0.4]], labels=[0])
    assert out_of_distribution_auroc(known, unknown) == 0.75


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([0.1, 0.2], [True]), "as long as each other"),
        (([], []), "as long as each other"),
        (([0.1, np.nan], [True, False]), "nan in row 1"),
    ],
)
def test_refusals(arguments, message):
    with pytest.raises(ValueError, match=message):
        area_under_roc(*arguments)
    with pytest.raises(ValueError, match="not negative"):
        area_under_roc([0.1, 0.2], [True, False], sample_weight=[1, -1])


def test_entropy_wants_all_classes():
    top1 = Predictions(predicted=[0], confidence=[0.9], labels=[0], n_classes=2)
    with pytest.raises(ValueError, match="Save logits or probabilities"):
        out_of_distribution_auroc(top1, top1, score="entropy")
    with pytest.raises(ValueError, match="Did you mean 'entropy'"):
        out_of_distribution_auroc(top1, top1, score="entropie")


def test_order_of_equal_rows_does_not_matter():
    probs, labels = draw(200)
    probs = probs.round(1)
    probs /= probs.sum(axis=1, keepdims=True)
    assert error_auroc(probs, labels) == pytest.approx(error_auroc(probs[::-1], labels[::-1]))
