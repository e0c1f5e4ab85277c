"""What a report says first."""

import numpy as np
import pytest

from equipoise import Predictions
from equipoise.report import report_of
from equipoise.report.verdict import verdict_of


def model(shift, n=4000, seed=0):
    rng = np.random.default_rng(seed)
    confidence = rng.uniform(0.55, 0.95, n)
    right = rng.random(n) < confidence - shift
    return Predictions(predicted=np.zeros(n, int), labels=np.where(right, 0, 1), confidence=confidence)


@pytest.mark.parametrize(
    ("shift", "tone", "headline"),
    [
        (0.15, "bad", "Over-confident by"),
        (-0.05, "bad", "Under-confident by"),
        (0.0, "good", "Consistent with"),
    ],
)
def test_direction_of_a_single_model(shift, tone, headline):
    verdict = verdict_of(report_of(model(shift), n_resamples=300))
    assert verdict.tone == tone
    assert verdict.headline.startswith(headline)


def test_both_directions_that_cancel():
    low, high = model(-0.2, 3000), model(0.2, 3000, seed=1)
    rows = Predictions(
        predicted=np.zeros(6000, int),
        labels=np.concatenate([low.labels, high.labels]),
        confidence=np.concatenate([low.confidence * 0.6, high.confidence]),
    )
    shift = float(rows.confidence.mean() - rows.correct.mean())
    confidence = np.clip(rows.confidence - shift, 0, 1)
    balanced = Predictions(predicted=rows.predicted, labels=rows.labels, confidence=confidence)
    assert verdict_of(report_of(balanced, n_resamples=300)).headline == "Miscalibrated in both directions"


def test_the_worst_bin_is_told_with_its_numbers():
    rows = Predictions(predicted=[0] * 100, labels=[0] * 50 + [1] * 50, confidence=[0.97] * 100)
    words = " ".join(verdict_of(report_of(rows, n_resamples=50)).sentences).replace("\u00a0", " ")
    assert (
        "between 93 and 100 % confidence: of the 100 rows there, 50.0 % are right, where 97.0 % are claimed"
        in words
    )


def test_a_comparison_names_better_tied_and_worse_and_the_cost(rows):
    rng = np.random.default_rng(1)
    noisy = rows.logits + rng.normal(scale=6, size=rows.logits.shape)
    report = report_of(
        {
            "base": rows,
            "same": rows.with_scores(logits=rows.logits * 1.001),
            "soft": rows.with_scores(logits=rows.logits / 2.5),
            "noisy": rows.with_scores(logits=noisy),
        },
        n_resamples=300,
    )
    verdict = verdict_of(report)
    kinds = {one.name: one.kind for one in verdict.judgements}
    assert kinds == {"same": "tied", "soft": "better", "noisy": "worse"}
    assert verdict.headline == "1 of 3 is better calibrated than base"
    words = {one.name: one.words for one in verdict.judgements}
    assert "costs" in words["noisy"]
    assert "accuracy a tie" in words["soft"]


def test_two_models_are_named(rows):
    soft = rows.with_scores(logits=rows.logits / 2.5)
    verdict = verdict_of(report_of({"a": rows, "b": soft}, n_resamples=100))
    assert verdict.headline == "b is better calibrated than a"
    other = verdict_of(report_of({"a": rows, "b": soft}, baseline="b", n_resamples=100))
    assert other.headline == "a is worse calibrated than b"
    assert other.tone == "bad"
