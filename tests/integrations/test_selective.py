"""A certified rule keeps deciding the same in scikit-learn, in ONNX and in a saved model."""

import warnings

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.datasets import load_digits, make_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.svm import LinearSVC
from sklearn.utils.estimator_checks import check_estimator
from torch import nn

from equipoise.calibrators import TemperatureScaling
from equipoise.core import Predictions
from equipoise.core.errors import DataError, EquipoiseWarning
from equipoise.decisions import certify_threshold
from equipoise.integrations.saved_model import load_model, save_model
from equipoise.integrations.sklearn import CalibratedClassifier, SelectiveClassifier


def test_every_check_of_scikit_learn_passes():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = check_estimator(SelectiveClassifier(GaussianNB(), max_error=0.5), on_fail=None, on_skip=None)
    assert [(one["check_name"], one["exception"]) for one in found if one["status"] == "failed"] == []
    assert sum(one["status"] == "passed" for one in found) >= 50


@pytest.mark.parametrize("base", [RandomForestClassifier(30, random_state=0), LinearSVC()])
def test_accepted_predictions_are_wrong_rarely(base):
    X, y = load_digits(return_X_y=True)
    classifier = SelectiveClassifier(base, max_error=0.05, holdout=0.5).fit(X[:1200], y[:1200])
    predicted = classifier.predict(X[1200:])
    accepted = classifier.accept(X[1200:])
    assert ((predicted == -1) == ~accepted).all()
    assert 0.3 < accepted.mean() <= 1
    assert (predicted != y[1200:])[accepted].mean() < 0.09
    assert clone(classifier).get_params()["max_error"] == 0.05


def test_names_abstain_by_name_and_frozen_estimators_use_all_rows():
    X, codes = make_classification(2000, flip_y=0.2, random_state=0)
    y = np.array(["cat", "dog"])[codes]
    frozen = FrozenEstimator(CalibratedClassifier(LogisticRegression()).fit(X[:800], y[:800]))
    classifier = SelectiveClassifier(frozen, max_error=0.14).fit(X[800:1500], y[800:1500])
    assert classifier.rule_.certificate.n == 700
    predicted = classifier.predict(X[1500:])
    assert set(predicted) == {"cat", "dog", "abstain"}
    assert classifier.predict_proba(X[1500:]).shape == (500, 2)


def test_nothing_certifiable_warns_and_abstains():
    X, y = make_classification(300, flip_y=1.0, random_state=0)
    with pytest.warns(EquipoiseWarning, match="every prediction will be an abstention"):
        classifier = SelectiveClassifier(GaussianNB(), max_error=0.05).fit(X, y)
    assert (classifier.predict(X) == -1).all()
    with pytest.raises(ValueError, match="must differ from every class"):
        SelectiveClassifier(GaussianNB(), abstain=1).fit(X, y)


def rows(n, seed, network, calibrated=False):
    inputs = torch.randn(n, 4, generator=torch.Generator().manual_seed(seed))
    with torch.no_grad():
        logits = network(inputs).double().numpy()
    labels = (logits / 2 + np.random.default_rng(seed).gumbel(size=logits.shape)).argmax(1)
    return inputs, Predictions(logits=logits, labels=labels, ids=np.arange(n) + 10**6 * seed)


@pytest.fixture(scope="module")
def model():
    torch.manual_seed(0)
    network = nn.Linear(4, 3)
    with torch.no_grad():
        network.weight *= 8
    calibrator = TemperatureScaling().fit(rows(500, 1, network)[1])
    return network, calibrator


@pytest.mark.parametrize("score", ["confidence", "margin", "entropy"])
def test_onnx_graph_has_an_accept_output(model, score, tmp_path):
    onnxruntime = pytest.importorskip("onnxruntime")
    from equipoise.integrations.onnx import export_onnx

    network, calibrator = model
    rule = certify_threshold(rows(2000, 2, network)[1], max_error=0.2, score=score, calibrator=calibrator)
    inputs, new = rows(200, 3, network)
    path = tmp_path / "model.onnx"
    export_onnx(path, network, calibrator, inputs, rule=rule)
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    assert [one.name for one in session.get_outputs()] == ["probs", "accept"]
    probs, accepted = session.run(None, {"inputs": inputs.numpy()})
    assert np.allclose(probs, calibrator(new).probs, atol=1e-5)
    assert (accepted == rule(new)).mean() > 0.99
    assert 0 < accepted.mean() < 1
    other = TemperatureScaling().fit(rows(500, 7, network)[1])
    with pytest.raises(DataError, match="another calibrator"):
        export_onnx(path, network, other, inputs, rule=rule)


def test_saved_model_keeps_the_rule(model, tmp_path):
    pytest.importorskip("safetensors")
    network, calibrator = model
    rule = certify_threshold(rows(2000, 2, network)[1], max_error=0.2, calibrator=calibrator)
    path = tmp_path / "model.safetensors"
    save_model(path, network, rule=rule)
    loaded = load_model(path, network=nn.Linear(4, 3))
    inputs, new = rows(200, 3, network)
    assert (loaded.accept(inputs) == rule(new)).mean() > 0.99
    assert loaded.rule.certificate.as_dict() == rule.certificate.as_dict()
    assert (loaded.rule(new) == rule(new)).all()
    save_model(path, network, calibrator)
    with pytest.raises(DataError, match="without a rule"):
        load_model(path, network=nn.Linear(4, 3)).accept(inputs)
    nothing = certify_threshold(rows(40, 4, network)[1], max_error=0.01)
    with pytest.raises(DataError, match="one certified threshold"):
        save_model(path, network, rule=nothing)
