import pytest
import torch
from torch import nn

from equipoise.losses import MDCA, AdaFocalLoss, BrierLoss, FocalLoss, Scaled, Sum

LOGITS = torch.tensor([[2.0, 0.0, 1.0], [0.5, 0.0, 3.0]])
LABELS = torch.tensor([0, 1])


def test_value_by_hand() -> None:
    even, first = torch.zeros(1, 2), torch.tensor([0])
    total = nn.CrossEntropyLoss() + 3 * BrierLoss()  # log 2 + 3 / 2
    torch.testing.assert_close(total(even, first), torch.tensor(2.0).log() + 1.5)


def test_all_spellings_are_one_sum() -> None:
    wanted = FocalLoss()(LOGITS, LABELS) + 0.5 * MDCA()(LOGITS, LABELS)
    for total in (
        FocalLoss() + 0.5 * MDCA(),
        FocalLoss() + MDCA() * 0.5,
        Sum(FocalLoss(), 0.5 * MDCA()),
        Sum(FocalLoss(), Scaled(MDCA(), factor=0.5)),
        2 * (0.5 * FocalLoss() + 0.25 * MDCA()),
    ):
        torch.testing.assert_close(total(LOGITS, LABELS), wanted)


def test_sums_of_sums_are_opened_up() -> None:
    total = FocalLoss() + BrierLoss() + (nn.CrossEntropyLoss() + MDCA())
    assert [type(term).__name__ for term in total.terms] == [
        "FocalLoss",
        "BrierLoss",
        "CrossEntropyLoss",
        "MDCA",
    ]


def test_update_reaches_the_terms_that_adapt_however_deep() -> None:
    inner = AdaFocalLoss(n_bins=1)
    (BrierLoss() + 0.5 * (nn.CrossEntropyLoss() + 2.0 * inner)).update(LOGITS, LABELS)
    alone = AdaFocalLoss(n_bins=1)
    alone.update(LOGITS, LABELS)
    assert inner.bins.gammas == alone.bins.gammas != 1


def test_state_of_the_terms_is_in_the_state_of_the_sum() -> None:
    total, again = (BrierLoss() + 0.5 * AdaFocalLoss(n_bins=2) for _ in range(2))
    total.update(LOGITS, LABELS)
    again.load_state_dict(total.state_dict())
    assert torch.equal(total(LOGITS, LABELS), again(LOGITS, LABELS))


def test_terms_of_different_precision_add() -> None:
    half = LOGITS.bfloat16()  # torch's cross-entropy answers in bfloat16, ours in float32
    assert (nn.CrossEntropyLoss() + BrierLoss())(half, LABELS).dtype == torch.float32


def test_refusals() -> None:
    with pytest.raises(ValueError, match="one `reduction`"):
        FocalLoss(reduction="sum") + BrierLoss()
    with pytest.raises(ValueError, match="one `reduction`"):
        nn.CrossEntropyLoss(reduction="none") + 0.1 * MDCA()
    with pytest.raises(ValueError, match="at least one term"):
        Sum()
    with pytest.raises(TypeError):
        FocalLoss() + 1.0
    with pytest.raises(TypeError):
        "twice" * FocalLoss()
