"""The 6n+2 family: depths, shortcuts, survival."""

import pytest
import torch

from equipoise.models import cifar_resnet, resnet8, resnet110_sd
from equipoise.models.residual import StochasticDepth


@pytest.mark.parametrize(
    ("depth", "near"), [(18, "14 and 20"), (51, "50 and 56"), (111, "110 and 116"), (9, "8 and 14")]
)
def test_wrong_depth_names_the_nearest(depth, near):
    with pytest.raises(ValueError, match=rf"`depth` must be 6n\+2 .*got {depth}. The nearest are {near}"):
        cifar_resnet(depth=depth)


@pytest.mark.parametrize("depth", [-4, 0, 2, 7])
def test_depth_below_eight(depth):
    with pytest.raises(ValueError, match="The least is 8"):
        cifar_resnet(depth=depth)


def test_wrong_shortcut():
    with pytest.raises(ValueError, match=r"`shortcut` must be 'A' or 'B', got 'C'"):
        resnet8(shortcut="C")


@pytest.mark.parametrize("survival", [0.0, -0.1, 1.1, float("nan")])
def test_wrong_survival(survival):
    with pytest.raises(ValueError, match=r"`last_survival` must be in \(0, 1\]"):
        resnet110_sd(last_survival=survival)


def test_survival_falls_linearly_to_the_last():
    with torch.device("meta"):
        network = resnet110_sd()
    survivals = [part.survival for part in network.modules() if isinstance(part, StochasticDepth)]
    assert len(survivals) == 54
    assert survivals[0] == pytest.approx(1 - 0.5 / 54)
    assert survivals[26] == pytest.approx(0.75)
    assert survivals[-1] == 0.5


def test_without_drops_it_is_the_plain_network():
    torch.manual_seed(0)
    plain = cifar_resnet(depth=8)
    torch.manual_seed(0)
    sure = cifar_resnet(depth=8, last_survival=0.5)
    for part in sure.modules():
        if isinstance(part, StochasticDepth):
            part.survival = 1.0
    image = torch.randn(3, 3, 16, 16)
    torch.testing.assert_close(plain(image), sure(image), rtol=1e-4, atol=1e-5)


def test_training_draws_and_evaluation_does_not():
    torch.manual_seed(0)
    network = cifar_resnet(depth=20, last_survival=0.2)
    image = torch.randn(3, 3, 16, 16)
    assert len({tuple(network(image).flatten().tolist()) for _ in range(12)}) > 3
    network.eval()
    assert torch.equal(network(image), network(image))


def test_he_normal_by_fan_in():
    torch.manual_seed(0)
    kernel = resnet8().body.layer3[0].conv1.weight
    # 9 places times 32 channels in.
    assert kernel.std().item() == pytest.approx((2 / (9 * 32)) ** 0.5, rel=0.05)
