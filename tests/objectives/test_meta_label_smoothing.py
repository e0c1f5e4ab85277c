import copy

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from equipoise.objectives import MetaLabelSmoothing, Smoothing, Supervised
from equipoise.training import Optimizer, Recipe, fit
from helpers import toys
from helpers.daily import daily

META = toys.Blobs(10, batch_size=10, seed=2, shuffle=False)
STILL = Recipe(optimizer=Optimizer("SGD", lr=0.0))
FORMS = ("scalar", "class", "matrix")


def first_batch(source=toys.TRAIN):
    return source(**toys.WHERE)[0]


def fill(smoothing, amount, spread=None):
    with torch.no_grad():
        smoothing.amount.copy_(torch.as_tensor(amount))
        if spread is not None:
            smoothing.spread.copy_(torch.tensor(spread))
    return smoothing


def test_targets_by_hand():
    labels = torch.tensor([0, 1])
    one = fill(Smoothing(2, form="scalar"), [0.2])(labels)
    assert one.tolist() == [
        [pytest.approx(0.9), pytest.approx(0.1)],
        [pytest.approx(0.1), pytest.approx(0.9)],
    ]
    each = fill(Smoothing(2, form="class"), [0.0, 0.4])(labels)
    assert each.tolist() == [[1.0, 0.0], [pytest.approx(0.2), pytest.approx(0.8)]]
    # Class 0 gives 0.3 away: to class 1 and 2 as 2 : 1; its own column counts nothing.
    spread = [[9.0, 2.0, 1.0], [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]]
    matrix = fill(Smoothing(3, form="matrix"), [0.3, 0.0, 0.0], spread)(torch.tensor([0]))
    assert matrix[0].tolist() == pytest.approx([0.7, 0.2, 0.1], abs=1e-5)


@pytest.mark.parametrize("form", FORMS)
def test_it_starts_as_cross_entropy(form):
    objective = MetaLabelSmoothing(
        toys.make_network(0, plain=True), META, form=form, recipe=toys.RECIPE, smoothing_recipe=STILL
    )
    plain = Supervised(toys.make_network(0, plain=True), nn.CrossEntropyLoss(), recipe=toys.RECIPE)
    for each in (objective, plain):
        fit(each, toys.TRAIN, epochs=2, hardware=toys.CPU)
    for name, weights in objective.network().state_dict().items():
        assert torch.allclose(weights, plain.network().state_dict()[name], atol=1e-5)


def test_the_scalar_form_is_torchs_label_smoothing():
    logits, labels = torch.randn(6, 4), torch.tensor([0, 1, 2, 3, 0, 1])
    soft = fill(Smoothing(4, form="scalar"), [0.3])(labels)
    expected = nn.functional.cross_entropy(logits, labels, label_smoothing=0.3)
    assert nn.functional.cross_entropy(logits, soft).item() == pytest.approx(expected.item(), rel=1e-6)


@settings(deadline=None, max_examples=40)
@given(st.sampled_from(FORMS), st.integers(0, 10**6), st.integers(2, 6))
def test_targets_are_probabilities(form, seed, n_classes):
    torch.manual_seed(seed)
    smoothing = Smoothing(n_classes, form=form)
    for parameter in smoothing.parameters():
        nn.init.normal_(parameter)
    smoothing.project()
    targets = smoothing(torch.arange(n_classes))
    assert (targets >= 0).all()
    assert torch.allclose(targets.sum(1), torch.ones(n_classes), atol=1e-5)
    assert (targets.diagonal() >= 0.5 - 1e-6).all()


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("inner_reduction", daily(["mean", "sum"], keep=["sum"]))
def test_hypergradient_is_that_of_finite_differences(form, inner_reduction):
    network = toys.make_network(0, plain=True).double()
    objective = MetaLabelSmoothing(
        network,
        META,
        form=form,
        inner_reduction=inner_reduction,
        recipe=Recipe(optimizer=Optimizer("SGD", lr=0.1, options={"momentum": 0.9, "weight_decay": 5e-4})),
        smoothing_recipe=toys.PLAIN_STEP,
    )
    smoothing = fill(objective.smoothing.network.double(), 0.2)
    if form == "matrix":
        nn.init.uniform_(smoothing.spread, 0.1, 1.0)
    batch, meta = first_batch(), first_batch(META)
    batch, meta = (toys.Rows(b.inputs.double(), b.targets, b.index) for b in (batch, meta))
    objective.held_out.next_batch = lambda fabric: meta
    features = network.features(batch.inputs).detach()
    before = [parameter.detach().clone() for parameter in smoothing.parameters()]

    def outer():
        return float(copy.deepcopy(objective)._improve_amounts(batch, features))

    expected = toys.slopes(smoothing.parameters(), outer)
    smoothing.project = lambda: None
    objective._improve_amounts(batch, features)
    for old, new, slope in zip(before, smoothing.parameters(), expected, strict=True):
        assert torch.allclose(old - new, slope, atol=1e-7, rtol=1e-4)


def test_the_published_leak_is_not_there():
    # With amounts that stay, the network must move by the gradient of the training batch alone.
    network = toys.make_network(0, plain=True)
    batch = first_batch()
    expected = copy.deepcopy(network)
    nn.functional.cross_entropy(expected(batch.inputs), batch.targets).backward()
    objective = MetaLabelSmoothing(network, META, recipe=toys.PLAIN_STEP, smoothing_recipe=STILL)
    before = copy.deepcopy(network)
    objective.step(batch)
    for old, new, twin in zip(before.parameters(), network.parameters(), expected.parameters(), strict=True):
        assert torch.allclose(old - new, twin.grad, atol=1e-6)


def test_held_out_samples_leave_no_trace_in_batch_statistics():
    network = toys.make_network(0)
    twin = copy.deepcopy(network)
    batch = first_batch()
    MetaLabelSmoothing(network, META, recipe=STILL).step(batch)
    twin(batch.inputs)
    torch.testing.assert_close(network.body[1].running_mean, twin.body[1].running_mean, rtol=1e-5, atol=1e-7)


def test_amounts_stay_between_zero_and_the_maximum():
    objective = MetaLabelSmoothing(
        toys.make_network(0),
        META,
        maximum=0.05,
        recipe=toys.RECIPE,
        smoothing_recipe=Recipe(
            optimizer=Optimizer("SGD", lr=100.0, options={"momentum": 0.9, "weight_decay": 5e-4})
        ),
    )
    history = fit(objective, toys.TRAIN, epochs=3, hardware=toys.CPU)
    amount = objective.smoothing.network.amount
    assert (amount >= 0).all()
    assert (amount <= 0.05).all()
    assert max(history.column("smoothing_max")) == pytest.approx(0.05)


def test_extreme_logits_leave_finite_weights():
    network = toys.make_network(0, plain=True)
    with torch.no_grad():
        network.head.bias.copy_(torch.tensor([1e4, 0.0, -1e4]))
    objective = MetaLabelSmoothing(
        network,
        META,
        form="matrix",
        recipe=Recipe(optimizer=Optimizer("SGD", lr=0.01, options={"momentum": 0.9, "weight_decay": 5e-4})),
    )
    objective.step(first_batch())
    assert all(torch.isfinite(parameter).all() for parameter in objective.parameters())


def test_refusals():
    with pytest.raises(ValueError, match="Did you mean 'matrix'"):
        MetaLabelSmoothing(toys.make_network(0), META, form="matrx")
    with pytest.raises(ValueError, match=r"The paper takes 0\.5"):
        Smoothing(3, maximum=0.0)
    with pytest.raises(TypeError, match="a body and a head"):
        MetaLabelSmoothing(nn.Linear(2, 2), META)
