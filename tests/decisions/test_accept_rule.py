import json

import numpy as np
import pytest

from equipoise.calibrators import TemperatureScaling
from equipoise.core import Predictions
from equipoise.core.errors import DataError, SplitError
from equipoise.decisions import AcceptRule, certify_threshold


def draw(n, seed, factor=1.0, **more):
    rng = np.random.default_rng(seed)
    logits = 2 * rng.normal(size=(n, 3))
    labels = (logits + rng.gumbel(size=(n, 3))).argmax(1)
    return Predictions(logits=factor * logits, labels=labels, ids=np.arange(n) + 100_000 * seed, **more)


@pytest.fixture(scope="module")
def rule():
    calibrator = TemperatureScaling().fit(draw(500, 1, 3.0))
    return certify_threshold(draw(2000, 2, 3.0), max_error=0.15, calibrator=calibrator)


def test_saved_rule_decides_the_same(rule, tmp_path):
    rule.save(tmp_path / "rule.json")
    back = AcceptRule.load(tmp_path / "rule.json")
    rows = draw(300, 3, 3.0)
    assert (back(rows) == rule(rows)).all()
    assert back.certificate.as_dict() == rule.certificate.as_dict()
    assert 0 < rule(rows).sum() < 300


def test_rule_applies_its_calibrator(rule):
    rows = draw(300, 3, 3.0)
    want = rule.calibrator(rows).confidence >= rule.certificate.threshold
    assert (rule(rows) == want).all()


def test_rows_of_the_calibrator_cannot_certify():
    rows = draw(500, 1)
    with pytest.raises(SplitError, match="were used to fit the calibrator"):
        certify_threshold(rows, max_error=0.15, calibrator=TemperatureScaling().fit(rows))


def test_rows_of_the_certification_cannot_judge(rule, tmp_path):
    rule.save(tmp_path / "rule.json")
    for one in (rule, AcceptRule.load(tmp_path / "rule.json")):
        with pytest.raises(SplitError, match="were used to certify the threshold"):
            one.check(draw(2000, 2, 3.0))


def test_check_tells_a_kept_promise_from_a_broken_one(rule):
    good = rule.check(draw(3000, 4, 3.0))
    assert good.kept
    assert good.error_low <= good.observed_error <= good.error_high
    rows = draw(3000, 5, 3.0)
    shifted = Predictions(logits=rows.logits, labels=(rows.labels + 1) % 3)
    assert not rule.check(shifted).kept


def test_groups_survive_a_file(tmp_path):
    rows = draw(3000, 6, groups={"site": np.array(["a", "b", "c"])[np.arange(3000) % 3]})
    rule = certify_threshold(rows, max_error=0.15, by="site")
    rule.save(tmp_path / "rule.json")
    back = AcceptRule.load(tmp_path / "rule.json")
    new = draw(100, 7, groups={"site": np.array(["a", "new"])[np.arange(100) % 2]})
    assert (back(new) == rule(new)).all()
    assert not back(new)[1::2].any()
    with pytest.raises(DataError, match="no such column"):
        back(draw(10, 8))


def test_changed_and_foreign_files_are_refused(rule, tmp_path):
    path = tmp_path / "rule.json"
    rule.save(path)
    content = json.loads(path.read_text())
    content["plain"]["certificate"]["threshold"] = 0.1
    path.write_text(json.dumps(content))
    with pytest.raises(DataError, match="does not match its digest"):
        AcceptRule.load(path)
    with pytest.raises(ValueError, match=r"must end in \.json"):
        rule.save(tmp_path / "rule.pkl")
    plain = rule.as_dict()
    for damage in ({"certificate": {}}, {"score": 3}, {"rows": {"named": 1}}):
        with pytest.raises(DataError, match="damaged"):
            AcceptRule.from_dict({**plain, **damage})
