import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from equipoise.losses import SoftAvUC, soft_avuc_penalty
from helpers.batch_terms import batches, check_edges, plain, probabilities


def oracle(batch, threshold, temperature):
    logits, _ = batch
    n_classes, good, bad = logits.shape[1], 0.0, 0.0
    for row, right in zip(probabilities(logits), plain(*batch)[1], strict=True):
        smoothed = [(1 - 1e-5) * p + 1e-5 / n_classes for p in row]
        u = -sum(p * math.log(p) for p in smoothed)
        e = u / math.log(n_classes)
        border = math.log(e * (1 - threshold) / ((1 - e) * threshold)) / temperature
        uncertain = 1 / (1 + math.exp(-border))
        mass = (1 - uncertain) * (1 - math.tanh(u)), uncertain * math.tanh(u)
        good += mass[0] if right else mass[1]
        bad += mass[1] if right else mass[0]
    n_samples, floor = len(logits), 1e-10
    return math.log((good + bad) / n_samples + floor) - math.log(good / n_samples + floor)


def test_value_by_hand():
    # one sample with entropy half the largest: half certain, so good : bad = (1 - tanh u) : tanh u
    p = 0.11002786443835955  # H(p, 1 - p) = log(2) / 2
    logits = torch.tensor([[math.log(1 - p), math.log(p)]], dtype=torch.float64)
    tanh = math.tanh(math.log(2) / 2)
    value = soft_avuc_penalty(logits, torch.tensor([0]))
    assert value.item() == pytest.approx(math.log(1 / (1 - tanh)), rel=1e-4)


def test_a_low_temperature_makes_the_border_hard():
    logits = torch.tensor([[4.0, 0.0], [0.2, 0.0]], dtype=torch.float64)
    agreeing = soft_avuc_penalty(logits, torch.tensor([0, 1]), temperature=1e-3)
    assert agreeing.item() == pytest.approx(0, abs=1e-9)


@given(batches(), st.floats(0.2, 0.8), st.floats(0.3, 3))
def test_oracle(batch, threshold, temperature):
    value = soft_avuc_penalty(*batch, threshold=threshold, temperature=temperature)
    assert value.item() == pytest.approx(oracle(batch, threshold, temperature), rel=1e-9)


@given(batches())
def test_shifting_all_logits_changes_nothing(batch):
    logits, labels = batch
    torch.testing.assert_close(soft_avuc_penalty(logits + 3, labels), soft_avuc_penalty(logits, labels))


def test_edges():
    check_edges(SoftAvUC())


def test_refusals_carry_the_remedy():
    with pytest.raises(ValueError, match=r"inside \(0, 1\), got 1"):
        SoftAvUC(threshold=1)
    with pytest.raises(ValueError, match="use AvUC"):
        SoftAvUC(temperature=0)
