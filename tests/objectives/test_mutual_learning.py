import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from equipoise.objectives import MutualLearning, Supervised, kl_divergence
from equipoise.training import fit
from helpers import toys
from helpers.golden import CASES, double


def make(*logits, **options):
    return MutualLearning([toys.Says(part) for part in logits], recipe=toys.PLAIN_STEP, **options)


def test_golden_values_and_gradients():
    case = CASES["dml.A"]
    logits, batch = toys.batch_a()
    peer = double(case["params"]["peer_logits"])
    objective = make(logits, peer, refresh=False)
    scalars = objective.step(batch).scalars
    assert float(scalars["loss"]) == pytest.approx(case["expected"]["loss_1"], rel=1e-6)
    assert float(scalars["loss_1"]) == pytest.approx(case["expected"]["loss_2"], rel=1e-6)
    assert float(scalars["kl"]) == pytest.approx(case["expected"]["kl_2_1"], rel=1e-6)
    one, two = (learner.network.logits for learner in objective.learners)
    assert torch.allclose(logits - one, double(case["grad_logits"]), atol=1e-8)
    assert torch.allclose(peer - two, double(case["grad_peer_logits"]), atol=1e-8)


def test_by_hand():
    # Equal opinions (1/2, 1/2): no divergence, each loss is ln 2, each gradient (-1/2, 1/2).
    objective = make(torch.zeros(1, 2), torch.zeros(1, 2), refresh=False)
    scalars = objective.step(toys.said(torch.zeros(1, 2))).scalars
    assert scalars["kl"] == 0
    assert scalars["loss"] == pytest.approx(math.log(2))
    assert objective.learners[1].network.logits.tolist() == [[0.5, -0.5]]


def test_without_weight_it_is_supervised_learning():
    mutual = MutualLearning(
        [toys.make_network(0, plain=True), toys.make_network(1, plain=True)], weight=0.0, recipe=toys.RECIPE
    )
    alone = Supervised(toys.make_network(0, plain=True), nn.CrossEntropyLoss(), recipe=toys.RECIPE)
    for objective in (mutual, alone):
        fit(objective, toys.TRAIN, epochs=2, hardware=toys.CPU)
    toys.assert_equal(mutual.network().state_dict(), alone.network().state_dict(), rtol=1e-5, atol=1e-6)


def test_a_refreshed_opinion_is_the_one_after_the_step():
    torch.manual_seed(0)
    one, two = torch.randn(4, 3, dtype=torch.float64), torch.randn(4, 3, dtype=torch.float64)
    objective = make(one, two, refresh=True)
    objective.step(toys.said(one))
    stepped = objective.learners[0].network.logits.detach()
    own = two.clone().requires_grad_()
    labels = torch.zeros(4, dtype=torch.long)
    (nn.functional.cross_entropy(own, labels) + kl_divergence(own, stepped).mean()).backward()
    assert torch.allclose(two - objective.learners[1].network.logits, own.grad, atol=1e-12)


def test_three_networks_average_or_sum_their_peers():
    torch.manual_seed(0)
    logits = [torch.randn(4, 3, dtype=torch.float64) for _ in range(3)]
    expected = [kl_divergence(logits[0], logits[k]).mean() for k in (1, 2)]
    mean = make(*logits).step(toys.said(logits[0])).scalars["kl"]
    total = make(*logits, peers="sum").step(toys.said(logits[0])).scalars["kl"]
    assert float(mean) == pytest.approx(float(sum(expected) / 2))
    assert float(total) == pytest.approx(float(sum(expected)))


numbers = st.lists(st.floats(-20, 20), min_size=3, max_size=3)


@settings(deadline=None)
@given(numbers, numbers)
def test_divergence_is_the_equation(one, two):
    p, q = ([math.exp(z - max(row)) for z in row] for row in (one, two))
    p, q = ([value / sum(row) for value in row] for row in (p, q))
    expected = sum(b * (math.log(b) - math.log(a)) for a, b in zip(p, q, strict=True))
    value = float(kl_divergence(double([one]), double([two])))
    assert value == pytest.approx(expected, abs=1e-9)
    assert value > -1e-12


@pytest.mark.parametrize("size", [1e4, -1e4])
def test_extreme_logits_leave_finite_weights(size):
    objective = make(torch.tensor([[size, 0.0]]), torch.tensor([[0.0, 0.0]]), refresh=False)
    step = objective.step(toys.said(torch.zeros(1, 2)))
    assert all(torch.isfinite(value) for value in step.scalars.values())
    assert all(torch.isfinite(learner.network.logits).all() for learner in objective.learners)


def test_adaptive_losses_are_not_shared():
    from equipoise.losses import AdaFocalLoss

    objective = MutualLearning(
        [toys.make_network(0), toys.make_network(5)], loss=AdaFocalLoss(n_bins=3), recipe=toys.RECIPE
    )
    fit(objective, toys.TRAIN, epochs=1, tune=toys.TUNE, hardware=toys.CPU)
    one, two = ([*loss.buffers()] for loss in objective.losses)
    assert any(not torch.equal(a, b) for a, b in zip(one, two, strict=True))


def test_refuses_one_network_and_unknown_words():
    with pytest.raises(ValueError, match="Supervised"):
        MutualLearning([nn.Linear(2, 2)])
    with pytest.raises(ValueError, match="Did you mean 'mean'"):
        MutualLearning([nn.Linear(2, 2), nn.Linear(2, 2)], peers="meen")
