"""One network that learns what several say together."""

import copy

import pytest
import torch
from torch import nn

from equipoise.models import mlp
from equipoise.objectives import DeepEnsemble, DistilledEnsemble, Parts, Supervised
from equipoise.training import Optimizer, Recipe, fit, predict
from helpers import toys

STILL = Recipe(optimizer=Optimizer("SGD", lr=0.0))


def ensemble(*logits):
    return DeepEnsemble([Supervised(toys.Says(one), nn.CrossEntropyLoss(), recipe=STILL) for one in logits])


def test_loss_by_hand():
    # The members' mean is (0.75, 0.25), the student says (0.5, 0.5): KL = log 2 - H.
    teacher = ensemble(torch.tensor([[50.0, 0.0]]), torch.tensor([[0.0, 0.0]]))
    student = toys.Says(torch.zeros(1, 2))
    objective = DistilledEnsemble(teacher, student, weight=0.5, recipe=toys.PLAIN_STEP)
    step = objective.step(toys.said(torch.zeros(1, 2)))
    mean = torch.tensor([0.75, 0.25])
    kl = float((mean * (mean / 0.5).log()).sum())
    assert step.scalars["kl"].item() == pytest.approx(kl, abs=1e-6)
    assert step.scalars["loss"].item() == pytest.approx(0.5 * 0.6931472 + 0.5 * kl, abs=1e-6)
    # The gradient of the KL is the student's probabilities minus the mean.
    wanted = -(0.5 * torch.tensor([-0.5, 0.5]) + 0.5 * (0.5 - mean))
    torch.testing.assert_close(student.logits.detach()[0], wanted)


def test_the_temperature_softens_both_sides():
    said = torch.tensor([[3.0, 0.0], [0.0, 1.0]])
    own = torch.tensor([[1.0, 0.0], [2.0, 0.0]])
    objective = DistilledEnsemble(
        ensemble(said, said), toys.Says(own), weight=1.0, temperature=2.0, recipe=STILL
    )
    teacher, student = (torch.log_softmax(logits / 2, 1) for logits in (torch.log_softmax(said, 1), own))
    wanted = 4 * (teacher.exp() * (teacher - student)).sum(1).mean()
    torch.testing.assert_close(objective.step(toys.said(own)).scalars["loss"], wanted)


def test_weight_0_is_the_loss_alone():
    network = toys.make_network(0, plain=True)
    twin = copy.deepcopy(network)
    [batch, *_] = toys.TRAIN(**toys.WHERE)
    objective = DistilledEnsemble(
        DeepEnsemble([Supervised(toys.make_network(k, plain=True), nn.CrossEntropyLoss()) for k in (1, 2)]),
        network,
        weight=0.0,
        recipe=toys.PLAIN_STEP,
    )
    objective.step(batch)
    Supervised(twin, nn.CrossEntropyLoss(), recipe=toys.PLAIN_STEP).step(batch)
    for one, two in zip(network.parameters(), twin.parameters(), strict=True):
        torch.testing.assert_close(one, two)


def test_the_student_comes_near_the_ensemble():
    torch.manual_seed(0)
    objective = DistilledEnsemble.from_parts(
        Parts(make_network=lambda: mlp(3, 2, hidden=(16,)), recipe=toys.RECIPE), n_members=3, weight=1.0
    )
    fit(objective, toys.TRAIN, epochs=25, hardware=toys.CPU, quiet=True)
    student, teacher = (
        torch.tensor(predict(network, toys.TUNE(**toys.WHERE)).logits).log_softmax(1)
        for network in (objective.network(), objective.teacher.network())
    )
    assert float((teacher.exp() * (teacher - student)).sum(1).mean()) < 0.05


def test_the_student_may_be_of_another_kind():
    parts = Parts(make_network=lambda: nn.Linear(2, 3), make_auxiliary=lambda: mlp(3, 2, hidden=(7,)))
    objective = DistilledEnsemble.from_parts(parts, n_members=2)
    assert objective.network().n_features == 7
    assert isinstance(objective.teacher.network().networks[0], nn.Linear)


def test_mistakes():
    teacher = ensemble(torch.zeros(1, 2), torch.zeros(1, 2))
    with pytest.raises(ValueError, match=r"`weight` must lie in \[0, 1\]"):
        DistilledEnsemble(teacher, nn.Linear(2, 2), weight=1.5)
    with pytest.raises(ValueError, match="`temperature` must be above 0"):
        DistilledEnsemble(teacher, nn.Linear(2, 2), temperature=0.0)
