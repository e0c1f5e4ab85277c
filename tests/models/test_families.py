"""What is particular to single families: documented sizes, and the sentences for wrong ones."""

import pytest
import torch
from torch.nn import functional

from equipoise.models import (
    deeplabv3_resnet34,
    densenet40,
    mlp,
    resnet50_imagenet,
    resnet50_tiny,
    small_cnn,
    vgg16_bn,
)
from equipoise.models.deeplab import DenseHead


@pytest.mark.parametrize(
    ("factory", "side", "n_features"),
    [(resnet50_tiny, 64, 8192), (resnet50_imagenet, 224, 2048), (vgg16_bn, 32, 512)],
)
def test_documented_size(factory, side, n_features):
    with torch.device("meta"):
        network = factory()
        assert network.features(torch.zeros(2, 3, side, side)).shape == (2, n_features)


def test_deeplab_gives_one_decision_per_pixel():
    with torch.device("meta"):
        network = deeplabv3_resnet34().eval()
        assert network(torch.zeros(2, 3, 512, 376)).shape == (2, 21, 512, 376)
        assert network.features(torch.zeros(2, 3, 512, 376)).shape == (2, 256, 64, 47)


def test_deeplab_says_how_to_pad():
    with (
        torch.device("meta"),
        pytest.raises(ValueError, match=r"multiples of 8, got 375x500\. Pad it to 376x504"),
    ):
        deeplabv3_resnet34()(torch.zeros(1, 3, 375, 500))


def test_dense_head_by_hand():
    head = DenseHead(1, 2, stride=2)
    torch.nn.init.ones_(head.conv.weight)
    torch.nn.init.zeros_(head.conv.bias)
    out = head(torch.tensor([[[[0.0, 3.0]]]]))
    # Corners stay corners, and the two new pixels lie on the line between them.
    torch.testing.assert_close(out[0, 0], torch.tensor([[0.0, 1.0, 2.0, 3.0]] * 2))


def test_dense_layer_puts_new_channels_first():
    network = densenet40().eval()
    layer, image = network.body.dense1[0], torch.randn(1, 16, 4, 4)
    with torch.no_grad():
        out = layer(image)
    assert out.shape == (1, 28, 4, 4)
    assert torch.equal(out[:, 12:], image)


def test_dense_layer_leaves_its_input_alone():
    layer, image = densenet40().body.dense1[0], torch.randn(2, 16, 4, 4)
    before = image.clone()
    layer(image)
    assert torch.equal(image, before)


def test_mlp_by_hand():
    network = mlp(n_classes=2, n_inputs=3, hidden=(4,))
    rows = torch.randn(5, 3)
    hidden = functional.relu(functional.linear(rows, network.body[1].weight, network.body[1].bias))
    assert torch.equal(network(rows), network.head(hidden))


def test_mlp_without_hidden_layers_is_linear():
    network = mlp(n_classes=2, n_inputs=6, hidden=())
    assert torch.equal(network.features(torch.ones(1, 2, 3)), torch.ones(1, 6))


def test_mlp_drops_only_while_training():
    network = mlp(hidden=(50,), dropout=0.5)
    rows = torch.randn(4, 64)
    assert not torch.equal(network(rows), network(rows))
    assert torch.equal(network.eval()(rows), network(rows))


@pytest.mark.parametrize("options", [{"n_inputs": 0}, {"hidden": (8, 0)}])
def test_mlp_refuses_empty_layers(options):
    with pytest.raises(ValueError, match=r"must be at least 1.*pass hidden=\(\)"):
        mlp(**options)


def test_small_cnn_takes_tiny_images():
    assert small_cnn().eval()(torch.zeros(1, 3, 4, 4)).shape == (1, 10)
