from dataclasses import replace

import pytest
import torch
from torch import nn

from equipoise.losses import class_adaptive_loss
from equipoise.losses.cals_alm import constraints, phr
from equipoise.objectives import Parts, SampleAdaptive, Supervised
from equipoise.training import Optimizer, Recipe, fit
from helpers import toys

STILL = Recipe(optimizer=Optimizer("SGD", lr=1e-30))


def rows(*numbers):
    index = torch.tensor(numbers)
    return toys.Rows(index, torch.zeros_like(index), index)


def make(logits, **options):
    return SampleAdaptive(
        toys.Says(logits), n_samples=len(logits), n_classes=logits.shape[1], recipe=STILL, **options
    )


def test_multipliers_of_samples_by_hand():
    # Gaps of 12 and 15 at margin 10 break the constraint by 0.2 and 0.5; PHR's slope is lambda + rho h.
    objective = make(torch.tensor([[12.0, 0.0], [0.0, -15.0], [1.0, 0.0]]))
    objective.step(rows(0, 1))
    objective.end_epoch(None)
    least = 1e-6
    wanted = [[least, 0.2 + least], [least, 0.5 + least], [least, least]]
    torch.testing.assert_close(objective.multipliers, torch.tensor(wanted))
    assert objective.rho.tolist() == [[1.0, 1.0]] * 3  # nothing to compare with yet
    objective.step(rows(0, 2))
    objective.end_epoch(None)
    # Sample 0 is as far off as before, so its rho grows; sample 1 was not seen; sample 2 keeps its constraint.
    torch.testing.assert_close(objective.multipliers[0], torch.tensor([least, 0.4 + least]))
    torch.testing.assert_close(objective.multipliers[1], torch.tensor([least, 0.5 + least]))
    assert objective.rho[:, 1].tolist() == pytest.approx([1.2, 1.0, 1.0])


def test_the_loss_is_the_equation():
    logits = torch.tensor([[12.0, 0.0, -3.0], [1.0, 5.0, -9.0]])
    objective = make(logits)
    objective.multipliers.copy_(torch.rand(2, 3))
    objective.rho.copy_(1 + torch.rand(2, 3))
    step = objective.step(rows(1, 0))
    h = constraints(logits, margin=10.0)
    penalty = phr(h, objective.multipliers, objective.rho).mean()
    wanted = nn.functional.cross_entropy(logits, torch.zeros(2, dtype=torch.int64)) + penalty
    torch.testing.assert_close(step.scalars["loss"], wanted)
    torch.testing.assert_close(step.scalars["loss_penalty"], penalty)


def test_equal_multipliers_are_those_of_classes():
    logits = torch.tensor([[12.0, 0.0, -3.0], [1.0, 5.0, -9.0]])
    per_class = {"multipliers": torch.tensor([0.1, 0.2, 0.3]), "rho": torch.tensor([1.0, 2.0, 3.0])}
    objective = make(logits)
    for name, values in per_class.items():
        getattr(objective, name).copy_(values.expand(2, 3))
    step = objective.step(rows(0, 1))
    wanted = class_adaptive_loss(logits, torch.zeros(2, dtype=torch.int64), **per_class).mean()
    torch.testing.assert_close(step.scalars["loss"], wanted)


def test_updates_come_once_per_period_and_rho_stays_below_its_limit():
    objective = make(torch.tensor([[20.0, 0.0]]).expand(2, 2).clone(), period=2, growth=4.0)
    seen = []
    for _ in range(8):
        objective.step(rows(0, 1))
        objective.end_epoch(None)
        seen.append((float(objective.multipliers[0, 1]), float(objective.rho[0, 1])))
    assert [lam for lam, _ in seen] == pytest.approx([1e-6, 1, 1, 2, 2, 6, 6, 16], abs=1e-4)
    assert [rho for _, rho in seen] == [1.0, 1.0, 1.0, 4.0, 4.0, 10.0, 10.0, 10.0]


def test_it_keeps_logits_closer_together_than_cross_entropy():
    gaps = {}
    for name in ("ce", "sample_adaptive"):
        network = toys.make_network(0, plain=True)
        recipe = Recipe(optimizer=Optimizer("SGD", lr=0.1, options={"momentum": 0.9}))
        objective = (
            Supervised(network, nn.CrossEntropyLoss(), recipe=recipe)
            if name == "ce"
            else SampleAdaptive(
                network,
                n_samples=toys.N_TRAIN,
                n_classes=toys.N_CLASSES,
                margin=2.0,
                over_classes="sum",
                recipe=recipe,
            )
        )
        fit(objective, toys.TRAIN, epochs=10, hardware=toys.CPU)
        with torch.no_grad():
            logits = network(toys.TRAIN.inputs)
        gaps[name] = float((logits.amax(1) - logits.amin(1)).mean())
    assert gaps["sample_adaptive"] < 0.7 * gaps["ce"]


def test_rows_that_are_not_trained_on_have_no_multipliers():
    objective = SampleAdaptive(nn.Linear(2, 3), n_samples=100, n_classes=3, rows=torch.tensor([5, 7]))
    assert objective.multipliers.shape == (2, 3)


def test_refusals():
    with pytest.raises(ValueError, match="`n_samples` and `period` must be at least 1, got 0"):
        SampleAdaptive(nn.Linear(2, 3), n_samples=0, n_classes=3)
    with pytest.raises(ValueError, match="Pixels have too many multipliers"):
        SampleAdaptive(nn.Conv2d(1, 2, 1), n_samples=1, n_classes=2).step(
            toys.Rows(torch.zeros(1, 1, 2, 2), torch.zeros(1, 2, 2, dtype=torch.int64), torch.tensor([0]))
        )
    parts = Parts(make_network=lambda: nn.Linear(2, 3), n_samples=9)
    with pytest.raises(ValueError, match="Give `n_samples` and `n_classes`"):
        SampleAdaptive.from_parts(parts)
    with pytest.raises(ValueError, match="Leave the loss out"):
        SampleAdaptive.from_parts(replace(parts, n_classes=3, make_loss=nn.CrossEntropyLoss))
