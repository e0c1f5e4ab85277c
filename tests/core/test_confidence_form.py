"""Confidence and correctness as a form of its own: no classes, everything else."""

import numpy as np
import pytest

from equipoise import Predictions, read_predictions, score
from equipoise.calibrators import TemperatureScaling
from equipoise.calibrators.loading import KINDS
from equipoise.core import write_predictions
from equipoise.core.errors import DataError, SpecError
from equipoise.core.predictions.combine import concatenate
from equipoise.core.reading.formats import WRITERS
from equipoise.evaluate import audit, compare, read_audit_state, score_by_class, write_audit_state
from equipoise.evaluate.audit_state import AuditState, merge_states
from equipoise.report import report_of, to_html, to_model_card


def made(n=600, seed=0, **arguments):
    generator = np.random.default_rng(seed)
    confidence = generator.uniform(0.3, 1, n)
    return Predictions(confidence=confidence, correct=generator.random(n) < 0.8 * confidence, **arguments)


def test_what_is_known_and_what_is_not():
    rows = Predictions(confidence=[0.9, 0.4], correct=[True, False], split="test")
    assert repr(rows) == "Predictions(confidence, n=2, split=test)"
    assert rows.correct.tolist() == [True, False]
    assert rows.n_classes is None
    for name in ("labels", "predicted", "probs", "logits"):
        with pytest.raises(DataError, match="only"):
            getattr(rows, name)
    unknown = Predictions(confidence=[0.9])
    assert not unknown.has_labels
    with pytest.raises(DataError, match=r"Give correct="):
        score(unknown)


@pytest.mark.parametrize(
    "correct", [[1, 0], ["true", "False"], [True, False], [1.0, 0.0], np.array(["1", "0"])]
)
def test_outcomes_in_every_spelling(correct):
    assert Predictions(confidence=[0.9, 0.4], correct=correct).correct.tolist() == [True, False]


@pytest.mark.parametrize("correct", [[1, 2], ["yes", "no"], [0.5, 1], [1, -1], [None, True]])
def test_other_outcomes_are_errors(correct):
    with pytest.raises(DataError, match=r"`correct` must be true or false, or 1 or 0, got .* in row \d"):
        Predictions(confidence=[0.9, 0.4], correct=correct)


@pytest.mark.parametrize(
    "more",
    [
        {"labels": [0, 1]},
        {"predicted": [0, 1]},
        {"n_classes": 2},
        {"class_names": ["a", "b"]},
        {"ignore_index": 0},
    ],
)
def test_classes_are_refused(more):
    with pytest.raises(ValueError, match="Predictions"):
        Predictions(confidence=[0.9, 0.4], correct=[1, 0], **more)


def test_scores_are_those_of_the_event():
    rows = made()
    happened = np.where(rows.correct, rows.confidence, 1 - rows.confidence)
    card = score(rows, n_resamples=99)
    assert card["correct_nll"].value == pytest.approx(-np.log(happened).mean())
    assert card["correct_brier"].value == pytest.approx(((rows.confidence - rows.correct) ** 2).mean())
    top1 = Predictions(predicted=[1] * len(rows), confidence=rows.confidence, labels=rows.correct.astype(int))
    again = score(top1, n_resamples=99)
    assert dict(again.scores) == dict(card.scores)
    with pytest.raises(SpecError, match="'correct_brier' judges the confidence"):
        card["brier"]
    with pytest.raises(SpecError, match="'nll' and 'brier' judge them"):
        score(Predictions(probs=[0.9, 0.2], labels=[1, 0]), n_resamples=9)["correct_nll"]


def test_certain_and_wrong_counts_at_the_smallest_probability():
    card = score(Predictions(confidence=[1.0, 0.5], correct=[0, 1]), n_resamples=9)
    assert card["correct_nll"].value == pytest.approx((87.33654 + np.log(2)) / 2)
    assert any("1 rows were claimed with confidence 1 and wrong" in note for note in card.notes)


def test_no_class_is_alarmed():
    """The former encoding, label 1 and predicted 0 or 1, called 'class 0' miscalibrated: it is always wrong."""
    found = audit(made(3000), n_resamples=99)
    assert found.classes == () == score_by_class(made())
    assert "Predicted classes" not in str(found)
    assert "class" not in " ".join(caution.key for caution in found.cautions)


@pytest.mark.parametrize("ending", WRITERS)
@pytest.mark.parametrize("known", [True, False])
def test_files_keep_it(ending, known, tmp_path):
    if ending in (".parquet", ".safetensors"):
        pytest.importorskip({".parquet": "pyarrow", ".safetensors": "safetensors"}[ending])
    rows = made(40, weights=np.ones(40), groups={"subject": ["law", "math"] * 20}, ids=np.arange(40))
    if not known:
        rows = Predictions(confidence=rows.confidence)
    path = tmp_path / f"rows{ending}"
    write_predictions(rows, path)
    back = read_predictions(path)
    assert back.kind == "confidence"
    np.testing.assert_array_equal(back.confidence, rows.confidence)
    assert back.has_labels == known
    if known:
        np.testing.assert_array_equal(back.correct, rows.correct)
        assert back.groups["subject"].tolist() == rows.groups["subject"].tolist()
    assert back.fingerprint == rows.fingerprint


def test_states_add_up(tmp_path):
    days = {f"{seed}.state": made(200, seed=seed) for seed in range(3)}
    for name, rows in days.items():
        write_audit_state(AuditState.of(rows), tmp_path / name)
    merged = merge_states({name: read_audit_state(tmp_path / name) for name in days})
    whole = score(concatenate(list(days.values())), n_resamples=99)
    found = audit(merged, n_resamples=99).card
    for key in ("accuracy", "ece", "correct_nll", "correct_brier"):
        assert found[key].value == pytest.approx(whole[key].value)
        assert found[key].low <= found[key].value <= found[key].high


def test_pairs_are_compared_by_the_event():
    rows = made(1000)
    found = compare(rows, rows.with_confidence(0.8 * rows.confidence), n_resamples=199)
    assert found.of("correct_brier").verdict == found.of("ece").verdict == "better"
    with pytest.raises(DataError, match="same rows"):
        compare(rows, rows.take(slice(0, 10)))


def test_losses_of_classes_are_not_compared_with_those_of_being_right():
    scored = Predictions(probs=[[0.9, 0.1], [0.2, 0.8]] * 50, labels=[0, 1] * 50)
    top1 = Predictions(predicted=scored.predicted, confidence=scored.confidence, labels=scored.labels)
    metrics = {row.metric for row in compare(scored, top1, n_resamples=20)}
    assert "accuracy" in metrics
    assert not metrics & {"nll", "brier", "correct_nll", "correct_brier"}


@pytest.mark.parametrize("name", ["platt", "beta", "isotonic", "histogram", "spline"])
def test_calibrators_of_confidences_fit_and_apply(name):
    calibrator = KINDS[name]().fit(made(2000, split="calib"))
    fresh = made(2000, seed=1)
    after = score(calibrator(fresh), n_resamples=9)
    assert after["ece"].value < 0.05 < score(fresh, n_resamples=9)["ece"].value
    unlabelled = Predictions(confidence=fresh.confidence)
    np.testing.assert_array_equal(calibrator(unlabelled).confidence, calibrator(fresh).confidence)


def test_calibrators_of_classes_say_what_is_missing():
    with pytest.raises(DataError, match=r"only a confidence is known.*platt"):
        TemperatureScaling().fit(made())


def test_reports_and_model_cards():
    rows = made(300, groups={"subject": ["law", "math"] * 150})
    report = report_of({"mine": rows}, by=("subject",), n_resamples=99)
    page = to_html(report)
    assert "Brier score of being right" in page
    assert "By <bdi>predicted class" not in page
    assert "correct_brier" in to_model_card(report.base.first, model="mine", dataset="questions")


def test_notebooks_show_it():
    assert "true" in made(3)._repr_html_() or "false" in made(3)._repr_html_()
