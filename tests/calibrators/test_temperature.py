"""Temperature scaling."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from equipoise import Predictions
from equipoise.calibrators import TemperatureScaling
from equipoise.calibrators.temperature_search import GRID, ece_on_grid, fit_beta
from equipoise.kernels.dispatch import use_backend
from equipoise.metrics import expected_calibration_error
from helpers.backends import go
from helpers.calibration_data import nll, probs, sample
from helpers.golden import SECOND, arrays, expected


@pytest.fixture(scope="module", params=["compiled", "fallback"], autouse=True)
def _way(request: pytest.FixtureRequest) -> Iterator[None]:
    yield from go(request.param)


def ece(logits: np.ndarray, labels: np.ndarray) -> float:
    return float(expected_calibration_error(probs(logits), labels))


def test_three_of_four_right_means_odds_of_three() -> None:
    # softmax(3 / T) = 3/4 where exp(3 / T) = 3
    calibrator = TemperatureScaling().fit([[3.0, 0.0]] * 4, [0, 0, 0, 1])
    assert calibrator.temperature == pytest.approx(3 / np.log(3), rel=1e-12)


def test_golden_values_by_likelihood() -> None:
    want = expected("temperature.R")
    calibrator = TemperatureScaling().fit(*arrays("R"))
    assert calibrator.temperature == pytest.approx(want["T_nll_continuous"], rel=1e-6)
    assert calibrator.result.nll_before == pytest.approx(want["nll_before"], rel=1e-9)
    assert calibrator.result.nll_after == pytest.approx(want["nll_continuous"], rel=1e-9)
    np.testing.assert_allclose(probs(calibrator(SECOND)), want["S_probs_first2"], rtol=1e-6)


def test_golden_values_by_ece() -> None:
    want = expected("temperature.R")
    calibrator = TemperatureScaling(criterion="ece").fit(*arrays("R"))
    assert calibrator.temperature == pytest.approx(want["T_grid_ece"], rel=1e-12)
    assert calibrator.result.certificate["ece"] == pytest.approx(want["ece_at"], rel=1e-9)


def test_the_grid_ends_as_in_the_papers() -> None:
    assert GRID[0] == 0.1
    assert GRID[-1] == 9.99999999999998
    assert len(GRID) == 100


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_logits_times_three_give_temperature_three(dtype: type) -> None:
    logits, labels = sample(2000, 5)
    once = TemperatureScaling().fit(logits.astype(dtype), labels).temperature
    thrice = TemperatureScaling().fit((3 * logits).astype(dtype), labels).temperature
    assert thrice / once == pytest.approx(3.0, abs=1e-6)


def test_calibrated_rows_of_two_kinds_give_exactly_one() -> None:
    # Four rows at odds 3 with three right, ten at odds 9 with nine right: no temperature can improve them.
    logits = np.array([[np.log(3.0), 0.0]] * 4 + [[np.log(9.0), 0.0]] * 10)
    labels = np.array([0] * 3 + [1] + [0] * 9 + [1])
    calibrator = TemperatureScaling().fit(logits, labels)
    assert calibrator.temperature == pytest.approx(1.0, abs=1e-9)
    assert calibrator.result.words.startswith("neither")


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 10**6), st.integers(2, 40), st.floats(0.05, 20.0))
def test_no_temperature_near_by_is_better(seed: int, k: int, scale: float) -> None:
    logits, labels = sample(100, k, seed=seed)
    found = fit_beta(scale * logits, labels, None)
    for factor in (0.5, 0.9, 0.999, 1.001, 1.1, 2.0):
        assert found.nll <= nll(found.beta * factor * scale * logits, labels) + 1e-12
    if found.bound is None:
        assert found.gap < 1e-9


@settings(deadline=None, max_examples=25)
@given(st.integers(0, 10**6), st.integers(2, 30), st.sampled_from([0.1, 1.0, 8.0, 300.0]))
def test_the_grid_search_equals_the_loop_of_the_papers(seed: int, k: int, scale: float) -> None:
    logits, labels = sample(150, k, seed=seed)
    by_loop = np.array([ece(scale * logits / temperature, labels) for temperature in GRID])
    best, by_ladder = ece_on_grid(scale * logits, labels, None, n_bins=15)
    assert by_loop[best] == pytest.approx(by_loop.min(), abs=1e-12)
    assert np.median(np.abs(by_ladder - by_loop)) < 1e-6  # a row may lie on an edge


def test_a_start_on_few_rows_ends_at_the_same_place_on_many() -> None:
    logits, labels = sample(20_000, 4)
    found = fit_beta((2.5 * logits).astype(np.float32), labels, None)
    values = [
        nll(beta * 2.5 * logits.astype(np.float32).astype(float), labels)
        for beta in (found.beta, 0.9999 * found.beta)
    ]
    assert found.nll == pytest.approx(values[0], abs=1e-9)
    assert values[0] < values[1]
    assert found.iterations <= 6


def test_threads_do_not_change_the_answer() -> None:
    logits, labels = sample(9000, 4)
    before = torch.get_num_threads()
    try:
        found = []
        for threads in (1, 2):
            torch.set_num_threads(threads)
            found.append(fit_beta(logits, labels, None).beta)
    finally:
        torch.set_num_threads(before)
    assert found[0] == pytest.approx(found[1], rel=1e-12)


def test_separable_rows_stop_at_a_bound_and_say_so() -> None:
    labels = np.arange(30) % 3
    calibrator = TemperatureScaling().fit(np.eye(3)[labels], labels)
    assert not calibrator.result.converged
    assert "on the way to T = 0" in calibrator.result.warnings[0]
    assert calibrator.temperature > 1e-3


def test_logits_that_say_nothing_stop_at_a_bound_and_say_so() -> None:
    labels = np.arange(30) % 3
    calibrator = TemperatureScaling().fit(np.eye(3)[(labels + 1) % 3], labels)
    assert not calibrator.result.converged
    assert "same order" in calibrator.result.warnings[0]
    assert calibrator.temperature < 1e3


def test_huge_logits_are_no_trouble() -> None:
    logits, labels = sample(500, 4)
    calibrator = TemperatureScaling().fit(1e4 * logits, labels)
    assert calibrator.result.converged
    assert calibrator.temperature == pytest.approx(
        1e4 * TemperatureScaling().fit(logits, labels).temperature, rel=1e-6
    )


def test_labels_that_were_changed_after_the_checks_are_refused() -> None:
    logits, labels = sample(500, 4)
    predictions = Predictions(logits=logits, labels=labels)
    labels[7] = -100
    with pytest.raises(ValueError, match=r"`labels` must lie in \[0, 4\), got -100 in row 7"):
        TemperatureScaling().fit(predictions)


def test_an_ece_temperature_that_hurts_the_likelihood_is_given_up() -> None:
    # Always right at confidence 0.95: a tiny temperature has ECE 0, and the one row that is wrong costs dearly.
    logits = np.array([[3.0, 0.0]] * 20)
    labels = np.zeros(20, int)
    calibrator = TemperatureScaling(criterion="ece").fit(
        np.vstack([logits, [[0.0, 0.3]]]), np.append(labels, 0)
    )
    assert calibrator.result.nll_after <= calibrator.result.nll_before
    assert calibrator.result.identity == (calibrator.temperature == 1.0)


def test_words() -> None:
    logits, labels = sample(500, 3)
    assert TemperatureScaling().fit(3 * logits, labels).result.words.startswith("overconfident: divide")
    assert TemperatureScaling().fit(0.3 * logits, labels).result.words.startswith("underconfident: multiply")


def test_unknown_criterion_is_refused() -> None:
    with pytest.raises(ValueError, match="'nll' or 'ece'"):
        TemperatureScaling(criterion="mse")  # type: ignore[arg-type]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("k", [2, 7, 8, 100])
@pytest.mark.parametrize("weighted", [False, True])
def test_both_ways_give_the_same_numbers(dtype: type, k: int, weighted: bool) -> None:
    logits, labels = sample(700, k)
    logits = (2 * logits).astype(dtype)
    weights = np.random.default_rng(0).random(700) if weighted else None
    found, grid = fit_beta(logits, labels, weights), ece_on_grid(logits, labels, weights, n_bins=15)[1]
    with use_backend("fallback"):
        known, plain_grid = (
            fit_beta(logits, labels, weights),
            ece_on_grid(logits, labels, weights, n_bins=15)[1],
        )
    assert found.beta == pytest.approx(known.beta, rel=1e-9)
    assert found.nll == pytest.approx(known.nll, rel=1e-12)
    # In single precision a confidence next to an edge may fall on its other side.
    np.testing.assert_allclose(
        np.median(np.abs(grid - plain_grid)), 0, atol=1e-6 if dtype == np.float32 else 1e-12
    )


def test_top_versus_all_is_the_best_log_loss_of_the_confidence():
    rng = np.random.default_rng(0)
    logits = 4 * rng.normal(size=(2000, 5))
    labels = (logits / 3 + rng.gumbel(size=logits.shape)).argmax(axis=1)
    fitted = TemperatureScaling(criterion="top_versus_all").fit(logits, labels)

    def log_loss(temperature: float) -> float:
        scaled = logits / temperature
        probs = np.exp(scaled - np.logaddexp.reduce(scaled, axis=1, keepdims=True))
        confidence, right = probs.max(axis=1), probs.argmax(axis=1) == labels
        return float(-np.log(np.where(right, confidence, 1 - confidence)).mean())

    best = log_loss(fitted.temperature)
    assert all(best <= log_loss(fitted.temperature * factor) for factor in (0.5, 0.9, 0.99, 1.01, 1.1, 2.0))


def test_top_versus_all_of_two_classes_is_the_likelihood():
    rng = np.random.default_rng(1)
    logits = 3 * rng.normal(size=(500, 2))
    labels = (logits / 2 + rng.gumbel(size=logits.shape)).argmax(axis=1)
    other = TemperatureScaling(criterion="top_versus_all").fit(logits, labels)
    assert other.temperature == pytest.approx(TemperatureScaling().fit(logits, labels).temperature, rel=1e-4)
