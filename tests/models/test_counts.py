"""Parameter counts of the authors' own code, to the last one."""

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from equipoise.models import (
    cifar_resnet,
    count_parameters,
    deeplabv3_resnet34,
    densenet40,
    densenet121,
    global_pooling_cnn,
    mlp,
    resnet8,
    resnet18,
    resnet20,
    resnet32,
    resnet34,
    resnet44,
    resnet50,
    resnet50_imagenet,
    resnet50_tiny,
    resnet56,
    resnet110,
    resnet110_focal,
    resnet110_sd,
    swinv2_t,
    vgg16_bn,
    wide_resnet,
)

PUBLISHED = [
    (resnet18, {}, 11_173_962),
    (resnet34, {}, 21_282_122),
    (resnet50, {}, 23_520_842),
    (resnet50, {"n_classes": 100}, 23_705_252),
    (resnet110_focal, {}, 45_864_522),
    (resnet110, {}, 1_730_714),
    (resnet110, {"shortcut": "A"}, 1_727_962),
    (resnet110_sd, {}, 1_730_714),
    (wide_resnet, {}, 36_481_434),
    (densenet121, {}, 6_956_298),
    (densenet40, {}, 1_019_722),
    (resnet50_tiny, {}, 25_138_952),
    (resnet50_imagenet, {}, 25_557_032),
    (vgg16_bn, {}, 14_728_266),
    (swinv2_t, {}, 28_347_154),
    (swinv2_t, {"window": 16}, 28_347_154),
    (global_pooling_cnn, {}, 247_316),
]


def case_name(value):
    return getattr(value, "__name__", None)


@pytest.mark.parametrize(("factory", "options", "count"), PUBLISHED, ids=case_name)
def test_count_is_the_published_one(factory, options, count):
    with torch.device("meta"):
        assert count_parameters(factory(**options)) == count


def count_6n2(depth, option):
    """Stem, three stages of two-convolution blocks, head; option B adds two projections with batch norm."""
    n = (depth - 2) // 6
    total = 9 * 3 * 16 + 2 * 16 + 64 * 10 + 10
    n_in = 16
    for width in (16, 32, 64):
        for block in range(n):
            total += 9 * (n_in if block == 0 else width) * width + 9 * width * width + 4 * width
        if option == "B" and n_in != width:
            total += n_in * width + 2 * width
        n_in = width
    return total


@pytest.mark.parametrize("option", ["A", "B"])
@pytest.mark.parametrize(
    ("factory", "depth"),
    [(resnet8, 8), (resnet20, 20), (resnet32, 32), (resnet44, 44), (resnet56, 56), (resnet110, 110)],
    ids=case_name,
)
def test_count_of_every_depth_6n2(factory, depth, option):
    with torch.device("meta"):
        assert count_parameters(factory(shortcut=option)) == count_6n2(depth, option)
        assert count_parameters(cifar_resnet(depth=depth, shortcut=option)) == count_6n2(depth, option)


def test_deeplab_count_is_encoder_plus_pyramid():
    # ResNet-34 without its head, five branches, projection, one more convolution, head of 21 classes.
    encoder = 21_797_672 - 513_000
    branches = 2 * (512 * 256 + 512) + 3 * (9 * 512 * 256 + 512)
    rest = 5 * 256 * 256 + 512 + 9 * 256 * 256 + 512 + 256 * 21 + 21
    with torch.device("meta"):
        assert count_parameters(deeplabv3_resnet34()) == encoder + branches + rest


def test_mlp_count_by_hand():
    assert count_parameters(mlp(n_classes=3, n_inputs=4, hidden=(5,))) == 4 * 5 + 5 + 5 * 3 + 3


@pytest.mark.parametrize(
    ("factory", "millions"), [(resnet8, 25), (resnet20, 82), (resnet18, 1111)], ids=case_name
)
def test_work_of_the_usual_networks(factory, millions):
    with FlopCounterMode(display=False) as counter, torch.device("meta"):
        factory()(torch.zeros(1, 3, 32, 32))
    assert counter.get_total_flops() == pytest.approx(millions * 1e6, rel=0.02)
