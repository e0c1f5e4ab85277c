import numpy as np
import pytest
from scipy.stats import beta

from equipoise.core import Predictions
from equipoise.core.errors import DataError, SplitError
from equipoise.decisions import plan_labels, powered_rate, stratified_rate
from equipoise.decisions.labelling import powered_interval, stratified_interval


def draw(n, seed, power=1.0):
    rng = np.random.default_rng(seed)
    confidence = rng.beta(4, 1, n)
    right = rng.random(n) < confidence**power
    return Predictions(
        predicted=np.ones(n, int),
        confidence=confidence,
        labels=right.astype(int),
        ids=np.arange(n) + 10**6 * seed,
    )


@pytest.mark.parametrize("power", [1.0, 2.0])
@pytest.mark.parametrize("n", [50, 300])
def test_interval_covers_and_is_shorter(power, n):
    # A short form of benchmarks/few_labels.py.
    rng = np.random.default_rng(n)
    f = rng.beta(4, 1, (4000, n))
    y = (rng.random(f.shape) < f**power).astype(float)
    mean = rng.normal(0.8, np.sqrt(4 / 150 / 10_000), 4000)  # of 10,000 other rows
    value, low, high, _ = powered_interval(y, f, mean, 4 / 150, 10_000)
    truth = 4 / (4 + power)
    assert 0.935 < np.mean((low <= truth) & (truth <= high)) < 0.965
    assert np.mean(value) == pytest.approx(truth, abs=0.005)
    assert value.std() < 0.98 * y.mean(axis=1).std()


def test_one_sample_gives_the_numbers_of_several():
    some, many = draw(80, 1), draw(2000, 2)
    found = powered_rate(some, many)
    other = many.confidence.astype(np.float64)
    y, f = some.correct.astype(float), some.confidence.astype(float)
    several = powered_interval(np.stack([y, y]), np.stack([f, f]), other.mean(), other.var(), 2000)
    assert (found.value, found.low, found.high) == pytest.approx([one[1] for one in several[:3]])


def test_few_errors_give_exact_intervals():
    labels = np.ones(60, int)
    labels[:2] = 0
    rows = Predictions(predicted=np.ones(60, int), confidence=np.full(60, 0.9), labels=labels)
    found = powered_rate(rows, draw(500, 1))
    expected = [beta.ppf(0.025, 58, 3), beta.ppf(0.975, 59, 2)]
    assert [found.low, found.high] == pytest.approx(expected)
    errors = found.of_errors
    assert (errors.value, errors.low) == pytest.approx((2 / 60, 1 - expected[1]))


def test_useless_confidences_do_no_harm():
    rng = np.random.default_rng(0)
    rows = Predictions(
        predicted=np.ones(5000, int), confidence=rng.random(5000), labels=(rng.random(5000) < 0.8) * 1
    )
    found = powered_rate(rows.take(slice(0, 2000)), rows.take(slice(2000, 5000)))
    assert found.weight < 0.1
    assert found.width_ratio == pytest.approx(1, abs=0.05)


def test_edges_of_powered_rates():
    with pytest.raises(DataError, match="at least 10 labelled rows"):
        powered_rate(draw(5, 0), draw(50, 1))
    with pytest.raises(SplitError, match="50 of 50 labelled rows are among the unlabelled rows"):
        powered_rate(draw(50, 0), draw(50, 0))
    # Without ids, rows with labels are still found among the same rows without.
    many = draw(500, 0)
    without = Predictions(predicted=many.predicted, confidence=many.confidence)
    some = Predictions(
        predicted=many.predicted[:100], confidence=many.confidence[:100], labels=many.labels[:100]
    )
    with pytest.raises(SplitError, match="100 of 100 labelled rows are among the unlabelled rows"):
        powered_rate(some, without)
    with pytest.raises(ValueError, match="`level` must be between 0 and 1, got 95"):
        powered_rate(draw(50, 0), draw(50, 1), level=95)
    always = Predictions(predicted=np.ones(20, int), confidence=np.ones(20), labels=np.ones(20, int))
    found = powered_rate(always, draw(50, 1))
    assert found.value == 1
    assert found.low < 0.9
    assert found.high == pytest.approx(1)


def test_plan_gives_intervals_of_the_requested_width():
    rows = draw(50_000, 3)
    plan = plan_labels(rows, width=0.04)
    assert len(plan.rows) < plan.n_random
    assert plan.weight.sum() == pytest.approx(50_000)
    assert (np.diff(plan.rows) > 0).all()
    same = plan_labels(rows, width=0.04)
    assert (same.rows == plan.rows).all()
    widths, hits = [], []
    for seed in range(100):
        one = plan_labels(rows, width=0.04, seed=seed)
        weighted = Predictions(
            predicted=np.ones(len(one.rows), int),
            confidence=rows.confidence[one.rows],
            labels=rows.labels[one.rows],
            weights=one.weight,
        )
        found = stratified_rate(weighted, one.stratum)
        widths.append(found.high - found.low)
        hits.append(found.low <= rows.correct.mean() <= found.high)
    assert np.mean(widths) == pytest.approx(0.04, rel=0.05)
    assert np.mean(hits) >= 0.9
    with pytest.raises(DataError, match="Ask for a wider interval"):
        plan_labels(draw(100, 1), width=0.01)
    with pytest.raises(DataError, match="labels, got 100 rows"):
        plan_labels(draw(100, 1), width=1e-9)


@pytest.mark.parametrize(
    ("claimed", "power", "need", "n_rows"),
    [
        (4, 1.0, 50, 20_000),
        (4, 1.0, 1000, 20_000),
        (4, 2.0, 50, 20_000),
        (4, 2.0, 1000, 20_000),
        # Confidences that separate most errors, strata without errors, and plans of a large part of the rows.
        (15, 1.0, 100, 10_000),
        (4, 1.0, 1000, 2500),
        (0, 1.0, 100, 10_000),
        (0, 1.0, 600, 2500),
    ],
)
def test_interval_of_a_plan_covers(claimed, power, need, n_rows):
    # A short form of benchmarks/few_labels.py: rows are drawn from their source, and labelled within strata.
    rng = np.random.default_rng(7)
    confidence = np.sort(rng.beta(claimed, 1, 40_000)) if claimed else np.repeat([0.7, 1.0], [8000, 32_000])
    source = (rng.random(40_000) < confidence**power).astype(int)
    mean = confidence.reshape(5, -1).mean(axis=1)
    spread = np.maximum(np.sqrt(mean * (1 - mean)), 0.1)
    n = np.maximum(np.round(need * spread / spread.sum()), 10).astype(int)
    drawn = (np.sort(rng.integers(0, 40_000, n_rows)) for _ in range(4000))
    hits = np.array([source[one].reshape(5, -1).sum(axis=1) for one in drawn])
    right = rng.hypergeometric(hits, n_rows // 5 - hits, n)
    _, low, high = stratified_interval(right, n, np.full(5, 0.2), n_rows)
    assert 0.94 < np.mean((low <= source.mean()) & (source.mean() <= high)) < 0.97


def test_strata_need_their_weights():
    rows = draw(40, 5)
    with pytest.raises(DataError, match="expected rows with weights"):
        stratified_rate(rows, np.arange(40) % 4)
    weighted = Predictions(
        predicted=np.ones(40, int),
        confidence=rows.confidence,
        labels=rows.labels,
        weights=np.arange(40) + 1.0,
    )
    with pytest.raises(DataError, match="must have one weight"):
        stratified_rate(weighted, np.arange(40) % 4)
    with pytest.raises(DataError, match="two rows of every stratum"):
        stratified_rate(weighted, np.arange(40))
    scaled = Predictions(
        predicted=np.ones(40, int), confidence=rows.confidence, labels=rows.labels, weights=np.full(40, 0.025)
    )
    with pytest.raises(DataError, match="one weight, at least 1"):
        stratified_rate(scaled, np.arange(40) % 4)
