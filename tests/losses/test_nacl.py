import itertools
import math

import pytest
import torch
from torch import nn

from equipoise.losses import NeighborAwareLoss
from equipoise.losses.nacl import neighbor_shares

MASK = torch.tensor([[[0, 0, 1, 2], [0, 1, 1, 2], [2, 2, 0, -100]]])
LOGITS = torch.randn(1, 3, 3, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


def shares_by_hand(mask, kernel, size):
    """The share of each class around each pixel, pixel by pixel."""
    height, width = mask.shape
    reach = size // 2
    steps = list(itertools.product(range(-reach, reach + 1), repeat=2))
    weights = [1.0 if kernel == "mean" else math.exp(-0.5 * (a * a + b * b)) for a, b in steps]
    found = torch.zeros(3, height, width)
    for i, j in itertools.product(range(height), range(width)):
        for (a, b), weight in zip(steps, weights, strict=True):
            if 0 <= i + a < height and 0 <= j + b < width and mask[i + a, j + b] >= 0:
                found[mask[i + a, j + b], i, j] += weight / sum(weights)
    return found


def test_value_by_hand():
    # one pixel of class 0: 1 of 9 neighbors is of class 0, the others are outside
    value = NeighborAwareLoss(strength=0.5)(torch.zeros(1, 2, 1, 1), torch.zeros(1, 1, 1, dtype=torch.long))
    assert value.item() == pytest.approx(math.log(2) + 0.5 * (1 / 9) / 2)


@pytest.mark.parametrize("kernel", ["mean", "gaussian"])
@pytest.mark.parametrize("size", [1, 3, 5])
def test_shares_are_those_around_each_pixel(kernel, size):
    found = neighbor_shares(MASK, 3, kernel=kernel, size=size)[0]
    torch.testing.assert_close(found, shares_by_hand(MASK[0], kernel, size))


def test_equals_the_equation():
    shares = shares_by_hand(MASK[0], "mean", 3).double()
    known = MASK[0] >= 0
    ce = nn.functional.cross_entropy(LOGITS, MASK, reduction="none")[0]
    each = ce + 0.1 * (shares - LOGITS[0]).abs().mean(0)
    torch.testing.assert_close(NeighborAwareLoss()(LOGITS, MASK), each[known].mean())
    torch.testing.assert_close(NeighborAwareLoss(reduction="sum")(LOGITS, MASK), each[known].sum())
    torch.testing.assert_close(NeighborAwareLoss(reduction="none")(LOGITS, MASK)[0], each.where(known, 0.0))


def test_strength_0_is_cross_entropy():
    torch.testing.assert_close(
        NeighborAwareLoss(strength=0.0)(LOGITS, MASK), nn.functional.cross_entropy(LOGITS, MASK)
    )


def test_a_volume_has_neighbors_along_three_axes():
    volume = torch.zeros(1, 3, 3, 3, dtype=torch.long)
    shares = neighbor_shares(volume, 2)[0, 0]
    assert shares[1, 1, 1] == 1
    assert shares[0, 0, 0].item() == pytest.approx(8 / 27)


def test_samples_without_places_are_their_own_neighbors():
    logits, labels = torch.zeros(2, 4), torch.tensor([0, 3])
    wanted = math.log(4) + 0.1 / 4
    assert NeighborAwareLoss()(logits, labels).item() == pytest.approx(wanted)


def test_class_weights_weigh_pixels():
    weight = torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64)
    each = NeighborAwareLoss(reduction="none")(LOGITS, MASK)[0]
    own = weight[MASK[0].clamp(min=0)].where(MASK[0] >= 0, 0.0)
    torch.testing.assert_close(NeighborAwareLoss(weight=weight)(LOGITS, MASK), (each * own).sum() / own.sum())


@pytest.mark.parametrize("scale", [1e4, -1e4])
def test_finite_with_gradient_far_out(scale):
    logits = (scale * LOGITS).requires_grad_()
    value = NeighborAwareLoss()(logits, MASK)
    assert value.isfinite()
    assert torch.autograd.grad(value, logits)[0].isfinite().all()


def test_mistakes():
    with pytest.raises(ValueError, match="must be odd"):
        NeighborAwareLoss(size=2)
    with pytest.raises(ValueError, match="Did you mean 'gaussian'"):
        NeighborAwareLoss(kernel="gausian")
    with pytest.raises(ValueError, match="at least 0"):
        NeighborAwareLoss(strength=-1)
