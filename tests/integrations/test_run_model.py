"""A run becomes a model in use: one file or one graph that takes raw inputs and answers as the run did."""

import json

import numpy as np
import pytest
import torch

from equipoise import load_model
from equipoise.calibrators import VectorScaling
from equipoise.core.errors import DataError, SpecError
from equipoise.decisions import CostRule, certify_threshold
from equipoise.experiments import Spec, run
from equipoise.integrations import run_model
from equipoise.integrations.run_model import find_run, load_run, save_run
from helpers.command_line import run as command
from helpers.tiny_runs import TABLE, quick_options

QUICK = {"name": "quick", "epochs": 1}
OPTIONS = quick_options()


def trained(folder, calibrators=("identity", "temperature"), **changes):
    options = quick_options(calibrators=tuple(calibrators))
    return run(Spec.from_table({**TABLE, "recipe": QUICK, **changes}), folder, **options)


@pytest.fixture(scope="module")
def digits(tmp_path_factory):
    return trained(tmp_path_factory.mktemp("runs"))


@pytest.fixture(scope="module")
def points(tmp_path_factory):
    """A table with columns of very different units."""
    folder = tmp_path_factory.mktemp("points")
    generator = np.random.default_rng(0)
    labels = np.arange(300) % 3
    values = np.eye(3)[labels] + generator.normal(size=(300, 3))
    rows = [
        f"{a * 1000 + 50000:.6f},{b:.6f},{c / 1000:.8f},{'xyz'[k]}"
        for (a, b, c), k in zip(values, labels, strict=True)
    ]
    (folder / "points.csv").write_text("\n".join(["a,b,c,label", *rows]) + "\n")
    data = {"name": "table", "options": {"path": str(folder / "points.csv")}}
    return trained(folder / "runs", data=data), folder


def raw_test_rows(folder, n=20):
    model = load_run(folder)
    return model.example[:n].numpy(), folder.calibrated("temperature").probs[:n]


def test_a_saved_run_takes_raw_images_and_answers_as_the_run(digits, tmp_path, capsys):
    images, expected = raw_test_rows(digits)
    path = tmp_path / "model.safetensors"
    code, printed, _ = command(capsys, "save", digits.path, "-o", path, "--json")
    facts = json.loads(printed)
    assert (code, facts["calibrator"]) == (0, "temperature")
    assert "uint8 images (n, 1, 8, 8), values 0 to 255" in facts["inputs"]
    assert facts["largest_difference"] < 1e-5
    model = load_model(path)
    assert images.dtype == np.uint8
    np.testing.assert_allclose(model.predict_proba(images), expected, atol=1e-5)
    assert model.predict(images).tolist() == [str(number) for number in expected.argmax(1)]
    with pytest.raises(DataError, match="expected uint8 images with values 0 to 255"):
        model.predict(images.astype(np.float32) / 255)


def test_standardization_of_features_is_in_the_file(points, tmp_path, capsys):
    folder, _ = points
    rows, expected = raw_test_rows(folder)
    assert rows[:, 0].min() > 10000
    path = tmp_path / "model.safetensors"
    assert command(capsys, "save", folder.path, "-o", path)[0] == 0
    model = load_model(path)
    assert model.class_names == ("x", "y", "z")
    np.testing.assert_allclose(model.predict_proba(rows), expected, atol=1e-5)


@pytest.mark.parametrize("kind", ["digits", "points"])
def test_an_exported_run_and_an_exported_file_are_one_graph(kind, request, tmp_path, capsys):
    onnxruntime = pytest.importorskip("onnxruntime")
    found = request.getfixturevalue(kind)
    folder = found if kind == "digits" else found[0]
    rows, expected = raw_test_rows(folder)
    saved = tmp_path / "model.safetensors"
    assert command(capsys, "save", folder.path, "-o", saved)[0] == 0
    for name, source in (("run.onnx", folder.path), ("file.onnx", saved)):
        code, printed, _ = command(capsys, "export", source, "-o", tmp_path / name)
        assert (code, "Inputs: " in printed) == (0, True)
        session = onnxruntime.InferenceSession(str(tmp_path / name), providers=["CPUExecutionProvider"])
        (probs,) = session.run(["probs"], {"inputs": rows})
        np.testing.assert_allclose(probs, expected, atol=1e-5)


def certified(folder, path, **options):
    """Certify a threshold on the run's own test rows, which is enough to see it applied."""
    rule = certify_threshold(folder.predictions("test"), min_coverage=0.4, **options)
    rule.save(path)
    return rule


@pytest.mark.parametrize("source", ["run", "saved", "saved with the rule"])
def test_a_decision_goes_along_with_the_network(source, digits, tmp_path, capsys):
    onnxruntime = pytest.importorskip("onnxruntime")
    rule = certified(digits, tmp_path / "rule.json", calibrator=digits.calibrator("temperature"))
    expected = rule(digits.predictions("test").take(slice(0, 200)))
    assert 0 < expected.mean() < 1
    images, _ = raw_test_rows(digits, 200)
    model, graph = digits.path, tmp_path / "model.onnx"
    words = ("--decision", tmp_path / "rule.json")
    if source != "run":
        model = tmp_path / "model.safetensors"
        kept = words if source == "saved with the rule" else ()
        code, printed, _ = command(capsys, "save", digits.path, "-o", model, *kept)
        assert (code, "of accepted predictions are wrong" in printed) == (0, bool(kept))
        if kept:
            assert np.mean(load_model(model).accept(images) == expected) > 0.99
        words = () if kept else words
    code, printed, _ = command(capsys, "export", model, "-o", graph, *words, "--json")
    assert (code, json.loads(printed)["threshold"]) == (0, rule.certificate.threshold)
    session = onnxruntime.InferenceSession(str(graph), providers=["CPUExecutionProvider"])
    probs, accept = session.run(["probs", "accept"], {"inputs": images})
    np.testing.assert_allclose(probs, digits.calibrated("temperature").probs[:200], atol=1e-5)
    assert np.mean(accept == expected) > 0.99
    assert "accepted predictions are wrong" in session.get_modelmeta().custom_metadata_map["accept"]


def test_a_decision_that_does_not_fit_the_model_is_an_error(digits, tmp_path, capsys):
    path = tmp_path / "rule.json"

    def message(*more):
        code, _, error = command(
            capsys, "save", digits.path, "-o", tmp_path / "m.safetensors", "--decision", path, *more
        )
        assert (code, (tmp_path / "m.safetensors").exists()) == (2, False)
        return error

    certified(digits, path)
    assert "certified without a calibrator, and the model has temperature" in message()
    certified(digits, path, calibrator=digits.calibrator("temperature"))
    VectorScaling().fit(digits.predictions("calib")).save(tmp_path / "vector.json")
    assert "certified with another calibrator, and the model has vector" in message(
        "--calibrator", tmp_path / "vector.json"
    )
    CostRule(wrong=10, abstain=1).save(path)
    assert "needs a certified threshold, and" in message()


def test_a_run_is_chosen_by_method_and_seed(tmp_path, capsys):
    one, two = trained(tmp_path), trained(tmp_path, method="focal", seed=3)
    assert find_run(tmp_path, method="focal").path == two.path
    assert find_run(tmp_path, seed=0).path == one.path
    code, _, error = command(capsys, "export", tmp_path, "-o", tmp_path / "m.onnx")
    assert code == 2
    assert "expected one run, got 2. Select one by method and seed (--method, --seed)" in error
    assert one.name in error
    assert two.name in error
    with pytest.raises(SpecError, match="Did you mean 'focal'"):
        find_run(tmp_path, method="focl")
    with pytest.raises(SpecError, match=r"no finished run with seed 7\. Seeds: 0, 3"):
        find_run(tmp_path, seed=7)
    with pytest.raises(SpecError, match="holds no finished run"):
        find_run(tmp_path.parent / "empty" if (tmp_path.parent / "empty").mkdir() is None else "")


def test_a_calibrator_is_chosen_by_name(tmp_path, capsys):
    folder = trained(tmp_path, calibrators=("identity", "temperature", "vector"))
    code, _, error = command(capsys, "save", folder.path, "-o", tmp_path / "m.safetensors")
    assert (code, "has the calibrators temperature, vector. Choose one with --calibrator" in error) == (
        2,
        True,
    )
    for name, expected in (
        ("vector", folder.calibrated("vector")),
        ("identity", folder.predictions("test")),
    ):
        words = ("save", folder.path, "-o", tmp_path / "m.safetensors", "--calibrator", name)
        assert command(capsys, *words)[0] == 0
        found = load_model(tmp_path / "m.safetensors").predict_proba(
            load_run(folder, calibrator=name).example
        )
        np.testing.assert_allclose(found, expected.probs[: len(found)], atol=1e-5)
    code, _, error = command(
        capsys, "save", folder.path, "-o", tmp_path / "m.safetensors", "--calibrator", "platt"
    )
    assert (code, "has no calibrator 'platt'" in error) == (2, True)


def test_a_model_that_answers_otherwise_is_not_written(digits, tmp_path, monkeypatch):
    original = run_model.load_network

    def forged(target, built, spec):
        network = original(target, built, spec)
        with torch.no_grad():
            network.head.bias += torch.arange(10)
        return network

    monkeypatch.setattr(run_model, "load_network", forged)
    with pytest.raises(DataError, match="differ from those that the run stored"):
        load_run(digits)


def test_several_networks_are_saved_as_one(tmp_path):
    folder = trained(tmp_path, method={"name": "deep_ensemble", "options": {"n_members": 2}})
    model = load_run(folder)
    save_run(model, tmp_path / "m.safetensors")
    loaded = load_model(tmp_path / "m.safetensors")
    assert len(loaded.network.networks) == 2
    inputs = torch.rand(5, *model.example.shape[1:])
    with torch.no_grad():
        assert torch.equal(loaded.network(inputs), model.network(inputs))


def test_a_network_of_the_users_own_is_filled_when_it_is_loaded(tmp_path, capsys):
    (tmp_path / "net.py").write_text(
        "from torch import nn\n\n"
        "class Net(nn.Module):\n"
        "    def __init__(self, n_classes, n_inputs):\n"
        "        super().__init__()\n"
        "        self.layers = nn.Sequential(nn.Flatten(), nn.Linear(n_inputs, n_classes))\n\n"
        "    def forward(self, x):\n"
        "        return self.layers(x)\n"
    )
    spec = {**TABLE, "recipe": QUICK, "model": "net.py:Net"}
    folder = run(Spec.from_table(spec, base_dir=str(tmp_path)), tmp_path / "runs", **OPTIONS)
    words = ("save", folder.path, "-o", tmp_path / "m.safetensors")
    code, _, error = command(capsys, *words)
    assert (code, "pass the folder that these are relative to, code=... (--code)" in error) == (2, True)
    code, printed, _ = command(capsys, *words, "--code", tmp_path)
    assert (code, "network=YOUR_NETWORK" in printed) == (0, True)
    model = load_run(folder, code=tmp_path)
    images, expected = model.example.numpy(), folder.calibrated("temperature").probs[: len(model.example)]
    network = type(model.network)(n_classes=10, n_inputs=64)
    found = load_model(tmp_path / "m.safetensors", network=network).predict_proba(images)
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_older_versions_do_not_read_a_file_with_scaling(digits, tmp_path):
    safetensors = pytest.importorskip("safetensors")
    save_run(load_run(digits), tmp_path / "m.safetensors")
    with safetensors.safe_open(tmp_path / "m.safetensors", framework="pt") as stream:
        assert json.loads(stream.metadata()["equipoise.model"])["version"] == 2


def test_training_names_the_next_command(digits, tmp_path, capsys):
    (tmp_path / "run.toml").write_text(
        'data = "digits"\nmodel = "mlp"\nmethod = "ce"\nrecipe = { name = "quick", epochs = 1 }\n'
    )
    words = ("train", tmp_path / "run.toml", "--out", tmp_path / "runs", "--resamples", "20")
    code, printed, _ = command(capsys, *words)
    assert code == 0
    (folder,) = (path for path in (tmp_path / "runs").iterdir() if path.is_dir())
    assert f"equipoise save {folder} -o model.safetensors" in printed
    assert f"equipoise export {folder} -o model.onnx" in printed
