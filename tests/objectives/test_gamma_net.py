import copy
import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from equipoise.losses import FocalLoss
from equipoise.losses.focal import focal_loss
from equipoise.losses.sece import SmoothECE, sece_penalty
from equipoise.models import Network
from equipoise.objectives import GammaMap, GammaNet, Supervised
from equipoise.training import Loader, Optimizer, Recipe, fit
from helpers import toys

META = toys.Blobs(10, batch_size=10, seed=2, shuffle=False)
STILL = Recipe(optimizer=Optimizer("SGD", lr=0.0))


def first_batch(source=toys.TRAIN):
    return source(**toys.WHERE)[0]


def test_gammas_start_at_the_given_value():
    for positive in ("softplus", "abs", "exp"):
        gammas = GammaMap(5, positive=positive, start=2.5, temperature=0.3)(torch.randn(4, 5))
        assert gammas.tolist() == pytest.approx([2.5] * 4, rel=1e-5)


def test_gamma_by_hand():
    gammas = GammaMap(1, hidden=1, temperature=2.0)
    with torch.no_grad():
        for parameter in gammas.parameters():
            parameter.fill_(1.0)
    # h = 3: relu(1 * 3 + 1) = 4, then 1 * 4 + 1 = 5, over 2; softplus(2.5) = ln(1 + e^2.5).
    assert gammas(torch.tensor([[3.0]])).item() == pytest.approx(math.log1p(math.exp(2.5)))


def test_gammas_that_never_move_are_a_constant_focal_loss():
    meta = GammaNet(toys.make_network(0, plain=True), META, start=2.0, recipe=toys.RECIPE, gamma_recipe=STILL)
    focal = Supervised(toys.make_network(0, plain=True), FocalLoss(gamma=2.0), recipe=toys.RECIPE)
    for objective in (meta, focal):
        fit(objective, toys.TRAIN, epochs=2, hardware=toys.CPU)
    for name, weights in meta.network().state_dict().items():
        assert torch.allclose(weights, focal.network().state_dict()[name], atol=1e-5)


def outer_value(objective, batch, meta):
    """The outer loss as a function of the gamma-network, written out by hand for a linear head."""
    network, gammas = objective.network(), objective.gammas.network
    features = network.features(batch.inputs).detach()
    head = copy.deepcopy(network.head)
    loss = focal_loss(head(features), batch.targets, gamma=gammas(features)).mean()
    weight, bias = torch.autograd.grad(loss, (head.weight, head.bias), create_graph=True)
    lr = objective.learner.lr
    ahead = (head.weight - lr * weight, head.bias - lr * bias)
    logits = nn.functional.linear(network.features(meta.inputs).detach(), *ahead)
    return sece_penalty(logits, meta.targets, bandwidth=0.1)


@pytest.mark.parametrize("inner", ["head", "all"])
def test_hypergradient_is_that_of_finite_differences(inner):
    network = toys.make_network(0, plain=True).double()
    objective = GammaNet(
        network,
        META,
        hidden=3,
        inner=inner,
        order="gammas_first",
        outer_loss=SmoothECE(bandwidth=0.1),
        recipe=toys.PLAIN_STEP,
        gamma_recipe=toys.PLAIN_STEP,
    )
    gammas = objective.gammas.network.double()
    nn.init.normal_(gammas.layers[2].weight, std=0.3)
    batch, meta = first_batch(), first_batch(META)
    batch, meta = (toys.Rows(b.inputs.double(), b.targets, b.index) for b in (batch, meta))
    objective.held_out.next_batch = lambda fabric: meta
    before = [parameter.detach().clone() for parameter in gammas.parameters()]

    def outer():
        trial = copy.deepcopy(objective)
        features = trial.network().features(batch.inputs).detach()
        ahead = trial._look_ahead(batch, features, trial.gammas(features))
        return float(trial._improve_gammas(ahead))

    expected = toys.slopes(gammas.parameters(), outer)
    if inner == "head":
        assert outer() == pytest.approx(float(outer_value(objective, batch, meta).detach()), rel=1e-9)
    objective.step(batch)
    for old, new, slope in zip(before, gammas.parameters(), expected, strict=True):
        assert torch.allclose(old - new, slope, atol=1e-7, rtol=1e-4)


@pytest.mark.parametrize("inner", ["head", "all"])
def test_the_network_steps_first_and_is_then_judged_where_it_is(inner):
    """The paper's order: current gammas, the network's own step, SECE after it, and its slope in the gammas."""
    recipe = Recipe(optimizer=Optimizer("SGD", lr=0.5, options={"momentum": 0.9, "weight_decay": 0.01}))
    objective = GammaNet(
        toys.make_network(0, plain=True).double(),
        META,
        hidden=3,
        inner=inner,
        outer_loss=SmoothECE(bandwidth=0.1),
        recipe=recipe,
        gamma_recipe=toys.PLAIN_STEP,
    )
    gammas = objective.gammas.network.double()
    nn.init.normal_(gammas.layers[2].weight, std=0.3)
    batch, meta = first_batch(), first_batch(META)
    batch, meta = (toys.Rows(b.inputs.double(), b.targets, b.index) for b in (batch, meta))
    objective.held_out.next_batch = lambda fabric: meta
    old = copy.deepcopy(objective)
    current = old.gammas.network(old.network().features(batch.inputs)).detach()
    step = objective.step(batch)

    wanted = copy.deepcopy(old.learner)
    logits = wanted(batch.inputs)[1]
    wanted.step(focal_loss(logits, batch.targets, gamma=current).mean(), n_samples=len(current))
    toys.assert_equal(objective.network().state_dict(), wanted.network.network.state_dict())
    after = sece_penalty(objective.network()(meta.inputs), meta.targets, bandwidth=0.1)
    assert float(step.scalars["outer_loss"]) == pytest.approx(float(after.detach()), rel=1e-9)

    now = dict(objective._moved().named_parameters())

    def moved():
        """SECE where the network is, moved by what other gammas would have changed in a plain step."""
        features = old.network().features(batch.inputs).detach()
        ahead = old._look_ahead(batch, features, old.gammas.network(features))
        weights = {name: (now[name] + ahead[name] - start[name]).detach() for name in now}
        trial = copy.deepcopy(objective)
        trial._moved().load_state_dict(weights)
        return float(sece_penalty(trial.network()(meta.inputs), meta.targets, bandwidth=0.1).detach())

    features = old.network().features(batch.inputs).detach()
    start = old._look_ahead(batch, features, old.gammas.network(features))
    start = {name: weight.detach() for name, weight in start.items()}
    slopes = toys.slopes(old.gammas.network.parameters(), moved)
    for before, new, slope in zip(old.gammas.network.parameters(), gammas.parameters(), slopes, strict=True):
        assert torch.allclose(before - new, slope, atol=1e-7, rtol=1e-4)


def test_held_out_samples_leave_no_trace_in_the_network():
    objective = GammaNet(toys.make_network(0), META, recipe=toys.RECIPE)
    before = copy.deepcopy(objective.network().state_dict())
    batch = first_batch()
    features = torch.randn(len(batch.targets), 6)
    objective._improve_gammas(objective._look_ahead(batch, features, objective.gammas(features)))
    toys.assert_equal(objective.network().state_dict(), before)
    assert all(parameter.grad is None for parameter in objective.network().parameters())


def test_gammas_learn_and_are_reported():
    objective = GammaNet(toys.make_network(0), META, recipe=toys.RECIPE)
    history = fit(objective, toys.TRAIN, epochs=3, hardware=toys.CPU)
    assert history[-1]["gamma_min"] < history[-1]["gamma_mean"] < history[-1]["gamma_max"]
    assert {"outer_loss", "lr", "lr_1"} <= set(history.columns)


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 10**6), st.sampled_from(["softplus", "abs", "exp"]))
def test_gammas_are_never_negative_and_depend_on_their_own_sample_only(seed, positive):
    torch.manual_seed(seed)
    gammas = GammaMap(3, hidden=4, positive=positive)
    nn.init.normal_(gammas.layers[2].weight)
    features = torch.randn(5, 3)
    values = gammas(features)
    assert (values >= 0).all()
    assert torch.allclose(values[[3, 1]], gammas(features[[3, 1]]), atol=1e-6)


@pytest.mark.parametrize("size", [1e4, -1e4])
def test_extreme_logits_leave_finite_weights(size):
    network = toys.make_network(0, plain=True)
    with torch.no_grad():
        network.head.bias.copy_(torch.tensor([size, 0.0, 0.0]))
    objective = GammaNet(
        network,
        META,
        start=0.5,
        recipe=Recipe(optimizer=Optimizer("SGD", lr=0.01, options={"momentum": 0.9, "weight_decay": 5e-4})),
    )
    objective.step(first_batch())
    assert all(torch.isfinite(parameter).all() for parameter in objective.parameters())


def test_refusals():
    with pytest.raises(TypeError, match="a body and a head"):
        GammaNet(nn.Linear(2, 2), META)
    with pytest.raises(ValueError, match="Did you mean 'softplus'"):
        GammaNet(toys.make_network(0), META, positive="softplu")
    with pytest.raises(ValueError, match="`start` must be above 0"):
        GammaMap(2, start=0.0)


SIGHTS = ["features", "random", "noise", "body.0"]


def shown_to_the_gamma_network(objective, batch):
    """What the gamma-network is given in a step."""
    given = []
    handle = objective.gammas.network.register_forward_pre_hook(
        lambda module, inputs: given.append(inputs[0])
    )
    objective.step(batch)
    handle.remove()
    return given[0]


@pytest.mark.parametrize("sees", SIGHTS)
def test_what_the_gamma_network_sees(sees):
    objective = GammaNet(toys.make_network(0, plain=True), META, sees=sees, recipe=toys.RECIPE)
    before, batch = copy.deepcopy(objective.network()), first_batch()
    objective.step(batch)  # from here on trained and untrained differ
    trained = copy.deepcopy(objective.network())
    seen = shown_to_the_gamma_network(objective, batch)
    assert seen.shape == (len(batch.targets), 6)
    assert not seen.requires_grad
    if sees == "random":
        assert torch.equal(seen, before.eval().features(batch.inputs))
    elif sees == "body.0":
        assert torch.equal(seen, trained.body[0](batch.inputs))
    elif sees == "noise":
        assert not torch.equal(seen, shown_to_the_gamma_network(objective, batch))
    else:
        assert torch.equal(seen, trained.features(batch.inputs))


@pytest.mark.parametrize("sees", SIGHTS)
def test_gammas_learn_from_whatever_they_see_and_a_run_resumes(sees, tmp_path):
    def train(folder, epochs):
        made = GammaNet(toys.make_network(0), META, sees=sees, recipe=toys.RECIPE)
        fit(made, toys.TRAIN, epochs=epochs, folder=folder, hardware=toys.CPU)
        return made

    straight = train(tmp_path / "straight", 2)
    # A schedule knows how long it is: stop by a crash, not by fewer epochs.
    objective = GammaNet(toys.make_network(0), META, sees=sees, recipe=toys.RECIPE)
    breaking = toys.Interrupting(toys.TRAIN, after=5, action=toys.crash)
    with pytest.raises(RuntimeError, match="power cut"):
        fit(objective, breaking, epochs=2, folder=tmp_path / "broken", hardware=toys.CPU)
    toys.assert_equal(train(tmp_path / "broken", 2).state_dict(), straight.state_dict())
    gammas = straight.gammas.network(torch.randn(8, 6))
    assert not torch.allclose(gammas, torch.ones(8), atol=1e-4)


def test_an_image_layer_is_averaged_over_places_and_moves_nothing():
    body = nn.Sequential(nn.Conv2d(1, 5, 3), nn.BatchNorm2d(5), nn.Flatten(), nn.Linear(20, 6))
    network = Network(body, nn.Linear(6, 3))
    held_out = Loader([(torch.randn(4, 1, 4, 4), torch.tensor([0, 1, 2, 0]))])
    before = copy.deepcopy(network.state_dict())
    objective = GammaNet(network, held_out, sees="body.0", recipe=toys.RECIPE)
    toys.assert_equal(network.state_dict(), before)
    assert network.training
    batch = toys.Rows(torch.randn(4, 1, 4, 4), torch.tensor([0, 1, 2, 0]), torch.arange(4))
    wanted = network.body[0](batch.inputs).mean((2, 3))
    torch.testing.assert_close(shown_to_the_gamma_network(objective, batch), wanted.detach())


def test_an_untrained_copy_stays_as_it_was():
    objective = GammaNet(toys.make_network(0), META, sees="random", recipe=toys.RECIPE)
    before = copy.deepcopy(objective.sight.state_dict())
    fit(objective, toys.TRAIN, epochs=1, hardware=toys.CPU)
    toys.assert_equal(objective.sight.state_dict(), before)
    assert objective.network() is not objective.sight.untrained


@pytest.mark.parametrize(
    ("sees", "sentence"),
    [
        ("feature", "Did you mean 'features'"),
        ("layer9", "Its first layers are body"),
        ("head2", "Did you mean 'head'"),
    ],
)
def test_layers_that_are_not_there_are_refused(sees, sentence):
    with pytest.raises(ValueError, match=sentence):
        GammaNet(toys.make_network(0), META, sees=sees)


def test_a_layer_that_is_not_used_is_refused():
    network = toys.make_network(0)
    network.spare = nn.Linear(2, 2)
    with pytest.raises(ValueError, match="a layer that is used, and 'spare' is not"):
        GammaNet(network, META, sees="spare")
