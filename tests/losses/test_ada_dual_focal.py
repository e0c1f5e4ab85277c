import math

import pytest
import torch
from hypothesis import given

from equipoise.losses import (
    AdaDualFocalLoss,
    AdaFocalLoss,
    ada_dual_focal_loss,
    adafocal_loss,
    dual_focal_loss,
)
from helpers.per_sample import FIRST, assert_each, batches, logits_of

EDGES = torch.tensor([0.0, 0.5, 1.0], dtype=torch.float64)
GAMMAS = torch.tensor([2.0, -2.0], dtype=torch.float64)


def test_value_by_hand() -> None:
    loss = ada_dual_focal_loss(logits_of(0.4, 0.35, 0.25), FIRST, edges=EDGES, gammas=GAMMAS)
    assert_each(loss, [-(0.95**2) * math.log(0.4)])
    loss = ada_dual_focal_loss(logits_of(0.6, 0.3, 0.1), FIRST, edges=EDGES, gammas=GAMMAS)
    assert_each(loss, [-(1.3**2) * math.log(0.6)])


@given(batches())
def test_without_a_rival_it_is_adafocal_and_with_one_gamma_dual_focal(batch: tuple) -> None:
    alone = ada_dual_focal_loss(*batch, edges=EDGES, gammas=GAMMAS, rival=0.0)
    torch.testing.assert_close(alone, adafocal_loss(*batch, edges=EDGES, gammas=GAMMAS))
    constant = ada_dual_focal_loss(*batch, edges=EDGES, gammas=torch.full((2,), 3.0))
    torch.testing.assert_close(constant, dual_focal_loss(*batch, gamma=3.0))


def test_it_learns_the_gammas_of_adafocal() -> None:
    generator = torch.Generator().manual_seed(0)
    logits = 4 * torch.randn(200, 5, generator=generator)
    labels = torch.randint(0, 5, (200,), generator=generator)
    dual, plain = AdaDualFocalLoss(), AdaFocalLoss()
    dual.update(logits, labels)
    plain.update(logits, labels)
    assert torch.equal(dual.bins.gammas, plain.bins.gammas)
    assert torch.equal(dual.bins.edges, plain.bins.edges)


def test_gamma_is_constant_in_backward() -> None:
    logits = logits_of(0.4, 0.35, 0.25).requires_grad_()
    value = ada_dual_focal_loss(logits, FIRST, edges=EDGES, gammas=GAMMAS)
    wanted = torch.autograd.grad(dual_focal_loss(logits, FIRST, gamma=2.0).sum(), logits)[0]
    torch.testing.assert_close(torch.autograd.grad(value.sum(), logits)[0], wanted)


def test_refusal() -> None:
    with pytest.raises(ValueError, match="Did you mean 'second'"):
        AdaDualFocalLoss(rival="sekond")
