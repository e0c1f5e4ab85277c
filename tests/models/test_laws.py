"""What holds for every network: shapes, composition, gradients, seeds, layout, state."""

import copy

import pytest
import torch
from torch import nn
from torch.func import functional_call

from equipoise.models import (
    Network,
    cifar_resnet,
    deeplabv3_resnet34,
    densenet40,
    densenet121,
    global_pooling_cnn,
    mlp,
    resnet8,
    resnet18,
    resnet20,
    resnet34,
    resnet50,
    resnet50_imagenet,
    resnet50_tiny,
    resnet110,
    resnet110_focal,
    resnet110_sd,
    small_cnn,
    swinv2_t,
    vgg16_bn,
    wide_resnet,
)
from equipoise.models.swin_v2 import SwinBlock
from helpers.daily import daily

SMALL = {
    "resnet8": (resnet8, (3, 32, 32)),
    "resnet8_A": (lambda n_classes=10: resnet8(n_classes, shortcut="A"), (3, 32, 32)),
    "resnet8_sd": (lambda n_classes=10: cifar_resnet(n_classes, depth=8, last_survival=0.5), (3, 32, 32)),
    "resnet20": (resnet20, (3, 32, 32)),
    "wide_resnet_8_2": (lambda n_classes=10: wide_resnet(n_classes, depth=8, width=2), (3, 32, 32)),
    "densenet40": (densenet40, (3, 16, 16)),
    "small_cnn": (small_cnn, (3, 32, 32)),
    "mlp": (mlp, (64,)),
    "global_pooling_cnn": (global_pooling_cnn, (40, 100)),
}
# Image sides as small as the network takes: these are here for their shapes, not for their work.
LARGE = {
    "resnet18": (resnet18, (3, 8, 8)),
    "resnet34": (resnet34, (3, 8, 8)),
    "resnet50": (resnet50, (3, 8, 8)),
    "resnet110": (resnet110, (3, 8, 8)),
    "resnet110_sd": (resnet110_sd, (3, 8, 8)),
    "resnet110_focal": (resnet110_focal, (3, 8, 8)),
    "wide_resnet": (wide_resnet, (3, 8, 8)),
    "densenet121": (densenet121, (3, 8, 8)),
    "vgg16_bn": (vgg16_bn, (3, 32, 32)),
    "resnet50_tiny": (resnet50_tiny, (3, 16, 16)),
    "resnet50_imagenet": (resnet50_imagenet, (3, 64, 64)),
    "swinv2_t": (swinv2_t, (3, 64, 64)),
    "deeplabv3_resnet34": (deeplabv3_resnet34, (3, 32, 32)),
}
ALL = SMALL | LARGE
EVERY_DAY = daily(ALL, keep=[*SMALL, "resnet18", "swinv2_t", "deeplabv3_resnet34"])


@pytest.fixture(scope="module")
def made():
    """Large networks are slow to make; share one of each, never trained."""
    networks = {}

    def make(name):
        if name not in networks:
            torch.manual_seed(0)
            networks[name] = ALL[name][0](n_classes=5).eval()
        return networks[name], torch.randn(4, *ALL[name][1])

    return make


@pytest.mark.parametrize("name", EVERY_DAY)
def test_forward_is_head_of_features(made, name):
    network, inputs = made(name)
    with torch.no_grad():
        logits, features = network(inputs), network.features(inputs)
        dense = features.dim() == 4
        assert logits.shape == ((4, 5, *inputs.shape[2:]) if dense else (4, 5))
        assert features.shape[1] == network.n_features
        assert network.n_classes == 5
        assert torch.isfinite(logits).all()
        assert torch.equal(logits, network.head(features))
        assert torch.equal(logits, network(inputs)), "evaluation must not draw"


@pytest.mark.parametrize("name", EVERY_DAY)
def test_gradient_reaches_every_parameter(name):
    torch.manual_seed(1)
    network = ALL[name][0](n_classes=5).train()
    for part in network.modules():
        if isinstance(part, SwinBlock):  # starts as the identity, hence without gradients inside
            nn.init.ones_(part.norm1.weight)
            nn.init.ones_(part.norm2.weight)
        if hasattr(part, "survival"):
            part.survival = 1.0
    network(torch.randn(4, *ALL[name][1])).square().mean().backward()
    without = [key for key, value in network.named_parameters() if value.grad is None or not value.grad.any()]
    assert without == []


@pytest.mark.parametrize("name", SMALL)
def test_a_seed_fixes_the_weights(name):
    drawn = []
    for seed in (3, 3, 4):
        torch.manual_seed(seed)
        drawn.append(torch.cat([value.flatten() for value in ALL[name][0]().parameters()]))
    assert torch.equal(drawn[0], drawn[1])
    assert not torch.equal(drawn[0], drawn[2])


@pytest.mark.parametrize("name", SMALL)
def test_state_dict_carries_everything(made, name):
    network, inputs = made(name)
    twin = ALL[name][0](n_classes=5).eval()
    twin.load_state_dict(network.state_dict())
    with torch.no_grad():
        assert torch.equal(twin(inputs), network(inputs))
        assert torch.equal(copy.deepcopy(network)(inputs), network(inputs))


@pytest.mark.parametrize(
    "name", [*SMALL, *daily(["resnet18", "densenet121", "deeplabv3_resnet34", "swinv2_t"], keep=["swinv2_t"])]
)
def test_layout_changes_nothing_but_speed(made, name):
    network, inputs = made(name)
    lasting = copy.deepcopy(network).double()
    other = Network(copy.deepcopy(lasting.body), copy.deepcopy(lasting.head), channels_last=False).eval()
    with torch.no_grad():
        torch.testing.assert_close(other(inputs.double()), lasting(inputs.double()), rtol=1e-9, atol=1e-10)


def test_images_enter_channels_last_and_kernels_are():
    network = small_cnn()
    seen = []
    network.body.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0]))
    network(torch.zeros(2, 3, 32, 32))
    assert seen[0].is_contiguous(memory_format=torch.channels_last)
    assert network.body[4].weight.is_contiguous(memory_format=torch.channels_last)
    old = Network(network.body, network.head, channels_last=False)
    assert old.body[4].weight.is_contiguous()


@pytest.mark.parametrize("name", ["resnet8", "global_pooling_cnn", "mlp"])
def test_functional_call_moves_the_head_only(made, name):
    network, inputs = made(name)
    weight = torch.zeros_like(network.head.weight).requires_grad_()
    bias = torch.arange(5.0)
    with_head = functional_call(network.head, {"weight": weight, "bias": bias}, (network.features(inputs),))
    whole = functional_call(network, {"head.weight": weight, "head.bias": bias}, (inputs,))
    assert torch.equal(with_head, whole)
    assert torch.equal(whole, bias.expand(4, 5))
    (gradient,) = torch.autograd.grad(whole.square().sum(), weight)
    assert gradient.any()


@pytest.mark.parametrize(
    "name", ["resnet8", "resnet8_A", "wide_resnet_8_2", "small_cnn", "global_pooling_cnn", "mlp"]
)
def test_loss_falls_on_a_toy_batch(name):
    torch.manual_seed(0)
    network = SMALL[name][0](n_classes=3).train()
    inputs, labels = torch.randn(12, *SMALL[name][1]), torch.arange(12) % 3
    optimizer = torch.optim.Adam(network.parameters(), lr=3e-3)
    losses = []
    for _ in range(12):
        loss = nn.functional.cross_entropy(network(inputs), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.5 * losses[0]


@pytest.mark.parametrize("name", ["resnet8", "small_cnn", "global_pooling_cnn", "mlp"])
def test_hyper_gradient_through_one_step_of_all_weights(name):
    torch.manual_seed(0)
    network = SMALL[name][0](n_classes=3).double()
    inputs, labels = torch.randn(4, *SMALL[name][1]).double(), torch.arange(4) % 3
    weights = dict(network.named_parameters())

    def loss(values):
        return nn.functional.cross_entropy(functional_call(network, values, (inputs,)), labels)

    gradients = torch.autograd.grad(loss(weights), list(weights.values()), create_graph=True)

    def after(rate):
        moved = zip(weights.items(), gradients, strict=True)
        return loss({key: value - rate * gradient for (key, value), gradient in moved})

    rate = torch.tensor(0.01, dtype=torch.double, requires_grad=True)
    (slope,) = torch.autograd.grad(after(rate), rate)
    with torch.no_grad():
        by_differences = (after(0.01 + 1e-6) - after(0.01 - 1e-6)) / 2e-6
    assert slope.item() == pytest.approx(by_differences.item(), rel=1e-4)


@pytest.mark.parametrize("side", [28, 33, 64])
@pytest.mark.parametrize("factory", [resnet8, small_cnn, densenet40, vgg16_bn])
def test_gray_images_of_other_sizes(factory, side):
    network = factory(n_classes=4, in_channels=1).eval()
    with torch.no_grad():
        assert network(torch.zeros(1, 1, side, side)).shape == (1, 4)


@pytest.mark.parametrize("name", ["resnet8", "small_cnn", "mlp", "global_pooling_cnn"])
def test_captured_whole(made, name):
    network, inputs = made(name)
    with torch.no_grad():
        wanted = network(inputs)
        exported = torch.export.export(network, (inputs,)).module()
        torch.testing.assert_close(exported(inputs), wanted)
        torch._dynamo.reset()
        captured = torch.compile(network, fullgraph=True, backend="eager")
        torch.testing.assert_close(captured(inputs), wanted)
