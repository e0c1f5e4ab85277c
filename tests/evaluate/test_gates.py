"""Gates: which number is compared, which way is worse, and what is refused."""

import numpy as np
import pytest

from equipoise import compare, score
from equipoise.core import Predictions, SpecError
from equipoise.evaluate import Limit, check_limits, check_not_worse


@pytest.fixture(scope="module")
def rows():
    generator = np.random.default_rng(0)
    logits = 2 * generator.normal(size=(2000, 6))
    labels = (logits / 1.5 + generator.gumbel(size=logits.shape)).argmax(1)
    return Predictions(logits=logits, labels=labels)


@pytest.fixture(scope="module")
def card(rows):
    return score(rows, n_resamples=200)


@pytest.mark.parametrize("bound", ["low", "value", "high"])
@pytest.mark.parametrize("metric", ["ece", "accuracy", "nll", "auroc", "confidence_gap"])
def test_the_number_asked_for_is_compared(card, metric, bound):
    number = getattr(card[metric], bound)
    for step, at_most, at_least in ((1e-9, True, False), (-1e-9, False, True)):
        limits = [Limit(metric, "max", number + step), Limit(metric, "min", number + step)]
        assert [gate.passed for gate in check_limits(card, limits, bound=bound)] == [at_most, at_least]


def test_by_default_the_unfavorable_end_must_hold(card):
    between = [
        (card["ece"].value + card["ece"].high) / 2,
        (card["accuracy"].low + card["accuracy"].value) / 2,
    ]
    limits = [Limit("ece", "max", between[0]), Limit("accuracy", "min", between[1])]
    assert [gate.passed for gate in check_limits(card, limits)] == [False, False]
    assert [gate.passed for gate in check_limits(card, limits, bound="value")] == [True, True]


def test_sentences_hold_the_numbers(card):
    kept, missed = check_limits(card, [Limit("nll", "max", 9.0), Limit("accuracy", "min", 0.999)])
    assert (
        kept.text
        == f"negative log-likelihood may be as high as {card['nll'].high:.4f}, within the limit of 9"
    )
    assert (
        missed.text
        == f"accuracy may be as low as {100 * card['accuracy'].low:.2f}%, below the limit of 99.9%"
    )


@pytest.mark.parametrize(
    ("limit", "sentence"),
    [
        (Limit("ecee", "max", 0.1), "did you mean 'ece'"),
        (Limit("ece", "max", 3), "ece=3%"),
        (Limit("accuracy", "min", -1), "from 0 to 1, which it can reach, got -1"),
    ],
)
def test_refusals(card, limit, sentence):
    with pytest.raises(SpecError, match=sentence):
        check_limits(card, [limit])


def test_what_is_not_known_cannot_be_limited():
    top = Predictions(predicted=[1, 0], confidence=[0.9, 0.8], labels=[1, 1])
    with pytest.raises(SpecError, match="only a confidence is known"):
        check_limits(score(top, n_resamples=10), [Limit("nll", "max", 1.0)])


def test_not_worse_without_a_margin_fails_only_if_shown(rows):
    worse = rows.with_scores(logits=3 * rows.logits)
    same = rows.with_scores(logits=1.0001 * rows.logits)
    assert not check_not_worse(compare(rows, worse), [("ece", None)])[0].passed
    assert check_not_worse(compare(worse, rows), [("ece", None)])[0].passed
    assert check_not_worse(compare(rows, same), [("ece", None), ("accuracy", None)])[1].passed


def test_a_margin_must_be_shown_to_be_kept(rows):
    few = rows.take(slice(0, 60))
    generator = np.random.default_rng(1)
    noisy = few.with_scores(logits=few.logits + generator.normal(size=few.logits.shape))
    found = compare(few, noisy, metrics=["accuracy"])
    # Too few rows to show a difference, and too few to show that there is none.
    assert found[0].verdict == "tie"
    assert check_not_worse(found, [("accuracy", None)])[0].passed
    assert not check_not_worse(found, [("accuracy", 0.001)])[0].passed
    assert check_not_worse(found, [("accuracy", 0.9)])[0].passed


@pytest.mark.parametrize(
    ("metric", "margin", "sentence"),
    [
        ("nll", -0.1, "margin"),
        ("confidence_gap", None, "no metric to compare"),
        ("smece", None, "no metric to compare"),
        (
            "tace",
            None,
            "no scorecard has it; equipoise.metrics.thresholded_adaptive_calibration_error computes it",
        ),
    ],
)
def test_not_worse_refusals(rows, metric, margin, sentence):
    with pytest.raises(SpecError, match=sentence):
        check_not_worse(compare(rows, rows, n_resamples=20), [(metric, margin)])


def test_a_limit_of_what_is_on_no_scorecard_is_told_where_it_is(card):
    with pytest.raises(
        SpecError,
        match=r"average CE cannot be held .*; equipoise.metrics.average_calibration_error computes it",
    ):
        check_limits(card, [Limit("avg_ce", "max", 0.1)])
    with pytest.raises(
        SpecError, match=r"SECE is not known here: no scorecard has it; a table of runs has it when asked"
    ):
        card["sece"]
