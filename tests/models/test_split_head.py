"""A model split at its last layer: same numbers, same parameters, nothing left behind."""

import copy
from dataclasses import dataclass
from types import MethodType

import pytest
import torch
from torch import nn
from torch.func import functional_call
from torch.nn import functional

from equipoise.models import Network, split_head


class UserCNN(nn.Module):
    """What a user brings: dropout by function, a parameter and a buffer at the root."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 6, 3)
        self.norm = nn.BatchNorm2d(6)
        self.gain = nn.Parameter(torch.ones(6))
        self.register_buffer("offset", torch.full((6,), 0.5))
        self.fc = nn.Linear(6, 3)

    def forward(self, images):
        hidden = self.norm(self.conv(images)).relu().mean((2, 3)) * self.gain + self.offset
        return self.fc(functional.dropout(hidden, 0.5, self.training))


class Nested(nn.Module):
    """As timm's: the last layer two levels down, and an unused slot."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Flatten(), nn.Linear(16, 8))
        self.extra = None
        self.head = nn.Sequential()
        self.head.add_module("drop", nn.Dropout(0.1))
        self.head.add_module("inner", nn.Sequential(nn.LayerNorm(8), nn.Linear(8, 3)))

    def forward(self, images):
        return self.head(self.stem(images))


class Twice(nn.Module):
    """The last layer has two names, and the forward uses the less obvious one."""

    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(4, 5), nn.Linear(5, 3)])
        self.fc = self.layers[1]

    def forward(self, rows):
        for layer in self.layers:
            rows = layer(rows)
        return rows


@dataclass
class Output:
    logits: torch.Tensor


class Tokens(nn.Module):
    """As a transformer for sequences: named inputs, scores for every token, the last one wins."""

    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(10, 4)
        self.score = nn.Linear(4, 2)

    def forward(self, input_ids, attention_mask):
        scores = self.score(self.embedding(input_ids))
        return Output(scores[torch.arange(len(scores)), attention_mask.sum(1) - 1])


class Softened(UserCNN):
    def forward(self, images):
        return super().forward(images).log_softmax(-1)


CASES = {
    "user": (UserCNN, "fc", (1, 8, 8), 6),
    "nested": (Nested, "head.inner.1", (4, 4), 8),
    "twice": (Twice, "fc", (4,), 5),
    "twice_other": (Twice, "layers.1", (4,), 5),
    "sequential": (lambda: nn.Sequential(nn.Linear(4, 7), nn.ReLU(), nn.Linear(7, 3)), "2", (4,), 7),
}


def make(name):
    torch.manual_seed(0)
    factory, layer, shape, n_features = CASES[name]
    return factory(), layer, torch.randn(5, *shape), n_features


@pytest.mark.parametrize("name", CASES)
def test_same_numbers_and_features_before_the_head(name):
    model, layer, inputs, n_features = make(name)
    model.eval()
    network = split_head(model, layer)
    with torch.no_grad():
        assert torch.equal(network(inputs), model(inputs))
        features = network.features(inputs)
        assert features.shape == (5, n_features)
        assert torch.equal(network.head(features), model(inputs))
    assert (network.n_features, network.n_classes) == (n_features, 3)


@pytest.mark.parametrize("name", CASES)
def test_the_model_stays_whole(name):
    model, layer, inputs, _ = make(name)
    parts, state = list(model.named_modules()), list(model.state_dict())
    split_head(model, layer, example=inputs)
    assert list(model.named_modules()) == parts
    assert list(model.state_dict()) == state
    assert not any(part._forward_hooks or part._forward_pre_hooks for part in model.modules())
    assert not any(isinstance(part, nn.Identity) for part in model.modules())


@pytest.mark.parametrize("name", CASES)
def test_the_model_learns_along(name):
    model, layer, inputs, _ = make(name)
    network = split_head(model, layer)
    assert {id(value) for value in network.parameters()} == {id(value) for value in model.parameters()}
    before = {key: value.clone() for key, value in model.state_dict().items()}
    optimizer = torch.optim.SGD(network.parameters(), lr=0.5)
    functional.cross_entropy(network.train()(inputs), torch.arange(5) % 3).backward()
    optimizer.step()
    moved = {key for key, value in model.state_dict().items() if not torch.equal(value, before[key])}
    # Everything but a buffer that nothing updates, and a bias that the following norm takes away.
    assert moved >= {key for key in before if key not in ("offset", "conv.bias")}
    network.eval()
    model.eval()
    assert torch.equal(network(inputs), model(inputs))


def test_moving_one_moves_both():
    model, layer, inputs, _ = make("user")
    network = split_head(model, layer).double().eval()
    model.eval()
    assert {value.dtype for value in (model.gain, model.offset, model.conv.weight)} == {torch.double}
    assert torch.equal(network(inputs.double()), model(inputs.double()))


def test_modes_reach_functions_at_the_root():
    model, layer, inputs, _ = make("user")
    network = split_head(model, layer).train()
    assert not torch.equal(network(inputs), network(inputs))
    network.eval()
    assert torch.equal(network(inputs), network(inputs))


@pytest.mark.parametrize("training", [True, False])
def test_the_mode_of_the_model_is_kept(training):
    model, layer, inputs, _ = make("user")
    model.train(training)
    model.norm.train(not training)
    network = split_head(model, layer, example=inputs)
    assert (network.training, network.body.training, model.training) == (training,) * 3
    assert model.norm.training is not training, "a frozen norm stays frozen"


def test_the_trial_changes_no_statistics():
    model, layer, inputs, _ = make("user")
    before = model.norm.running_mean.clone()
    split_head(model, layer, example=inputs)
    assert torch.equal(model.norm.running_mean, before)


@pytest.mark.parametrize("name", CASES)
def test_state_dict_and_deepcopy(name):
    model, layer, inputs, _ = make(name)
    network = split_head(model, layer).eval()
    other = split_head(CASES[name][0](), layer).eval()
    other.load_state_dict(network.state_dict())
    assert torch.equal(other(inputs), network(inputs))
    twin = copy.deepcopy(network)
    assert torch.equal(twin(inputs), network(inputs))
    nn.init.zeros_(twin.head.weight)
    assert network.head.weight.any(), "a copy shares nothing"


@pytest.mark.parametrize("name", CASES)
def test_functional_call(name):
    model, layer, inputs, n_features = make(name)
    network = split_head(model, layer).eval()
    wanted = network(inputs)
    weight = torch.zeros(3, n_features, requires_grad=True)
    moved = functional_call(network, {"head.weight": weight, "head.bias": torch.ones(3)}, (inputs,))
    assert torch.equal(moved, torch.ones(5, 3))
    doubled = {key: 2 * value for key, value in network.named_parameters()}
    assert not torch.equal(functional_call(network, doubled, (inputs,)), wanted)
    assert torch.equal(network(inputs), wanted), "nothing is left behind"
    assert torch.equal(model.eval()(inputs), wanted)


def test_named_inputs_and_objects_with_logits():
    torch.manual_seed(0)
    model = Tokens().eval()
    batch = {
        "input_ids": torch.tensor([[1, 2, 3], [4, 5, 0]]),
        "attention_mask": torch.tensor([[1, 1, 1], [1, 1, 0]]),
    }
    network = split_head(model, "score", example=batch)
    assert torch.equal(network.features(batch), model.embedding(torch.tensor([3, 5])))
    assert torch.equal(network(batch), model(**batch).logits)


def test_a_tied_weight_stays_tied():
    model = nn.Sequential(nn.Embedding(6, 4), nn.Linear(4, 6, bias=False))
    model[1].weight = model[0].weight
    network = split_head(model, "1")
    assert network.head.weight is network.body.model[0].weight
    assert len(list(network.parameters())) == 1


def test_layout_on_demand():
    model, layer, inputs, _ = make("user")
    model.conv = nn.Conv2d(2, 6, 3)
    network = split_head(model, layer, channels_last=True).eval()
    assert model.conv.weight.is_contiguous(memory_format=torch.channels_last)
    images = inputs.expand(-1, 2, -1, -1)
    torch.testing.assert_close(network(images), model.eval()(images))


def test_a_network_of_ours_can_be_split_again():
    network = Network(nn.Flatten(), nn.Linear(4, 3))
    again = split_head(network, "head", example=torch.zeros(1, 4))
    assert again.head is network.head


def test_captured_whole():
    model, layer, inputs, _ = make("user")
    network = split_head(model.eval(), layer)
    captured = torch.export.export(network, (inputs,)).module()
    torch.testing.assert_close(captured(inputs), model(inputs))


def test_refuses_what_comes_after_the_head():
    torch.manual_seed(0)
    inputs = torch.randn(4, 1, 8, 8)
    with pytest.raises(ValueError, match=r"something after this layer \(a softmax\?\).*plain logits"):
        split_head(Softened(), "fc", example=inputs)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("head.inner.2", r"Did you mean 'head.inner.1'\?"),
        ("classifier_xyz", "The last linear layers are 'stem.1', 'head.inner.1'"),
        ("", "must be a layer of Nested, got ''"),
    ],
)
def test_refuses_an_unknown_layer(name, message):
    with pytest.raises(ValueError, match=message):
        split_head(Nested(), name)


def test_refuses_a_container():
    with pytest.raises(TypeError, match=r"layer 'head'.*one layer.*got Sequential"):
        split_head(Nested(), "head")


def test_refuses_wrapped_models():
    with pytest.raises(TypeError, match=r"got DataParallel. Pass model\.module"):
        split_head(nn.DataParallel(UserCNN()), "module.fc")
    with pytest.raises(TypeError, match="Split first, then compile"):
        split_head(torch.compile(UserCNN(), backend="eager"), "_orig_mod.fc")


def test_refuses_a_patched_forward():
    model = UserCNN()
    model.forward = MethodType(UserCNN.forward, model)
    with pytest.raises(TypeError, match="UserCNN must not carry a `forward` of its own"):
        split_head(model, "fc")


def test_refuses_outputs_without_logits():
    class Pair(UserCNN):
        def forward(self, images):
            return super().forward(images), None

    with pytest.raises(TypeError, match="a tensor or an object with `logits`, got tuple"):
        split_head(Pair(), "fc")(torch.zeros(2, 1, 8, 8))
