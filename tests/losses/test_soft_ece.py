import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from equipoise.losses import SoftBinnedECE, dca_penalty, soft_ece_penalty
from helpers.batch_terms import batches, check_edges, plain


def members(confidence, centers, temperature):
    rows = []
    for c in confidence:
        powers = [math.exp(-((c - center) ** 2) / temperature) for center in centers]
        rows.append([power / sum(powers) for power in powers])
    return rows


def test_value_by_hand():
    # all samples at confidence 1/2: whatever the bins, every mean is 1/2 against 3/4
    assert soft_ece_penalty(torch.zeros(4, 2), torch.tensor([0, 0, 0, 1])).item() == pytest.approx(0.25)
    assert soft_ece_penalty(
        torch.zeros(4, 2), torch.tensor([0, 0, 0, 1]), binning="label"
    ).item() == pytest.approx(0.25**2)


@given(batches())
def test_one_bin_is_the_difference_between_confidence_and_accuracy(batch):
    assert soft_ece_penalty(*batch, n_bins=1).item() == pytest.approx(dca_penalty(*batch).item(), abs=1e-7)


@given(batches())
def test_infinitely_soft_bins_are_one_bin(batch):
    soft = soft_ece_penalty(*batch, temperature=1e12).item()
    assert soft == pytest.approx(dca_penalty(*batch).item(), abs=1e-7)


@given(batches())
def test_hard_bins_give_the_binned_error(batch):
    confidence, correct = plain(*batch)
    bins = {}
    for c, a in zip(confidence, correct, strict=True):
        bins.setdefault(int(c * 5), []).append(c - a)
    wanted = math.sqrt(sum(sum(gaps) ** 2 / len(gaps) for gaps in bins.values()) / len(correct))
    if all(abs(c * 5 - round(c * 5)) > 1e-3 for c in confidence):  # not on an edge
        hard = soft_ece_penalty(*batch, n_bins=5, temperature=1e-7).item()
        assert hard == pytest.approx(wanted, abs=1e-6)


@given(batches(), st.sampled_from([0.01, 0.1]), st.sampled_from([0.0, 1e-5]))
def test_oracle(batch, temperature, floor):
    confidence, correct = plain(*batch)
    u = members(confidence, [(j + 0.5) / 15 for j in range(15)], temperature)
    total = 0.0
    for j in range(15):
        mass = sum(row[j] for row in u)
        gap = sum(row[j] * (c - a) for row, c, a in zip(u, confidence, correct, strict=True))
        total += mass / len(u) * (gap / max(mass, floor, 1e-300)) ** 2
    value = soft_ece_penalty(*batch, temperature=temperature, least_mass=floor).item()
    assert value == pytest.approx(math.sqrt(total), abs=1e-10)


@given(batches())
def test_oracle_of_label_binning(batch):
    logits, _ = batch
    confidence, correct = plain(*batch)
    low = 1 / logits.shape[1]
    u = members(confidence, [low + (j + 0.5) / 15 * (1 - low) for j in range(15)], 0.01)
    u = [[(1 - 1e-5) * x + 1e-5 / 15 for x in row] for row in u]
    accuracy = [
        sum(row[j] * a for row, a in zip(u, correct, strict=True)) / sum(row[j] for row in u)
        for j in range(15)
    ]
    wanted = sum(
        x * (b - c) ** 2
        for row, c in zip(u, confidence, strict=True)
        for x, b in zip(row, accuracy, strict=True)
    )
    value = soft_ece_penalty(*batch, binning="label").item()
    assert value == pytest.approx(wanted / len(u), abs=1e-12)


@pytest.mark.parametrize("binning", ["confidence", "label"])
def test_edges(binning):
    check_edges(SoftBinnedECE(binning=binning))


def test_refusals_carry_the_remedy():
    with pytest.raises(ValueError, match=r"at least 1, got 0.*use 15"):
        SoftBinnedECE(n_bins=0)
    with pytest.raises(ValueError, match="`temperature` must be above 0"):
        SoftBinnedECE(temperature=0)
    with pytest.raises(ValueError, match="Did you mean 'label'"):
        SoftBinnedECE(binning="labels")
