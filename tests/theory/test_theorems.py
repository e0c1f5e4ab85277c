"""Statements of the papers that hold for every input, checked on many."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn import functional as F

from helpers.golden import CASES, double, tensors


def divergence(target, logits):
    return F.kl_div(logits.log_softmax(-1), target, reduction="batchmean")


def ensemble_gradients(primary, auxiliary, beta):
    """Values and gradients of KL(h || f) and of beta KL(g || f), with h = (1 - beta) f + beta g detached."""
    peer = auxiliary.softmax(-1)
    mixed = ((1 - beta) * primary.softmax(-1) + beta * peer).detach()
    values = divergence(mixed, primary), beta * divergence(peer, primary)
    return values, [torch.autograd.grad(value, primary)[0] for value in values]


def test_distilling_the_ensemble_is_mutual_learning_golden():
    case = CASES["prop1.A"]
    (primary, _), auxiliary = tensors("A"), double(case["params"]["aux_logits"])
    values, gradients = ensemble_gradients(primary, auxiliary, case["params"]["beta"])
    assert values[0].item() == pytest.approx(case["expected"]["kl_h_f"], rel=1e-8)
    assert values[1].item() == pytest.approx(case["expected"]["beta_kl_g_f"], rel=1e-8)
    for gradient in gradients:
        torch.testing.assert_close(gradient, double(case["grad_logits"]), rtol=1e-8, atol=1e-11)


@given(st.integers(0, 1000), st.floats(0.01, 1), st.integers(2, 10))
def test_distilling_the_ensemble_is_mutual_learning(seed, beta, n_classes):
    generator = torch.Generator().manual_seed(seed)
    primary, auxiliary = torch.randn(2, 4, n_classes, generator=generator, dtype=torch.float64) * 2
    _, (ensemble, peer) = ensemble_gradients(primary.requires_grad_(), auxiliary, beta)
    torch.testing.assert_close(ensemble, peer, rtol=1e-9, atol=1e-12)


@given(st.integers(0, 1000), st.floats(0, 10), st.floats(0.1, 20))
def test_focal_loss_is_at_least_cross_entropy_minus_entropy(seed, gamma, scale):
    """For gamma of at least 1 this is Bernoulli's inequality; below 1 the entropy of the other classes is needed."""
    generator = torch.Generator().manual_seed(seed)
    log_p = (torch.randn(32, 5, generator=generator, dtype=torch.float64) * scale).log_softmax(-1)
    cross_entropy = -log_p[:, 0]
    focal = (1 - log_p[:, 0].exp()) ** gamma * cross_entropy
    entropy = -(log_p.exp() * log_p).sum(-1)
    assert (focal >= cross_entropy - gamma * entropy - 1e-12).all()


@given(st.integers(0, 1000), st.floats(1.01, 10), st.integers(2, 20))
def test_scaling_logits_up_raises_the_top_confidence(seed, scale, n_classes):
    generator = torch.Generator().manual_seed(seed)
    logits = torch.randn(16, n_classes, generator=generator, dtype=torch.float64)
    before, after = logits.softmax(-1).amax(-1), (scale * logits).softmax(-1).amax(-1)
    assert (after > before).all()
