import copy

import pytest
import torch
from torch import nn

from equipoise.training import Hardware, Learner, Optimizer, Recipe
from helpers import toys


def loss_of(learner, inputs):
    return learner(inputs).square().mean()


def make(**options):
    torch.manual_seed(0)
    return Learner(nn.Linear(3, 2), recipe=Recipe(optimizer=Optimizer("SGD", lr=0.1), **options))


INPUTS = torch.arange(12.0).view(4, 3) / 6


def gradient(learner, inputs, scale=1.0):
    twin = copy.deepcopy(learner.network)
    (twin(inputs).square().mean() * scale).backward()
    return [parameter.grad for parameter in twin.parameters()]


def step_of(learner, batches):
    before = [parameter.detach().clone() for parameter in learner.network.parameters()]
    for inputs in batches:
        learner.step(loss_of(learner, inputs), n_samples=len(inputs))
    return [(old - new.detach()) / 0.1 for old, new in zip(before, learner.network.parameters(), strict=True)]


def close(one, two):
    return all(torch.allclose(a, b, atol=1e-5) for a, b in zip(one, two, strict=True))


def test_a_step_is_the_gradient_times_the_rate():
    learner = make()
    expected = gradient(learner, INPUTS)
    assert close(step_of(learner, [INPUTS]), expected)


def test_sum_is_the_mean_times_the_batch():
    learner = make(reduction="sum")
    expected = gradient(learner, INPUTS, scale=4)
    assert close(step_of(learner, [INPUTS]), expected)


def test_clipping_keeps_the_direction():
    learner = make(clip_norm=0.01)
    wanted = gradient(learner, INPUTS)
    norm = torch.cat([part.flatten() for part in wanted]).norm()
    assert close(step_of(learner, [INPUTS]), [part * 0.01 / norm for part in wanted])


def test_accumulated_batches_make_one_step_of_their_mean_or_sum():
    halves = INPUTS.split(2)
    learner = make(accumulate=2)
    expected = gradient(learner, INPUTS)
    assert close(step_of(learner, halves), expected)
    learner = make(accumulate=2, reduction="sum")
    expected = gradient(learner, INPUTS, scale=4)
    assert close(step_of(learner, halves), expected)


def test_a_waiting_gradient_survives_in_the_state():
    learner = make(accumulate=2)
    learner.step(loss_of(learner, INPUTS[:2]), n_samples=2)
    other = make(accumulate=2)
    other.load_state_dict(copy.deepcopy(learner.state_dict()))
    for each in (learner, other):
        each.step(loss_of(each, INPUTS[2:]), n_samples=2)
    toys.assert_equal(learner.state_dict(), other.state_dict())


@pytest.mark.parametrize(
    ("optimizer", "kind"),
    [
        (Optimizer("SGD", lr=0.1, options={"momentum": 0.9, "nesterov": True}), torch.optim.SGD),
        (Optimizer("Adam", lr=1e-3), torch.optim.Adam),
        (Optimizer("NAdam", lr=1e-3, options={"weight_decay": 0.05}), torch.optim.NAdam),
    ],
)
def test_optimizers_are_torchs(optimizer, kind):
    made = optimizer.make([nn.Parameter(torch.zeros(1))])
    assert type(made) is kind
    assert made.defaults["lr"] == optimizer.lr
    for name, value in optimizer.options.items():
        assert made.defaults[name] == value


@pytest.mark.parametrize(
    ("name", "options", "sentence"),
    [
        ("adamw", {}, "no optimizer 'adamw'. Did you mean 'AdamW'"),
        ("Optimizer", {}, "no optimizer 'Optimizer'"),
        ("SGD", {"momentun": 0.9}, "SGD has no option 'momentun'. Did you mean 'momentum'"),
        ("Adam", {"lr": 0.1}, "Adam has no option 'lr'"),
        ("LBFGS", {}, "evaluates the loss several times"),
    ],
)
def test_mistakes_in_optimizers(name, options, sentence):
    with pytest.raises(ValueError, match=sentence):
        Optimizer(name, lr=0.1, options=options)


def test_mixed_precision_is_an_argument():
    learner = make()
    seen = []
    learner.network.register_forward_hook(lambda module, given, output: seen.append(output.dtype))
    learner.attach(Hardware(accelerator="cpu", precision="bf16-mixed").make_fabric())
    output = learner(INPUTS)
    assert seen == [torch.bfloat16]
    assert output.dtype == torch.float32
    learner.step(output.square().mean(), n_samples=4)


def test_its_state_is_the_networks_and_the_optimizers_once():
    learner = make()
    learner.step(loss_of(learner, INPUTS), n_samples=4)
    assert sorted(learner.state_dict()) == ["_extra_state", "network.bias", "network.weight"]


def test_refusals():
    with pytest.raises(ValueError, match="Pass None to leave gradients alone"):
        Recipe(clip_norm=0.0)
    with pytest.raises(ValueError, match="Did you mean 'sum'"):
        Recipe(reduction="summ")
    with pytest.raises(ValueError, match="1 steps every batch"):
        Recipe(accumulate=0)
