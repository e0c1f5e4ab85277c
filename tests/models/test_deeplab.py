"""DeepLabV3: one decision per pixel."""

import pytest
import torch

from equipoise.models import deeplabv3_resnet34
from equipoise.models.deeplab import AtrousPyramid, DenseHead


def test_one_decision_per_pixel():
    with torch.device("meta"):
        network = deeplabv3_resnet34().eval()
        assert network(torch.zeros(2, 3, 512, 376)).shape == (2, 21, 512, 376)
        assert network.features(torch.zeros(2, 3, 512, 376)).shape == (2, 256, 64, 47)


def test_says_how_to_pad():
    with torch.device("meta"):
        network = deeplabv3_resnet34()
        with pytest.raises(ValueError, match=r"multiples of 8, got 375x500\. Pad it to 376x504"):
            network(torch.zeros(1, 3, 375, 500))


def test_refuses_one_class():
    with pytest.raises(ValueError, match="deeplabv3_resnet34: `n_classes` must be at least 2"):
        deeplabv3_resnet34(n_classes=1)


def test_last_stages_are_dilated_instead_of_thinned():
    with torch.device("meta"):
        encoder = deeplabv3_resnet34().body.encoder
    found = [
        (stage[0].conv1.stride[0], stage[1].conv2.dilation[0])
        for stage in encoder.children()
        if len(list(stage.children())) > 1
    ]
    assert found == [(1, 1), (2, 1), (1, 2), (1, 4)]


def test_head_by_hand():
    head = DenseHead(1, 2, stride=2)
    torch.nn.init.ones_(head.conv.weight)
    torch.nn.init.zeros_(head.conv.bias)
    out = head(torch.tensor([[[[0.0, 3.0]]]]))
    # Corners stay corners, and the two new pixels lie on the line between them.
    torch.testing.assert_close(out[0, 0], torch.tensor([[0.0, 1.0, 2.0, 3.0]] * 2))


def test_pyramid_sees_the_whole_image():
    torch.manual_seed(0)
    pyramid = AtrousPyramid(4, dropout=0.0).eval()
    image = torch.randn(1, 4, 9, 9, requires_grad=True)
    pyramid(image)[0, :, 0, 0].sum().backward()
    # Farther than any other branch but the pooled one reaches from the corner (12 pixels would be outside).
    assert image.grad[0, :, 8, 5].any()
