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

from equipoise.calibrators import MatrixScaling, TemperatureScaling
from equipoise.calibrators.load import KINDS
from equipoise.core.errors import DataError, SpecError
from equipoise.core.probabilities import softmax
from equipoise.integrations.saved_model import load_model, save_model
from equipoise.models import mlp

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


@pytest.mark.deep
def test_it_loads_without_the_training_extras(data, tmp_path):
    path = saved(data, tmp_path, MatrixScaling().fit(data[2], data[3]))
    code = f"""
import sys
for name in ("lightning_fabric", "filelock", "click", "rich", "sklearn", "matplotlib", "ray"):
    sys.modules[name] = None
import numpy as np
from equipoise.integrations.saved_model import load_model
print(load_model({str(path)!r}).predict_proba(np.zeros((1, 6), np.float32)).sum())
"""
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert float(found.stdout) == pytest.approx(1)
