import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from equipoise.objectives import DifferentiatedMutualLearning, Supervised, kl_divergence
from equipoise.objectives.kl import mixture
from equipoise.training import Recipe, fit
from helpers import toys
from helpers.golden import CASES, double


def make(primary, *auxiliaries, **options):
    options = {"recipe": toys.PLAIN_STEP, "auxiliary_recipe": toys.PLAIN_STEP, **options}
    return DifferentiatedMutualLearning(
        toys.Says(primary), [toys.Says(logits) for logits in auxiliaries], **options
    )


def test_golden_values_and_gradients():
    case = CASES["diff_dml.A"]
    logits, batch = toys.batch_a()
    other = double(case["params"]["aux_logits"])
    objective = make(logits, other)
    scalars = objective.step(batch).scalars
    assert float(scalars["loss"]) == pytest.approx(case["expected"]["loss_f"], rel=1e-6)
    assert float(scalars["diversity"]) == pytest.approx(case["expected"]["loss_g"], rel=1e-6)
    assert torch.allclose(logits - objective.network().logits, double(case["grad_logits"]), atol=1e-8)
    moved = objective.auxiliaries[0].network.logits
    assert torch.allclose(other - moved, double(case["grad_aux_logits"]), atol=1e-8)


def test_golden_proposition_1():
    case = CASES["prop1.A"]
    logits, _ = toys.batch_a()
    other, beta = double(case["params"]["aux_logits"]), case["params"]["beta"]
    own = logits.clone().requires_grad_()
    value = kl_divergence(own, mixture(logits, other, beta=beta)).mean()
    [gradient] = torch.autograd.grad(value, own)
    assert value.item() == pytest.approx(case["expected"]["kl_h_f"], rel=1e-6)
    assert torch.allclose(gradient, double(case["grad_logits"]), atol=1e-9)
    distance = beta * kl_divergence(own, other).mean()
    assert distance.item() == pytest.approx(case["expected"]["beta_kl_g_f"], rel=1e-6)
    assert torch.allclose(gradient, torch.autograd.grad(distance, own)[0], atol=1e-9)


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 10**6), st.floats(0.05, 1.0))
def test_the_ensemble_as_target_is_beta_times_the_auxiliary(seed, beta):
    generator = torch.Generator().manual_seed(seed)
    one, two = (3 * torch.randn(4, 3, generator=generator, dtype=torch.float64) for _ in range(2))
    ensemble, auxiliary = make(one, two, beta=beta), make(one, two, weight=beta)
    for objective in (ensemble, auxiliary):
        objective.step(toys.said(one))
    assert torch.allclose(ensemble.network().logits, auxiliary.network().logits, atol=1e-10)


def test_by_hand():
    # f = (1/2, 1/2) and g = (3/4, 1/4): KL(g|f) = ln 2 - H(g) = 0.130812, its gradient for f is f - g.
    other = torch.tensor([[0.75, 0.25]], dtype=torch.float64).log()
    objective = make(torch.zeros(1, 2, dtype=torch.float64), other)
    scalars = objective.step(toys.said(other)).scalars
    assert float(scalars["kl"]) == pytest.approx(0.1308120, abs=1e-7)
    # Cross-entropy moves by (1/2, -1/2), the divergence by (1/4, -1/4).
    assert objective.network().logits[0].tolist() == pytest.approx([0.75, -0.75])
    assert float(scalars["disagreement"]) == 0


def test_without_weight_the_primary_is_supervised():
    objective = DifferentiatedMutualLearning(
        toys.make_network(0, plain=True), [toys.make_network(1, plain=True)], weight=0.0, recipe=toys.RECIPE
    )
    alone = Supervised(toys.make_network(0, plain=True), nn.CrossEntropyLoss(), recipe=toys.RECIPE)
    for each in (objective, alone):
        fit(each, toys.TRAIN, epochs=2, hardware=toys.CPU)
    toys.assert_equal(objective.network().state_dict(), alone.network().state_dict(), rtol=1e-5, atol=1e-6)


def test_auxiliaries_never_see_a_label():
    torch.manual_seed(0)
    one, two = torch.randn(4, 3), torch.randn(4, 3)
    labels = [torch.zeros(4, dtype=torch.long), torch.full((4,), 2)]
    moved = []
    for targets in labels:
        objective = make(one, two)
        objective.step(toys.said(one, targets))
        moved.append(objective.auxiliaries[0].network.logits.detach())
    assert torch.equal(*moved)


def test_auxiliaries_keep_their_rate_while_the_primary_decays():
    objective = DifferentiatedMutualLearning(toys.make_network(0), [toys.make_network(1)], recipe=toys.RECIPE)
    history = fit(objective, toys.TRAIN, epochs=3, hardware=toys.CPU)
    assert history[-1]["lr"] < history[0]["lr"]
    assert history.column("lr_1") == [0.01] * 3


def test_auxiliaries_may_see_their_own_augmentation():
    seen = []
    objective = make(torch.zeros(2, 2), torch.zeros(2, 2), augment=lambda inputs: seen.append(1) or inputs)
    objective.step(toys.said(torch.zeros(2, 2)))
    assert seen == [1]


@pytest.mark.parametrize("size", [1e4, -1e4])
def test_extreme_logits_leave_finite_weights(size):
    objective = make(torch.tensor([[size, 0.0]]), torch.tensor([[0.0, size]]))
    objective.step(toys.said(torch.zeros(1, 2)))
    assert torch.isfinite(objective.network().logits).all()
    assert torch.isfinite(objective.auxiliaries[0].network.logits).all()


def test_refusals():
    with pytest.raises(ValueError, match="at least one network"):
        DifferentiatedMutualLearning(nn.Linear(2, 2), [])
    with pytest.raises(ValueError, match="None teaches from g itself"):
        DifferentiatedMutualLearning(nn.Linear(2, 2), [nn.Linear(2, 2)], beta=0.0)
    with pytest.raises(ValueError, match="reduction='mean'"):
        DifferentiatedMutualLearning(
            nn.Linear(2, 2), [nn.Linear(2, 2)], loss=nn.CrossEntropyLoss(reduction="sum"), recipe=Recipe()
        )
