"""One model over time: a change is found, dated and described, and equal states raise few alarms."""

import re

import numpy as np
import pytest

from equipoise import Predictions
from equipoise.core import DataError, SpecError
from equipoise.evaluate import AuditState, audit, find_trend
from equipoise.evaluate.chance import holm
from equipoise.evaluate.trend import find_changes
from equipoise.metrics import CalibrationState, expected_calibration_error
from equipoise.report import report_of, to_html, to_markdown


def rows(n, seed, temperature):
    rng = np.random.default_rng(seed)
    logits = 2 * rng.normal(size=(n, 3))
    labels = (logits + rng.gumbel(size=logits.shape)).argmax(1)
    return Predictions(logits=logits / temperature, labels=labels)


def days(temperatures, n=1500):
    return {
        f"day{place + 1}": AuditState.of(rows(n, place, temperature))
        for place, temperature in enumerate(temperatures)
    }


@pytest.fixture(scope="module")
def worse():
    return days([0.85] * 8 + [0.55] * 2)


def test_a_lasting_change_is_dated(worse):
    trend = find_trend(worse, n_resamples=200)
    ece = trend.changes[0]
    assert trend.headline.startswith("Worse since day9: ECE")
    assert trend.is_worse
    assert (ece.metric, ece.first, ece.last, ece.start, ece.stop) == ("ece", "day9", "day10", 8, 10)
    late = [rows(1500, place, 0.55) for place in (8, 9)]
    probs, labels = (np.concatenate([getattr(part, name) for part in late]) for name in ("probs", "labels"))
    assert ece.value == pytest.approx(expected_calibration_error(probs, labels))
    assert 0 < ece.difference < ece.value
    assert ece.p_value < 0.05


def test_a_passing_change_and_an_improvement_are_told_apart():
    passing = find_trend(days([0.85] * 3 + [0.5] * 2 + [0.85] * 3), n_resamples=200)
    assert passing.headline.startswith("Worse from day4 to day5: ECE")
    assert not passing.is_worse
    better = find_trend(days([0.5] * 3 + [1.0] * 3), n_resamples=200)
    assert better.headline.startswith("Better since day4: ECE")


def test_equal_states_are_no_trend():
    trend = find_trend(days([0.85] * 6), n_resamples=200)
    assert trend.found == ()
    assert trend.headline == "No change is shown over 6 states"


def test_small_states_do_not_look_worse_than_large_ones():
    states = {f"big{n}": AuditState.of(rows(4000, n, 1.0)) for n in range(3)}
    states["small"] = AuditState.of(rows(120, 9, 1.0))
    assert find_trend(states, n_resamples=200).found == ()


def test_a_trend_needs_several_states_of_different_rows(worse):
    with pytest.raises(DataError, match="two states or more"):
        find_trend({"only": worse["day1"]})
    with pytest.raises(DataError, match="would count twice"):
        find_trend({"a": worse["day1"], "b": worse["day1"]})
    with pytest.raises(SpecError, match="expected target 'top' or 'positive'"):
        find_trend(worse, target="classwise", n_resamples=20)


def test_a_rare_event_is_judged_over_time():
    def fraud(seed, shift):
        rng = np.random.default_rng(seed)
        z = rng.normal(size=1500) - 4
        labels = rng.random(1500) < 1 / (1 + np.exp(-z))
        return AuditState.of(
            Predictions(
                probs=1 / (1 + np.exp(-z - shift)), labels=labels.astype(int), class_names=["ok", "fraud"]
            )
        )

    states = {f"day{n}": fraud(n, 0.0 if n < 5 else 1.5) for n in range(1, 7)}
    trend = find_trend(states, n_resamples=200)
    assert trend.headline.startswith("Worse since day5: ECE of P(fraud)")
    page = to_markdown(report_of(states, over_time=True, n_resamples=60))
    assert "Worse since day5: ECE of P(fraud)" in page.replace("\\", "")


def test_the_page_speaks_of_states_not_of_methods(worse):
    report = report_of(worse, over_time=True, n_resamples=100, hint="")
    for page in (to_html(report), to_markdown(report)):
        text = page.replace("\u00a0", " ")
        assert "Worse since day9: ECE" in text
        for word in ("ot compared", "paired", "10 methods", "The lowest ECE", "▲", "held-out"):
            assert word not in text.split("</style>")[-1]
    assert to_html(report).count('class="changed worse"') >= 1
    assert "since day9" in to_html(report)


def test_slanted_names_of_states_are_inside_the_chart():
    states = {f"2026-03-{n:02}": AuditState.of(rows(120, n, 1.0)) for n in range(1, 25)}
    page = to_html(report_of(states, over_time=True, n_resamples=20))
    shown = re.findall(r'<text x="([0-9.]+)"[^>]*rotate\(-35[^>]*>(2026-[0-9-]+)<', page)
    assert len(shown) >= 12
    # Seven units per character; the end of the name is at x.
    assert min(float(x) - 7 * len(name) * np.cos(np.radians(35)) for x, name in shown) > 0


def test_predictions_and_chunks_make_a_trend_but_audits_do_not(worse):
    parts = {f"day{n}": rows(600, n, 0.85) for n in range(3)}
    assert report_of(parts, over_time=True, n_resamples=50).trend is not None
    with pytest.raises(DataError, match="Pass its AuditState"):
        report_of({name: audit(part, n_resamples=20) for name, part in parts.items()}, over_time=True)


def alarms(sizes, temperature, n_series):
    """Return the share of series of equal states in which any metric is called changed."""
    found = 0
    for seed in range(n_series):
        rng = np.random.default_rng(seed)
        states = []
        for size in sizes:
            logits = 2 * rng.normal(size=(size, 3))
            state = CalibrationState(3)
            state.update(
                logits=logits / temperature, labels=(logits + rng.gumbel(size=logits.shape)).argmax(1)
            )
            states.append(state)
        tests = (
            find_changes(states, key, n_resamples=199, seed=seed).p_value
            for key in ("ece", "nll", "accuracy")
        )
        found += holm(np.array(list(tests))).min() < 0.05
    return found / n_series


def test_equal_states_raise_few_alarms():
    assert alarms([150] * 5, 0.7, 60) <= 0.15  # 5% intended; more is a chance of one in a thousand


@pytest.mark.simulation
@pytest.mark.parametrize("temperature", [1.0, 0.6])
@pytest.mark.parametrize(
    "sizes", [[300] * 10, [60] * 20, [50, 2000, 100, 400, 50, 1000, 60, 300, 200, 80]], ids=str
)
def test_equal_states_raise_alarms_in_at_most_five_percent(sizes, temperature):
    # 500 series at 5%: above 7.5% is a chance of less than one percent.
    assert alarms(sizes, temperature, 500) <= 0.075
