"""SwinV2-T: shifted windows against pixel-by-pixel attention, and the sizes it refuses."""

import math

import pytest
import torch
from torch import nn

from equipoise.models import swinv2_t
from equipoise.models.swin_v2 import SwinBlock, WindowAttention


def make_block(window, shifted, drop=0.0):
    torch.manual_seed(0)
    block = SwinBlock(12, 3, window=window, shifted=shifted, drop=drop).double()
    for parameter in block.parameters():
        nn.init.normal_(parameter, std=0.5)
    return block.eval()


def offset_bias(attention, down, right, side):
    """The bias of one offset, by the paper's formula."""
    spaced = []
    for offset in (down, right):
        scaled = 8 * offset / (side - 1)
        spaced.append(math.copysign(math.log2(1 + abs(scaled)) / math.log2(8), scaled))
    return 16 * torch.sigmoid(attention.cpb_mlp(torch.tensor(spaced, dtype=torch.double)))


def oracle_attention(block, image, shift):
    """Each pixel looks at the pixels of its shifted window that are its neighbors in the true image."""
    attention, side = block.attn, block.window
    _, height, width, channels = image.shape
    bias = torch.cat([attention.q_bias, torch.zeros(channels, dtype=torch.double), attention.v_bias])
    query, key, value = (image[0] @ attention.qkv.weight.T + bias).split(channels, dim=-1)
    scale = attention.logit_scale.clamp(max=math.log(100)).exp().flatten()
    n_heads, size = attention.n_heads, channels // attention.n_heads
    out = torch.zeros(height, width, channels, dtype=torch.double)
    for row in range(height):
        for column in range(width):
            group = ((row + side - shift) // side, (column + side - shift) // side)
            near = [
                (r, c)
                for r in range(height)
                for c in range(width)
                if ((r + side - shift) // side, (c + side - shift) // side) == group
            ]
            biases = torch.stack([offset_bias(attention, row - r, column - c, side) for r, c in near])
            for head in range(n_heads):
                part = slice(head * size, (head + 1) * size)
                cosines = torch.stack(
                    [
                        torch.cosine_similarity(query[row, column, part], key[r, c, part], dim=0)
                        for r, c in near
                    ]
                )
                weights = torch.softmax(cosines * scale[head] + biases[:, head], dim=0)
                out[row, column, part] = sum(
                    w * value[r, c, part] for w, (r, c) in zip(weights, near, strict=True)
                )
    return attention.proj(out)


@pytest.mark.parametrize(("shifted", "shift"), [(False, 0), (True, 2)])
def test_oracle_pixel_by_pixel(shifted, shift):
    block = make_block(4, shifted)
    image = torch.randn(1, 8, 8, 12, dtype=torch.double)
    with torch.no_grad():
        seen = oracle_attention(block, image, shift)
        wanted = image + block.norm1(seen[None])
        wanted = wanted + block.norm2(block.mlp(wanted))
        torch.testing.assert_close(block(image), wanted, rtol=1e-8, atol=1e-9)


def test_images_of_a_batch_do_not_mix():
    block = make_block(4, shifted=True)
    images = torch.randn(3, 8, 12, 12, dtype=torch.double)
    with torch.no_grad():
        alone = torch.cat([block(image[None]) for image in images])
        torch.testing.assert_close(block(images), alone)


def test_a_stage_no_larger_than_the_window_is_one_unshifted_window():
    image = torch.randn(1, 4, 4, 12, dtype=torch.double)
    with torch.no_grad():
        torch.testing.assert_close(
            make_block(4, shifted=True)(image), make_block(8, shifted=False)(image), rtol=1e-12, atol=1e-12
        )


def test_bias_is_symmetric_in_nothing_but_offsets():
    attention = WindowAttention(12, 3)
    bias = attention.position_bias((3, 3))
    assert bias.shape == (3, 9, 9)
    # Pixels 0 -> 1 and 3 -> 4 have the same offset; 0 -> 1 and 1 -> 0 do not.
    assert torch.equal(bias[:, 0, 1], bias[:, 3, 4])
    assert not torch.equal(bias[:, 0, 1], bias[:, 1, 0])
    assert torch.isfinite(attention.position_bias((1, 1))).all()


def test_blocks_start_as_the_identity():
    torch.manual_seed(0)
    block = swinv2_t(n_classes=2).body.layers[0]
    image = torch.randn(1, 8, 8, 96)
    assert torch.equal(block(image), image)


def test_drop_path_is_per_sample_and_only_in_training():
    block = make_block(4, shifted=False, drop=0.5)
    image = torch.randn(1, 4, 4, 12, dtype=torch.double)
    batch = image.expand(64, -1, -1, -1)
    with torch.no_grad():
        torch.testing.assert_close(block(batch)[0], block(image)[0], rtol=1e-10, atol=1e-10)
        out = block.train()(batch)
    # Samples of one batch may be rounded differently, by far less than a residual.
    kinds = {tuple(sample.flatten().mul(1e6).round().tolist()) for sample in out}
    assert len(kinds) == 4, "two residuals, each there or not"
    assert any(torch.equal(sample, image[0]) for sample in out), "where both are dropped, nothing is added"


@pytest.mark.parametrize(
    ("side", "message"),
    [(100, "multiples of 32, got 100x100"), (224, r"windows of 8, got a stage of 28x28.*7 for 224")],
)
def test_refused_sizes(side, message):
    with torch.device("meta"):
        network = swinv2_t(n_classes=2)
        with pytest.raises(ValueError, match=message):
            network(torch.zeros(1, 3, side, side))


@pytest.mark.parametrize(("side", "window"), [(256, 8), (224, 7), (128, 8)])
def test_taken_sizes(side, window):
    with torch.device("meta"):
        assert swinv2_t(window=window)(torch.zeros(2, 3, side, side)).shape == (2, 1000)


def test_refused_window():
    with pytest.raises(ValueError, match="`window` must be at least 2, got 1"):
        swinv2_t(window=1)
