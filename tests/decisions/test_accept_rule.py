import json
from dataclasses import replace

import numpy as np
import pytest

from equipoise.calibrators import TemperatureScaling
from equipoise.core import Predictions
from equipoise.core.errors import DataError, SplitError
from equipoise.decisions import AcceptRule, PromiseCheck, certify_threshold
from equipoise.decisions.accept_rule import _correct_for_groups


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


def test_predictions_of_other_classes_are_an_error(tmp_path):
    rule = certify_threshold(draw(2000, 31), max_error=0.3)
    rule.save(tmp_path / "rule.json")
    for one in (rule, AcceptRule.load(tmp_path / "rule.json")):
        with pytest.raises(DataError, match=r"must have 3 classes.*got 2"):
            one(Predictions(probs=[[0.9, 0.1]]))
        assert one(Predictions(confidence=[0.99], predicted=[0])).all()


def test_a_rule_without_a_number_of_classes_is_read(rule):
    content = rule.as_dict()
    del content["n_classes"]
    assert AcceptRule.from_dict(content).n_classes is None
    with pytest.raises(DataError, match="`n_classes` must be a whole number"):
        AcceptRule.from_dict(content | {"n_classes": "3"})


def test_checks_of_groups_are_corrected_and_add_up():
    site = np.array(["a", "b", "c", "d"])[np.arange(4000) % 4]
    rule = certify_threshold(draw(4000, 32, groups={"site": site}), max_error=0.2, by="site")
    assert rule.certificate.certified
    good = rule.check(draw(4000, 33, groups={"site": site}))
    assert good.kept == all(one.kept for one in good.groups.values())
    assert "The promise is kept in every group" in good.describe()
    rows = draw(4000, 34, groups={"site": site})
    labels = np.where(site == "c", (rows.labels + 1) % 3, rows.labels)
    bad = rule.check(Predictions(logits=rows.logits, labels=labels, groups={"site": site}))
    assert [name for name, one in bad.groups.items() if not one.kept] == ["c"]
    assert bad.describe().startswith("The promise is broken in 1 of 4 groups")
    assert bad.describe().splitlines()[1].startswith("c: The promise is broken")


def test_one_small_p_value_among_many_groups_is_no_broken_promise():
    one = PromiseCheck(True, 100, 50, 0.5, 0.1, 0.03, 0.22, 0.02, 0.05)
    tests = {str(number): replace(one, p_value=0.02 if number == 0 else 0.5) for number in range(10)}
    assert all(found.kept for found in _correct_for_groups(tests, 0.05).values())
    tests |= {"0": replace(one, p_value=0.004), "1": replace(one, p_value=0.0054)}
    broken = [name for name, found in _correct_for_groups(tests, 0.05).items() if not found.kept]
    assert broken == ["0", "1"]


def test_whole_weights_of_judged_rows_count_rows(rule):
    rows = draw(900, 6, 3.0)
    weights = np.random.default_rng(6).integers(0, 4, 900)
    repeated = rows.take(np.repeat(np.arange(900), weights))
    assert rule.check(rows.with_weights(weights)) == rule.check(repeated)
    assert rule.check(rows.with_weights(np.full(900, 0.3))) == rule.check(rows)


def test_other_weights_are_tested_by_betting(rule):
    rng = np.random.default_rng(7)
    weights = rng.uniform(0.5, 1.5, 4000)
    rows = draw(4000, 7, 3.0).with_weights(weights)
    good = rule.check(rows)
    accepted = rule(rows)
    calibrated = rule.calibrator(rows)
    error = np.average(~calibrated.correct[accepted], weights=weights[accepted])
    assert good.kept
    assert good.observed_error == pytest.approx(error)
    assert good.coverage == pytest.approx(weights[accepted].sum() / weights.sum())
    assert good.error_low < error < good.error_high
    assert good.error_high - good.error_low < 0.1
    assert "betting test" in good.describe()
    shifted = Predictions(logits=rows.logits, labels=(rows.labels + 1) % 3, weights=weights)
    assert not rule.check(shifted).kept
    # The unit of weights means nothing.
    assert rule.check(rows.with_weights(1000.5 * weights)).p_value == pytest.approx(good.p_value)


def test_groups_of_weighted_rows_are_tested_by_themselves(tmp_path):
    rng = np.random.default_rng(8)
    site = {"site": rng.choice(["north", "south"], 6000)}
    certified = certify_threshold(draw(6000, 8, groups=site), max_error=0.2, by="site")
    rows = draw(6000, 9, groups=site).with_weights(
        np.where(site["site"] == "south", 0.0, rng.uniform(0.5, 1, 6000))
    )
    checked = certified.check(rows)
    assert list(checked.groups) == ["north"]  # the other one has no weight
    assert checked.kept
