import copy
import json
import pickle

import numpy as np
import pytest

import equipoise
from equipoise import Predictions, metrics, score
from equipoise.core.errors import DataError, SpecError, SplitError
from equipoise.evaluate import Scorecard, score_values
from equipoise.metrics import CalibrationState
from equipoise.metrics.facts import FACTS, metrics_where
from equipoise.metrics.influence import CORP_KEYS
from helpers.metric_samples import draw


def predictions(n=600, k=8, **arguments):
    probs, labels = draw(n, k, **arguments)
    return Predictions(probs=probs, labels=labels, split="test")


def test_every_number_is_that_of_its_function():
    rows = predictions()
    card = score(rows, n_resamples=50)
    split = metrics.brier_split(rows)
    want = {
        "accuracy": metrics.accuracy(rows),
        "top5_accuracy": metrics.top_k_accuracy(rows, k=5),
        "nll": metrics.negative_log_likelihood(rows),
        "brier": metrics.brier_score(rows),
        "brier_calibration": split.calibration,
        "brier_refinement": split.refinement,
        "root_brier": metrics.root_brier_score(rows),
        "ece": metrics.expected_calibration_error(rows),
        "debiased_ece": metrics.debiased_calibration_error(rows, norm="l1"),
        "ada_ece": metrics.adaptive_calibration_error(rows),
        "classwise_ece": metrics.classwise_calibration_error(rows),
        "mce": metrics.maximum_calibration_error(rows),
        "rms_ce": metrics.root_mean_square_calibration_error(rows),
        "smece": metrics.smooth_calibration_error(rows),
        "ks": metrics.kolmogorov_smirnov_error(rows),
        "confidence_gap": metrics.confidence_gap(rows),
        "over_confidence_error": metrics.over_confidence_error(rows),
        "auroc": metrics.error_auroc(rows),
        "aurc": metrics.area_under_risk_coverage(rows),
        "eaurc": metrics.excess_area_under_risk_coverage(rows),
        "augrc": metrics.area_under_generalized_risk_coverage(rows),
        "risk_at_80": metrics.risk_at_coverage(rows, coverage=0.8),
        "coverage_at_5": metrics.coverage_at_risk(rows, risk=0.05),
        **{
            f"corp_{name}{part}": getattr(metrics.corp_split(rows, score=kind), part)
            for name, kind in (("", "brier"), ("log_", "log"))
            for part in ("miscalibration", "discrimination", "uncertainty")
        },
    }
    assert (
        set(want) | {"ece_over", "ece_under"}
        == set(card)
        == set(FACTS) - set(metrics_where(only_confidence=True))
    )
    for key, value in want.items():
        assert card[key].value == pytest.approx(value, abs=1e-9), key
    assert card["ece_over"].value + card["ece_under"].value == pytest.approx(card["ece"].value)


@pytest.mark.parametrize("kind", ["probs", "logits", "weighted", "confidence", "state", "one row"])
def test_numbers_alone_are_those_of_the_scorecard(kind):
    rows = predictions(n=1 if kind == "one row" else 600)
    if kind == "logits":
        rows = Predictions(logits=np.log(rows.probs), labels=rows.labels)
    elif kind == "weighted":
        weights = np.random.default_rng(0).gamma(1.0, size=len(rows))
        rows = Predictions(probs=rows.probs, labels=rows.labels, weights=weights)
    elif kind == "confidence":
        rows = Predictions(confidence=rows.confidence, correct=rows.correct)
    judged = CalibrationState.of(rows) if kind == "state" else rows
    card, values = score(judged, n_resamples=2), score_values(judged)
    assert list(values) == list(card)
    assert values == {key: found.value for key, found in card.scores.items()}
    assert all(type(value) is float for value in values.values())


def test_numbers_alone_have_the_bins_that_were_asked_for():
    rows = predictions()
    wide, narrow = (score_values(rows, n_bins=n, closed="left") for n in (5, 50))
    assert wide["ece"] == pytest.approx(
        metrics.expected_calibration_error(rows, n_bins=5, closed="left"), abs=1e-12
    )
    assert wide["ece"] != narrow["ece"]
    with pytest.raises(ValueError, match="score_values: `n_bins` must be"):
        score_values(rows, n_bins=0)


@pytest.mark.parametrize("sample", [draw(1, 3), draw(5, 2), draw(300, 8), draw(300, 3, sharpness=1.0)])
def test_intervals_hold_their_estimates_and_stay_in_range(sample):
    card = score(Predictions(probs=sample[0], labels=sample[1]), n_resamples=200)
    for key, found in card.scores.items():
        assert found.low <= found.value <= found.high, key
        assert FACTS[key].low <= found.low, key
        assert found.high <= FACTS[key].high, key
        assert (found.p_value is not None) == FACTS[key].is_error, key


@pytest.mark.slow
def test_intervals_hold_the_truth_as_often_as_they_say():
    # The truth from a hundred times as many rows; 40 samples, 95%: 38 on average, fewer than 32 once in 2,000.
    keys = ("accuracy", "nll", "brier", "ece", "confidence_gap", "auroc", "classwise_ece")
    whole = score(predictions(60_000, 3, seed=999), n_resamples=1)
    held = dict.fromkeys(keys, 0)
    for seed in range(40):
        card = score(predictions(600, 3, seed=seed), n_resamples=200)
        for key in keys:
            held[key] += card[key].low <= whole[key].value <= card[key].high
    assert min(held.values()) >= 32, held


def test_to_dict_and_rows_have_the_promised_form():
    card = score(predictions(), n_resamples=20, seed=3, level=0.9)
    content = card.to_dict()["scores"]
    assert list(content) == [key for key in FACTS if key in card.scores]
    assert all(set(entry) == {"value", "low", "high", "p_value"} for entry in content.values())
    rows = card.rows()
    assert [row["metric"] for row in rows] == list(content)
    assert rows[0] | {"value": 0, "low": 0, "high": 0} == {
        "metric": "accuracy",
        "value": 0,
        "low": 0,
        "high": 0,
        "p_value": None,
        "target": "top",
        "split": "test",
        "n_samples": 600,
        "n_bins": 15,
        "closed": "right",
        "level": 0.9,
        "n_resamples": 20,
        "seed": 3,
    }


def test_text_names_every_number_and_the_direction():
    card = score(predictions(3000, 3), n_resamples=100)
    text = str(card)
    assert all(FACTS[key].label in text for key in card.scores)
    assert "Overconfident by" in text
    assert "90" not in text.splitlines()[1]
    assert "Underconfident by" in str(score(predictions(3000, 3, sharpness=0.6), n_resamples=100))
    assert "Consistent with a calibrated model" in str(
        score(predictions(3000, 3, sharpness=1.0), n_resamples=100)
    )


def test_top1_says_what_is_missing():
    rows = predictions()
    top = Predictions(predicted=rows.predicted, confidence=rows.confidence, labels=rows.labels, n_classes=8)
    card, full = score(top, n_resamples=50), score(rows, n_resamples=50)
    assert set(card.missing) == {
        "top5_accuracy", "nll", "brier", "brier_calibration", "brier_refinement", "root_brier", "classwise_ece"
    }  # fmt: skip
    for key in set(card) - {"correct_nll", "correct_brier"}:
        assert card[key].value == pytest.approx(full[key].value, abs=1e-9)
    assert "Not known: top-5 accuracy, negative log-likelihood" in str(card)
    assert "only a confidence is known, not the scores of every class" in str(card)


def test_a_model_without_mistakes_has_no_auroc_and_says_so():
    card = score(Predictions(probs=[0.9, 0.8, 0.3], labels=[1, 1, 0]), n_resamples=20)
    assert card.missing["auroc"] == "all predictions are right, or all are wrong"
    assert "all predictions are right" in str(card)


def test_a_stream_is_close_to_the_arrays():
    rows = predictions(4000, 6)
    state = CalibrationState(6)
    for block in rows.blocks(512):
        state.update(block)
    stream, whole = score(state, n_resamples=50), score(rows, n_resamples=50)
    assert set(whole.scores) - set(stream.scores) == {key for key in CORP_KEYS if "log" in key}
    for key, found in stream.scores.items():
        assert found.value == pytest.approx(whole[key].value, abs=1e-3), key
    assert any("stream" in note for note in stream.notes)
    assert stream.fingerprint == ""
    assert whole.fingerprint == rows.fingerprint


def test_notes():
    few = score(predictions(50, 3), n_resamples=10)
    assert any("few for 15 bins" in note for note in few.notes)
    certain = score(Predictions(probs=[[1.0, 0.0]] * 400, labels=[0] * 300 + [1] * 100), n_resamples=10)
    assert any("100 rows gave the true class probability 0" in note for note in certain.notes)
    assert any("All confidences are the same" in note for note in certain.notes)
    assert score(predictions(3000, 3), n_resamples=10).notes == ()


def test_weights_equal_repetition_up_to_what_resampling_draws():
    probs, labels = draw(200, 3)
    weight = np.random.default_rng(0).integers(1, 4, 200)
    one = score(Predictions(probs=probs, labels=labels, weights=weight), n_resamples=10)
    two = score(Predictions(probs=probs.repeat(weight, 0), labels=labels.repeat(weight)), n_resamples=10)
    for key, found in one.scores.items():
        if key != "debiased_ece":  # It takes off less for rows that are copies of each other.
            assert found.value == pytest.approx(two[key].value, abs=1e-9), key


def test_the_same_seed_gives_the_same_card():
    rows = predictions(100, 3)
    one, two, other = (score(rows, n_resamples=30, seed=s).to_dict() for s in (1, 1, 2))
    assert one == two
    assert one != other


def test_rows_that_fitted_a_calibrator_cannot_judge_it():
    rows = predictions()
    with pytest.raises(SplitError, match="score on 'test'"):
        score(rows.with_scores(probs=rows.probs, fitted_on=rows.rows))
    with pytest.raises(SplitError, match="score on 'test'"):
        score_values(rows.with_scores(probs=rows.probs, fitted_on=rows.rows))


def test_refusals():
    with pytest.raises(ValueError, match="1000 is usual"):
        score(predictions(), n_resamples=0)
    with pytest.raises(ValueError, match=r"0\.95 is usual"):
        score(predictions(), level=95)
    with pytest.raises(TypeError, match="Predictions alone"):
        score([[0.9, 0.1]])
    assert equipoise.score is score


CARDS = {
    "rows": lambda: score(predictions(), n_resamples=20),
    "stream": lambda: score(CalibrationState.of(predictions()), n_resamples=20),
    "top1": lambda: score(
        Predictions(predicted=[0, 1], confidence=[1.0, 0.5], labels=[0, 0]), n_resamples=20
    ),
    "perfect": lambda: score(Predictions(probs=[[1.0, 0.0]] * 3, labels=[0] * 3), n_resamples=20),
}
COPIES = {
    "json": lambda card: Scorecard.from_dict(json.loads(json.dumps(card.to_dict(), allow_nan=False))),
    "pickle": lambda card: pickle.loads(pickle.dumps(card)),
    "deepcopy": copy.deepcopy,
}


@pytest.mark.parametrize("make", CARDS.values(), ids=CARDS)
@pytest.mark.parametrize("way", COPIES.values(), ids=COPIES)
def test_a_card_is_the_same_after_every_way_of_keeping_it(make, way):
    card = make()
    again = way(card)
    assert again.to_dict() == card.to_dict()
    assert str(again) == str(card)
    for name in ("weight", "confidence_sum", "outcome_sum"):
        assert np.array_equal(getattr(again.curve, name), getattr(card.curve, name))


@pytest.mark.parametrize(
    "spoil",
    [
        lambda content: content.pop("format"),
        lambda content: content.update(format=99),
        lambda content: content.pop("bins"),
        lambda content: content["settings"].pop("seed"),
        lambda content: content["scores"]["ece"].update(other=1),
    ],
)
def test_values_that_are_no_scorecard_are_refused_in_a_sentence(spoil):
    content = score(predictions(), n_resamples=5).to_dict()
    spoil(content)
    with pytest.raises(DataError, match="Score the predictions again"):
        Scorecard.from_dict(content)


def test_a_card_is_a_mapping_of_scores():
    card = score(predictions(), n_resamples=20)
    assert float(card["ece"]) == card["ece"].value
    assert list(card) == list(card.keys()) == list(dict(card))
    assert len(card) == len(FACTS) - 2  # but for those of confidences
    assert "ece" in card
    assert "eec" not in card


def test_a_wrong_key_is_answered_with_what_to_write_instead():
    card = score(Predictions(probs=[0.9, 0.2], labels=[1, 0]), n_resamples=5)
    with pytest.raises(SpecError, match="did you mean 'ece'"):
        card["eec"]
    with pytest.raises(SpecError, match="top-5 accuracy is not known here: five classes or fewer"):
        card["top5_accuracy"]


def test_short_and_html_forms():
    card = score(predictions(), n_resamples=20)
    assert len(repr(card)) < 100
    assert repr(card).startswith("Scorecard(n=600, k=8, split=test, accuracy=")
    page = card._repr_html_()
    assert page.count("<tr>") == len(card) + 1
    assert "Overconfident" in page


def test_more_bins_than_tell_anything_are_refused():
    with pytest.raises(ValueError, match="`n_bins` must be at most 10000, got 1000000"):
        score(Predictions(probs=[0.9, 0.2], labels=[1, 0]), n_bins=10**6)


@pytest.mark.parametrize(("n_rows", "n_bins", "noted"), [(299, 15, True), (300, 15, False), (300, 16, True)])
def test_fewer_than_twenty_rows_per_bin_are_noted(n_rows, n_bins, noted):
    probs = np.linspace(0.01, 0.99, n_rows)
    card = score(Predictions(probs=probs, labels=np.arange(n_rows) % 2), n_bins=n_bins, n_resamples=5)
    assert any(f"few for {n_bins} bins" in note for note in card.notes) is noted


def test_the_fingerprint_is_computed_when_it_is_asked_for():
    rows = predictions()
    card = score(rows, n_resamples=5)
    assert "rows" not in rows.__dict__
    assert card.fingerprint == rows.fingerprint
    assert card.to_dict()["settings"]["fingerprint"] == rows.fingerprint


def test_a_pickled_card_leaves_its_rows_behind():
    card = pickle.loads(pickle.dumps(score(predictions(), n_resamples=5)))
    assert card.identity == card.fingerprint == predictions().fingerprint
