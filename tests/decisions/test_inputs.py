import numpy as np
import pytest
import torch

from equipoise.core import Predictions
from equipoise.decisions import PredictionSets, certify_threshold, least_cost_actions


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    logits = 2 * rng.normal(size=(2000, 3))
    labels = (logits + rng.gumbel(size=(2000, 3))).argmax(1)
    return Predictions(logits=logits, labels=labels)


@pytest.mark.parametrize("kind", [np.array, torch.tensor], ids=["numpy", "torch"])
def test_arrays_and_tensors_give_what_predictions_give(rows, kind):
    probs, labels = kind(np.array(rows.probs)), kind(np.array(rows.labels))
    one, two = certify_threshold(rows, max_error=0.15), certify_threshold(probs, labels, max_error=0.15)
    assert one.certificate == two.certificate
    assert (one(rows) == two(probs)).all()
    costs = least_cost_actions(probs, labels, wrong=5, abstain=1)
    assert (costs.action == least_cost_actions(rows, wrong=5, abstain=1).action).all()
    sets = PredictionSets("aps").fit(probs[:1000], labels[:1000])
    assert (
        sets(probs[1000:]).members
        == PredictionSets("aps").fit(rows.take(slice(0, 1000)))(rows.take(slice(1000, 2000))).members
    ).all()
    assert sets(probs[1000:], labels[1000:]).report().n == 1000


def test_labels_are_given_once(rows):
    with pytest.raises(TypeError, match="Pass Predictions alone"):
        certify_threshold(rows, rows.labels, max_error=0.1)
