"""The audit: parts agree with what they are made of, chunks with the whole, and text with hostile names."""

import copy
import json
import pickle

import numpy as np
import pytest

from equipoise import Predictions, score
from equipoise.core import DataError, SpecError, SplitError
from equipoise.evaluate import Audit, audit, score_by_class, score_by_group
from equipoise.metrics import CalibrationState
from equipoise.metrics.consistency import consistency_test


def rows(n=3000, **extra):
    generator = np.random.default_rng(0)
    logits = 3 * generator.normal(size=(n, 4))
    labels = (logits / 1.5 + generator.gumbel(size=logits.shape)).argmax(1)
    groups = {"site": np.array(["a", "b"])[np.arange(n) % 2]}
    return Predictions(**{"logits": logits, "labels": labels, "groups": groups} | extra)


def test_parts_are_what_their_functions_say():
    data = rows(class_names=list("wxyz"))
    found = audit(data, n_resamples=100, seed=3)
    assert found.card.to_dict() == score(data, n_resamples=100, seed=3).to_dict()
    assert found.classes == score_by_class(data)
    assert dict(found.groups) == {"site": score_by_group(data, "site")}
    assert {part.name for part in found.classes} == set("wxyz")
    test = consistency_test(data, n_resamples=1000)
    assert found.consistency.expected == pytest.approx(test.expected, rel=0.1)
    assert found.consistency.highest == pytest.approx(test.highest, rel=0.15)


def test_chunks_give_what_the_whole_gives():
    data = rows()
    whole, pieces = audit(data, n_resamples=50), audit(data.blocks(411), n_resamples=50)
    for key in ("ece", "mce", "nll", "brier", "accuracy", "classwise_ece"):
        assert pieces.card[key].value == pytest.approx(whole.card[key].value, abs=1e-12)
        assert pieces.card[key].high == pytest.approx(whole.card[key].high, abs=1e-9)
    for key in ("smece", "ks", "ada_ece", "auroc", "aurc"):
        assert pieces.card[key].value == pytest.approx(whole.card[key].value, abs=2e-3)
    assert [part[:2] for part in pieces.classes] == [part[:2] for part in whole.classes]
    assert pieces.consistency.value == pytest.approx(whole.consistency.value)


def test_top_one_files_are_audited():
    data = rows()
    top = Predictions(predicted=data.predicted, confidence=data.confidence, labels=data.labels)
    found = audit(top, n_resamples=50)
    assert found.card["ece"].value == pytest.approx(score(data, n_resamples=5)["ece"].value)
    assert "nll" in found.card.missing


def test_columns_are_looked_at_when_asked():
    data = rows(groups={"site": np.zeros(3000, int), "id": np.arange(3000)})
    found = audit(data, n_resamples=10)
    assert list(found.groups) == ["site"]
    assert "too_many_groups" in {caution.key for caution in found.cautions}
    assert dict(audit(data, by=(), n_resamples=10).groups) == {}
    with pytest.raises(DataError, match="different values"):
        audit(data, by=["id"], n_resamples=10)
    with pytest.raises(SpecError, match="did you mean 'site'"):
        audit(data, by=["sight"], n_resamples=10)


def test_refusals():
    with pytest.raises(DataError, match="no predictions"):
        audit([])
    data = rows()
    fitted = data.with_scores(logits=data.logits, fitted_on=data.rows)
    with pytest.raises(SplitError):
        audit(fitted.blocks(500), n_resamples=10)


def test_words_say_which_way_it_is_off():
    data = rows()
    over = audit(data, n_resamples=100)
    under = audit(data.with_scores(logits=data.logits / 6), n_resamples=100)
    exact = audit(data.with_scores(logits=data.logits / 1.5), n_resamples=100)
    assert "Overconfident by" in str(over)
    assert "Underconfident by" in str(under)
    assert "Consistent with a calibrated model" in str(exact)
    assert "Holm" in str(over)
    assert "none is off by more than chance explains" in str(exact)


def test_quiet_leaves_remarks_out():
    found = audit(rows(60, split="train"), n_resamples=50)
    assert "Warning: " in found.describe()
    assert "Warning: " not in found.describe(quiet=True)
    assert "ECE" in found.describe(quiet=True)


def test_hostile_names_stay_text():
    names = ["\x1b[2Jgone", "a\nb", "x" * 500, "\u202eright to left"]
    data = rows(class_names=names, groups={"\x1b[31m": np.array(names)[np.arange(3000) % 4]})
    text = str(audit(data, n_resamples=20))
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert max(map(len, text.splitlines())) < 140


def test_everything_is_plain_for_json():
    content = audit(rows(), n_resamples=20).to_dict()
    again = json.loads(json.dumps(content, allow_nan=True))
    assert again["scores"]["ece"]["value"] == content["scores"]["ece"]["value"]
    assert sum(part["n_samples"] for part in again["classes"]) == 3000
    assert len(again["bins"]) == 15


def test_one_row():
    found = audit(Predictions(probs=[[0.9, 0.1]], labels=[0]), n_resamples=20)
    assert found.card["accuracy"].value == 1
    assert "few_rows" in {caution.key for caution in found.cautions}
    assert str(found)


def test_an_audit_is_the_same_after_every_way_of_keeping_it():
    for found in (audit(rows(), n_resamples=20), audit(rows().blocks(500), n_resamples=20)):
        content = found.to_dict()
        for again in (
            Audit.from_dict(json.loads(json.dumps(content, allow_nan=False))),
            pickle.loads(pickle.dumps(found)),
            copy.deepcopy(found),
        ):
            assert again.to_dict() == content
            assert str(again) == str(found)


def test_values_that_are_no_audit_are_refused_in_a_sentence():
    content = audit(rows(), n_resamples=5).to_dict()
    del content["risk"]
    with pytest.raises(DataError, match="not a complete audit"):
        Audit.from_dict(content)


@pytest.mark.parametrize("n_rows", [3000, 411])
def test_rows_are_summed_once(monkeypatch, n_rows):
    seen = []
    add = CalibrationState._add
    monkeypatch.setattr(
        CalibrationState, "_add", lambda self, part, sums: (seen.append(len(part)), add(self, part, sums))[1]
    )
    audit(rows().blocks(n_rows), n_resamples=5)
    assert sum(seen) == 3000


def test_the_risk_of_a_stream_is_that_of_its_rows():
    data = rows()
    whole, pieces = (audit(part, n_resamples=5).risk for part in (data, data.blocks(411)))
    assert len(whole.coverage) == 200
    assert whole.coverage[-1] == pieces.coverage[-1] == 1
    assert whole.risk[-1] == pytest.approx(pieces.risk[-1]) == pytest.approx(1 - data.correct.mean())
    places = [0.2, 0.5, 0.8]
    assert np.interp(places, pieces.coverage, pieces.risk) == pytest.approx(
        np.interp(places, whole.coverage, whole.risk), abs=0.01
    )


def test_short_and_html_forms_of_an_audit():
    found = audit(rows(class_names=["<a>", "b", "c", "d"]), n_resamples=20)
    assert len(repr(found)) < 160
    assert "<a>" not in found._repr_html_()
    assert "&lt;a&gt;" in found._repr_html_()
