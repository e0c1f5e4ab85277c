"""VGG-16 for small images."""

import torch
from torch import nn

from equipoise.models import vgg16_bn


def test_layers_are_those_of_configuration_d():
    with torch.device("meta"):
        layers = list(vgg16_bn().body.features)
    found = [
        "pool" if isinstance(part, nn.MaxPool2d) else part.out_channels
        for part in layers
        if isinstance(part, nn.Conv2d | nn.MaxPool2d)
    ]
    assert found == [
        64,
        64,
        "pool",
        128,
        128,
        "pool",
        *[256] * 3,
        "pool",
        *[512] * 3,
        "pool",
        *[512] * 3,
        "pool",
    ]


def test_rounding_up_changes_nothing_at_32_pixels():
    torch.manual_seed(0)
    network = vgg16_bn().eval()
    images = torch.randn(1, 3, 32, 32)
    with torch.no_grad():
        wanted = network(images)
        for part in network.modules():
            if isinstance(part, nn.MaxPool2d):
                part.ceil_mode = False
        assert torch.equal(network(images), wanted)


def test_features_at_28_pixels():
    with torch.device("meta"):
        assert vgg16_bn(in_channels=1).features(torch.zeros(2, 1, 28, 28)).shape == (2, 512)
