"""The 6n+2 family: depths, shortcuts, stochastic depth."""

import pytest
import torch
from torch import nn

from equipoise.models import cifar_resnet, resnet8, resnet110_sd, wide_resnet
from equipoise.models.residual import BasicBlock, StochasticDepth, padded_shortcut, projection_shortcut


@pytest.mark.parametrize(
    ("depth", "near"), [(18, "14 and 20"), (50 + 1, "50 and 56"), (111, "110 and 116"), (9, "8 and 14")]
)
@pytest.mark.parametrize("factory", [cifar_resnet, wide_resnet])
def test_wrong_depth_names_the_nearest(factory, depth, near):
    with pytest.raises(ValueError, match=rf"`depth` must be 6n\+2 .*got {depth}. The nearest are {near}"):
        factory(depth=depth)


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


def test_wrong_width():
    with pytest.raises(ValueError, match="`width` must be at least 1"):
        wide_resnet(width=0)


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
    block = BasicBlock(
        4, 4, 1, 1, projection_shortcut
    ).eval()  # its norms fixed, so that only the skip is random
    return StochasticDepth(block, survival=survival), torch.randn(2, 4, 6, 6)


def test_evaluation_takes_the_expected_residual():
    layer, image = make_stochastic(0.3)
    layer.eval()
    with torch.no_grad():
        torch.testing.assert_close(layer(image), torch.relu(image + 0.3 * layer.block.residual(image)))
        assert torch.equal(layer(image), layer(image))


def test_training_runs_or_skips_the_whole_block():
    layer, image = make_stochastic(0.3)
    layer.training = True
    with torch.no_grad():
        skipped, run = torch.relu(image), torch.relu(image + layer.block.residual(image))
        seen = [layer(image) for _ in range(400)]
    n_run = sum(torch.equal(out, run) for out in seen)
    assert n_run + sum(torch.equal(out, skipped) for out in seen) == 400
    # Four standard deviations of a binomial around 120.
    assert abs(n_run - 120) < 37


def test_skipping_leaves_the_input_alone():
    layer, image = make_stochastic(1e-9)
    layer.training = True
    before = image.clone()
    layer(image)
    assert torch.equal(image, before)


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
    assert torch.equal(plain(image), sure(image))


def test_he_normal_weights_have_their_deviation():
    torch.manual_seed(0)
    kernel = wide_resnet(depth=8, width=4).body.layer3[0].conv1.weight
    # Fan-out: 9 places times 256 channels out.
    assert kernel.std().item() == pytest.approx((2 / (9 * 256)) ** 0.5, rel=0.02)
    kernel = resnet8().body.layer3[0].conv1.weight
    # Fan-in: 9 places times 32 channels in.
    assert kernel.std().item() == pytest.approx((2 / (9 * 32)) ** 0.5, rel=0.05)
