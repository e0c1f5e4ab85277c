import pytest
import torch
from torch import nn

from equipoise.losses import L1AverageCalibrationError, l1_ace_penalty

LOGITS = 2 * torch.randn(3, 4, 5, 6, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
LABELS = torch.randint(0, 4, (3, 5, 6), generator=torch.Generator().manual_seed(1))


def by_hand(logits, labels, n_bins=20, void=-100):
    """The equation, pixel by pixel."""
    images = []
    for image, mask in zip(logits, labels, strict=True):
        probs = image.softmax(0).flatten(1)
        truth = mask.flatten()
        classes = []
        for number, row in enumerate(probs):
            bins = [[] for _ in range(n_bins)]
            for p, y in zip(row.tolist(), truth.tolist(), strict=True):
                if y != void:
                    place = next(b for b in range(n_bins) if p <= (b + 1) / n_bins or b == n_bins - 1)
                    bins[place].append((p, y == number))
            gaps = [
                abs(sum(p for p, _ in one) / len(one) - sum(hit for _, hit in one) / len(one))
                for one in bins
                if one
            ]
            classes.append(sum(gaps) / max(len(gaps), 1))
        images.append(sum(classes) / len(classes))
    return sum(images) / len(images)


def test_value_by_hand():
    # probability 0.5 for both classes, 3 of 4 pixels of class 0: gaps of 1/4
    value = L1AverageCalibrationError()(torch.zeros(1, 2, 2, 2), torch.tensor([[[0, 0], [0, 1]]]))
    assert value.item() == pytest.approx(0.25)


@pytest.mark.parametrize("n_bins", [1, 7, 20])
def test_equals_the_equation(n_bins):
    found = L1AverageCalibrationError(n_bins=n_bins)(LOGITS, LABELS)
    assert found.item() == pytest.approx(by_hand(LOGITS, LABELS, n_bins))


def test_void_pixels_do_not_exist():
    labels = LABELS.clone()
    labels[:, 0] = -100
    found = L1AverageCalibrationError()(LOGITS, labels)
    assert found.item() == pytest.approx(by_hand(LOGITS, labels))
    torch.testing.assert_close(found, L1AverageCalibrationError()(LOGITS[:, :, 1:], LABELS[:, 1:]))


def test_one_bin_is_the_gap_of_each_class():
    probs = LOGITS.softmax(1).flatten(2).mean(2)
    share = nn.functional.one_hot(LABELS, 4).double().flatten(1, 2).mean(1)
    torch.testing.assert_close(
        L1AverageCalibrationError(n_bins=1)(LOGITS, LABELS), (probs - share).abs().mean()
    )


def test_images_are_told_apart():
    one = [L1AverageCalibrationError()(LOGITS[i : i + 1], LABELS[i : i + 1]) for i in range(3)]
    torch.testing.assert_close(L1AverageCalibrationError()(LOGITS, LABELS), torch.stack(one).mean())
    flat = L1AverageCalibrationError()(LOGITS.movedim(1, -1).flatten(0, 2), LABELS.flatten())
    assert not torch.isclose(flat, torch.stack(one).mean())


def test_the_gradient_lowers_it():
    logits = LOGITS.clone().requires_grad_()
    value = L1AverageCalibrationError()(logits, LABELS)
    (slope,) = torch.autograd.grad(value, logits)
    assert L1AverageCalibrationError()(LOGITS - 1e-6 * slope / slope.norm(), LABELS) < value


@pytest.mark.parametrize("scale", [0.0, 1e4])
def test_finite_with_gradient_far_out(scale):
    logits = (scale * LOGITS).float().requires_grad_()
    value = L1AverageCalibrationError()(logits, LABELS)
    assert value.isfinite()
    assert torch.autograd.grad(value, logits)[0].isfinite().all()


def test_an_image_of_void_pixels_counts_nothing():
    value = l1_ace_penalty(
        LOGITS.movedim(1, -1).flatten(1, 2), LABELS.flatten(1), weights=torch.zeros(3, 30).double()
    )
    assert value == 0


def test_mistakes():
    with pytest.raises(ValueError, match="at least 1"):
        L1AverageCalibrationError(n_bins=0)
