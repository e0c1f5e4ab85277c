import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from equipoise.losses import LabelSmoothingLoss, label_smoothing_loss
from helpers.per_sample import FIRST, assert_each, batches, log_softmax, logits_of, rows


def test_value_by_hand() -> None:
    # p = (3/4, 1/4), smoothing 0.2: target (0.9, 0.1)
    wanted = -0.9 * math.log(0.75) - 0.1 * math.log(0.25)
    assert_each(label_smoothing_loss(logits_of(0.75, 0.25), FIRST, smoothing=0.2), [wanted])


@given(batches())
def test_no_smoothing_is_cross_entropy(batch: tuple) -> None:
    wanted = nn.functional.cross_entropy(*batch, reduction="none")
    torch.testing.assert_close(label_smoothing_loss(*batch, smoothing=0.0), wanted)


@given(batches(), st.floats(0, 0.5), st.booleans())
def test_equals_the_softened_target(batch: tuple, smoothing: float, off_target: bool) -> None:
    wanted = []
    for row, y in rows(*batch):
        k = len(row)
        share = smoothing / (k - 1) if off_target else smoothing / k
        target = [share] * k
        target[y] = 1 - smoothing + (0 if off_target else share)
        wanted.append(-sum(t * lp for t, lp in zip(target, log_softmax(row), strict=True)))
    assert_each(label_smoothing_loss(*batch, smoothing=smoothing, off_target=off_target), wanted)


def test_off_target_is_uniform_at_another_strength() -> None:
    logits = logits_of(0.5, 0.3, 0.2)
    off = label_smoothing_loss(logits, FIRST, smoothing=0.1, off_target=True)
    torch.testing.assert_close(off, label_smoothing_loss(logits, FIRST, smoothing=0.15))


def test_it_is_least_at_the_softened_target_and_not_at_certainty() -> None:
    at_target = label_smoothing_loss(logits_of(0.95, 0.05), FIRST, smoothing=0.1)
    assert at_target < label_smoothing_loss(logits_of(0.94, 0.06), FIRST, smoothing=0.1)
    assert at_target < label_smoothing_loss(logits_of(0.96, 0.04), FIRST, smoothing=0.1)


def test_class_weights_do_not_change_the_smoothing() -> None:
    weight = torch.tensor([2.0, 7.0])
    weighted = LabelSmoothingLoss(smoothing=0.1, weight=weight, reduction="sum")(logits_of(0.75, 0.25), FIRST)
    torch.testing.assert_close(
        weighted, 2 * label_smoothing_loss(logits_of(0.75, 0.25), FIRST, smoothing=0.1).sum()
    )


@pytest.mark.parametrize("smoothing", [-0.1, 1.0, float("nan")])
def test_refuses_what_is_no_share(smoothing: float) -> None:
    with pytest.raises(ValueError, match=r"0\.05 or 0\.1"):
        LabelSmoothingLoss(smoothing=smoothing)
