"""Equivalence of two methods: margins, conclusions, and how often a claim of equivalence is false."""

import sys
from pathlib import Path

import numpy as np
import pytest

from equipoise.evaluate import StandardError
from equipoise.evaluate.differences import correct_family, difference_test

EVIDENCE = Path(__file__).resolve().parents[2] / "evidence"
N_REPEATS = 2000


@pytest.fixture
def equivalence(monkeypatch):
    monkeypatch.syspath_prepend(str(EVIDENCE))
    monkeypatch.delitem(sys.modules, "differences", raising=False)
    from differences import equivalence

    return equivalence


def found(equivalence, difference, error, *, metric="nll", before=0.5):
    [one] = correct_family([difference_test(metric, before, before + difference, StandardError(error))])
    return equivalence(one)


@pytest.mark.parametrize(
    ("difference", "error", "conclusion"),
    [
        (0.0, 0.001, "equivalent"),
        (0.004, 0.0001, "equivalent"),  # significant, and smaller than the margin
        (0.01, 0.001, "worse"),
        (-0.01, 0.001, "better"),
        (0.004, 0.002, "worse"),  # significant, and perhaps larger than the margin
        (0.0, 0.004, "undecided"),
    ],
)
def test_conclusions_follow_from_interval_and_margin(equivalence, difference, error, conclusion):
    row = found(equivalence, difference, error)
    assert row["conclusion"] == conclusion
    assert row["margin"] == pytest.approx(0.005)
    assert row["high_90"] - row["low_90"] == pytest.approx(2 * 1.645 * error, rel=1e-3)


def test_the_margin_of_ece_is_half_a_point_and_accuracy_has_none(equivalence):
    assert found(equivalence, 0.001, 0.0001, metric="ece", before=0.02)["conclusion"] == "equivalent"
    assert found(equivalence, 0.0055, 0.0001, metric="ece", before=0.02)["conclusion"] == "worse"
    row = found(equivalence, 0.0, 0.0001, metric="accuracy")
    assert (row["margin"], row["conclusion"]) == (None, "undecided")


@pytest.mark.parametrize("n_seeds", [5, 10, 30])
@pytest.mark.parametrize("share_of_rows", [0.0, 0.5, 1.0])
def test_a_difference_as_large_as_the_margin_is_rarely_called_equivalent(equivalence, n_seeds, share_of_rows):
    """Both sources of error are drawn; the rows' is known, the seeds' is estimated."""
    rng = np.random.default_rng(n_seeds)
    margin, error = 0.005, 0.001
    rows = error * np.sqrt(share_of_rows)
    seeds = error * np.sqrt((1 - share_of_rows) * n_seeds)
    gaps = margin + rng.normal(0, 1, (N_REPEATS, 1)) * rows + rng.normal(0, seeds, (N_REPEATS, n_seeds))
    scatter = gaps.std(axis=1, ddof=1) / np.sqrt(n_seeds)
    called = 0
    for gap, spread in zip(gaps.mean(axis=1), scatter, strict=True):
        one = difference_test("nll", 0.5, 0.5 + gap, StandardError(rows, np.inf, spread, n_seeds - 1.0))
        called += equivalence(one)["conclusion"] == "equivalent"
    # Three standard errors of a rate of 5% in this many repetitions.
    assert called / N_REPEATS < 0.05 + 3 * np.sqrt(0.05 * 0.95 / N_REPEATS)
    assert called / N_REPEATS > 0.005


@pytest.mark.parametrize("n_seeds", [5, 30])
def test_equal_methods_are_called_equivalent_where_the_error_is_small(equivalence, n_seeds):
    rng = np.random.default_rng(n_seeds)
    gaps = rng.normal(0, 0.001 * np.sqrt(n_seeds), (200, n_seeds))
    scatter = gaps.std(axis=1, ddof=1) / np.sqrt(n_seeds)
    called = [
        equivalence(
            difference_test("nll", 0.5, 0.5 + gap, StandardError(0.0, np.inf, spread, n_seeds - 1.0))
        )["conclusion"]
        for gap, spread in zip(gaps.mean(axis=1), scatter, strict=True)
    ]
    assert called.count("equivalent") > 190
