import json
import re

import numpy as np
import pytest
import torch

from equipoise.core import Predictions
from equipoise.core.errors import DataError, NotFittedError
from equipoise.core.records import Record, read_record, write_record
from equipoise.decisions import (
    CostRule,
    PredictionSets,
    certify_threshold,
    check_decision,
    least_cost_actions,
    load_decision,
)


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    logits = 2 * rng.normal(size=(2000, 3))
    labels = (logits + rng.gumbel(size=(2000, 3))).argmax(1)
    return Predictions(logits=logits, labels=labels)


@pytest.mark.parametrize("kind", [np.array, torch.tensor], ids=["numpy", "torch"])
def test_arrays_and_tensors_give_what_predictions_give(rows, kind):
    probs, labels = kind(np.array(rows.probs)), kind(np.array(rows.labels))
    one, two = certify_threshold(rows, max_error=0.15), certify_threshold(probs, labels, max_error=0.15)
    assert one.certificate == two.certificate
    assert (one(rows) == two(probs)).all()
    costs = least_cost_actions(probs, labels, wrong=5, abstain=1)
    assert (costs.action == least_cost_actions(rows, wrong=5, abstain=1).action).all()
    sets = PredictionSets("aps").fit(probs[:1000], labels[:1000])
    assert (
        sets(probs[1000:]).members
        == PredictionSets("aps").fit(rows.take(slice(0, 1000)))(rows.take(slice(1000, 2000))).members
    ).all()
    assert sets(probs[1000:], labels[1000:]).report().n == 1000


def test_labels_are_given_once(rows):
    with pytest.raises(TypeError, match="Pass Predictions alone"):
        certify_threshold(rows, rows.labels, max_error=0.1)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda rows: certify_threshold(rows, max_error="5%"),
            "`max_error` must be a number, got '5%'. 5% is 0.05.",
        ),
        (
            lambda rows: certify_threshold(rows, max_error=0.1, confidence=None),
            "`confidence` must be a number",
        ),
        (
            lambda rows: certify_threshold(rows, min_coverage=80),
            "must be above 0 and at most 1, got 80. 80% is 0.8.",
        ),
        (
            lambda rows: certify_threshold(rows, max_error=0.1, by=["site"]),
            "`by` must be the name of one column",
        ),
        (
            lambda rows: certify_threshold(rows, max_error=0.1, calibrator="beta"),
            "must be a fitted calibrator",
        ),
        (lambda rows: certify_threshold(rows.take(slice(0, 0)), max_error=0.1), "have no rows"),
        (lambda rows: certify_threshold(rows, max_error=0.2)(rows, score=rows.confidence), "Leave it out"),
        (lambda _: PredictionSets(coverage="90%"), "`coverage` must be a number, got '90%'. 90% is 0.9."),
        (lambda _: PredictionSets("raps", penalty=-1), "`penalty` must be at least 0"),
        (lambda _: PredictionSets("raps", penalty=float("inf")), "`penalty` must be at least 0 and finite"),
        (lambda _: PredictionSets("raps", k_reg=-1), "`k_reg` must be 0 or more"),
        (lambda _: PredictionSets("raps", k_reg=None), "`k_reg` must be an integer of 64 bits, got None"),
        (lambda _: PredictionSets(conditional="group", by=["site"]), "`by` must be the name of one column"),
        (lambda _: PredictionSets("aps", seed="a"), "`seed` must be an integer"),
        (lambda rows: PredictionSets().fit(rows.take(slice(0, 0))), "have no rows"),
        (lambda _: PredictionSets().expected_coverage(), "not fitted yet"),
        (lambda rows: least_cost_actions(rows, wrong="ten", abstain=1), "costs must be numbers"),
        (lambda rows: least_cost_actions(rows, matrix=[[1, 2], [3], [4, 5]]), "as many in every row"),
        (
            lambda rows: least_cost_actions(rows, matrix=np.ones((3, 2)), actions="ab"),
            "must be a list of names",
        ),
        (lambda rows: check_decision(None, rows), "expected a decision, got NoneType"),
        (
            lambda rows: check_decision(CostRule(wrong=5, abstain=1), rows, level=5),
            "`level` must be between 0 and 1",
        ),
    ],
)
def test_wrong_arguments_are_named(rows, call, message):
    with pytest.raises((TypeError, ValueError, DataError, NotFittedError), match=re.escape(message)):
        call(rows)


@pytest.mark.parametrize(
    ("decision", "path", "value"),
    [
        (PredictionSets("aps", conditional="class"), ("limits", "0"), None),
        (PredictionSets("aps", conditional="class"), ("counts",), {}),
        (PredictionSets("raps"), ("settings", "k_reg"), 10**30),
        (PredictionSets("raps"), ("settings", "seed"), None),
        (PredictionSets("raps"), ("counts",), {"": 0}),
        (CostRule(matrix=[[0.0, 1.0]] * 3, actions=["a", "b"]), ("actions",), 3),
        (CostRule(matrix=[[0.0, 1.0]] * 3, actions=["a", "b"]), ("actions", 0), ["a"]),
    ],
)
def test_forged_decisions_are_reported_as_damaged(rows, tmp_path, decision, path, value):
    file = tmp_path / "decision.json"
    (decision.fit(rows) if isinstance(decision, PredictionSets) else decision).save(file)
    kind = json.loads(file.read_text())["format"]
    plain = dict(read_record(file, kind, 1).plain)
    part = plain
    for key in path[:-1]:
        part = part[key]
    if path == ("limits", "0"):
        del part["0"]
    else:
        part[path[-1]] = value
    write_record(file, kind, 1, Record(plain, {}))
    with pytest.raises(DataError, match="is damaged"):
        load_decision(file)
