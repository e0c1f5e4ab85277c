import pytest
import torch
from torch import nn

from equipoise.losses import CrossEntropyLoss, cross_entropy_loss

LOGITS = 2 * torch.randn(9, 3, generator=torch.Generator().manual_seed(0))
LABELS = torch.tensor([0, 1, 2, 0, 1, 2, 0, 1, -100])


def test_value_by_hand():
    assert cross_entropy_loss(torch.tensor([[0.75, 0.25]]).log(), torch.tensor([1])).item() == pytest.approx(
        1.386294
    )


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_is_torchs_where_torch_keeps_the_rules(reduction):
    for weight in (None, torch.tensor([1.0, 2.0, 0.5])):
        options = {"weight": weight, "reduction": reduction}
        wanted = nn.CrossEntropyLoss(**options)(LOGITS, LABELS)
        torch.testing.assert_close(CrossEntropyLoss(**options)(LOGITS, LABELS), wanted)


def test_nothing_to_count_is_zero_where_torch_gives_nan():
    assert CrossEntropyLoss()(LOGITS, torch.full_like(LABELS, -100)) == 0
    assert nn.CrossEntropyLoss()(LOGITS, torch.full_like(LABELS, -100)).isnan()


def test_float16_does_not_overflow():
    logits = torch.tensor([[-6e4, 6e4]], dtype=torch.float16)
    assert CrossEntropyLoss()(logits, torch.tensor([0])) == pytest.approx(1.2e5, rel=1e-3)
