"""An exported graph answers as the original does, for every calibrator, or is not written."""

import json

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from torch import nn

from equipoise import Predictions
from equipoise.calibrators import HistogramBinning, IsotonicCalibration, TemperatureScaling
from equipoise.calibrators.loading import KINDS
from equipoise.cli.app import run
from equipoise.core.errors import DataError
from equipoise.integrations import onnx as adapter
from equipoise.integrations.onnx import export_onnx
from equipoise.integrations.saved_model import save_model
from equipoise.models import mlp

CALIBRATORS = [
    *(make() for make in KINDS.values()),
    IsotonicCalibration(share="pooled"),
    HistogramBinning(share="top_label"),
    TemperatureScaling(criterion="ece"),
]


@pytest.fixture(scope="module")
def data():
    torch.manual_seed(0)
    network = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 4))
    inputs = torch.randn(500, 6)
    with torch.no_grad():
        logits = network(inputs).numpy() * 6
    return (
        network,
        inputs,
        logits,
        (logits / 2 + np.random.default_rng(0).gumbel(size=logits.shape)).argmax(1),
    )


@pytest.mark.slow
@pytest.mark.parametrize("calibrator", CALIBRATORS, ids=str)
def test_every_calibrator_is_exported_true(calibrator, data, tmp_path):
    network, inputs, logits, labels = data
    assert export_onnx(tmp_path / "m.onnx", network, calibrator.fit(logits, labels), inputs) < 1e-5


@pytest.mark.slow
def test_network_and_map_are_one_graph_for_any_number_of_rows(data, tmp_path):
    network, inputs, logits, labels = data
    fitted = HistogramBinning().fit(logits, labels)
    names = ["a", "b", "c", "d"]
    export_onnx(tmp_path / "m.onnx", network, fitted, inputs, class_names=names)
    session = onnxruntime.InferenceSession(str(tmp_path / "m.onnx"), providers=["CPUExecutionProvider"])
    told = session.get_modelmeta().custom_metadata_map
    assert (json.loads(told["class_names"]), told["calibrator"]) == (names, "histogram")
    with torch.no_grad():
        wanted = fitted(network(inputs).numpy())
    for rows in (1, 5, 257):
        (probs,) = session.run(["probs"], {"inputs": inputs[:rows].numpy()})
        np.testing.assert_allclose(probs, wanted[:rows], atol=1e-5)
    assert [file.name for file in tmp_path.iterdir()] == ["m.onnx"]


def test_a_calibrator_of_rounded_probabilities_is_exported_with_its_floor(tmp_path):
    rng = np.random.default_rng(0)
    logits = 2 * rng.normal(size=(800, 3))
    labels = (logits + rng.gumbel(size=logits.shape)).argmax(axis=1)
    probs = np.round(Predictions(logits=3 * logits).probs, 4)
    fitted = TemperatureScaling().fit(Predictions(probs=probs, labels=labels))
    assert fitted.result.floor
    path = tmp_path / "model.onnx"
    sharp = torch.tensor([[0.0, -60.0, -90.0], [0.0, -1.0, -2.0]])
    export_onnx(path, nn.Identity(), fitted, sharp)
    (found,) = onnxruntime.InferenceSession(str(path)).run(None, {"inputs": sharp.numpy()})
    expected = fitted(Predictions(probs=torch.softmax(sharp.double(), 1))).probs
    np.testing.assert_allclose(found, expected, atol=1e-6)
    assert 1 - found[0, 0] > 1e-3  # not what the temperature alone makes of such logits


def test_a_graph_that_answers_otherwise_is_not_written(data, tmp_path, monkeypatch):
    network, inputs, _, _ = data
    write = adapter._write

    def forged(path, model, example, name):
        write(path, model, example, name)
        graph = onnx.load(str(path))
        for weight in graph.graph.initializer:
            if weight.data_type == onnx.TensorProto.FLOAT and len(weight.dims) == 2:
                weight.CopyFrom(
                    onnx.numpy_helper.from_array(1.1 * onnx.numpy_helper.to_array(weight), weight.name)
                )
        onnx.save(graph, str(path))

    monkeypatch.setattr(adapter, "_write", forged)
    with pytest.raises(DataError, match="Nothing was written"):
        export_onnx(tmp_path / "m.onnx", network, None, inputs)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_the_command_exports_a_saved_model(tmp_path, capsys):
    network = mlp(n_inputs=6, n_classes=3)
    fitted = TemperatureScaling().fit(np.eye(3) * 5, [0, 1, 1])
    model = tmp_path / "model.safetensors"
    options = {"n_inputs": 6, "n_classes": 3}
    save_model(model, network, fitted, architecture="mlp", options=options)
    assert run(["export", str(model), "-o", str(tmp_path / "m.onnx")]) == 2
    assert "--shape" in capsys.readouterr().err
    assert run(["export", str(model), "-o", str(tmp_path / "m.onnx"), "--shape", "6", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["calibrator"] == "temperature"
    assert (tmp_path / "m.onnx").exists()


@pytest.mark.slow
def test_a_model_without_a_map_is_exported(tmp_path, capsys):
    options, model = {"n_inputs": 6, "n_classes": 3}, tmp_path / "model.safetensors"
    save_model(model, mlp(**options), architecture="mlp", options=options, input_shape=[6])
    assert run(["export", str(model), "-o", str(tmp_path / "m.onnx"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["calibrator"] == "identity"


@pytest.mark.parametrize("name", ["m.pt", "nowhere/m.onnx"])
def test_a_bad_name_is_refused_before_any_work(name, tmp_path, capsys):
    assert run(["export", "model.safetensors", "-o", str(tmp_path / name)]) == 2
    assert "--output" in capsys.readouterr().err


@pytest.mark.parametrize("shape", ["5", "6,1000000000", "99999999999999999999"])
def test_a_wrong_shape_is_a_usage_error_without_a_traceback(shape, tmp_path, capsys):
    model = tmp_path / "model.safetensors"
    save_model(
        model, mlp(n_inputs=6, n_classes=3), architecture="mlp", options={"n_inputs": 6, "n_classes": 3}
    )
    assert run(["export", str(model), "-o", str(tmp_path / "m.onnx"), "--shape", shape]) == 2
    printed = capsys.readouterr().err
    assert "inputs of shape" in printed
    assert "Traceback" not in printed
    assert not (tmp_path / "m.onnx").exists()


def test_a_calibrator_of_other_classes_is_not_exported(tmp_path, capsys):
    model, other = tmp_path / "model.safetensors", tmp_path / "c.json"
    save_model(
        model, mlp(n_inputs=6, n_classes=3), architecture="mlp", options={"n_inputs": 6, "n_classes": 3}
    )
    TemperatureScaling().fit([[3.0, 0.0]] * 4, [0, 0, 0, 1]).save(other)
    command = [
        "export",
        str(model),
        "-o",
        str(tmp_path / "m.onnx"),
        "--shape",
        "6",
        "--calibrator",
        str(other),
    ]
    assert run(command) == 2
    assert "2 classes" in capsys.readouterr().err
