"""The small network."""

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from equipoise.models import small_cnn


def test_takes_21_million_operations():
    with FlopCounterMode(display=False) as counter:
        small_cnn()(torch.zeros(1, 3, 32, 32))
    # By hand: twice the products of 3 -> 32 at 32x32, 32 -> 64 at 16x16, 64 -> 128 at 8x8, and the head.
    by_hand = 2 * (27 * 32 * 1024 + 288 * 64 * 256 + 576 * 128 * 64 + 1280)
    assert counter.get_total_flops() == by_hand == pytest.approx(21e6, rel=0.02)


@pytest.mark.parametrize("side", [4, 5, 28, 96])
def test_takes_images_of_any_size(side):
    assert small_cnn(in_channels=1).eval()(torch.zeros(1, 1, side, side)).shape == (1, 10)


def test_widths_are_those_of_the_convolutions():
    network = small_cnn(widths=(4, 6))
    assert [tuple(part.shape[:2]) for part in network.parameters() if part.ndim == 4] == [(4, 3), (6, 4)]
    assert network(torch.zeros(2, 3, 8, 8)).shape == (2, 10)


@pytest.mark.parametrize("widths", [(), (8, 0)])
def test_a_network_without_channels_is_refused(widths):
    with pytest.raises(ValueError, match=r"positive numbers, got .*\(32, 64, 128\) is usual"):
        small_cnn(widths=widths)
