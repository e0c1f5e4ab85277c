"""Sharpness-aware minimization: two passes, one step, statistics counted once."""

import copy

import pytest
import torch
from torch import nn

from equipoise.experiments import Execution, ScoringOptions, Spec, run
from equipoise.models import Network
from equipoise.objectives import MutualLearning, Supervised
from equipoise.training import Learner, Optimizer, Recipe, fit, sam_perturbation
from helpers import toys
from helpers.tiny_runs import TABLE

PLAIN = Optimizer("SGD", lr=0.1)


def test_values_by_hand():
    weights, gradients = (
        [torch.tensor([1.0]), torch.tensor([-2.0, 0.0])],
        [torch.tensor([3.0]), torch.tensor([0.0, 4.0])],
    )
    one, two = sam_perturbation(weights, gradients, rho=0.5)
    assert one.item() == pytest.approx(0.3)
    assert two.tolist() == pytest.approx([0.0, 0.4])
    # |w| g = 3, (0, 0): norm 3; w^2 g = 3, (0, 0)
    one, two = sam_perturbation(weights, gradients, rho=0.5, adaptive=True)
    assert one.item() == pytest.approx(0.5)
    assert two.tolist() == [0.0, 0.0]


@pytest.mark.parametrize("adaptive", [False, True])
def test_edges(adaptive):
    weights = [torch.zeros(2), torch.ones(1)]
    for gradients in ([torch.zeros(2), torch.zeros(1)], [torch.full((2,), 1e-30), torch.zeros(1)]):
        found = sam_perturbation(weights, gradients, adaptive=adaptive)
        assert all(part.isfinite().all() for part in found)
        assert all(part.abs().max() <= 0.05 for part in found)


def test_the_distance_is_rho_and_scale_does_not_matter():
    weights = [torch.randn(5), torch.randn(2, 3)]
    gradients = [torch.randn(5), torch.randn(2, 3)]
    found = sam_perturbation(weights, gradients, rho=0.05)
    assert sum(float(part.square().sum()) for part in found) ** 0.5 == pytest.approx(0.05, rel=1e-5)
    again = sam_perturbation(weights, [1000 * part for part in gradients], rho=0.05)
    for one, two in zip(found, again, strict=True):
        torch.testing.assert_close(one, two)
    # ASAM does not see a rescaling of the weights that leaves the function as it is.
    relative = sam_perturbation(weights, gradients, rho=0.05, adaptive=True)
    rescaled = sam_perturbation(
        [10 * part for part in weights], [part / 10 for part in gradients], rho=0.05, adaptive=True
    )
    for one, two in zip(relative, rescaled, strict=True):
        torch.testing.assert_close(10 * one, two)


@pytest.mark.parametrize("adaptive", [False, True])
def test_a_step_equals_the_algorithm_by_hand(adaptive):
    network = toys.make_network(0, plain=True)
    twin = copy.deepcopy(network)
    [batch, *_] = toys.TRAIN(**toys.WHERE)
    recipe = Recipe(optimizer=PLAIN, sam=0.1, sam_adaptive=adaptive)
    Supervised(network, nn.CrossEntropyLoss(), recipe=recipe).step(batch)

    first = torch.autograd.grad(
        nn.functional.cross_entropy(twin(batch.inputs), batch.targets), tuple(twin.parameters())
    )
    weights = [weight.detach().clone() for weight in twin.parameters()]
    steps = sam_perturbation(weights, first, rho=0.1, adaptive=adaptive)
    with torch.no_grad():
        for weight, step in zip(twin.parameters(), steps, strict=True):
            weight.add_(step)
    second = torch.autograd.grad(
        nn.functional.cross_entropy(twin(batch.inputs), batch.targets), tuple(twin.parameters())
    )
    for weight, old, slope in zip(network.parameters(), weights, second, strict=True):
        torch.testing.assert_close(weight.detach(), old - 0.1 * slope)


def test_a_distance_of_almost_0_is_a_plain_step():
    networks = [toys.make_network(0, plain=True) for _ in range(2)]
    [batch, *_] = toys.TRAIN(**toys.WHERE)
    for network, sam in zip(networks, (0.0, 1e-9), strict=True):
        Supervised(network, nn.CrossEntropyLoss(), recipe=Recipe(optimizer=PLAIN, sam=sam)).step(batch)
    for one, two in zip(networks[0].parameters(), networks[1].parameters(), strict=True):
        torch.testing.assert_close(one, two)


def test_batch_norm_is_counted_once_and_only_at_the_weights_themselves():
    network = Network(nn.Sequential(nn.Linear(2, 6), nn.BatchNorm1d(6)), nn.Linear(6, 3))
    twin = copy.deepcopy(network)
    [batch, *_] = toys.TRAIN(**toys.WHERE)
    Supervised(network, nn.CrossEntropyLoss(), recipe=Recipe(optimizer=PLAIN, sam=0.5)).step(batch)
    twin(batch.inputs)
    for ours, plain in zip(network.buffers(), twin.buffers(), strict=True):
        assert torch.equal(ours, plain)


def test_weights_come_back_bit_for_bit_before_the_step():
    network = toys.make_network(0, plain=True)
    before = [weight.detach().clone() for weight in network.parameters()]
    [batch, *_] = toys.TRAIN(**toys.WHERE)
    still = Recipe(optimizer=Optimizer("SGD", lr=0.0), sam=0.3)
    Supervised(network, nn.CrossEntropyLoss(), recipe=still).step(batch)
    assert all(torch.equal(one, two) for one, two in zip(network.parameters(), before, strict=True))


def test_it_finds_flatter_minima():
    """The loss at the worst point nearby ends lower than with plain steps."""

    def sharpness(sam):
        network = toys.make_network(3, plain=True)
        recipe = Recipe(optimizer=Optimizer("SGD", lr=0.3), sam=sam)
        fit(
            Supervised(network, nn.CrossEntropyLoss(), recipe=recipe),
            toys.TRAIN,
            epochs=40,
            hardware=toys.CPU,
            quiet=True,
        )
        loss = nn.functional.cross_entropy(network(toys.TRAIN.inputs), toys.TRAIN.labels)
        slopes = torch.autograd.grad(loss, tuple(network.parameters()))
        with torch.no_grad():
            for weight, step in zip(
                network.parameters(),
                sam_perturbation(list(network.parameters()), slopes, rho=0.5),
                strict=True,
            ):
                weight.add_(step)
            return float(nn.functional.cross_entropy(network(toys.TRAIN.inputs), toys.TRAIN.labels) - loss)

    assert sharpness(0.5) < sharpness(0.0)


def test_mistakes():
    with pytest.raises(ValueError, match=r"The paper uses 0\.05"):
        Recipe(sam=-1.0)
    with pytest.raises(ValueError, match="cannot be combined with `accumulate`"):
        Recipe(sam=0.05, accumulate=2)
    learner = Learner(nn.Linear(2, 2), recipe=Recipe(sam=0.05))
    with pytest.raises(ValueError, match="Set `sam` to 0"):
        learner.step(learner(torch.ones(4, 2)).square().mean(), n_samples=4)
    with pytest.raises(ValueError, match="Set `sam` to 0"):
        MutualLearning([nn.Linear(2, 3), nn.Linear(2, 3)], recipe=Recipe(sam=0.05)).step(
            toys.TRAIN(**toys.WHERE)[0]
        )
    with pytest.raises(ValueError, match="sam: cannot be combined"):
        Spec.from_table({**TABLE, "recipe": {"sam": 0.05, "accumulate": 2}})


@pytest.mark.parametrize("recipe", [{"sam": 0.05}, {"sam": 1.0, "sam_adaptive": True, "average": "ema"}])
def test_a_spec_trains_with_it(recipe, tmp_path):
    spec = Spec.from_table({**TABLE, "recipe": {"name": "quick", "epochs": 1, **recipe}})
    assert (
        run(spec, tmp_path, scoring=ScoringOptions(n_resamples=20), execution=Execution(quiet=True)).status()
        == "finished"
    )
