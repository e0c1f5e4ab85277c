import numpy as np
import pytest

import equipoise
from equipoise import Predictions, metrics, score
from equipoise.core.errors import SplitError
from equipoise.evaluate.values import ERRORS, RANGES, TITLES
from equipoise.metrics import CalibrationState
from metric_samples import draw


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
        "auroc": metrics.error_auroc(rows),
        "aurc": metrics.area_under_risk_coverage(rows),
    }
    assert set(want) | {"over_confidence", "under_confidence"} == set(card.scores) == set(TITLES)
    for key, value in want.items():
        assert card[key].value == pytest.approx(value, abs=1e-9), key
    assert card["over_confidence"].value + card["under_confidence"].value == pytest.approx(card["ece"].value)


@pytest.mark.parametrize("sample", [draw(1, 3), draw(5, 2), draw(300, 8), draw(300, 3, sharpness=1.0)])
def test_intervals_hold_their_estimates_and_stay_in_range(sample):
    card = score(Predictions(probs=sample[0], labels=sample[1]), n_resamples=200)
    for key, found in card.scores.items():
        assert found.low <= found.value <= found.high, key
        assert RANGES[key][0] <= found.low, key
        assert found.high <= RANGES[key][1], key
        assert (found.p_value is not None) == (key in ERRORS), key


def test_intervals_hold_the_truth_as_often_as_they_say():
    # The truth from a hundred times as many rows; 40 samples, 95 %: 38 on average, fewer than 32 once in 2,000.
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
    content = card.to_dict()
    assert list(content) == [key for key in TITLES if key in card.scores]
    assert all(set(entry) == {"value", "low", "high"} for entry in content.values())
    rows = card.rows()
    assert [row["metric"] for row in rows] == list(content)
    assert rows[0] | {"value": 0, "low": 0, "high": 0} == {
        "metric": "accuracy",
        "value": 0,
        "low": 0,
        "high": 0,
        "p_value": None,
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
    assert all(TITLES[key] in text for key in card.scores)
    assert "Over-confident by" in text
    assert "90" not in text.splitlines()[1]
    assert "Under-confident by" in str(score(predictions(3000, 3, sharpness=0.6), n_resamples=100))
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
    for key, found in card.scores.items():
        assert found.value == pytest.approx(full[key].value, abs=1e-9)
    assert "Not known: top-5 accuracy, negative log-likelihood" in str(card)
    assert "only the predicted class and its confidence are known" in str(card)


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
    assert set(stream.scores) == set(whole.scores)
    for key, found in whole.scores.items():
        assert stream[key].value == pytest.approx(found.value, abs=1e-3), key
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


def test_refusals():
    with pytest.raises(ValueError, match="1000 is usual"):
        score(predictions(), n_resamples=0)
    with pytest.raises(ValueError, match=r"0\.95 is usual"):
        score(predictions(), level=95)
    with pytest.raises(TypeError, match="Predictions alone"):
        score([[0.9, 0.1]])
    assert equipoise.score is score
