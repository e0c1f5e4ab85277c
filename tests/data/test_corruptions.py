import math
from itertools import pairwise

import pytest
import torch

from equipoise.core.errors import DataError, SpecError
from equipoise.data import CORRUPTIONS, corrupt, corrupt_images, from_arrays, load, long_tail, ood_pair
from equipoise.data.subsets import long_tail_counts


def photo(n=8):
    random = torch.Generator().manual_seed(0)
    smooth = torch.rand(n, 3, 4, 4, generator=random)
    return (torch.nn.functional.interpolate(smooth, size=32, mode="bilinear") * 255).to(torch.uint8)


@pytest.mark.parametrize("name", CORRUPTIONS)
def test_severity_grows_and_results_repeat(name):
    images = photo()
    damage = [
        (corrupt_images(images, name, severity=level).float() - images.float()).pow(2).mean().item()
        for level in range(1, 6)
    ]
    assert all(later > earlier for earlier, later in pairwise(damage)), damage
    assert torch.equal(corrupt_images(images, name, severity=3), corrupt_images(images, name, severity=3))
    assert corrupt_images(images, name, severity=1).dtype == torch.uint8


@pytest.mark.parametrize(("level", "std"), [(1, 0.04), (2, 0.06), (3, 0.08), (4, 0.09), (5, 0.10)])
def test_gaussian_noise_has_the_strength_of_cifar10c(level, std):
    gray = torch.full((20, 3, 32, 32), 127, dtype=torch.uint8)
    noise = corrupt_images(gray, "gaussian_noise", severity=level).float() / 255
    assert noise.std().item() == pytest.approx(std, rel=0.02)


def test_shot_noise_has_the_variance_of_counts():
    gray = torch.full((20, 3, 32, 32), 128, dtype=torch.uint8)
    noise = corrupt_images(gray, "shot_noise", severity=5).float() / 255
    assert noise.std().item() == pytest.approx(math.sqrt(128 / 255 / 50), rel=0.03)


def test_contrast_by_hand():
    image = torch.tensor([0, 200], dtype=torch.uint8).view(1, 1, 1, 2)
    # The mean is 100; at severity 2 the distance from it is halved.
    assert corrupt_images(image, "contrast", severity=2).flatten().tolist() == pytest.approx([50, 150], abs=1)


def test_brightness_raises_the_largest_channel_and_keeps_the_hue():
    image = torch.tensor([100, 50, 0], dtype=torch.uint8).view(1, 3, 1, 1)
    bright = corrupt_images(image, "brightness", severity=4).flatten().tolist()
    assert bright == pytest.approx([151, 75.5, 0], abs=1.01)


def test_blur_keeps_flat_images_and_the_sum():
    flat = torch.full((1, 3, 16, 16), 77, dtype=torch.uint8)
    assert int((corrupt_images(flat, "gaussian_blur", severity=5).int() - 77).abs().max()) <= 1
    dot = torch.zeros(1, 1, 17, 17, dtype=torch.uint8)
    dot[0, 0, 8, 8] = 255
    blurred = corrupt_images(dot, "gaussian_blur", severity=5)
    # The peak of a Gaussian of spread one is 1 / (2 pi) of the whole.
    assert int(blurred[0, 0, 8, 8]) == pytest.approx(255 / (2 * math.pi), abs=1.5)


def test_large_batches_are_worked_through_in_parts():
    images = torch.full((3000, 3, 32, 32), 127, dtype=torch.uint8)
    noisy = corrupt_images(images, "gaussian_noise", severity=1)
    assert not torch.equal(noisy[0], noisy[-1])
    assert float(noisy[-500:].float().std()) > 5


def test_a_dataset_keeps_the_corrupted_split_only():
    data = load("digits")
    noisy = corrupt(data, "impulse_noise", severity=2)
    assert list(noisy.splits) == ["test"]
    assert torch.equal(noisy.labels, data.labels[data.rows("test")])
    assert noisy.fingerprints["test"] != data.fingerprints["test"]


def test_wrong_names_and_severities_are_refused():
    with pytest.raises(SpecError, match="gaussian_noise"):
        corrupt_images(photo(), "gausian_noise", severity=1)
    with pytest.raises(ValueError, match="1 to 5"):
        corrupt_images(photo(), "contrast", severity=6)
    with pytest.raises(ValueError, match="images in memory"):
        corrupt(load("mixture", options={"n": 50}), "contrast", severity=1)


def test_a_pair_of_known_and_corrupted_images():
    pair = ood_pair("digits", "gaussian_noise", severity=2)
    assert pair.inside.name == "digits"
    assert pair.outside.name == "digits_gaussian_noise_2"


def test_gray_images_are_shown_in_color_to_networks_of_color():
    gray = from_arrays(torch.full((40, 1, 4, 6), 7, dtype=torch.uint8), torch.arange(40) % 2, name="gray")
    color = from_arrays(torch.zeros(40, 3, 8, 8, dtype=torch.uint8), torch.arange(40) % 2, name="color")
    shown = ood_pair(color, gray).outside.inputs
    assert shown.shape == (40, 3, 8, 8)
    assert (shown[:, :, 2:6, 1:7] == 7).all()
    assert shown.sum() == 40 * 3 * 24 * 7
    large = from_arrays(torch.zeros(40, 1, 9, 8, dtype=torch.uint8), gray.labels, name="large")
    for known, foreign in ((gray, color), (color, large)):
        with pytest.raises(DataError, match="one shape"):
            ood_pair(known, foreign)


def test_a_pair_of_different_shapes_is_refused():
    with pytest.raises(DataError, match="one shape"):
        ood_pair("digits", load("mixture", options={"n": 50}))


def test_long_tail_counts_of_cifar10():
    assert long_tail_counts(5000, 10, factor=100.0).tolist() == [
        5000,
        2997,
        1796,
        1077,
        645,
        387,
        232,
        139,
        83,
        50,
    ]


def test_long_tail_thins_training_rows_only():
    data = from_arrays(torch.zeros(1000, 1), torch.arange(1000) % 5, name="d")
    thin = long_tail(data, factor=10.0)
    assert thin.class_counts("train").tolist() == [120, 67, 37, 21, 12]
    assert torch.equal(thin.rows("test"), data.rows("test"))
    assert set(thin.rows("train").tolist()) <= set(data.rows("train").tolist())
    assert torch.equal(long_tail(data, factor=1.0).rows("train"), data.rows("train"))
    assert not torch.equal(long_tail(data, factor=10.0, seed=1).rows("train"), thin.rows("train"))
    with pytest.raises(ValueError, match="at least 1"):
        long_tail(data, factor=0.5)
