"""Weights and map travel together, and a file that is not whole or does not fit is refused."""

import json
import subprocess
import sys

import numpy as np
import pytest
import torch
from safetensors import safe_open
from safetensors.torch import save_file
from torch import nn
from torch.overrides import TorchFunctionMode

from equipoise.calibrators import MatrixScaling, TemperatureScaling
from equipoise.calibrators.loading import KINDS
from equipoise.catalogue import CATALOGUE
from equipoise.core.errors import DataError, SpecError
from equipoise.core.probabilities import softmax
from equipoise.integrations.bounded_network import check_input_shape
from equipoise.integrations.saved_model import _digest, load_model, save_model
from equipoise.models import mlp, small_cnn

OPTIONS = {"n_inputs": 6, "n_classes": 3}


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    inputs = rng.normal(size=(400, 6)).astype(np.float32)
    torch.manual_seed(0)
    network = mlp(**OPTIONS).eval()
    with torch.no_grad():
        logits = network(torch.from_numpy(inputs)).numpy() * 5
    return network, inputs, logits, (logits + rng.gumbel(size=logits.shape)).argmax(1)


def saved(data, tmp_path, calibrator=None, **changes):
    path = tmp_path / "model.safetensors"
    save_model(path, data[0], calibrator, **{"architecture": "mlp", "options": OPTIONS, **changes})
    return path


@pytest.mark.parametrize("kind", KINDS)
def test_what_comes_back_predicts_the_same_with_every_map(kind, data, tmp_path):
    network, inputs, logits, labels = data
    calibrator = KINDS[kind]().fit(logits, labels)
    model = load_model(saved(data, tmp_path, calibrator))
    with torch.no_grad():
        mapped = calibrator(network(torch.from_numpy(inputs)).numpy())
    wanted = softmax(mapped) if calibrator.gives == "logits" else mapped
    np.testing.assert_allclose(model.predict_proba(inputs), wanted, atol=1e-6)


def test_names_are_answered_and_the_temperature_is_there(data, tmp_path):
    _, inputs, logits, labels = data
    calibrator = TemperatureScaling().fit(logits, labels)
    model = load_model(saved(data, tmp_path, calibrator, class_names=["a", "b", "c"], input_shape=[6]))
    assert model.calibrator.temperature == calibrator.temperature
    assert set(model.predict(inputs)) <= {"a", "b", "c"}
    assert model.input_shape == (6,)


def test_a_network_of_ones_own_is_filled(data, tmp_path):
    path = tmp_path / "own.safetensors"
    own = nn.Sequential(nn.Linear(6, 3))
    save_model(path, own)
    with pytest.raises(DataError, match="network="):
        load_model(path)
    twin = load_model(path, network=nn.Sequential(nn.Linear(6, 3)))
    torch.testing.assert_close(twin.network[0].weight, own[0].weight)
    with pytest.raises(DataError, match="do not fit"):
        load_model(path, network=nn.Sequential(nn.Linear(6, 4)))


def test_tied_weights_and_no_map_are_saved(tmp_path):
    layer = nn.Linear(3, 3)
    save_model(tmp_path / "tied.safetensors", nn.Sequential(layer, layer))
    twin = load_model(tmp_path / "tied.safetensors", network=nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3)))
    assert twin.predict_proba(np.zeros((2, 3), np.float32)).sum() == pytest.approx(2)


@pytest.mark.parametrize("place", ["weight", "temperature", "class_names"])
def test_a_changed_file_is_refused(place, data, tmp_path):
    path = saved(data, tmp_path, TemperatureScaling().fit(data[2], data[3]), class_names=["a", "b", "c"])
    with safe_open(path, framework="pt") as stream:
        told = json.loads(stream.metadata()["equipoise.model"])
        tensors = {name: stream.get_tensor(name) for name in stream.keys()}  # noqa: SIM118
    if place == "class_names":
        told["class_names"] = ["b", "a", "c"]
    else:
        name = next(name for name in tensors if name.endswith(place))
        tensors[name] = tensors[name] * 2
    save_file(tensors, path, metadata={"equipoise.model": json.dumps(told)})
    with pytest.raises(DataError, match="digest"):
        load_model(path)


@pytest.mark.parametrize(
    ("told", "words"),
    [
        (None, "not a saved model"),
        ({"format": "equipoise.model", "version": 99}, "Upgrade"),
        ([], "not a saved"),
    ],
)
def test_other_files_are_refused(told, words, tmp_path):
    path = tmp_path / "other.safetensors"
    metadata = None if told is None else {"equipoise.model": json.dumps(told)}
    save_file({"a": torch.zeros(2)}, path, metadata=metadata)
    with pytest.raises(DataError, match=words):
        load_model(path)
    path.write_bytes(b"no tensors")
    with pytest.raises(DataError, match="damaged"):
        load_model(path)
    with pytest.raises(DataError, match="cannot be read"):
        load_model(tmp_path / "missing.safetensors")


def test_what_could_not_be_loaded_again_is_not_written(data, tmp_path):
    with pytest.raises(DataError, match="do not fit"):
        saved(data, tmp_path, options={"n_inputs": 6, "n_classes": 4})
    with pytest.raises(SpecError, match="did you mean 'mlp'"):
        saved(data, tmp_path, architecture="mpl")
    with pytest.raises(ValueError, match=r"\.safetensors"):
        save_model(tmp_path / "model.pt", data[0])
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_it_loads_without_the_training_extras(data, tmp_path):
    path = saved(data, tmp_path, MatrixScaling().fit(data[2], data[3]))
    code = f"""
import sys
for name in ("lightning_fabric", "filelock", "click", "sklearn", "matplotlib", "ray"):
    sys.modules[name] = None
import numpy as np
from equipoise.integrations.saved_model import load_model
print(load_model({str(path)!r}).predict_proba(np.zeros((1, 6), np.float32)).sum())
"""
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert float(found.stdout) == pytest.approx(1)


def forged(path, tensors=None, **changes):
    """Write a saved model with a right digest and any content."""
    content = {
        "format": "equipoise.model",
        "version": 1,
        "written_by": {},
        "architecture": {"name": "mlp", "options": {}},
        "class_names": None,
        "input_shape": None,
        "calibrator": None,
    }
    content |= changes
    tensors = {"network.a": torch.zeros(3)} if tensors is None else tensors
    content["digest"] = _digest(content, tensors)
    save_file(tensors, path, metadata={"equipoise.model": json.dumps(content)})
    return path


def refusal(path):
    with pytest.raises(DataError) as raised:
        load_model(path)
    assert "\n" not in str(raised.value)
    return str(raised.value)


@pytest.mark.parametrize(
    ("name", "options", "words"),
    [
        ("mlp", {"n_inputs": 60_000, "n_classes": 60_000, "hidden": []}, "do not fit"),
        ("mlp", {"hidden": [8] * 200_000}, "got 200000"),
        ("mlp", {"hidden": [8] * 1000}, "more than the 1 tensors"),
        ("mlp", {"n_classes": 10**30}, "do not fit"),
        ("mlp", {"n_classes": "many"}, "cannot be built"),
        ("wide_resnet_26_10", {"depth": 60_002}, "more than the 1 tensors"),
        ("wide_resnet_26_10", {"width": 60_000}, "do not fit"),
        ("mlp", None, "a table of options"),
    ],
)
def test_sizes_are_compared_before_anything_is_built(name, options, words, tmp_path):
    built = []

    def count(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        if isinstance(result, torch.Tensor) and result.device.type == "cpu":
            built.append(result.numel())
        return result

    path = forged(tmp_path / "a.safetensors", architecture={"name": name, "options": options})
    watch = type("Watch", (TorchFunctionMode,), {"__torch_function__": count})
    with watch():
        assert words in refusal(path)
    assert max(built, default=0) < 1000


def test_a_deep_network_is_not_built_beyond_its_file(tmp_path, monkeypatch):
    layers = []

    def count(layer):
        layers.append(layer)

    monkeypatch.setattr(nn.Linear, "reset_parameters", count)
    path = forged(tmp_path / "a.safetensors", architecture={"name": "mlp", "options": {"hidden": [8] * 1000}})
    assert "more than the 1 tensors" in refusal(path)
    assert 0 < len(layers) < 300


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_weights_that_are_not_finite_are_refused(value, data, tmp_path):
    network = mlp(**OPTIONS)
    tensors = {f"network.{name}": weight.clone() for name, weight in network.state_dict().items()}
    tensors["network.head.bias"][1] = value
    path = forged(
        tmp_path / "a.safetensors", tensors=tensors, architecture={"name": "mlp", "options": OPTIONS}
    )
    assert "head.bias" in refusal(path)
    with torch.no_grad():
        network.head.bias[1] = value
    with pytest.raises(DataError, match=r"head\.bias"):
        save_model(tmp_path / "b.safetensors", network)
    with pytest.raises(DataError, match="weight"):
        load_model(path, network=nn.Linear(2, 3))


@pytest.mark.parametrize("buffer", ["running_mean", "running_var"])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_infinite_statistics_of_a_batch_norm_are_refused(value, buffer, tmp_path):
    options = {"n_classes": 3, "in_channels": 1, "widths": [2, 3, 4]}
    network = small_cnn(3, 1, widths=(2, 3, 4))
    name = next(name for name in network.state_dict() if name.endswith(buffer))
    made_of = {"name": "small_cnn", "options": options}
    tensors = {f"network.{key}": weight.clone().contiguous() for key, weight in network.state_dict().items()}
    tensors[f"network.{name}"][0] = value
    path = forged(tmp_path / "a.safetensors", tensors=tensors, architecture=made_of)
    assert buffer in refusal(path)
    with pytest.raises(DataError, match=buffer):
        load_model(path, network=network)
    network.state_dict()[name][0] = value
    with pytest.raises(DataError, match=buffer):
        save_model(tmp_path / "b.safetensors", network, architecture="small_cnn", options=options)


def test_outputs_that_overflow_are_refused(tmp_path):
    network = mlp(**OPTIONS)
    with torch.no_grad():
        for weight in network.parameters():
            weight.fill_(3e38)
    save_model(tmp_path / "a.safetensors", network, architecture="mlp", options=OPTIONS)
    model = load_model(tmp_path / "a.safetensors")
    with pytest.raises(DataError, match="infinity for 2 of 2 inputs"):
        model.predict_proba(torch.ones(2, OPTIONS["n_inputs"]))


def test_an_infinite_mask_in_a_buffer_is_saved(tmp_path):
    network = nn.Linear(2, 2)
    network.register_buffer("mask", torch.tensor([0.0, -torch.inf]))
    save_model(tmp_path / "a.safetensors", network)
    assert load_model(tmp_path / "a.safetensors", network=network).network.mask[1] == -torch.inf


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"class_names": ["a", "b"]}, "network 3, class_names 2"),
        ({"class_names": ["a", "b", 3]}, "texts"),
        ({"class_names": ["a", "b", "a"]}, "twice"),
        ({"class_names": 7}, "damaged"),
        ({"input_shape": [5]}, "(5,) do not fit"),
        ({"input_shape": [-6]}, "at least 1"),
        ({"input_shape": [6, 10**9]}, "values, more than"),
        ({"input_shape": ["6"]}, "at least 1"),
    ],
)
def test_parts_that_do_not_belong_together_are_refused(changes, words, data, tmp_path):
    tensors = {f"network.{name}": value for name, value in data[0].state_dict().items()}
    path = forged(
        tmp_path / "a.safetensors",
        tensors=tensors,
        architecture={"name": "mlp", "options": OPTIONS},
        **changes,
    )
    assert words in refusal(path)


def test_a_calibrator_of_other_classes_is_neither_written_nor_read(data, tmp_path):
    other = TemperatureScaling().fit([[3.0, 0.0]] * 4, [0, 0, 0, 1])
    with pytest.raises(DataError, match="network 3, calibrator 2"):
        saved(data, tmp_path, other)
    with pytest.raises(DataError, match="calibrator 2, class_names 3"):
        save_model(tmp_path / "own.safetensors", nn.Linear(6, 2), other, class_names=["a", "b", "c"])
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("key", CATALOGUE["models"])
def test_every_network_of_the_catalogue_is_built_on_meta_and_asked_for_its_shape(key):
    entry = CATALOGUE["models"][key]
    with torch.device("meta"):
        network = entry.make()
    assert {value.device.type for value in network.state_dict().values()} == {"meta"}
    shape = {"mlp": (64,), "global_pooling_cnn": (40, 100)}.get(key, (3, 64, 64))
    assert check_input_shape(network, shape, where="test")[0] == network.n_classes
