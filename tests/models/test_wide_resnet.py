"""Wide ResNets: widths, depths, initial weights."""

import pytest
import torch

from equipoise.models import wide_resnet


def test_widths_and_blocks():
    with torch.device("meta"):
        body = wide_resnet(depth=32, width=3).body
    stages = [body.layer1, body.layer2, body.layer3]
    assert [len(stage) for stage in stages] == [5, 5, 5]
    assert [stage[0].conv1.out_channels for stage in stages] == [48, 96, 192]
    assert body.conv1.out_channels == 16


@pytest.mark.parametrize(("depth", "near"), [(28, "26 and 32"), (40, "38 and 44"), (9, "8 and 14")])
def test_wrong_depth_names_the_nearest(depth, near):
    with pytest.raises(
        ValueError, match=rf"wide_resnet: `depth` must be 6n\+2 .*got {depth}. The nearest are {near}"
    ):
        wide_resnet(depth=depth)


def test_wrong_width():
    with pytest.raises(ValueError, match="`width` must be at least 1"):
        wide_resnet(width=0)


def test_he_normal_by_fan_out():
    torch.manual_seed(0)
    kernel = wide_resnet(depth=8, width=4).body.layer3[0].conv1.weight
    # 9 places times 256 channels out.
    assert kernel.std().item() == pytest.approx((2 / (9 * 256)) ** 0.5, rel=0.02)
