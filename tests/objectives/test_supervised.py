import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from equipoise.losses import AdaFocalLoss, BrierLoss, FocalLoss
from equipoise.objectives import Supervised
from equipoise.training import FOCAL_RECIPE, Optimizer, Recipe, fit
from helpers import toys


def test_one_step_by_hand():
    # Logits (0, 0), label 0: p = (1/2, 1/2), so the gradient is p - onehot = (-1/2, 1/2), and the loss ln 2.
    objective = Supervised(toys.Says(torch.zeros(1, 2)), nn.CrossEntropyLoss(), recipe=toys.PLAIN_STEP)
    step = objective.step(toys.said(torch.zeros(1, 2)))
    assert step.scalars["loss"] == pytest.approx(0.6931472)
    assert objective.network().logits.tolist() == [[0.5, -0.5]]
    assert step.logits.tolist() == [[0.0, 0.0]]
    assert not step.logits.requires_grad


def plain_loop(network, loss, *, epochs, rate, clip=None, total=False):
    """The loop of the research repositories, as an oracle."""
    optimizer = torch.optim.SGD(network.parameters(), lr=rate, momentum=0.9, weight_decay=5e-4)
    for epoch in range(epochs):
        for batch in toys.TRAIN(
            epoch=epoch, indices=None, start=0, rank=0, world_size=1, device=torch.device("cpu")
        ):
            value = loss(network(batch.inputs), batch.targets)
            optimizer.zero_grad()
            (value * len(batch.targets) if total else value).backward()
            if clip:
                nn.utils.clip_grad_norm_(network.parameters(), clip)
            optimizer.step()
    return network.state_dict()


def test_is_the_plain_loop():
    objective = Supervised(
        toys.make_network(0, plain=True),
        FocalLoss(gamma=2),
        recipe=Recipe(optimizer=Optimizer("SGD", lr=0.05, options={"momentum": 0.9, "weight_decay": 5e-4})),
    )
    fit(objective, toys.TRAIN, epochs=3, hardware=toys.CPU)
    expected = plain_loop(toys.make_network(0, plain=True), FocalLoss(gamma=2), epochs=3, rate=0.05)
    toys.assert_equal(objective.network().state_dict(), expected, rtol=1e-5, atol=1e-6)


def test_the_focal_recipe_is_the_summed_and_clipped_loop():
    objective = Supervised(toys.make_network(0, plain=True), FocalLoss(gamma=2), recipe=FOCAL_RECIPE)
    fit(objective, toys.TRAIN, epochs=2, hardware=toys.CPU)
    network = toys.make_network(0, plain=True)
    expected = plain_loop(network, FocalLoss(gamma=2), epochs=2, rate=0.1, clip=2.0, total=True)
    for name, weights in objective.network().state_dict().items():
        assert torch.allclose(weights, expected[name], atol=1e-6)


@settings(deadline=None, max_examples=20)
@given(st.permutations(range(6)))
def test_order_of_samples_does_not_matter(order):
    torch.manual_seed(0)
    logits, labels = torch.randn(6, 3, dtype=torch.float64), torch.tensor([0, 1, 2, 0, 1, 2])
    one = Supervised(toys.Says(logits), BrierLoss(), recipe=toys.PLAIN_STEP)
    two = Supervised(toys.Says(logits), BrierLoss(), recipe=toys.PLAIN_STEP)
    one.step(toys.said(logits, labels))
    shuffled = torch.tensor(order)
    two.step(toys.Rows(shuffled, labels[shuffled], shuffled))
    assert torch.allclose(one.network().logits, two.network().logits, atol=1e-12)


@pytest.mark.parametrize("size", [1e4, -1e4])
def test_extreme_logits_leave_finite_weights(size):
    objective = Supervised(
        toys.Says(torch.tensor([[size, 0.0]])), FocalLoss(gamma=0.5), recipe=toys.PLAIN_STEP
    )
    step = objective.step(toys.said(torch.zeros(1, 2)))
    assert torch.isfinite(step.scalars["loss"])
    assert torch.isfinite(objective.network().logits).all()


def test_terms_of_a_sum_are_named():
    objective = Supervised(toys.Says(torch.zeros(2, 2)), FocalLoss(gamma=0) + 0.5 * BrierLoss())
    scalars = objective.step(toys.said(torch.zeros(2, 2))).scalars
    assert scalars["loss_focal"] == pytest.approx(0.6931472)
    assert scalars["loss_brier"] == pytest.approx(0.25)
    assert scalars["loss"] == pytest.approx(0.9431472)


def test_refuses_a_summed_loss_and_says_where_sums_belong():
    with pytest.raises(ValueError, match=r"Recipe\(reduction='sum'"):
        Supervised(nn.Linear(2, 2), FocalLoss(reduction="sum"))


def test_an_adaptive_loss_without_held_out_data_is_refused():
    objective = Supervised(toys.make_network(0), AdaFocalLoss())
    with pytest.raises(ValueError, match="Pass tune= to fit"):
        fit(objective, toys.TRAIN, epochs=1, hardware=toys.CPU)
