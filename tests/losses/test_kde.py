import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from equipoise.losses import KernelECE, kde_penalty, neighbors
from helpers.batch_terms import batches, check_edges, plain, probabilities

KINDS = ["canonical", "top_label", "marginal"]


def log_dirichlet(x, concentration):
    norm = sum(map(math.lgamma, concentration)) - math.lgamma(sum(concentration))
    return sum((a - 1) * math.log(p) for a, p in zip(concentration, x, strict=True)) - norm


def estimate(points, targets, predictions, bandwidth, power, floor):
    total = 0.0
    for i, x in enumerate(points):
        near = [j for j in range(len(points)) if j != i]
        logs = [log_dirichlet(x, [p / bandwidth + 1 for p in points[j]]) for j in near]
        top = max(logs)
        kernel = [math.exp(value - top) for value in logs]
        shrink = min(1.0, math.exp(min(top + math.log(sum(kernel)) - math.log(floor), 0))) if floor else 1.0
        for d, prediction in enumerate(predictions[i]):
            mean = sum(k * targets[j][d] for k, j in zip(kernel, near, strict=True)) / sum(kernel)
            total += abs(shrink * mean - prediction) ** power
    return total / len(points)


def oracle(batch, kind, bandwidth, power, floor=None):
    logits, labels = batch
    probs, n_classes = probabilities(logits), logits.shape[1]
    hits = [[float(y == k) for k in range(n_classes)] for y in labels.tolist()]
    if kind == "canonical":
        return estimate(probs, hits, probs, bandwidth, power, floor)
    if kind == "top_label":
        confidence, correct = plain(*batch)
        views = [(confidence, correct)]
    else:
        views = [([row[k] for row in probs], [row[k] for row in hits]) for k in range(n_classes)]
    return sum(
        estimate([[p, 1 - p] for p in x], [[a] for a in y], [[p] for p in x], bandwidth, power, floor)
        for x, y in views
    )


def test_value_by_hand():
    logits = torch.zeros(3, 2)
    # all predictions alike: each is compared with the mean of the other two labels
    assert kde_penalty(logits, torch.tensor([0, 0, 1])).item() == pytest.approx((0 + 0 + 1) / 3)
    assert kde_penalty(logits, torch.tensor([0, 0, 0]), kind="top_label").item() == pytest.approx(0.5)
    assert kde_penalty(logits, torch.tensor([0, 0, 0]), power=2).item() == pytest.approx(0.5)


@given(batches(least=2, most=6))
def test_a_wide_kernel_compares_with_the_other_labels(batch):
    logits, labels = batch
    hits = torch.nn.functional.one_hot(labels, logits.shape[1]).double()
    others = (hits.sum(0) - hits) / (len(hits) - 1)
    wanted = (others - logits.softmax(-1)).abs().sum(-1).mean()
    assert kde_penalty(logits, labels, bandwidth=1e9).item() == pytest.approx(wanted.item(), abs=1e-6)


@given(batches(least=2, most=6), st.sampled_from(KINDS), st.sampled_from([1, 2]), st.floats(0.02, 0.5))
def test_oracle(batch, kind, power, bandwidth):
    value = kde_penalty(*batch, kind=kind, power=power, bandwidth=bandwidth)
    assert value.item() == pytest.approx(oracle(batch, kind, bandwidth, power), rel=1e-6, abs=1e-9)


@given(batches(least=2, most=6), st.sampled_from(KINDS))
def test_oracle_with_the_authors_floor(batch, kind):
    value = kde_penalty(*batch, kind=kind, bandwidth=0.01, least_density=1e-10)
    assert value.item() == pytest.approx(oracle(batch, kind, 0.01, 1, floor=1e-10), rel=1e-6, abs=1e-9)


def test_two_columns_are_twice_the_top_label_of_one():
    logits = torch.tensor([[1.0, 0.0], [2.0, 0.0], [0.5, 0.0]], dtype=torch.float64)
    labels = torch.tensor([0, 1, 0])
    canonical, top = (kde_penalty(logits, labels, bandwidth=0.1, kind=kind) for kind in KINDS[:2])
    torch.testing.assert_close(canonical, 2 * top)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("floor", [None, 1e-10])
def test_ignored_samples_are_no_neighbors(kind, floor):
    logits = torch.randn(8, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    labels = torch.tensor([0, 1, 2, 0, -100, 1, -100, 2])
    term = KernelECE(bandwidth=0.05, kind=kind, least_density=floor)
    torch.testing.assert_close(term(logits, labels), term(logits[labels >= 0], labels[labels >= 0]))


@pytest.mark.parametrize("kind", KINDS)
def test_blocks_give_the_same_value_and_gradient(kind, monkeypatch):
    logits = torch.randn(17, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    labels = torch.arange(17) % 3

    def derivatives():
        inputs = logits.clone().requires_grad_()
        value = kde_penalty(inputs, labels, kind=kind, bandwidth=0.1)
        return value, torch.autograd.grad(value, inputs)[0]

    whole = derivatives()
    monkeypatch.setattr(neighbors, "MOST_PAIRS", 17 * 4)
    for one, other in zip(derivatives(), whole, strict=True):
        torch.testing.assert_close(one, other)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("bandwidth", [1e-5, 0.001, 0.1])
def test_edges(kind, bandwidth):
    check_edges(KernelECE(kind=kind, bandwidth=bandwidth))


def test_a_class_that_occurs_once_among_many_has_a_finite_gradient():
    logits = torch.randn(6, 80, generator=torch.Generator().manual_seed(0), requires_grad=True)
    kde_penalty(logits, torch.tensor([0, 0, 1, 1, 2, 79]), bandwidth=0.01).backward()
    assert logits.grad.isfinite().all()


def test_refusals_carry_the_remedy():
    with pytest.raises(ValueError, match="above 0"):
        KernelECE(bandwidth=0)
    with pytest.raises(ValueError, match="Did you mean 'marginal'"):
        KernelECE(kind="marginals")
