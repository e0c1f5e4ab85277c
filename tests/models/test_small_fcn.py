"""The small fully convolutional network."""

import torch

from equipoise.models import small_fcn


def test_a_pixel_sees_fifteen_by_fifteen():
    network = small_fcn().eval()
    image = torch.zeros(1, 3, 31, 31, requires_grad=True)
    with torch.no_grad():
        for part in network.parameters():
            part.abs_().add_(0.1)
    network(image)[0, 0, 15, 15].backward()
    seen = (image.grad[0, 0] != 0).nonzero()
    assert seen.min(0).values.tolist() == [8, 8]
    assert seen.max(0).values.tolist() == [22, 22]
