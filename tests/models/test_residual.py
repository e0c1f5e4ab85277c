"""Blocks by their formulas, shortcuts by hand, stochastic depth by counting."""

import pytest
import torch
from torch import nn
from torch.nn import functional

from equipoise.models.residual import (
    BasicBlock,
    Bottleneck,
    StochasticDepth,
    padded_shortcut,
    projection_shortcut,
)
from helpers.batch_norms import normed, scrambled


@torch.no_grad()
@pytest.mark.parametrize(("stride", "dilation"), [(1, 1), (2, 1), (1, 2)])
def test_basic_block_by_its_formula(stride, dilation):
    block = scrambled(BasicBlock(4, 6, stride, dilation, projection_shortcut))
    image = torch.randn(2, 4, 8, 8, dtype=torch.double)
    hidden = functional.conv2d(image, block.conv1.weight, None, stride, dilation, dilation)
    hidden = normed(hidden, block.bn1).clamp(min=0)
    hidden = normed(functional.conv2d(hidden, block.conv2.weight, None, 1, dilation, dilation), block.bn2)
    kernel, norm = block.shortcut[0].weight[:, :, 0, 0], block.shortcut[1]
    shortcut = normed(torch.einsum("oi,nihw->nohw", kernel, image[:, :, ::stride, ::stride]), norm)
    torch.testing.assert_close(block(image), (hidden + shortcut).clamp(min=0))


@torch.no_grad()
@pytest.mark.parametrize("stride", [1, 2])
def test_bottleneck_by_its_formula(stride):
    block = scrambled(Bottleneck(4, 3, stride, 1, projection_shortcut))
    image = torch.randn(2, 4, 8, 8, dtype=torch.double)
    hidden = normed(functional.conv2d(image, block.conv1.weight), block.bn1).clamp(min=0)
    hidden = functional.conv2d(hidden, block.conv2.weight, stride=stride, padding=1)
    hidden = normed(hidden, block.bn2).clamp(min=0)
    hidden = normed(functional.conv2d(hidden, block.conv3.weight), block.bn3)
    kernel, norm = block.shortcut[0].weight[:, :, 0, 0], block.shortcut[1]
    shortcut = normed(torch.einsum("oi,nihw->nohw", kernel, image[:, :, ::stride, ::stride]), norm)
    torch.testing.assert_close(block(image), (hidden + shortcut).clamp(min=0))


@pytest.mark.parametrize(
    "block", [BasicBlock(4, 4, 1, 1, projection_shortcut), Bottleneck(4, 1, 1, 1, projection_shortcut)]
)
def test_inputs_are_left_alone(block):
    image = torch.randn(2, 4, 6, 6)
    before = image.clone()
    block(image)
    assert torch.equal(image, before)


def test_padded_shortcut_by_hand():
    image = torch.arange(1.0, 33.0).view(1, 2, 4, 4)
    out = padded_shortcut(2, 4, 2)(image)
    assert out.shape == (1, 4, 2, 2)
    assert torch.equal(out[0, 1], torch.tensor([[1.0, 3.0], [9.0, 11.0]]))
    assert torch.equal(out[0, 2], torch.tensor([[17.0, 19.0], [25.0, 27.0]]))
    assert not out[0, 0].any()
    assert not out[0, 3].any()


@pytest.mark.parametrize("make", [padded_shortcut, projection_shortcut])
def test_shortcut_is_the_identity_where_shapes_agree(make):
    assert isinstance(make(16, 16, 1), nn.Identity)


def make_stochastic(survival):
    torch.manual_seed(0)
    # The norms of the block are fixed, so that only the skip is random.
    block = BasicBlock(4, 4, 1, 1, projection_shortcut).eval()
    return StochasticDepth(block, survival=survival), torch.randn(2, 4, 6, 6)


@torch.no_grad()
def test_evaluation_takes_the_expected_residual():
    layer, image = make_stochastic(0.3)
    layer.eval()
    torch.testing.assert_close(layer(image), torch.relu(image + 0.3 * layer.block.residual(image)))
    assert torch.equal(layer(image), layer(image))


@torch.no_grad()
def test_training_runs_or_skips_the_whole_block():
    layer, image = make_stochastic(0.3)
    layer.training = True
    skipped, run = torch.relu(image), torch.relu(image + layer.block.residual(image))
    seen = [layer(image) for _ in range(400)]
    n_run = sum(torch.allclose(out, run, atol=1e-6) for out in seen)
    assert n_run + sum(torch.equal(out, skipped) for out in seen) == 400
    # Four standard deviations of a binomial around 120.
    assert abs(n_run - 120) < 37


def test_skipping_leaves_the_input_alone():
    layer, image = make_stochastic(1e-9)
    layer.training = True
    before = image.clone()
    layer(image)
    assert torch.equal(image, before)
