import pytest

from equipoise.core.errors import SpecError
from equipoise.metrics.facts import (
    ALONE_FACTS,
    COST_FACTS,
    DETECTION_FACTS,
    EXTRA_FACTS,
    FACTS,
    best_of,
    columns,
    metric_facts,
    metrics_where,
)


@pytest.mark.parametrize("key", FACTS)
def test_facts_do_not_contradict_each_other(key):
    facts = FACTS[key]
    assert facts.key == key
    assert facts.low < facts.high
    assert (facts.low < 0) == (facts.better == "zero")
    assert not facts.is_error or (facts.better == "lower" and facts.low == 0)
    assert not facts.percent or facts.high == 1
    assert facts.part_of is None or facts.part_of in FACTS
    assert all((facts.title, facts.short, facts.meaning))


def test_names_are_told_apart():
    for name in ("title", "short", "label"):
        assert len({getattr(facts, name) for facts in FACTS.values()}) == len(FACTS)


def test_columns_have_places_of_their_own_in_order():
    assert [FACTS[key].column for key in columns()] == list(range(len(columns())))


def test_which_is_better():
    assert metric_facts("accuracy").is_better(0.9, than=0.8)
    assert metric_facts("nll").is_better(0.8, than=0.9)
    assert metric_facts("confidence_gap").is_better(-0.1, than=0.2)
    assert not metric_facts("confidence_gap").is_better(-0.3, than=0.2)
    assert best_of("confidence_gap", [0.2, -0.1, -0.3]) == -0.1


def test_what_top1_files_can_be_compared_in():
    assert metrics_where(is_paired=True, needs_scores=False) == (
        "accuracy", "correct_nll", "correct_brier", "ece", "ece_over", "ece_under", "mce", "rms_ce", "confidence_gap",
        "over_confidence_error",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("key", "answer"),
    [("eec", "did you mean 'ece'")],
)
def test_a_wrong_key_is_answered(key, answer):
    with pytest.raises(SpecError, match=answer):
        metric_facts(key)


@pytest.mark.parametrize(
    ("key", "of", "answer"),
    [
        (
            "ace",
            "card",
            "'ace' cannot be a limit: no scorecard has it; equipoise.metrics.thresholded_adaptive_",
        ),
        (
            "ace",
            "runs",
            "'ace' cannot be a limit: no table of runs has it; equipoise.metrics.thresholded_adap",
        ),
        ("brier_split", "card", "it is two numbers, 'brier_calibration' and 'brier_refinement'"),
        ("sece", "card", "no scorecard has it; a table of runs has it when asked"),
        ("ood_auroc", "runs", "no table of runs has it; it needs out-of-distribution rows"),
        ("seconds", "card", "no scorecard has it; a table of runs"),
    ],
)
def test_a_metric_that_is_elsewhere_is_told_where(key, of, answer):
    with pytest.raises(SpecError) as error:
        metric_facts(key, what="limit", of=of)
    assert answer in str(error.value)
    assert metric_facts(key).key == key


def test_homes_are_those_of_the_tables_of_facts():
    assert {facts.home for facts in FACTS.values()} == {"card"}
    assert {facts.home for facts in {**EXTRA_FACTS, **COST_FACTS}.values()} == {"runs"}
    assert {facts.home for facts in {**ALONE_FACTS, **DETECTION_FACTS}.values()} == {"alone"}
    every = {**FACTS, **EXTRA_FACTS, **COST_FACTS, **ALONE_FACTS, **DETECTION_FACTS}
    assert all(bool(facts.instead) == (facts.home != "card") for facts in every.values())
    assert metric_facts("sece", of="runs") is EXTRA_FACTS["sece"]
