"""Levels, powers and coverages by simulation: a few cells every day, more in ``make test-simulations``.

``benchmarks/statistics.py`` runs all of them with 1,000 repetitions.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from equipoise.evaluate import StandardError, compare_states
from equipoise.metrics import CalibrationState
from helpers import statistics_trials as trials
from helpers.simulated_trainings import METRICS, ROWS_DOMINATED, SEEDS_DOMINATED, calibrated_rows


def averages(trial, repeats, **options):
    """Return the mean over many trials of every number that one gives."""
    found = [trial(np.random.default_rng([7, number]), **options) for number in range(repeats)]
    return {key: float(np.mean([one[key] for one in found])) for key in found[0]}


def allowed(share, repeats):
    """Return what a share stays below in all but one of 700 simulations."""
    return share + 3 * np.sqrt(share * (1 - share) / repeats)


@pytest.mark.parametrize("n_seeds", [2, 3, 5, 10])
@pytest.mark.parametrize("alpha", [0.05, 0.01, 0.05 / 15])
def test_two_sources_of_normal_noise_keep_the_level_in_every_mixture(n_seeds, alpha):
    rng, n = np.random.default_rng(0), 40_000
    scatter = np.sqrt(rng.chisquare(n_seeds - 1, n) / (n_seeds - 1))
    for rows in (0.0, 0.03, 0.1, 0.2, 0.5, 1.0, 3.0):
        difference = np.hypot(1, rows) * rng.standard_normal(n)
        # The half-width grows with the scatter, so a grid of scatters is enough.
        grid = np.geomspace(scatter.min() + 1e-9, scatter.max(), 400)
        widths = [StandardError(rows, np.inf, seeds, n_seeds - 1.0).half_width(alpha) for seeds in grid]
        missed = np.mean(np.abs(difference) > np.interp(scatter, grid, widths))
        assert missed < allowed(alpha, n), rows


@pytest.mark.parametrize(
    "error", [StandardError(1.0), StandardError(0.3, 99.0, 0.4, 1.0), StandardError(0, 9, 1, 4)]
)
def test_the_interval_excludes_zero_exactly_when_p_is_below_the_level(error):
    for alpha in (0.2, 0.05, 0.001):
        half = error.half_width(alpha)
        assert error.p_value(1.000001 * half) < alpha < error.p_value(0.999999 * half)


def test_states_have_intervals_and_verdicts_of_one_test():
    rng = np.random.default_rng(0)
    verdicts = set()
    for sharpness in np.linspace(1.0, 1.6, 6):
        states = [
            CalibrationState.of(calibrated_rows(rng, rows, sharpness=one))
            for rows, one in ((800, 1.2), (300, sharpness))
        ]
        for row in compare_states(*states, n_resamples=200):
            assert (row.low > 0 or row.high < 0) == (row.p_value < 0.05) == (row.verdict != "tie"), row
            assert row.low <= row.difference <= row.high
            verdicts.add(row.verdict)
    assert len(verdicts) > 1


def test_a_small_state_without_errors_is_not_called_better():
    many, few = CalibrationState(2), CalibrationState(2)
    many.update(probs=[0.98] * 2000, labels=[1] * 1960 + [0] * 40)
    few.update(probs=[0.98] * 30, labels=[1] * 30)
    assert compare_states(many, few).of("accuracy").verdict == "tie"


def test_states_of_other_sizes_and_calibration_have_intervals_that_hold_the_truth():
    cases = ((2000, 1.0, 300, 1.6), (300, 1.0, 2000, 1.6))
    found = averages(trials.two_states, 25, cases=cases)
    for case in cases:
        assert found["inside", *case, "ece"] >= 0.84, case


def test_equal_methods_rarely_get_a_verdict():
    found = averages(
        trials.null_tables, 100, sources=(SEEDS_DOMINATED,), seeds=(2,), methods=(3,), factors=(4.0,)
    )
    for key, share in found.items():
        if key[0] in ("verdict", "loser"):
            assert share <= allowed(0.07, 100), key


def test_one_seed_gives_no_verdict_about_methods():
    found = averages(trials.null_tables, 20, seeds=(1,), methods=(2,))
    assert not any(share for key, share in found.items() if key[0] in ("verdict", "loser"))
    assert any(share for key, share in found.items() if key[0] == "networks")


def test_simulated_tables_are_those_of_compare_seeds():
    found = averages(trials.whole_path, 1)
    assert all(found["agree", metric] == 1 for metric in METRICS)


def test_other_benchmarks_import_the_standard_library_instead_of_the_benchmark_of_its_name():
    folder = Path(__file__).resolve().parents[2] / "benchmarks"
    code = (
        "import sys; sys.path.insert(0, sys.argv[1]); import statistics; print(statistics.median([1, 2, 4]))"
    )
    found = subprocess.run([sys.executable, "-c", code, folder], capture_output=True, text=True, check=True)
    assert found.stdout == "2\n"


@pytest.mark.simulation
@pytest.mark.parametrize("source", [ROWS_DOMINATED, SEEDS_DOMINATED], ids=["rows", "seeds"])
def test_tables_of_equal_methods_keep_the_level(source):
    found = averages(trials.null_tables, 300, sources=(source,))
    for key, share in found.items():
        if key[0] in ("verdict", "loser"):
            assert share <= allowed(0.07, 300), key
        elif key[0] == "mean":
            assert share >= 0.93 - 3 * np.sqrt(0.07 * 0.93 / 300), key


@pytest.mark.simulation
def test_power_is_near_that_of_a_t_test_where_only_seeds_matter():
    found = averages(trials.power_against_t_test, 300)
    for n_seeds in (5, 10):
        for metric in METRICS:
            ours, theirs = (found[test, "seeds only", n_seeds, metric] for test in ("ours", "t-test"))
            assert ours >= 0.9 * theirs, (n_seeds, metric)


@pytest.mark.simulation
def test_a_detectable_difference_is_found_in_about_four_of_five_comparisons():
    for key, share in averages(trials.detectable_differences, 300).items():
        assert 0.7 - 0.08 <= share <= 0.9 + 0.06, key


@pytest.mark.simulation
@pytest.mark.parametrize("trial", [trials.equal_networks, trials.calibrated_slices])
def test_networks_gates_and_slices_keep_the_level(trial):
    for key, share in averages(trial, 300).items():
        assert share <= allowed(0.07, 300), key


def check_families(found, repeats):
    for (what, *key), share in found.items():
        if what in ("at once", "each"):
            assert share >= 0.93 - 3 * np.sqrt(0.07 * 0.93 / repeats), (what, key)
        elif what in ("false coverage", "false discovery"):
            assert share <= allowed(0.07, repeats), (what, key)


def test_a_family_of_comparisons_has_few_false_calls():
    found = averages(trials.families, 60, sources=(SEEDS_DOMINATED,), seeds=(3,), factors=(1.0,))
    check_families(found, 60)
    assert any(share for (what, *_), share in found.items() if what == "power")


@pytest.mark.simulation
def test_families_of_comparisons_keep_their_levels():
    check_families(averages(trials.families, 300), 300)


@pytest.mark.simulation
def test_scorecards_hold_the_truth_as_often_as_stated():
    for (what, *key), share in averages(trials.single_scorecards, 300).items():
        if what == "inside":
            assert share >= 0.93 - 3 * np.sqrt(0.07 * 0.93 / 300), key
        else:
            assert share <= allowed(0.07 if what == "consistency" else 0.035, 300), key


@pytest.mark.simulation
def test_states_keep_the_level_and_hold_the_truth():
    for (what, *key), share in averages(trials.two_states, 200).items():
        if what == "different":
            assert share <= allowed(0.07, 200), key
        else:
            assert share >= 0.93 - 3 * np.sqrt(0.07 * 0.93 / 200), key
