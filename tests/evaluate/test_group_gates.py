"""Gates for every group: failing ones are named, small ones are undecided, and chance does not fail good ones."""

import numpy as np
import pytest

from equipoise import Predictions
from equipoise.core import SpecError
from equipoise.evaluate import AuditState, Limit, check_groups
from equipoise.metrics.target import TOP, Target

FEW = {"n_resamples": 200}


def state(sizes, truths, *, seed=0, claimed=0.8):
    rng = np.random.default_rng(seed)
    site = np.repeat([f"s{place}" for place in range(len(sizes))], sizes)
    right = rng.random(len(site)) < np.repeat(truths, sizes)
    rows = Predictions(
        predicted=np.ones(len(site), int),
        confidence=np.full(len(site), claimed),
        labels=right.astype(int),
        groups={"site": site},
    )
    return AuditState.of(rows, by=["site"])


def test_groups_pass_fail_or_are_undecided():
    gates = check_groups(state([3000, 3000, 40], [0.8, 0.6, 0.8]), [Limit("ece", "max", 0.05)], **FEW)
    assert [(gate.group, gate.passed, gate.decided) for gate in gates] == [
        ("site=s0", True, True),
        ("site=s1", False, True),
        ("site=s2", True, False),
    ]
    assert "above the limit of 5%" in gates[1].text
    assert "40 rows do not decide" in gates[2].text
    assert "would" in gates[2].text


def test_a_few_rows_that_are_all_right_prove_nothing():
    few = state([8], [1.0], claimed=0.99)
    for limit in (Limit("ece", "max", 0.03), Limit("accuracy", "min", 0.95)):
        (gate,) = check_groups(few, [limit], **FEW)
        assert gate.passed
        assert not gate.decided


def test_one_number_decides_if_it_is_asked_for():
    rows = state([3000, 40], [0.8, 0.8])
    limit = [Limit("ece", "max", 0.05)]
    assert [gate.passed for gate in check_groups(rows, limit, bound="high", **FEW)] == [True, False]
    assert all(gate.decided for gate in check_groups(rows, limit, bound="high", **FEW))


def test_accuracy_and_the_gap_have_limits_too():
    rows = state([2000, 2000], [0.9, 0.7])
    (good, bad) = check_groups(rows, [Limit("accuracy", "min", 0.8)], **FEW)
    assert (good.passed, bad.passed) == (True, False)
    (_, high) = check_groups(rows, [Limit("confidence_gap", "max", 0.05)], **FEW)
    assert not high.passed


def test_what_sums_of_groups_do_not_give_is_an_error():
    with pytest.raises(SpecError, match="not known for each group"):
        check_groups(state([50], [0.8]), [Limit("nll", "max", 1.0)])
    with pytest.raises(SpecError, match="no groups to judge"):
        check_groups(AuditState.of(Predictions(probs=[0.9], labels=[1])), [Limit("ece", "max", 0.1)])
    with pytest.raises(SpecError, match="got 'classwise'"):
        check_groups(state([50], [0.8]), [Limit("ece", "max", 0.1)], target=Target("classwise"))


def test_both_views_of_a_rare_event_are_judged():
    rng = np.random.default_rng(0)
    labels = (rng.random(4000) < 0.03).astype(int)
    site = np.array(["a", "b"])[np.arange(4000) % 2]
    rows = Predictions(probs=np.where(site == "a", 0.03, 0.3), labels=labels, groups={"site": site})
    sums = AuditState.of(rows, by=["site"])
    gates = check_groups(sums, [Limit("ece", "max", 0.1)], **FEW)
    assert [(gate.target, gate.group) for gate in gates if not gate.passed] == [
        ("top", "site=b"),
        ("P(1)", "site=b"),
    ]
    assert len(check_groups(sums, [Limit("ece", "max", 0.1)], target=TOP, **FEW)) == 2


def test_more_groups_make_intervals_wider():
    alone = check_groups(state([400], [0.8]), [Limit("ece", "max", 0.05)], **FEW)[0]
    many = check_groups(state([400] * 30, [0.8] * 30), [Limit("ece", "max", 0.05)], **FEW)[0]
    assert _high(many.text) > _high(alone.text)


def _high(text):
    return float(text.split(" to ")[1].split("%")[0])


@pytest.mark.simulation
def test_good_groups_fail_in_at_most_five_percent_of_audits():
    failed = 0
    for seed in range(300):
        # All groups are exactly at the limit: their error is 5%.
        gates = check_groups(
            state([100, 300, 600] * 5, [0.75] * 15, seed=seed), [Limit("ece", "max", 0.05)], n_resamples=500
        )
        failed += any(not gate.passed for gate in gates)
    assert failed <= 0.09 * 300
