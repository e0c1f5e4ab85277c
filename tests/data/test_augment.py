"""Laws of augmentation; the random numbers come from outside, so every result is known."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from equipoise.data import Augment, cut_mix, cut_out, flip_images, mix_up, normalize, shift_crop
from equipoise.data.augment import take_rows


def random_images(n=6, c=3, h=7, w=5, seed=0):
    return torch.randint(
        0, 256, (n, c, h, w), dtype=torch.uint8, generator=torch.Generator().manual_seed(seed)
    )


@given(
    st.integers(1, 6),
    st.sampled_from([1, 3]),
    st.integers(2, 7),
    st.integers(2, 7),
    st.integers(0, 3),
    st.integers(0, 999),
)
@settings(deadline=None, max_examples=60)
def test_a_crop_is_a_part_of_the_padded_image(n, c, h, w, padding, seed):
    images = random_images(n, c, h, w, seed)
    random = torch.Generator().manual_seed(seed)
    top, left = (torch.randint(0, 2 * padding + 1, (n,), generator=random) for _ in range(2))
    cropped = shift_crop(images, top, left, padding=padding, fill=9)
    for k in range(n):
        canvas = torch.full((c, h + 2 * padding, w + 2 * padding), 9, dtype=torch.uint8)
        canvas[:, padding : padding + h, padding : padding + w] = images[k]
        part = canvas[:, top[k] : top[k] + h, left[k] : left[k] + w]
        assert torch.equal(cropped[k], part)


def test_a_crop_at_the_padding_is_the_image():
    images = random_images()
    middle = torch.full((6,), 2)
    assert torch.equal(shift_crop(images, middle, middle, padding=2), images)


def test_flipping_twice_is_nothing():
    images = random_images()
    where = torch.tensor([True, False, True, True, False, False])
    once = flip_images(images, where)
    assert torch.equal(once[0], images[0].flip(-1))
    assert torch.equal(once[1], images[1])
    assert torch.equal(flip_images(once, where), images)


def test_flipping_masks_mirrors_columns():
    masks = torch.arange(12).view(2, 2, 3)
    assert torch.equal(flip_images(masks, torch.tensor([False, True]))[1], masks[1].flip(-1))


def test_the_source_is_never_touched():
    images = random_images()
    before = images.clone()
    ones = torch.ones(6, dtype=torch.int64)
    shift_crop(images, ones, ones, padding=2)
    flip_images(images, torch.ones(6, dtype=torch.bool))
    normalize(images, torch.zeros(3), torch.ones(3))
    assert torch.equal(images, before)


def test_cutout_removes_a_square_and_nothing_else():
    images = torch.ones(2, 3, 8, 8)
    cut = cut_out(images, torch.tensor([4, 0]), torch.tensor([4, 7]), side=4)
    assert int((cut[0] == 0).sum()) == 3 * 16
    # A center in the corner leaves half of each side inside: rows 0 and 1, columns 5 to 7.
    assert int((cut[1] == 0).sum()) == 3 * 2 * 3
    assert bool((cut[0, :, 2:6, 2:6] == 0).all())
    assert bool((images == 1).all())


def test_mixup_targets_sum_to_one_and_weigh_inputs_alike():
    inputs, labels = torch.randn(5, 4), torch.tensor([0, 1, 2, 2, 0])
    partner = torch.tensor([1, 0, 3, 4, 2])
    mixed, targets = mix_up(inputs, labels, partner, weight=0.3, n_classes=3)
    torch.testing.assert_close(targets.sum(1), torch.ones(5))
    torch.testing.assert_close(mixed, 0.3 * inputs + 0.7 * inputs[partner])
    assert targets[0].tolist() == pytest.approx([0.3, 0.7, 0.0])


def test_mixup_of_weight_one_is_nothing():
    inputs, labels = torch.randn(3, 2), torch.tensor([0, 1, 0])
    mixed, targets = mix_up(inputs, labels, torch.tensor([1, 2, 0]), weight=1.0, n_classes=2)
    torch.testing.assert_close(mixed, inputs)
    assert torch.equal(targets.argmax(1), labels)


def test_cutmix_by_hand():
    images = torch.arange(2.0).view(2, 1, 1, 1).expand(2, 1, 4, 4)
    labels, partner = torch.tensor([0, 1]), torch.tensor([1, 0])
    # sides sqrt(1 / 4) of 4 pixels: 2 x 2 of 16
    mixed, targets = cut_mix(images, labels, partner, weight=0.75, center=(0.5, 0.5), n_classes=2)
    assert mixed[0, 0].tolist() == [[0, 0, 0, 0], [0, 1, 1, 0], [0, 1, 1, 0], [0, 0, 0, 0]]
    assert targets.tolist() == [[0.75, 0.25], [0.25, 0.75]]
    assert bool((images[0] == 0).all())


@given(st.floats(0, 1), st.floats(0, 0.999), st.floats(0, 0.999), st.integers(1, 9), st.integers(1, 9))
@settings(deadline=None, max_examples=60)
def test_cutmix_targets_are_the_shares_of_pixels(weight, down, right, height, width):
    images = torch.arange(3.0).view(3, 1, 1, 1).expand(3, 2, height, width)
    labels, partner = torch.tensor([0, 1, 2]), torch.tensor([2, 0, 1])
    mixed, targets = cut_mix(images, labels, partner, weight=weight, center=(down, right), n_classes=3)
    for row in range(3):
        for number in range(3):
            share = float((mixed[row] == number).float().mean())
            assert float(targets[row, number]) == pytest.approx(share, abs=1e-6)


def test_cutmix_of_weight_one_is_nothing():
    images = torch.randn(3, 1, 4, 4)
    mixed, targets = cut_mix(
        images, torch.tensor([0, 1, 0]), torch.tensor([1, 2, 0]), weight=1.0, center=(0.2, 0.9), n_classes=2
    )
    assert torch.equal(mixed, images)
    assert targets.tolist() == [[1, 0], [0, 1], [1, 0]]


def test_ways_to_mix_exclude_each_other():
    with pytest.raises(ValueError, match="`mixup` and `cutmix` exclude each other"):
        Augment(mixup=1.0, cutmix=1.0)


def test_normalize_by_hand_and_channels_last():
    images = random_images()
    mean, std = torch.tensor([0.1, 0.5, 0.9]), torch.tensor([0.2, 0.3, 0.4])
    got = normalize(images, mean, std)
    expected = (images.double() / 255 - mean.double().view(3, 1, 1)) / std.double().view(3, 1, 1)
    torch.testing.assert_close(got.double(), expected, atol=2e-6, rtol=0)
    assert got.is_contiguous(memory_format=torch.channels_last)


def test_taking_rows_is_indexing():
    values, index = torch.randn(5, 2, 3), torch.tensor([4, 0, 0])
    assert torch.equal(take_rows(values, index), values[index])


@pytest.mark.parametrize(
    "wrong",
    [
        {"crop_padding": -1},
        {"cutout": -2},
        {"mixup": -0.1},
        {"cutmix": -1.0},
        {"regmixup": -1.0},
        {"area": 0.0},
        {"area": 2.0},
    ],
)
def test_parameters_out_of_range_are_refused(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        Augment(**wrong)
