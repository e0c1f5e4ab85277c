"""The fused pass equals the tensor operations."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from equipoise.data import flip_images, normalise, shift_crop
from equipoise.data.kernels import read_augmented


@given(
    n=st.integers(1, 6),
    channels=st.sampled_from([1, 2, 3]),
    height=st.integers(1, 9),
    width=st.integers(1, 9),
    padding=st.integers(0, 5),
    seed=st.integers(0, 999),
)
@settings(deadline=None, max_examples=150)
def test_fused_equals_tensor_operations(n, channels, height, width, padding, seed):
    random = np.random.default_rng(seed)
    pixels = random.integers(0, 256, (7, height, width, channels), dtype=np.uint8)
    images = torch.from_numpy(pixels).permute(0, 3, 1, 2)
    before = images.clone()
    rows = random.integers(0, 7, n)
    top, left = (random.integers(0, 2 * padding + 1, n) for _ in range(2))
    flip = random.random(n) < 0.5
    mean, std = (torch.from_numpy(random.random(channels) + 0.1).float() for _ in range(2))
    fused = read_augmented(images, rows, top=top, left=left, flip=flip, padding=padding, mean=mean, std=std)
    cropped = shift_crop(images[rows], torch.from_numpy(top), torch.from_numpy(left), padding=padding)
    expected = normalise(flip_images(cropped, torch.from_numpy(flip)), mean, std)
    torch.testing.assert_close(fused, expected, rtol=1e-6, atol=1e-6)
    assert fused.is_contiguous(memory_format=torch.channels_last)
    assert torch.equal(images, before)


@pytest.mark.parametrize("stored", [torch.contiguous_format, torch.channels_last])
def test_memory_order_does_not_matter(stored):
    images = torch.randint(0, 256, (3, 3, 4, 5), dtype=torch.uint8).contiguous(memory_format=stored)
    zero, rows = np.zeros(3, np.int64), np.arange(3)
    plain = read_augmented(
        images, rows, top=zero, left=zero, flip=zero.astype(bool), padding=0, mean=None, std=None
    )
    torch.testing.assert_close(plain, normalise(images, None, None), rtol=1e-6, atol=0)
