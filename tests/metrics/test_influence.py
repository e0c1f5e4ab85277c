"""Scores of acting on a confidence: values, influences, intervals and paired differences."""

from dataclasses import replace

import numpy as np
import pytest

from equipoise import Predictions, compare, metrics, score
from equipoise.metrics.influence import COMPARED_KEYS, CORP_KEYS, SELECTIVE_KEYS, influence_table
from equipoise.metrics.inputs import ConfidenceCells, top_label
from equipoise.metrics.state import CalibrationState

KEYS = (*SELECTIVE_KEYS, *CORP_KEYS)


def steep(rng, n):
    forecast = 0.4 + 0.6 * rng.beta(6, 1.2, n)
    return forecast, forecast


def overconfident(rng, n):
    forecast = 0.4 + 0.6 * rng.beta(6, 1.2, n)
    return forecast, 0.3 + 0.6 * forecast**2


def accurate(rng, n):
    forecast = 1 - 0.3 * rng.beta(0.4, 3.0, n)
    return forecast, forecast


def flat(rng, n):
    return rng.uniform(0.6, 1, n), np.full(n, 0.8)


def discrete(rng, n):
    forecast = np.clip(np.round(10 * rng.beta(5, 1.2, n)) / 10, 0.1, 0.9)
    return forecast, 0.9 * forecast + 0.1


def underconfident(rng, n):
    forecast = rng.uniform(0.5, 0.9, n)
    return forecast, forecast + 0.1


WORLDS = {one.__name__: one for one in (steep, overconfident, accurate, flat, discrete, underconfident)}


def cells_of(confidence, right):
    values, place = np.unique(confidence, return_inverse=True)
    return ConfidenceCells(values, np.bincount(place).astype(float), np.bincount(place, right))


def truth_of(world):
    forecast, chance = world(np.random.default_rng(99), 1_000_000)
    return influence_table(cells_of(np.round(forecast, 5), chance)).values


def coverage_of(world, n, repetitions):
    truth, rng, hits = truth_of(world), np.random.default_rng(n), dict.fromkeys(KEYS, 0)
    for _ in range(repetitions):
        forecast, chance = world(rng, n)
        table = influence_table(cells_of(forecast, (rng.random(n) < chance).astype(float)))
        for key in KEYS:
            low, high = table.interval(key, n)
            assert low <= table.values[key] <= high
            hits[key] += low - 1e-9 <= truth[key] <= high + 1e-9
    return {key: count / repetitions for key, count in hits.items()}


def top1(n=300, seed=0, decimals=None):
    rng = np.random.default_rng(seed)
    confidence = rng.uniform(0.4, 1, n)
    confidence = confidence if decimals is None else confidence.round(decimals)
    right = rng.random(n) < confidence
    weight = rng.integers(1, 4, n).astype(float)
    return confidence, right, weight


@pytest.mark.parametrize("decimals", [None, 1])
@pytest.mark.parametrize("weighted", [False, True])
def test_values_are_those_of_the_functions(decimals, weighted):
    confidence, right, weight = top1(decimals=decimals)
    rows = Predictions(
        predicted=np.ones(300, int), confidence=confidence, labels=right.astype(int),
        **({"weights": weight} if weighted else {}),
    )  # fmt: skip
    values = influence_table(top_label(rows, None, where="test").cells).values
    assert values["augrc"] == pytest.approx(metrics.area_under_generalized_risk_coverage(rows))
    assert values["eaurc"] == pytest.approx(metrics.excess_area_under_risk_coverage(rows))
    assert values["risk_at_80"] == pytest.approx(metrics.risk_at_coverage(rows, coverage=0.8))
    assert values["coverage_at_5"] == pytest.approx(metrics.coverage_at_risk(rows, risk=0.05))
    for name, kind in (("", "brier"), ("log_", "log")):
        split = metrics.corp_split(rows, score=kind)
        found = [values[f"corp_{name}{part}"] for part in ("miscalibration", "discrimination", "uncertainty")]
        assert found == pytest.approx(list(split[1:]))
    card = score(rows, n_resamples=20)
    assert {key: card[key].value for key in KEYS} == pytest.approx(values)


@pytest.mark.parametrize("key", ["augrc", "eaurc", *CORP_KEYS])
def test_influence_is_the_derivative_by_the_weight_of_a_row(key):
    confidence, right, _ = top1(4000)
    cells = cells_of(confidence, right.astype(float))
    table = influence_table(cells)
    entry = table.entries[key]
    mean = (cells.right @ entry.right + cells.wrong @ entry.wrong) / 4000
    assert mean == pytest.approx(0, abs=2e-3 * (1 + np.abs(entry.wrong).max()))
    for place in (100, 2000, 3900):
        # So much more weight that it can be seen, and so little that the score stays linear.
        mass = cells.mass.copy()
        mass[place] += 1.0
        changed = influence_table(replace(cells, mass=mass)).values[key]
        expected = entry.wrong[place] / 4001
        assert changed - table.values[key] == pytest.approx(
            expected, abs=0.05 * np.abs(entry.wrong).max() / 4001
        )


@pytest.mark.parametrize("key", ["augrc", "eaurc"])
def test_influence_of_tied_rows_is_the_derivative_too(key):
    confidence, right, _ = top1(4000, decimals=1)
    cells = cells_of(confidence, right.astype(float))
    table = influence_table(cells)
    # The sum over n rows differs from the area under a continuous curve by the order of 1 / n.
    for place in range(len(cells.mass)):
        mass = cells.mass.copy()
        mass[place] += 1.0
        changed = influence_table(replace(cells, mass=mass)).values[key]
        assert 4001 * (changed - table.values[key]) == pytest.approx(
            table.entries[key].wrong[place], abs=0.01
        )


def test_a_model_without_mistakes_keeps_room_for_some():
    table = influence_table(cells_of(np.linspace(0.9, 1, 50), np.ones(50)))
    assert table.interval("augrc", 50).low == 0
    assert 0.03 < table.interval("augrc", 50).high < 0.15
    assert 0.03 < table.interval("risk_at_80", 50).high < 0.15
    assert table.values["coverage_at_5"] == 1


def test_one_confidence_is_enough():
    table = influence_table(cells_of(np.full(20, 0.8), np.arange(20) % 2))
    for key in KEYS:
        low, high = table.interval(key, 20)
        assert low <= table.values[key] <= high


def test_streams_have_all_but_the_parts_of_the_log_loss():
    confidence, right, _ = top1(20_000)
    rows = Predictions(predicted=np.ones(20_000, int), confidence=confidence, labels=right.astype(int))
    whole, stream = score(rows, n_resamples=20), score(CalibrationState.of(rows), n_resamples=20)
    for key in KEYS:
        if "log" in key:
            assert stream.missing[key] == "it needs the rows"
        else:
            # The few rows at which the coverage is read are those of one cell of the sketch.
            assert stream[key].value == pytest.approx(whole[key].value, rel=5e-3, abs=2e-4)


def test_clusters_widen_the_intervals():
    confidence, right, _ = top1(600)
    rows = Predictions(
        predicted=np.ones(1800, int),
        confidence=np.repeat(confidence, 3),
        labels=np.repeat(right, 3).astype(int),
    )
    plain, clustered = score(rows), score(rows, clusters=np.repeat(np.arange(600), 3))
    for key in KEYS:
        widths = [one[key].high - one[key].low for one in (plain, clustered)]
        assert widths[1] > 1.1 * widths[0]


def test_the_event_of_two_classes_has_parts_and_no_threshold():
    rng = np.random.default_rng(0)
    chance = rng.beta(1, 9, 2000)
    rows = Predictions(probs=chance, labels=(rng.random(2000) < chance).astype(int))
    card = score(rows, target="positive", n_resamples=20)
    split = metrics.corp_split(rows, event="positive")
    assert card["corp_miscalibration"].value == pytest.approx(split.miscalibration, abs=1e-7)
    assert card["corp_uncertainty"].value == pytest.approx(split.uncertainty, abs=1e-7)
    assert card.missing["augrc"] == "it is about the predicted class"


def pair(rng, n):
    """Return two models that are equally good: their confidences have the same law and other mistakes."""
    base = rng.normal(size=(n, 4))
    labels = (base + rng.gumbel(size=base.shape)).argmax(1)
    return [Predictions(logits=base + 0.7 * rng.normal(size=base.shape), labels=labels) for _ in range(2)]


def test_paired_differences_find_a_better_order():
    first, _ = pair(np.random.default_rng(1), 3000)
    noise = np.random.default_rng(2).normal(size=first.logits.shape)
    found = compare(first, first.with_scores(logits=first.logits + 1.5 * noise), n_resamples=200)
    assert {row.metric for row in found} >= set(COMPARED_KEYS)
    for key in ("augrc", "eaurc", "corp_discrimination"):
        assert found.of(key).verdict == "worse"


def shares_of_false_verdicts(n, repetitions):
    rng, found = np.random.default_rng(n), dict.fromkeys(COMPARED_KEYS, 0)
    for place in range(repetitions):
        first, second = pair(rng, n)
        for row in compare(first, second, metrics=COMPARED_KEYS, n_resamples=200, seed=place):
            found[row.metric] += row.verdict != "tie"
    return {key: count / repetitions for key, count in found.items()}


def test_equal_models_are_mostly_ties():
    assert max(shares_of_false_verdicts(500, 60).values()) < 0.17


@pytest.mark.parametrize("name", ["accurate", "discrete"])
def test_intervals_cover_in_a_few_repetitions(name):
    assert min(coverage_of(WORLDS[name], 500, 100).values()) >= 0.86


@pytest.mark.simulation
@pytest.mark.parametrize("n", [200, 1000, 5000])
@pytest.mark.parametrize("name", WORLDS)
def test_intervals_cover(name, n):
    found = coverage_of(WORLDS[name], n, 1000)
    print(name, n, {key: round(100 * share, 1) for key, share in found.items()})
    assert min(found.values()) >= 0.92


@pytest.mark.simulation
@pytest.mark.parametrize("n", [300, 1000, 5000])
def test_paired_tests_keep_their_level(n):
    found = shares_of_false_verdicts(n, 500)
    print(n, {key: round(100 * share, 1) for key, share in found.items()})
    assert max(found.values()) <= 0.08
