"""What is judged: the predicted class, the probability of a positive class, or every class."""

import numpy as np
import pytest
from scipy.special import expit

from equipoise import Predictions, compare, score
from equipoise.core import SpecError
from equipoise.evaluate import (
    Audit,
    AuditState,
    Limit,
    Scorecard,
    audit,
    check_limits,
    compare_states,
    read_audit_state,
    write_audit_state,
)
from equipoise.evaluate.audit_state import merge_states
from equipoise.metrics import area_under_roc, brier_score, expected_calibration_error, negative_log_likelihood
from equipoise.metrics.target import event_view

FEW = {"n_resamples": 100}
NAMES = ("legit", "fraud")


def fraud(n=4000, seed=0, shift=3.4, *, form="probs"):
    """Return a model of a rare event whose probabilities were inflated by training on balanced rows."""
    rng = np.random.default_rng(seed)
    score_ = rng.normal(size=n)
    labels = (rng.random(n) < expit(-4.4 + 1.1 * score_)).astype(int)
    log_odds = -4.4 + shift + 1.1 * score_
    claimed = expit(log_odds)
    scores = {
        "probs": {"probs": np.stack([1 - claimed, claimed], axis=1)},
        "column": {"probs": claimed},
        "logits": {"logits": np.stack([np.zeros(n), log_odds], axis=1)},
    }[form]
    groups = {"site": np.array(["a", "b"])[np.arange(n) % 2]}
    return Predictions(**scores, labels=labels, class_names=NAMES, groups=groups)


@pytest.mark.parametrize("form", ["probs", "column", "logits"])
def test_the_probability_of_the_event_is_judged(form):
    rows = fraud(form=form)
    card = score(rows, target="positive", **FEW)
    p, y = rows.probs[:, 1].astype(float), rows.labels
    assert card.target.label == "P(fraud)"
    assert card["ece"].value == pytest.approx(expected_calibration_error(rows, target="positive"))
    assert card["confidence_gap"].value == pytest.approx(p.mean() - y.mean())
    assert card["brier"].value == pytest.approx(brier_score(rows, target="positive"))
    assert card["nll"].value == pytest.approx(negative_log_likelihood(rows))
    assert card["auroc"].value == pytest.approx(area_under_roc(p, y))
    assert card["accuracy"].value == pytest.approx(np.mean((p > 0.5) == y))
    assert all(one.low <= one.value <= one.high for one in card.scores.values())
    assert card.curve.target == "positive"


def test_a_rare_event_gets_no_comforting_headline():
    card = score(fraud(), **FEW)
    text = str(card)
    assert card.target.kind == "top"
    assert card.event["ece"].value > 0.25
    assert card["ece"].value < 0.12
    assert text.index("P(fraud) is too high by") < text.index("Predicted class: underconfident by")
    assert str(audit(fraud(), **FEW)).index("P(fraud) is too high by") < 200


def test_one_target_is_one_view():
    for target in ("top", "positive", "classwise"):
        assert score(fraud(), target=target, **FEW).event is None
    rng = np.random.default_rng(0)
    even = Predictions(probs=rng.random(500), labels=rng.integers(0, 2, 500))
    assert score(even, **FEW).event is None
    assert score(Predictions(probs=[0.1, 0.2, 0.1], labels=[0, 0, 0]), **FEW).event is None


def test_gates_hold_both_views_unless_a_target_is_named():
    limit = [Limit("ece", "max", 0.15)]
    both = check_limits(score(fraud(), **FEW), limit)
    assert [(gate.target, gate.passed) for gate in both] == [("top", True), ("P(fraud)", False)]
    assert "ECE of P(fraud) may be as high as" in both[1].text
    assert [gate.passed for gate in check_limits(score(fraud(), target="top", **FEW), limit)] == [True]
    only = check_limits(score(fraud(), target="positive", **FEW), limit)
    assert [(gate.target, gate.passed) for gate in only] == [("P(fraud)", False)]


def test_a_calibrated_event_is_consistent():
    card = score(fraud(shift=0.0), target="positive", n_resamples=300)
    assert card["ece"].p_value > 0.05
    assert "P(fraud) is consistent with a calibrated model" in str(card)


def test_the_other_class_can_be_named():
    card = score(fraud(), positive="legit", **FEW)
    assert card.target.label == "P(legit)"
    assert card["confidence_gap"].value == pytest.approx(
        -score(fraud(), positive=1, **FEW)["confidence_gap"].value
    )
    assert "P(legit) is too low by" in str(card)


def test_all_classes_are_judged_one_against_the_rest():
    rng = np.random.default_rng(1)
    logits = rng.normal(size=(3000, 4))
    labels = (logits + rng.gumbel(size=logits.shape)).argmax(1)
    rows = Predictions(
        logits=logits + np.array([0, 0, 0, 1.5]), labels=labels, class_names=("a", "b", "c", "d")
    )
    card = score(rows, target="classwise", **FEW)
    assert card["ece"] == score(rows, target="top", **FEW)["classwise_ece"]
    assert card["ece"].value == pytest.approx(expected_calibration_error(rows, target="classwise"))
    assert card.consistency.p_value < 0.05
    found = audit(rows, target="classwise", **FEW)
    assert found.classes[0].name == "d"
    assert found.classes[0].gap == pytest.approx(rows.probs[:, 3].mean() - (labels == 3).mean())
    assert found.groups == {}


@pytest.mark.parametrize("target", [None, "top", "positive", "classwise"])
def test_records_are_read_back(target):
    found = audit(fraud(1000), target=target, **FEW)
    assert Audit.from_dict(found.to_dict()).to_dict() == found.to_dict()
    assert Scorecard.from_dict(found.card.to_dict()).to_dict() == found.card.to_dict()
    assert found.to_dict()["target"]["kind"] == (target or "top")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"target": "negative"}, "target"),
        ({"target": "top", "positive": "fraud"}, "Leave one of them out"),
        ({"positive": "frued"}, "did you mean 'fraud'"),
        ({"positive": 2}, "no class '2'"),
    ],
)
def test_targets_that_do_not_fit_are_errors(settings, message):
    with pytest.raises((SpecError, ValueError), match=message):
        score(fraud(100), **settings)


def test_targets_need_the_scores_of_their_classes():
    top1 = Predictions(predicted=[1, 0], confidence=[0.9, 0.8], labels=[1, 1])
    with pytest.raises(SpecError, match="needs the probability of every class"):
        score(top1, target="positive")
    three = Predictions(probs=[[0.2, 0.3, 0.5]], labels=[0])
    with pytest.raises(SpecError, match="for two classes, got 3"):
        audit(three, target="positive")


def test_states_keep_what_every_target_needs(tmp_path):
    rows = fraud()
    parts = {f"{name}.state": fraud(2000, seed) for seed, name in enumerate("ab")}
    for name, part in parts.items():
        write_audit_state(AuditState.of(part), tmp_path / name)
    states = {name: read_audit_state(tmp_path / name) for name in parts}
    merged = merge_states(states)
    whole = AuditState.of(parts.values())
    for target in ("top", "positive", "classwise"):
        of_rows = audit(rows, target=target, **FEW)
        of_state = audit(AuditState.of(rows), target=target, **FEW)
        assert of_state.card["ece"] == of_rows.card["ece"]
        assert of_state.classes == of_rows.classes
        assert of_state.groups == of_rows.groups
        sums = [audit(state, target=target, **FEW).card["ece"].value for state in (merged, whole)]
        assert sums[0] == pytest.approx(sums[1])
    with pytest.raises(SpecError, match="keeps sums of P\\(fraud\\), not of P\\(legit\\)"):
        audit(merged, positive="legit")
    legit = AuditState.of(rows, positive="legit")
    assert audit(legit, target="positive", **FEW).card.target.label == "P(legit)"


@pytest.mark.parametrize("name", ["calibration", "classes", "groups"])
def test_a_forged_event_is_an_error(tmp_path, name):
    state, other = AuditState.of(fraud()), AuditState.of(fraud(seed=1))
    setattr(state.event, name, getattr(other.event, name))
    write_audit_state(state, tmp_path / "forged.state")
    with pytest.raises(Exception, match="not a complete state"):
        read_audit_state(tmp_path / "forged.state")


def test_pairs_are_compared_for_the_target():
    rows = fraud(1500)
    better = rows.with_scores(logits=rows.logits - np.array([0, 3.4]))
    found = compare(rows, better, target="positive", **FEW)
    assert found.of("ece").verdict == "better"
    assert found.of("ece").before == pytest.approx(expected_calibration_error(rows, target="positive"))
    assert found.of("brier").after == pytest.approx(brier_score(better, target="positive"))
    assert "ECE of P(fraud)" in str(found)
    every = compare(rows, better, target="classwise", **FEW)
    assert every.of("ece").after == pytest.approx(expected_calibration_error(better, target="classwise"))
    assert "ECE over all classes" in str(every)


def test_paired_draws_of_all_classes_scatter_as_resampled_rows_do():
    rng = np.random.default_rng(2)
    logits = rng.normal(size=(400, 3))
    rows = Predictions(logits=2 * logits, labels=(logits + rng.gumbel(size=logits.shape)).argmax(1))
    other = rows.with_scores(logits=logits)
    by_hand = []
    for _ in range(200):
        take = rng.integers(0, 400, 400)
        pair = [expected_calibration_error(part.take(take), target="classwise") for part in (rows, other)]
        by_hand.append(pair[1] - pair[0])
    found = compare(rows, other, target="classwise", n_resamples=1000).of("ece")
    assert found.error.total == pytest.approx(np.std(by_hand), rel=0.2)


def test_states_are_compared_for_the_target():
    first, second = AuditState.of(fraud(shift=0.0)), AuditState.of(fraud(seed=1))
    found = compare_states(first, second, target="positive", **FEW)
    assert found.of("ece").verdict == "worse"
    assert found.of("ece").target == "P(fraud)"
    assert found.of("brier").before == pytest.approx(brier_score(fraud(shift=0.0), target="positive"))
    assert compare_states(first, second, target="classwise", **FEW).of("ece").verdict == "worse"
    with pytest.raises(SpecError, match="Pass AuditStates"):
        compare_states(first.calibration, second.calibration, target="positive")


def test_clusters_widen_the_intervals_of_the_event():
    rng = np.random.default_rng(3)
    author = np.repeat(np.arange(40), 50)
    p = np.full(2000, 0.1)
    labels = (rng.random(40) < 0.1)[author].astype(int)
    rows = Predictions(probs=p, labels=labels, groups={"author": author})
    alone = score(rows, target="positive", **FEW)["confidence_gap"]
    together = score(rows, target="positive", clusters="author", **FEW)["confidence_gap"]
    assert together.high - together.low > 3 * (alone.high - alone.low)
    assert audit(rows, target="positive", clusters="author", **FEW).card["confidence_gap"] == together


def test_weights_count_in_the_event():
    rows = fraud(1000)
    twice = rows.with_weights(np.where(rows.labels == 1, 2.0, 1.0))
    doubled = rows.take(np.concatenate([np.arange(1000), np.flatnonzero(rows.labels == 1)]))
    assert score(twice, target="positive", **FEW)["ece"].value == pytest.approx(
        score(doubled, target="positive", **FEW)["ece"].value
    )


@pytest.mark.parametrize("closed", ["left", "right"])
def test_the_view_keeps_the_precision_of_the_scores(closed):
    rows = Predictions(probs=np.float32([0.2, 0.4, 0.6, 1.0, 0.0]), labels=[0, 1, 1, 1, 0])
    view = event_view(rows, 1)
    assert view.precision == rows.precision
    card = score(rows, target="positive", n_bins=5, closed=closed, **FEW)
    assert card["ece"].value == pytest.approx(
        expected_calibration_error(rows, target="positive", n_bins=5, closed=closed)
    )


@pytest.mark.simulation
@pytest.mark.parametrize("shift", [0.0, 1.0])
def test_intervals_of_the_event_hold_the_truth(shift):
    held, alarms, n = 0, 0, 200
    for seed in range(n):
        card = score(fraud(1500, seed, shift), target="positive", n_resamples=300, seed=seed)
        z = np.random.default_rng(999).normal(size=400_000)
        truth = np.mean(expit(-4.4 + shift + 1.1 * z) - expit(-4.4 + 1.1 * z))
        held += card["confidence_gap"].low <= truth <= card["confidence_gap"].high
        alarms += card["ece"].p_value < 0.05
    assert held >= 0.91 * n
    if shift == 0:
        assert alarms <= 0.09 * n
