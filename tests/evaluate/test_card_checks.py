"""Scorecards and audits that were read: every changed value is reported, or harmless."""

import copy
import json

import numpy as np
import pytest

from equipoise import Predictions
from equipoise.core.errors import DataError
from equipoise.evaluate import Audit, Scorecard, audit, score
from equipoise.report import report_of, to_html

VALUES = (None, -7, 7.5, float("nan"), 1e300, True, "text", [], {}, [[[[]]]], 2**70)


#: What bins say again in other words, and is not read.
REPEATED = ("bin", "low", "high", "confidence", "frequency")


def nested(depth=3000):
    value = []
    for _ in range(depth):
        value = [value]
    return value


@pytest.fixture(scope="module")
def content():
    generator = np.random.default_rng(0)
    logits = 2 * generator.normal(size=(300, 7))
    labels = (logits + generator.gumbel(size=logits.shape)).argmax(1)
    groups = {"site": np.array(["north", "south"])[np.arange(300) % 2]}
    rows = Predictions(logits=logits, labels=labels, groups=groups)
    return json.loads(json.dumps(audit(rows, n_resamples=10, n_bins=4).to_dict()))


def places(value, path=()):
    """Yield the path of everything in nested values, of long lists only the first and the last."""
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in list(inside)[:1] + list(inside)[-1:] if isinstance(value, list) else list(inside):
        yield (*path, key)
        yield from places(part, (*path, key))


def changed(content, path, value):
    spoiled = copy.deepcopy(content)
    parent = spoiled
    for key in path[:-1]:
        parent = parent[key]
    parent[path[-1]] = value
    return spoiled


def test_every_changed_value_is_reported_or_harmless(content):
    accepted = set()
    for path in places(content):
        for value in (*VALUES, nested()):
            spoiled = changed(content, path, value)
            try:
                found = Audit.from_dict(spoiled)
            except DataError:
                continue
            accepted.add(".".join(map(str, path)))
            assert found.card["ece"].value == content["scores"]["ece"]["value"]
            assert str(found)
    changed_scores = {path for path in accepted if path.endswith(".value")}
    # These have no upper end.
    assert changed_scores == {"scores.nll.value", "scores.corp_log_miscalibration.value"}
    assert not [
        path for path in accepted if path.split(".")[-1] in ("accuracy", "confidence_sum", "weight", "gap")
    ]


def test_missing_values_are_reported(content):
    for path in places(content):
        if len(path) > 1 and isinstance(path[-1], str) and path[0] not in ("missing", "groups"):
            spoiled = copy.deepcopy(content)
            parent = spoiled
            for key in path[:-1]:
                parent = parent[key]
            del parent[path[-1]]
            is_free = path[-1] == "p_value" or (path[0] == "bins" and path[-1] in REPEATED)
            if is_free or (path[:-1] == ("scores",) and path[-1] not in ("ece", "accuracy")):
                continue
            with pytest.raises(DataError):
                Audit.from_dict(spoiled)


@pytest.mark.parametrize("other", [None, 3, "text", [], nested()])
def test_what_is_no_table_is_reported(other):
    for kind in (Scorecard, Audit):
        with pytest.raises(DataError, match="expected a scorecard of format 1"):
            kind.from_dict(other)


def test_scores_of_real_rows_are_accepted():
    generator = np.random.default_rng(1)
    probs = np.round(generator.random(50), 1)
    labels = (generator.random(50) < probs).astype(int)
    for rows in (
        Predictions(probs=probs, labels=labels),
        Predictions(probs=probs, labels=labels, weights=generator.random(50) * 1e6),
        Predictions(probs=np.ones(9), labels=np.ones(9, int)),
        Predictions(labels=labels, predicted=1 - labels, confidence=np.full(50, 0.2)),
        Predictions(logits=1e4 * generator.normal(size=(50, 9)), labels=labels),
    ):
        for settings in ({}, {"n_bins": 1}, {"n_bins": 7, "closed": "left"}):
            found = audit(rows, n_resamples=20, **settings)
            assert Audit.from_dict(json.loads(json.dumps(found.to_dict()))).to_dict() == found.to_dict()
            card = score(rows, n_resamples=20, **settings)
            assert Scorecard.from_dict(card.to_dict()).to_dict() == card.to_dict()


def test_a_report_of_what_was_read_is_that_of_what_was_written(content):
    assert to_html(report_of({"a": Audit.from_dict(content)}))
