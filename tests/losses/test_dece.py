import math

import pytest
import torch
from hypothesis import given

from equipoise.losses import CrossEntropyLoss, DifferentiableECE, dece_penalty
from helpers.batch_terms import batches, check_edges, probabilities
from helpers.golden import CASES, double


def oracle(batch, n_bins, t_a, t_b):
    logits, labels = batch
    cuts = [j / n_bins for j in range(n_bins)]
    sums = [0.0] * n_bins
    for row, y in zip(probabilities(logits), labels.tolist(), strict=True):
        rank = 1 + sum(1 / (1 + math.exp(-t_a * (p - row[y]))) for k, p in enumerate(row) if k != y)
        accuracy, confidence = max(0.0, 2 - rank), max(row)
        scores = [((j + 1) * confidence - sum(cuts[: j + 1])) / t_b for j in range(n_bins)]
        powers = [math.exp(s - max(scores)) for s in scores]
        for j in range(n_bins):
            q = (powers[j] / sum(powers) + 1e-6) / (1 + n_bins * 1e-6)
            sums[j] += q * (accuracy - confidence) / len(labels)
    return sum(map(abs, sums))


def test_value_by_hand():
    # two classes tied: soft rank 3/2, soft accuracy 1/2, confidence 1/2
    assert dece_penalty(torch.zeros(3, 2), torch.tensor([0, 1, 1])).item() == pytest.approx(0)
    # sure and right, sure and wrong, one bin: accuracy (1 + 0) / 2 against confidence 1
    logits = torch.tensor([[30.0, 0.0], [30.0, 0.0]])
    assert dece_penalty(logits, torch.tensor([0, 1]), n_bins=1).item() == pytest.approx(0.5)


def test_hard_settings_give_the_expected_calibration_error():
    generator = torch.Generator().manual_seed(0)
    logits = 2 * torch.randn(200, 4, generator=generator, dtype=torch.float64)
    labels = torch.where(torch.rand(200, generator=generator) < 0.5, logits.argmax(1), 0)
    confidence = logits.softmax(-1).amax(-1)
    gap = (logits.argmax(1) == labels).double() - confidence
    bins = (confidence * 10).long()
    wanted = sum(gap[bins == j].sum().abs() for j in range(10)) / 200
    hard = dece_penalty(logits, labels, n_bins=10, rank_temperature=1e7, bin_temperature=1e-7)
    assert hard.item() == pytest.approx(wanted.item(), abs=1e-4)


@given(batches())
def test_oracle(batch):
    value = dece_penalty(*batch, n_bins=7, rank_temperature=20.0, bin_temperature=0.05)
    assert value.item() == pytest.approx(oracle(batch, 7, 20.0, 0.05), rel=1e-9)


@given(batches())
def test_the_authors_slip_is_a_factor(batch):
    ratio = dece_penalty(*batch, authors_denominator=True) / dece_penalty(*batch)
    assert ratio.item() == pytest.approx((1 + 15e-6) / (1 + 16e-6), rel=1e-12)


def test_second_derivatives():
    logits = torch.randn(5, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    term = DifferentiableECE(n_bins=5, rank_temperature=5.0, bin_temperature=0.1)
    labels = torch.tensor([0, 1, 2, 0, 1])
    assert torch.autograd.gradgradcheck(lambda z: term(z, labels), logits.requires_grad_())


def test_gradient_through_a_training_step():
    """One step of label smoothing on a linear head, then the gradient with respect to the smoothing."""
    case = CASES["bilevel_ls.ce_plus_half_dece_soft.mean"]
    numbers = {key: double(case["params"][key]) for key in ("X", "X_val", "W", "b")}
    head = numbers["W"].requires_grad_(), numbers["b"].requires_grad_()
    smoothing = double(case["params"]["label_smoothing"]).requires_grad_()
    log_probs = (numbers["X"] @ head[0].T + head[1]).log_softmax(-1)
    labels = torch.tensor(case["params"]["y"])
    targets = (1 - smoothing) * torch.nn.functional.one_hot(labels, 3) + smoothing / 3
    inner = -(targets * log_probs).sum(-1).mean()
    steps = torch.autograd.grad(inner, head, create_graph=True)
    moved = [w - case["params"]["inner_lr"] * step for w, step in zip(head, steps, strict=True)]
    outer = CrossEntropyLoss() + 0.5 * DifferentiableECE(n_bins=5)
    outer.terms[1].term = DifferentiableECE(
        n_bins=5, rank_temperature=10.0, bin_temperature=0.05, authors_denominator=True
    )
    value = outer(numbers["X_val"] @ moved[0].T + moved[1], torch.tensor(case["params"]["y_val"]))
    assert value.item() == pytest.approx(case["expected"]["meta_loss"], rel=1e-8)
    [gradient] = torch.autograd.grad(value, smoothing)
    assert gradient.item() == pytest.approx(case["expected"]["hypergrad"], rel=1e-8)


def test_edges():
    check_edges(DifferentiableECE())


def test_refusals_carry_the_remedy():
    with pytest.raises(ValueError, match="`bin_temperature` must be above 0"):
        DifferentiableECE(bin_temperature=-1)
    with pytest.raises(ValueError, match="at least 1"):
        DifferentiableECE(n_bins=0)
