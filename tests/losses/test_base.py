import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn

from equipoise.losses import BrierLoss, Loss
from equipoise.losses.base import flatten, weighted_mean
from helpers.per_sample import FIRST


class PlainCrossEntropy(Loss):
    """Cross-entropy through the base; torch's own is its oracle."""

    soft_targets = True

    def per_sample(self, logits: Tensor, labels: Tensor) -> Tensor:
        return nn.functional.cross_entropy(logits, labels, reduction="none")


@given(
    shape=st.sampled_from([(6,), (2, 3), (2, 3, 2), ()]),
    weighted=st.booleans(),
    ignore_index=st.sampled_from([-100, 0, 2]),
    reduction=st.sampled_from(["mean", "sum", "none"]),
    seed=st.integers(0, 99),
)
def test_the_base_makes_cross_entropy_out_of_cross_entropy(
    shape: tuple, weighted: bool, ignore_index: int, reduction: str, seed: int
) -> None:
    generator = torch.Generator().manual_seed(seed)
    sizes = (*shape[:1], 4, *shape[1:])
    logits = torch.randn(sizes, generator=generator, dtype=torch.float64)
    labels = torch.randint(0, 4, shape, generator=generator)
    weight = torch.rand(4, generator=generator, dtype=torch.float64) if weighted else None
    options = {"weight": weight, "ignore_index": ignore_index, "reduction": reduction}
    wanted = nn.CrossEntropyLoss(**options)(logits, labels)
    if (labels == ignore_index).all() and reduction == "mean":
        wanted = torch.zeros_like(wanted)  # where torch gives NaN
    torch.testing.assert_close(PlainCrossEntropy(**options)(logits, labels), wanted)


def test_soft_targets_without_weights_equal_torchs() -> None:
    logits = torch.randn(5, 4, 2, generator=torch.Generator().manual_seed(0))
    targets = logits.flip(0).softmax(1)
    for reduction in ("sum", "none"):
        wanted = nn.CrossEntropyLoss(reduction=reduction)(logits, targets)
        torch.testing.assert_close(PlainCrossEntropy(reduction=reduction)(logits, targets), wanted)


def test_weight_of_a_soft_target_is_its_expectation() -> None:
    targets = torch.tensor([[0.25, 0.75]])
    flat = flatten(torch.zeros(1, 2), targets, class_weight=torch.tensor([4.0, 8.0]))
    torch.testing.assert_close(flat.weights, torch.tensor([7.0]))


def test_flattening_keeps_the_order_of_samples() -> None:
    logits = torch.arange(2 * 3 * 4).reshape(2, 3, 4).float()
    labels = torch.arange(8).reshape(2, 4) % 3
    flat = flatten(logits, labels)
    for row, (n, d) in enumerate((n, d) for n in range(2) for d in range(4)):
        assert torch.equal(flat.logits[row], logits[n, :, d])
        assert flat.labels[row] == labels[n, d]


def test_mean_of_nothing_is_0() -> None:
    assert weighted_mean(torch.ones(3), torch.zeros(3)) == 0
    assert weighted_mean(torch.ones(0), torch.ones(0)) == 0


def test_ignored_samples_may_hold_anything() -> None:
    logits = torch.tensor([[0.0, 0.0], [float("nan"), float("inf")]])
    assert BrierLoss()(logits, torch.tensor([0, -100])) == 0.5


def test_class_weight_moves_with_the_module_and_is_saved() -> None:
    loss = BrierLoss(weight=torch.tensor([1.0, 2.0])).double()
    assert loss.weight.dtype == torch.float64
    assert torch.equal(loss.state_dict()["weight"], loss.weight)
    assert not BrierLoss().state_dict()


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int16, torch.int32, torch.int64])
def test_labels_of_any_integer_type(dtype: torch.dtype) -> None:
    assert BrierLoss()(torch.zeros(1, 2), FIRST.to(dtype)) == 0.5


def test_labels_of_true_and_false_are_refused() -> None:
    with pytest.raises(ValueError, match=r"labels\.long\(\)"):
        BrierLoss()(torch.zeros(1, 2), FIRST.bool())
