"""Made-up checkpoints with the names of published ones, and an oracle that reads them by those names."""

import pytest
import torch
from torch import nn
from torch.nn import functional

from equipoise.core.errors import DataError
from equipoise.models import (
    cifar_resnet,
    densenet121,
    global_pooling_cnn,
    load_published,
    resnet8,
    resnet18,
    resnet20,
    resnet50_imagenet,
    wide_resnet,
)


def wide_resnet_8():
    return wide_resnet(depth=8, width=1)


def norm_entries(name, width):
    return {
        f"{name}.weight": torch.rand(width) + 0.5,
        f"{name}.bias": torch.randn(width),
        f"{name}.running_mean": torch.randn(width),
        f"{name}.running_var": torch.rand(width) + 0.5,
        f"{name}.num_batches_tracked": torch.tensor(7),
    }


def make_checkpoint(n_blocks, option="A", n_classes=10, head="linear"):
    """What akamaster's training script would have saved, without its wrappings."""
    torch.manual_seed(n_blocks)
    state = {"conv1.weight": torch.randn(16, 3, 3, 3) / 5, **norm_entries("bn1", 16)}
    n_in = 16
    for stage, width in enumerate((16, 32, 64), start=1):
        for block in range(n_blocks):
            name = f"layer{stage}.{block}"
            state[f"{name}.conv1.weight"] = torch.randn(width, n_in, 3, 3) / 20
            state |= norm_entries(f"{name}.bn1", width)
            state[f"{name}.conv2.weight"] = torch.randn(width, width, 3, 3) / 20
            state |= norm_entries(f"{name}.bn2", width)
            if option == "B" and n_in != width:
                state[f"{name}.shortcut.0.weight"] = torch.randn(width, n_in, 1, 1)
                state |= norm_entries(f"{name}.shortcut.1", width)
            n_in = width
    return {**state, f"{head}.weight": torch.randn(n_classes, 64), f"{head}.bias": torch.randn(n_classes)}


def oracle(state, images, n_blocks):
    """The network as its paper says, read from the checkpoint in double precision."""
    state = {key: value.double() if value.is_floating_point() else value for key, value in state.items()}

    def norm(hidden, name):
        mean, variance = state[f"{name}.running_mean"], state[f"{name}.running_var"]
        return functional.batch_norm(hidden, mean, variance, state[f"{name}.weight"], state[f"{name}.bias"])

    hidden = norm(functional.conv2d(images.double(), state["conv1.weight"], padding=1), "bn1").relu()
    for stage in (1, 2, 3):
        for block in range(n_blocks):
            name, stride = f"layer{stage}.{block}", 2 if stage > 1 and block == 0 else 1
            out = functional.conv2d(hidden, state[f"{name}.conv1.weight"], stride=stride, padding=1)
            out = functional.conv2d(norm(out, f"{name}.bn1").relu(), state[f"{name}.conv2.weight"], padding=1)
            if f"{name}.shortcut.0.weight" in state:
                hidden = functional.conv2d(hidden, state[f"{name}.shortcut.0.weight"], stride=stride)
                hidden = norm(hidden, f"{name}.shortcut.1")
            elif stride == 2:
                zeros = torch.zeros_like(hidden[:, : hidden.shape[1] // 2, ::2, ::2])
                hidden = torch.cat([zeros, hidden[:, :, ::2, ::2], zeros], dim=1)
            hidden = (norm(out, f"{name}.bn2") + hidden).relu()
    return hidden.mean((2, 3)) @ state["linear.weight"].T + state["linear.bias"]


def wrapped(state):
    return {
        "state_dict": {f"module.{key}": value for key, value in state.items()},
        "best_prec1": 91.25,
        "epoch": 200,
    }


@pytest.mark.parametrize("option", ["A", "B"])
@pytest.mark.parametrize("zipped", [True, False])
def test_file_with_wrappings(tmp_path, option, zipped):
    state = make_checkpoint(3, option)
    torch.save(wrapped(state), tmp_path / "resnet20.th", _use_new_zipfile_serialization=zipped)
    network = resnet20(shortcut=option)
    assert load_published(network, tmp_path / "resnet20.th") is network
    images = torch.randn(4, 3, 32, 32)
    with torch.no_grad():
        torch.testing.assert_close(
            network.double().eval()(images.double()), oracle(state, images, 3), rtol=1e-9, atol=1e-9
        )
    assert network.body.bn1.num_batches_tracked == 7


@pytest.mark.parametrize(
    "wrap", [lambda s: s, lambda s: {"net": s, "acc": 95.0}, lambda s: {"model": {"state_dict": s}}]
)
def test_mappings_in_other_envelopes(wrap):
    state = make_checkpoint(1)
    network = load_published(resnet8(shortcut="A"), wrap(state))
    assert torch.equal(network.head.weight, state["linear.weight"])
    assert torch.equal(network.body.layer2[0].conv1.weight, state["layer2.0.conv1.weight"])


def test_kernels_keep_the_layout_of_the_network():
    network = load_published(resnet8(shortcut="A"), make_checkpoint(1))
    assert network.body.layer1[0].conv1.weight.is_contiguous(memory_format=torch.channels_last)


def test_our_own_state_dict_loads_too():
    first, second = resnet8(), resnet8()
    load_published(second, first.state_dict())
    assert torch.equal(first.head.weight, second.head.weight)


def test_stochastic_depth_takes_the_plain_names():
    state = make_checkpoint(1)
    network = load_published(cifar_resnet(depth=8, shortcut="A", last_survival=0.5), state)
    assert torch.equal(network.body.layer3[0].block.conv2.weight, state["layer3.0.conv2.weight"])


def test_files_from_before_batches_were_counted():
    state = {key: value for key, value in make_checkpoint(1).items() if "num_batches" not in key}
    network = load_published(resnet8(shortcut="A"), state)
    assert torch.equal(network.body.bn1.running_mean, state["bn1.running_mean"])


@pytest.mark.parametrize(
    ("factory", "rename"),
    [
        (resnet18, {"head.": "fc."}),
        (densenet121, {"head.": "linear."}),
        (global_pooling_cnn, {"head.": "fc2."}),
        (wide_resnet_8, {"head.": "fc.", ".shortcut.": ".downsample."}),
        (resnet50_imagenet, {"head.": "fc.", ".shortcut.": ".downsample."}),
    ],
)
def test_names_of_the_other_repositories(factory, rename):
    network, theirs = factory(), {}
    for key, value in network.state_dict().items():
        name = key.removeprefix("body.")
        for ours, other in rename.items():
            name = name.replace(ours, other)
        theirs["module." + name] = torch.zeros(value.shape, dtype=value.dtype)
    load_published(network, theirs)
    assert not any(value.any() for value in network.state_dict().values())
    theirs["module.bn.extra"] = theirs.pop(
        next(key for key in theirs if "fc." in key or "fc2." in key or "linear." in key)
    )
    with pytest.raises(DataError, match=r"missing head.weight and unexpected module.bn.extra"):
        load_published(network, theirs)


def changed(change):
    state = make_checkpoint(1)
    change(state)
    return state


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (
            changed(lambda s: s.pop("layer1.0.conv1.weight")),
            "missing layer1.0.conv1.weight. Is it another depth",
        ),
        (changed(lambda s: s.update(extra=torch.ones(1))), "unexpected extra. Is it another depth"),
        (
            changed(lambda s: s.update({"bn1.bias": torch.ones(3)})),
            r"body.bn1.bias \(3,\) for \(16,\).*n_classes",
        ),
        (make_checkpoint(1, n_classes=100), r"head.weight \(100, 64\) for \(10, 64\)"),
        (make_checkpoint(3), r"unexpected layer1.1.conv1.weight.* and \d+ more"),
        (
            make_checkpoint(1, "B"),
            "unexpected layer2.0.shortcut.0.weight.*Build the network with shortcut='B'",
        ),
        (
            changed(lambda s: s.update({"fc.bias": torch.ones(10)})),
            "one weight per place, got two for linear.bias",
        ),
        ({}, "must hold named weights, got dict"),
        ({"epoch": 3, "conv1.weight": torch.ones(1)}, "got others under epoch"),
    ],
)
def test_what_does_not_fit_is_named_and_changes_nothing(source, message):
    network = resnet8(shortcut="A")
    before = {key: value.clone() for key, value in network.state_dict().items()}
    with pytest.raises(DataError, match=message):
        load_published(network, source)
    assert all(torch.equal(value, before[key]) for key, value in network.state_dict().items())


def test_a_file_of_option_a_tells_how_to_build():
    with pytest.raises(DataError, match=r"missing layer2.0.shortcut.*Build the network with shortcut='A'"):
        load_published(resnet8(), make_checkpoint(1, "A"))


def test_a_missing_file():
    with pytest.raises(FileNotFoundError, match=r"no file nowhere.th"):
        load_published(resnet8(), "nowhere.th")


def test_a_broken_file_is_named(tmp_path):
    torch.save(make_checkpoint(1), tmp_path / "whole.th")
    content = (tmp_path / "whole.th").read_bytes()
    for name, part in (
        ("half.th", content[: len(content) // 2]),
        ("empty.th", b""),
        ("text.th", b"hello there"),
    ):
        (tmp_path / name).write_bytes(part)
        with pytest.raises(DataError, match=rf"{name} must hold tensors and nothing else"):
            load_published(resnet8(shortcut="A"), tmp_path / name)


def test_no_code_of_a_file_runs(tmp_path):
    torch.save(nn.Linear(2, 2), tmp_path / "model.th")
    with pytest.raises(DataError, match=r"must hold tensors and nothing else.*save its state_dict"):
        load_published(resnet8(), tmp_path / "model.th")


def test_a_file_with_a_lone_tensor(tmp_path):
    torch.save(torch.ones(3), tmp_path / "tensor.th")
    with pytest.raises(DataError, match=r"tensor.th must hold named weights, got Tensor"):
        load_published(resnet8(), tmp_path / "tensor.th")
