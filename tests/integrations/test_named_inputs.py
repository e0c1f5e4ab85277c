"""Networks that take named tensors and return an object with `logits`, as models of transformers do."""

import types
from collections import UserDict

import numpy as np
import onnxruntime
import pytest
import torch
from torch import nn

from equipoise.calibrators import TemperatureScaling
from equipoise.integrations.calibrated import CalibratedNetwork
from equipoise.integrations.onnx import export_onnx
from equipoise.integrations.saved_model import load_model, save_model


class Classifier(nn.Module):
    """Takes token numbers and their mask by name, any number of them."""

    def __init__(self):
        super().__init__()
        self.embedding, self.head = nn.Embedding(50, 8), nn.Linear(8, 3)

    def forward(self, input_ids, attention_mask):
        mask = attention_mask[..., None].float()
        pooled = (self.embedding(input_ids) * mask).sum(1) / mask.sum(1)
        return types.SimpleNamespace(logits=self.head(pooled))


class FixedLength(nn.Module):
    """Takes ten tokens, and no other number."""

    def __init__(self):
        super().__init__()
        self.embedding, self.head = nn.Embedding(50, 4), nn.Linear(40, 3)

    def forward(self, tokens):
        return self.head(self.embedding(tokens).flatten(1))


@pytest.fixture
def batch():
    generator = torch.Generator().manual_seed(0)
    mask = (torch.arange(10) < torch.tensor([10, 7, 4, 2])[:, None]).long()
    return {"input_ids": torch.randint(0, 50, (4, 10), generator=generator), "attention_mask": mask}


@pytest.fixture
def calibrator():
    return TemperatureScaling().fit([[3.0, 0.0, 0.0]] * 4, [0, 0, 0, 1])


def test_a_calibrated_network_takes_a_mapping_or_keywords(batch, calibrator):
    network = Classifier()
    with torch.no_grad():
        wanted = calibrator(network(**batch).logits).softmax(1)
        module = CalibratedNetwork(network, calibrator)
        for found in (module(batch), module(UserDict(batch)), module(**batch)):
            torch.testing.assert_close(found, wanted)


def test_a_saved_model_predicts_from_named_arrays(batch, calibrator, tmp_path):
    network, path = Classifier().eval(), tmp_path / "model.safetensors"
    save_model(path, network, calibrator, class_names=["a", "b", "c"])
    model = load_model(path, network=Classifier())
    wanted = CalibratedNetwork(network, calibrator)(batch).detach().numpy()
    arrays = {name: one.numpy() for name, one in batch.items()}
    for inputs in (batch, UserDict(batch), arrays):
        np.testing.assert_allclose(model.predict_proba(inputs), wanted, atol=1e-6)
    assert model.predict(batch).tolist() == [["a", "b", "c"][place] for place in wanted.argmax(1)]


def test_a_graph_has_the_names_and_any_number_of_rows_and_tokens(batch, calibrator, tmp_path):
    network, path = Classifier().eval(), tmp_path / "model.onnx"
    assert export_onnx(path, network, calibrator, UserDict(batch)) < 1e-5
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    assert [one.name for one in session.get_inputs()] == ["input_ids", "attention_mask"]
    for rows, length in ((1, 2), (3, 25)):
        other = {
            "input_ids": torch.randint(0, 50, (rows, length)),
            "attention_mask": torch.ones(rows, length).long(),
        }
        (probs,) = session.run(["probs"], {name: one.numpy() for name, one in other.items()})
        np.testing.assert_allclose(probs, CalibratedNetwork(network, calibrator)(other).detach(), atol=1e-5)


def test_a_network_of_one_length_is_exported_with_that_length(batch, calibrator, tmp_path):
    network, path = FixedLength().eval(), tmp_path / "model.onnx"
    assert export_onnx(path, network, calibrator, batch["input_ids"]) < 1e-5
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    assert session.get_inputs()[0].shape[1] == 10


def test_a_model_of_transformers(tmp_path, calibrator):
    transformers = pytest.importorskip("transformers")
    config = transformers.BertConfig(
        vocab_size=60,
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=32,
        num_labels=3,
    )
    network = transformers.BertForSequenceClassification(config).eval()
    batch = transformers.BatchEncoding(
        {
            "input_ids": torch.randint(0, 60, (4, 12)),
            "attention_mask": (torch.arange(12) < torch.tensor([12, 9, 5, 3])[:, None]).long(),
        }
    )
    wanted = calibrator(network(**batch).logits.detach()).softmax(1).numpy()
    np.testing.assert_allclose(CalibratedNetwork(network, calibrator)(batch).detach(), wanted, atol=1e-6)
    save_model(tmp_path / "model.safetensors", network, calibrator)
    twin = transformers.BertForSequenceClassification(config)
    model = load_model(tmp_path / "model.safetensors", network=twin)
    np.testing.assert_allclose(model.predict_proba(batch), wanted, atol=1e-6)
    assert export_onnx(tmp_path / "model.onnx", network, calibrator, batch) < 1e-4
    session = onnxruntime.InferenceSession(str(tmp_path / "model.onnx"), providers=["CPUExecutionProvider"])
    other = {"input_ids": torch.randint(0, 60, (2, 7)), "attention_mask": torch.ones(2, 7).long()}
    (probs,) = session.run(["probs"], {name: one.numpy() for name, one in other.items()})
    np.testing.assert_allclose(probs, CalibratedNetwork(network, calibrator)(other).detach(), atol=1e-5)
