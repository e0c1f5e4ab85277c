import pytest
import torch

from equipoise.catalogue import CATALOGUE
from equipoise.losses import dca_penalty

PENALTIES = CATALOGUE["penalties"]


def over_confident_batch():
    """Predictions of confidence near 0.98, six in ten of them right."""
    generator = torch.Generator().manual_seed(0)
    predicted = torch.randint(0, 3, (100,), generator=generator)
    logits = 5 * torch.nn.functional.one_hot(predicted, 3) + 0.3 * torch.randn(100, 3, generator=generator)
    right = torch.rand(100, generator=generator) < 0.6
    return logits, torch.where(right, predicted, (predicted + 1) % 3)


def descend(term, steps=60):
    """Learn a temperature and a bias, which cannot fit single samples."""
    logits, labels = over_confident_batch()
    scale, bias = torch.ones(1, requires_grad=True), torch.zeros(3, requires_grad=True)
    optimizer = torch.optim.Adam([scale, bias], lr=0.05)
    before = term(logits, labels).item()
    for _ in range(steps):
        optimizer.zero_grad()
        term(scale * logits + bias, labels).backward()
        optimizer.step()
    after = (scale * logits + bias).detach()
    return before, term(after, labels).item(), dca_penalty(after, labels).item()


@pytest.mark.parametrize("key", PENALTIES)
def test_descent_lowers_the_term(key):
    before, after, _ = descend(PENALTIES[key].make())
    assert after < before


# The others ask for something else: uncertainty, class frequencies, balance, the whole vector.
@pytest.mark.parametrize("key", ["dca", "huber_ca", "mmce", "soft_ece", "dece", "sece"])
def test_descent_cures_over_confidence(key):
    logits, labels = over_confident_batch()
    _, _, gap = descend(PENALTIES[key].make())
    assert gap < 0.5 * dca_penalty(logits, labels).item()
