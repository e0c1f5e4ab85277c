"""Draws from the state agree with a bootstrap of the rows."""

import numpy as np
import pytest

from equipoise import Predictions
from equipoise.core.choices import ScoreSettings
from equipoise.metrics import CalibrationState
from equipoise.metrics.inputs import top_label
from equipoise.metrics.ranked import equal_mass_error, error_of_running_sums
from equipoise.metrics.resample import Resampler, _gamma_variates
from equipoise.metrics.sums import running_sums
from equipoise.metrics.values import row_metrics, state_metrics
from helpers.metric_samples import draw


def values(predictions):
    state = CalibrationState.of(predictions)
    return {**state_metrics(state), **row_metrics(top_label(predictions, None, where="test"), state)}


def row_bootstrap(predictions, n_resamples, seed=0):
    rng = np.random.default_rng(seed)
    n = len(predictions)
    found = [values(predictions.take(rng.integers(0, n, n))) for _ in range(n_resamples)]
    return {key: np.array([one[key] for one in found]) for key in found[0]}


@pytest.mark.parametrize(
    ("k", "spread"),
    [(2, 1.5), *(pytest.param(*case, marks=pytest.mark.slow) for case in [(3, 1.5), (10, 2.0), (40, 3.0)])],
)
def test_bootstrap_agrees_with_one_of_the_rows(k, spread):
    predictions = Predictions(
        **dict(zip(("probs", "labels"), draw(1500, k, spread=spread, seed=k), strict=True))
    )
    rows = row_bootstrap(predictions, 150)
    draws = Resampler(CalibrationState.of(predictions), ScoreSettings(n_resamples=2000, seed=0)).bootstrap()
    compared = set(draws) & set(rows)
    assert {
        "classwise_ece",
        "brier_calibration",
        "brier_refinement",
        "smece",
        "ks",
        "aurc",
        "nll",
    } <= compared
    for key in compared - {"under_confidence"}:
        spread_of_rows = rows[key].std()
        # 150 resamples know their own spread to 6%; the worst of few rows in a bin is rougher than an average.
        low, high = (0.7, 1.45) if key == "mce" else (0.8, 1.32)
        assert low < draws[key].std() / spread_of_rows < high, key
        assert abs(draws[key].mean() - rows[key].mean()) < 0.45 * spread_of_rows, key


def test_weights_widen_the_spread_to_what_they_are_worth():
    probs, labels = draw(2000, 3)
    plain = CalibrationState.of(Predictions(probs=probs, labels=labels))
    weights = np.where(np.arange(2000) % 10 == 0, 10.0, 0.01)
    few = CalibrationState.of(Predictions(probs=probs, labels=labels, weights=weights))
    spreads = [
        Resampler(s, ScoreSettings(n_resamples=800, seed=0)).bootstrap()["accuracy"].std()
        for s in (plain, few)
    ]
    assert spreads[1] / spreads[0] == pytest.approx(10**0.5, rel=0.25)


def test_the_scale_of_the_weights_does_not_matter():
    probs, labels = draw(500, 3)
    states = [
        CalibrationState.of(Predictions(probs=probs, labels=labels, weights=np.full(500, w)))
        for w in (0.01, 3.0)
    ]
    one, two = (Resampler(s, ScoreSettings(n_resamples=50, seed=0)).bootstrap() for s in states)
    for key, found in one.items():
        np.testing.assert_allclose(found, two[key], rtol=1e-4, atol=1e-7, err_msg=key)


def test_the_same_seed_gives_the_same_draws():
    state = CalibrationState.of(Predictions(probs=[0.9, 0.6, 0.2], labels=[1, 0, 0]))
    one, two, other = (
        Resampler(state, ScoreSettings(n_resamples=20, seed=s)).bootstrap()["nll"] for s in (1, 1, 2)
    )
    assert (one == two).all()
    assert (one != other).any()


# Of 1,200 rows, counts are drawn exactly; of 6,000, most as Gaussian.
@pytest.mark.parametrize(("k", "n"), [(5, 1200), (3, 6000), pytest.param(2, 1200, marks=pytest.mark.slow)])
def test_a_calibrated_model_draws_what_simulation_gives(k, n):
    rng = np.random.default_rng(0)
    probs, labels = draw(n, k, sharpness=1.0)
    predictions = Predictions(probs=probs, labels=labels)
    draws = Resampler(CalibrationState.of(predictions), ScoreSettings(n_resamples=1500, seed=0)).calibrated()
    simulated = []
    for _ in range(120):
        fresh = (probs.cumsum(axis=1) < rng.random((len(probs), 1))).sum(axis=1).clip(0, k - 1)
        simulated.append(values(Predictions(probs=probs, labels=fresh)))
    for key in ("ece", "mce", "rms_ce", "classwise_ece", "smece", "ks", "ada_ece", "brier_calibration"):
        want = np.array([one[key] for one in simulated])
        error = want.std() / np.sqrt(len(want))
        assert abs(draws[key].mean() - want.mean()) < 4 * error + 0.06 * want.mean(), key
        assert 0.7 < draws[key].std() / want.std() < 1.4, key


def test_gamma_variates_have_the_moments_of_their_shape():
    shape = np.array([0.0, 0.3, 1.0, 4.0, 7.5, 400.0])
    drawn = _gamma_variates(np.random.default_rng(0), shape, 1_000_000).astype(np.float64)
    assert (drawn >= 0).all()
    assert (drawn[:, 0] == 0).all()
    np.testing.assert_allclose(drawn.mean(axis=0), shape, rtol=0.02)
    np.testing.assert_allclose(drawn.var(axis=0), shape, rtol=0.02)
    skewness = ((drawn - shape) ** 3).mean(axis=0)[2:] / shape[2:] ** 1.5
    np.testing.assert_allclose(skewness, 2 / np.sqrt(shape[2:]), atol=0.07)


def test_draws_in_single_precision_resolve_a_billion_rows():
    probs, labels = draw(15_000, 5)
    small = CalibrationState.of(Predictions(probs=probs, labels=labels))
    large = CalibrationState.from_state_dict(small.state_dict())
    for _ in range(16):
        large.merge(CalibrationState.from_state_dict(large.state_dict()))
    assert large.n_samples == 15_000 * 2**16
    few, many = (Resampler(state, ScoreSettings(n_resamples=2000, seed=0)) for state in (small, large))
    drawn, fine = few.bootstrap(), many.bootstrap()
    for key in ("auroc", "aurc", "brier", "accuracy"):
        assert drawn[key].std() / fine[key].std() == pytest.approx(2**8, rel=0.08), key
    drawn, fine = few.calibrated(), many.calibrated()
    for key in ("ks", "ada_ece", "ece"):
        assert drawn[key].mean() / fine[key].mean() == pytest.approx(2**8, rel=0.08), key


def test_one_row_of_mass_serves_all_rows_of_gaps():
    rng = np.random.default_rng(0)
    position, running = np.cumsum(rng.random(40))[None], np.cumsum(rng.normal(size=(6, 40)), axis=1)
    same = error_of_running_sums(np.repeat(position, 6, axis=0), running, 15)
    np.testing.assert_allclose(error_of_running_sums(position, running, 15), same)


def test_crowded_confidences_keep_their_order():
    # Nearly all confidences above 0.99: coarse cells of equal width would hold them in two or three.
    rng = np.random.default_rng(0)
    confidence = 1 - 0.01 * rng.random(3000)
    correct = rng.random(3000) < confidence
    predictions = Predictions(
        predicted=np.zeros(3000, int), confidence=confidence, labels=(~correct).astype(int), n_classes=2
    )
    draws = Resampler(CalibrationState.of(predictions), ScoreSettings(n_resamples=1000, seed=0)).calibrated()[
        "ks"
    ]
    steps = (np.sort(confidence) - (rng.random((400, 3000)) < np.sort(confidence))).cumsum(axis=1)
    want = np.abs(steps).max(axis=1) / 3000
    assert draws.mean() == pytest.approx(want.mean(), rel=0.1)


def test_equal_mass_error_by_hand():
    # Four rows of one unit, gaps +1 +1 -1 -1, cut in two bins and in one.
    mass, gaps = np.ones(4), np.array([1.0, 1.0, -1.0, -1.0])
    assert equal_mass_error(mass, gaps, 2) == pytest.approx(1.0)
    assert equal_mass_error(mass, gaps, 1) == pytest.approx(0.0)
    # A cut inside a cell takes its share.
    assert equal_mass_error(np.array([3.0, 1.0]), np.array([3.0, -1.0]), 2) == pytest.approx((2 + 0) / 4)


def test_one_row_and_no_classes():
    one = CalibrationState.of(Predictions(probs=[0.9], labels=[1]))
    assert Resampler(one, ScoreSettings(n_resamples=5, seed=0)).bootstrap()["accuracy"].tolist() == [1.0] * 5
    top = CalibrationState.of(
        Predictions(predicted=[0, 1], confidence=[0.9, 0.6], labels=[0, 0], n_classes=2)
    )
    assert {"nll", "brier", "classwise_ece"}.isdisjoint(
        Resampler(top, ScoreSettings(n_resamples=5, seed=0)).bootstrap()
    )


@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float32, 1e-6), (np.float64, 1e-13)])
@pytest.mark.parametrize("most", [1e-3, 1.0, 377.0, 1e9])
def test_running_sums_are_those_of_numpy(dtype, tolerance, most):
    values = np.random.default_rng(0).normal(size=(5, 300))
    values = (values * most / np.abs(values).sum(axis=1, keepdims=True)).astype(dtype)
    expected = np.cumsum(values.astype(np.float64), axis=1)
    np.testing.assert_allclose(running_sums(values, most), expected, atol=tolerance * most)
    np.testing.assert_allclose(
        running_sums(values[:, ::-1], most)[:, -1], expected[:, -1], atol=tolerance * most
    )
