"""Batch norm, shortcut and rectifier in one step equal the three steps."""

import copy

import pytest
import torch
from torch import nn

from equipoise.models import normalise as module
from equipoise.models import resnet8
from equipoise.models.normalise import Layers, normalise, normalise_and_rectify


def images(n_channels=32, *, seed=0, side=16, layout=torch.channels_last):
    drawn = torch.randn(12, n_channels, side, side, generator=torch.Generator().manual_seed(seed))
    spread = torch.linspace(0.1, 9, n_channels)[:, None, None]
    return (drawn * spread + 5).contiguous(memory_format=layout)


def norm(n_channels=32, **options):
    layer = nn.BatchNorm2d(n_channels, **options)
    with torch.no_grad():
        torch.manual_seed(7)
        layer.weight.normal_()
        layer.bias.normal_()
    return layer


def three_steps(layer, inputs, shortcut=None):
    hidden = layer(inputs)
    return torch.relu(hidden if shortcut is None else hidden + shortcut)


def is_fused(result):
    return "_Fused" in type(result.grad_fn).__name__


@pytest.fixture(autouse=True, params=[1, 2], ids=["one_thread", "two_threads"])
def n_threads(request):
    before = torch.get_num_threads()
    torch.set_num_threads(request.param)
    yield request.param
    torch.set_num_threads(before)


def test_threads_that_cannot_be_reached_are_left_to_torch(monkeypatch, n_threads):
    monkeypatch.setattr(module, "find_team", lambda: ((0, 0, 0), 1))
    assert is_fused(normalise_and_rectify(norm(), images())) == (n_threads == 1)


def test_more_threads_than_there_is_work():
    torch.set_num_threads(60)
    layer, inputs = norm(16), images(16)[:, :, :14]
    inputs = inputs.contiguous(memory_format=torch.channels_last)
    fused = normalise_and_rectify(layer, inputs)
    assert is_fused(fused)
    torch.testing.assert_close(fused, three_steps(norm(16), inputs), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("with_shortcut", [False, True])
@pytest.mark.parametrize(("n_channels", "side"), [(16, 65), (32, 16), (48, 9), (128, 33)])
def test_values_gradients_and_running_statistics_equal_the_three_steps(n_channels, side, with_shortcut):
    one, three = norm(n_channels), norm(n_channels).double()
    given = [
        images(n_channels, side=side),
        *([images(n_channels, side=side, seed=1)] if with_shortcut else []),
    ]
    exact = [part.double().requires_grad_() for part in given]
    given = [part.requires_grad_() for part in given]
    slope = torch.randn(given[0].shape, generator=torch.Generator().manual_seed(2))
    # Where rounding decides whether a number passes, its gradient is all or nothing.
    slope[three_steps(copy.deepcopy(three), *exact) < 1e-3] = 0.0
    for turn in range(2):
        fused, plain = normalise_and_rectify(one, *given), three_steps(three, *exact)
        assert is_fused(fused)
        assert not is_fused(plain)
        torch.testing.assert_close(fused.double(), plain, rtol=1e-5, atol=1e-4)
        found = torch.autograd.grad(fused, [*given, one.weight, one.bias], slope)
        expected = torch.autograd.grad(plain, [*exact, three.weight, three.bias], slope.double())
        for mine, theirs in zip(found, expected, strict=True):
            torch.testing.assert_close(mine.double(), theirs, rtol=1e-4, atol=1e-3)
        assert one.num_batches_tracked == turn + 1
        for name in ("running_mean", "running_var"):
            torch.testing.assert_close(
                getattr(one, name).double(), getattr(three, name), rtol=1e-6, atol=1e-6
            )


def test_the_norm_alone_equals_the_norm():
    one, exact = norm(), norm().double()
    inputs = images().requires_grad_()
    wide = images().double().requires_grad_()
    slope = torch.randn(inputs.shape, generator=torch.Generator().manual_seed(2))
    fused, plain = normalise(one, inputs), exact(wide)
    assert is_fused(fused)
    torch.testing.assert_close(fused.double(), plain, rtol=1e-5, atol=1e-4)
    found = torch.autograd.grad(fused, [inputs, one.weight, one.bias], slope)
    expected = torch.autograd.grad(plain, [wide, exact.weight, exact.bias], slope.double())
    for mine, theirs in zip(found, expected, strict=True):
        torch.testing.assert_close(mine.double(), theirs, rtol=1e-4, atol=1e-3)
    torch.testing.assert_close(one.running_var.double(), exact.running_var, rtol=1e-6, atol=1e-6)
    assert not is_fused(normalise(one.eval(), inputs))


def test_the_gradient_that_came_in_is_left_alone():
    inputs, slope = images().requires_grad_(), torch.ones_like(images())
    for step in (normalise, normalise_and_rectify):
        torch.autograd.grad(step(norm(), inputs), inputs, slope)
        assert (slope == 1).all()


def test_close_to_float64_even_far_from_zero():
    inputs = images(16, side=40) + 300.0
    layer = norm(16)
    exact = three_steps(copy.deepcopy(layer).double(), inputs.double())
    ours = (normalise_and_rectify(layer, inputs).double() - exact).abs().max()
    theirs = (three_steps(norm(16), inputs).double() - exact).abs().max()
    assert ours <= 2 * theirs


@pytest.mark.parametrize("with_shortcut", [False, True])
def test_the_gradient_can_be_differentiated_again(with_shortcut):
    inputs = torch.randn(images().shape, generator=torch.Generator().manual_seed(0))
    inputs = inputs.contiguous(memory_format=torch.channels_last).requires_grad_()
    shortcut = images(seed=1) if with_shortcut else None

    def second(step):
        layer = norm()
        (slope,) = torch.autograd.grad(
            step(layer, inputs, shortcut).square().sum(), inputs, create_graph=True
        )
        return torch.autograd.grad(slope.square().sum(), [inputs, layer.weight])

    for mine, theirs in zip(second(normalise_and_rectify), second(three_steps), strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-3, atol=1e-2)


def test_nan_is_not_rectified_away():
    inputs = images()
    inputs[0, 3, 0, 0] = float("nan")
    out = normalise_and_rectify(norm(), inputs)
    assert is_fused(out)
    assert out[:, 3].isnan().all()
    assert not out[:, :3].isnan().any()


def test_a_constant_channel_gives_its_bias():
    inputs = images()
    inputs[:, 5] = 3.0
    layer = norm()
    with torch.no_grad():
        layer.bias[5] = 0.25
    torch.testing.assert_close(
        normalise_and_rectify(layer, inputs)[:, 5], torch.full((12, 16, 16), 0.25), rtol=0, atol=1e-4
    )


class Other(nn.BatchNorm2d):
    pass


def hooked():
    layer = norm()
    layer.register_forward_hook(lambda *_: None)
    return layer


@pytest.mark.parametrize(
    ("layer", "inputs"),
    [
        (norm().eval(), images()),
        (norm(), images(layout=torch.contiguous_format)),
        (norm().double(), images().double()),
        (norm(24), images(24)),
        (norm(momentum=None), images()),
        (norm(track_running_stats=False), images()),
        (nn.BatchNorm2d(32, affine=False), images().requires_grad_()),
        (Other(32), images()),
        (hooked(), images()),
        (nn.GroupNorm(4, 32), images()),
        (norm(), images(side=4)),
    ],
    ids=[
        "eval",
        "old_layout",
        "float64",
        "channels",
        "cumulative",
        "no_statistics",
        "no_affine",
        "subclass",
        "hook",
        "other",
        "small",
    ],
)
def test_all_else_takes_the_three_steps(layer, inputs):
    expected = three_steps(copy.deepcopy(layer), inputs)
    found = normalise_and_rectify(layer, inputs)
    assert not is_fused(found)
    torch.testing.assert_close(found, expected)


def test_one_number_per_channel_is_refused_by_torch():
    with pytest.raises(ValueError, match="more than 1 value per channel"):
        normalise_and_rectify(nn.BatchNorm2d(1 << 15), torch.ones(1, 1 << 15, 1, 1))


def test_without_gradients_the_statistics_still_move():
    layer = norm()
    with torch.no_grad():
        normalise_and_rectify(layer, images())
    assert layer.num_batches_tracked == 1
    assert (layer.running_mean > 0.1).all()


def test_a_gradient_in_the_old_layout_is_taken():
    inputs = images().requires_grad_()
    slope = torch.randn(inputs.shape)
    (found,) = torch.autograd.grad(normalise_and_rectify(norm(), inputs), inputs, slope)
    (same,) = torch.autograd.grad(
        normalise_and_rectify(norm(), inputs), inputs, slope.contiguous(memory_format=torch.channels_last)
    )
    torch.testing.assert_close(found, same, rtol=0, atol=0)


def test_functions_of_parameters_are_differentiated_by_torch_func():
    layer, inputs = norm(), images()

    def loss(parameters):
        return normalise_and_rectify_with(layer, parameters, inputs).sum()

    parameters = dict(layer.named_parameters())
    found = torch.func.grad(loss)(parameters)
    plain = norm()
    three_steps(plain, inputs).sum().backward()
    torch.testing.assert_close(found["weight"], plain.weight.grad, rtol=1e-4, atol=1e-2)


def normalise_and_rectify_with(layer, parameters, inputs):
    class Step(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm = layer

        def forward(self, x):
            return normalise_and_rectify(self.norm, x)

    named = {f"norm.{name}": value for name, value in parameters.items()}
    return torch.func.functional_call(Step(), named, (inputs,))


def test_layers_fuse_what_they_can_and_run_the_rest():
    torch.manual_seed(0)
    parts = [nn.Conv2d(3, 16, 3), nn.BatchNorm2d(16), nn.ReLU(), nn.BatchNorm2d(16), nn.Flatten()]
    inputs = torch.randn(16, 3, 16, 16).contiguous(memory_format=torch.channels_last)
    plain, layers = nn.Sequential(*copy.deepcopy(parts)), Layers(*copy.deepcopy(parts))
    for made in (plain, layers):
        made.to(memory_format=torch.channels_last)
    torch.testing.assert_close(layers(inputs), plain(inputs), rtol=1e-4, atol=1e-4)
    assert list(layers.state_dict()) == list(plain.state_dict())


def test_a_hook_on_the_rectifier_is_called():
    seen = []
    layers = Layers(nn.BatchNorm2d(32), nn.ReLU())
    layers[1].register_forward_hook(lambda *_: seen.append(1))
    layers(images())
    assert seen == [1]


def test_a_network_trains_the_same_with_and_without(monkeypatch):
    inputs = torch.randn(64, 3, 32, 32, generator=torch.Generator().manual_seed(0))
    labels = torch.arange(64) % 10

    def losses():
        torch.manual_seed(0)
        network = resnet8()
        optimizer = torch.optim.SGD(network.parameters(), lr=0.05)
        found = []
        for _ in range(4):
            loss = nn.functional.cross_entropy(network(inputs), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            found.append(float(loss.detach()))
        return found

    fused = losses()
    monkeypatch.setattr(module, "_is_for_us", lambda *_: False)
    assert fused == pytest.approx(losses(), rel=1e-3)
