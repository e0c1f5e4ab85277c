"""ResNets of four stages: sizes, pools, initial weights."""

import pytest
import torch

from equipoise.models import resnet18, resnet34, resnet50, resnet50_imagenet, resnet50_tiny, resnet110_focal


@pytest.mark.parametrize(
    ("factory", "side", "n_features"),
    [
        (resnet18, 32, 512),
        (resnet34, 32, 512),
        (resnet50, 32, 2048),
        (resnet110_focal, 32, 2048),
        (resnet50_tiny, 64, 8192),
        (resnet50_imagenet, 224, 2048),
    ],
)
def test_features_at_the_documented_size(factory, side, n_features):
    with torch.device("meta"):
        assert factory().features(torch.zeros(2, 3, side, side)).shape == (2, n_features)


@pytest.mark.parametrize(
    ("factory", "side", "map_side"), [(resnet18, 32, 4), (resnet50_tiny, 64, 8), (resnet50_imagenet, 224, 7)]
)
def test_side_of_the_last_map(factory, side, map_side):
    with torch.device("meta"):
        body = factory().body
        body.pool = None
        assert body(torch.zeros(1, 3, side, side)).shape[2:] == (map_side, map_side)


def test_tiny_features_are_the_means_of_four_quarters():
    torch.manual_seed(0)
    body = resnet50_tiny().body.eval()
    image = torch.randn(1, 3, 32, 32)
    with torch.no_grad():
        features = body(image)
        body.pool = None
        whole = body(image)
    assert whole.shape[2:] == (4, 4)
    quarters = [whole[0, :, r : r + 2, c : c + 2].mean((1, 2)) for r in (0, 2) for c in (0, 2)]
    torch.testing.assert_close(features[0], torch.stack(quarters, dim=1).flatten())


def test_blocks_of_the_two_deep_ones():
    with torch.device("meta"):
        body = resnet110_focal().body
    assert [len(getattr(body, f"layer{number}")) for number in (1, 2, 3, 4)] == [3, 4, 26, 3]


def test_initial_weights_of_the_tiny_one_are_he_normal_by_fan_out():
    torch.manual_seed(0)
    kernel = resnet50_tiny().body.layer2[0].conv1.weight
    # A 1x1 kernel to 128 channels, from 256.
    assert kernel.std().item() == pytest.approx((2 / 128) ** 0.5, rel=0.02)


def test_initial_weights_of_the_small_family_are_torchs():
    torch.manual_seed(0)
    kernel = resnet18().body.layer2[0].conv2.weight
    # Uniform within one over the root of the fan-in, 9 times 128.
    bound = (9 * 128) ** -0.5
    assert kernel.abs().max().item() == pytest.approx(bound, rel=1e-3)
    assert kernel.std().item() == pytest.approx(bound / 3**0.5, rel=0.01)
