"""The mean over an image: torch's own to the last bit, with a gradient that lies as the images do."""

import pytest
import torch
from torch.nn import functional

from equipoise.models import small_cnn
from equipoise.models.pooling import GlobalMean, mean_over_image

LAYOUTS = pytest.mark.parametrize(
    "layout", [torch.channels_last, torch.contiguous_format], ids=["last", "first"]
)


@LAYOUTS
@pytest.mark.parametrize("shape", [(5, 16, 8, 8), (3, 5, 7, 4), (1, 8, 1, 1), (2, 1, 3, 3)])
def test_it_is_the_mean_of_torch_and_so_is_its_gradient(shape, layout):
    torch.manual_seed(0)
    found = []
    start = torch.randn(shape).contiguous(memory_format=layout)
    for pool in (mean_over_image, lambda images: functional.adaptive_avg_pool2d(images, 1).flatten(1)):
        images = start.clone(memory_format=torch.preserve_format).requires_grad_()
        pooled = pool(images)
        pooled.square().sum().backward()
        found.append((pooled, images.grad))
    for ours, theirs in zip(*found, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-6, atol=1e-7)


@LAYOUTS
def test_the_gradient_lies_as_the_images_do(layout):
    hidden = torch.randn(2, 16, 4, 4).contiguous(memory_format=layout).requires_grad_()
    [gradient] = torch.autograd.grad(mean_over_image(hidden).square().sum(), hidden)
    assert gradient.is_contiguous(memory_format=layout)


def test_a_network_ends_in_it():
    assert isinstance(small_cnn().body[-1], GlobalMean)
