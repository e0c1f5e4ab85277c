import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from equipoise.losses import DualFocalLoss, dual_focal_loss, focal_loss
from helpers.per_sample import FIRST, assert_each, batches, log_softmax, logits_of, rows

RIVALS = ["next", "second", "third", "mean2", "mean3", "mean_all", 0.0, 0.1, 0.2]


def rival_of(row: list[float], y: int, rival: str | float) -> float:
    """The rival by the words of the paper: sort what lies below the true class, and pick."""
    if not isinstance(rival, str):
        return rival
    below = sorted(
        (math.exp(lp) for z, lp in zip(row, log_softmax(row), strict=True) if z < row[y]), reverse=True
    )
    picked = {
        "next": below[:1],
        "second": below[1:2],
        "third": below[2:3],
        "mean2": below[:2],
        "mean3": below[:3],
        "mean_all": below,
    }[rival]
    return sum(picked) / len(picked) if picked else 0.0


def test_values_by_hand() -> None:
    # q is 0.2; 0, as the true class is the smallest; 0.2, as a tie is not below.
    assert_each(dual_focal_loss(logits_of(0.7, 0.2, 0.1), FIRST), [-(0.5**5) * math.log(0.7)])
    assert_each(dual_focal_loss(logits_of(0.1, 0.3, 0.6), FIRST), [-(0.9**5) * math.log(0.1)])
    assert_each(dual_focal_loss(logits_of(0.4, 0.4, 0.2), FIRST), [-(0.8**5) * math.log(0.4)])


@given(batches())
def test_gamma_0_is_cross_entropy_and_rival_0_is_focal_loss(batch: tuple) -> None:
    wanted = nn.functional.cross_entropy(*batch, reduction="none")
    torch.testing.assert_close(dual_focal_loss(*batch, gamma=0.0), wanted)
    torch.testing.assert_close(dual_focal_loss(*batch, gamma=3.0, rival=0.0), focal_loss(*batch, gamma=3.0))


@given(batches(n_classes=(2, 6)), st.floats(0, 10), st.sampled_from(RIVALS))
def test_equals_the_equation(batch: tuple, gamma: float, rival: str | float) -> None:
    wanted = []
    for row, y in rows(*batch):
        log_p = log_softmax(row)[y]
        base = 1 - math.exp(log_p) + rival_of(row, y, rival)
        wanted.append(-(max(base, 0.0) ** gamma) * log_p if log_p else 0.0)
    assert_each(dual_focal_loss(*batch, gamma=gamma, rival=rival), wanted)


@given(batches(), st.floats(0, 10))
def test_lies_between_focal_loss_and_cross_entropy(batch: tuple, gamma: float) -> None:
    value = dual_focal_loss(*batch, gamma=gamma)
    assert (value >= focal_loss(*batch, gamma=gamma) * (1 - 1e-12)).all()
    assert (value <= nn.functional.cross_entropy(*batch, reduction="none") * (1 + 1e-12)).all()


@given(batches(n_classes=(3, 5)), st.randoms())
def test_names_of_classes_do_not_matter(batch: tuple, random: object) -> None:
    logits, labels = batch
    order = list(range(logits.shape[1]))
    random.shuffle(order)
    renamed = torch.tensor([order.index(label) for label in labels.tolist()])
    torch.testing.assert_close(dual_focal_loss(logits[:, order], renamed), dual_focal_loss(logits, labels))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_true_class_is_never_its_own_rival(dtype: torch.dtype) -> None:
    """Softmax beside log-softmax differs in the last digit, which has fooled a fast version before."""
    logits = torch.randn(4000, 7, generator=torch.Generator().manual_seed(0), dtype=dtype)
    labels = logits.argmax(-1)
    second = logits.softmax(-1).topk(2).values[:, 1]
    ce = nn.functional.cross_entropy(logits, labels, reduction="none")
    wanted = (1 - torch.exp(-ce) + second) * ce
    torch.testing.assert_close(dual_focal_loss(logits, labels, gamma=1.0), wanted)


def test_gradient_flows_through_the_rival_only_where_it_is() -> None:
    logits = logits_of(0.5, 0.3, 0.2).requires_grad_()
    value = dual_focal_loss(logits, FIRST, gamma=1.0)
    p, q = 0.5, 0.3
    # d(-(1 - p + q) log p): dp_y = p(1 - p), dp_j = -p p_j, and likewise for q.
    slope_p, slope_q = math.log(p) - (1 - p + q) / p, -math.log(p)
    wanted = [
        slope_p * p * (1 - p) - slope_q * q * p,
        -slope_p * p * q + slope_q * q * (1 - q),
        -slope_p * p * 0.2 - slope_q * q * 0.2,
    ]
    assert_each(torch.autograd.grad(value.sum(), logits)[0][0], wanted)


@pytest.mark.parametrize("rival", RIVALS)
@pytest.mark.parametrize("gamma", [0.0, 0.3, 1.0, 5.0, 10.0])
def test_finite_at_the_edges(rival: str | float, gamma: float) -> None:
    rows_ = [[1e4, -1e4, 0.0, 1.0], [0.0] * 4, [-1e4, 1e4, 0.0, 1.0], [50.0, 0.0, 0.0, 0.0]]
    logits = torch.tensor(rows_, requires_grad=True)
    value = dual_focal_loss(logits, torch.zeros(4, dtype=torch.long), gamma=gamma, rival=rival)
    assert value.isfinite().all()
    assert torch.autograd.grad(value.sum(), logits)[0].isfinite().all()


def test_refusals() -> None:
    with pytest.raises(ValueError, match="Did you mean 'next'"):
        DualFocalLoss(rival="nxt")
    with pytest.raises(ValueError, match="stands for a probability"):
        DualFocalLoss(rival=1.5)
    with pytest.raises(ValueError, match="at least 0"):
        DualFocalLoss(gamma=-1)
