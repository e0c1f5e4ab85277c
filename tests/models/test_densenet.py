"""DenseNets: the order of channels, which published weights depend on, and inputs left alone."""

import pytest
import torch
from torch.nn import functional

from equipoise.models import densenet40, densenet121
from equipoise.models.densenet import BottleneckLayer, PlainLayer, Transition
from helpers.batch_norms import normed, scrambled


def activated(image, norm):
    return normed(image, norm).clamp(min=0)


@torch.no_grad()
def test_bottleneck_layer_by_its_formula():
    layer, image = scrambled(BottleneckLayer(5, 3)), torch.randn(2, 5, 6, 6, dtype=torch.double)
    squeezed = functional.conv2d(activated(image, layer.bn1), layer.conv1.weight)
    new = functional.conv2d(activated(squeezed, layer.bn2), layer.conv2.weight, padding=1)
    torch.testing.assert_close(layer(image), torch.cat([new, image], dim=1))


@torch.no_grad()
def test_plain_layer_by_its_formula():
    layer, image = scrambled(PlainLayer(5, 3)), torch.randn(2, 5, 6, 6, dtype=torch.double)
    new = functional.conv2d(activated(image, layer.bn1), layer.conv1.weight, padding=1)
    torch.testing.assert_close(layer(image), torch.cat([new, image], dim=1))


@torch.no_grad()
def test_transition_by_its_formula():
    layer, image = scrambled(Transition(4, 2)), torch.randn(1, 4, 2, 2, dtype=torch.double)
    mixed = functional.conv2d(activated(image, layer.bn), layer.conv.weight)
    torch.testing.assert_close(layer(image), mixed.mean((2, 3), keepdim=True))


@pytest.mark.parametrize("layer", [PlainLayer(5, 3), BottleneckLayer(5, 3), Transition(5, 3)])
def test_inputs_are_left_alone(layer):
    image = torch.randn(2, 5, 4, 4)
    before = image.clone()
    layer(image)
    assert torch.equal(image, before)


@pytest.mark.parametrize(("factory", "n_features"), [(densenet121, 1024), (densenet40, 448)])
def test_features(factory, n_features):
    with torch.device("meta"):
        assert factory().features(torch.zeros(2, 3, 32, 32)).shape == (2, n_features)
