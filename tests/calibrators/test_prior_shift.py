"""Prior shift: the formula, the estimate from unlabeled rows and its interval, composition, files, and errors."""

import numpy as np
import pytest
from scipy.stats import binom

from equipoise.calibrators import (
    Identity,
    IsotonicCalibration,
    PriorShift,
    TemperatureScaling,
    estimate_priors,
    load,
)
from equipoise.calibrators.prior_shift import _check_recognition
from equipoise.core import Predictions
from equipoise.core.errors import DataError, NotFittedError, SplitError

OLD, NEW = np.array([1 / 3, 1 / 3, 1 / 3]), np.array([0.7, 0.2, 0.1])


def draw(priors, n, seed, shift=0.0):
    """Draw rows of normal classes with known posterior logits for even frequencies, overconfident by a factor of 2."""
    rng = np.random.default_rng(seed)
    labels = rng.choice(3, size=n, p=priors)
    means = 1.5 * np.eye(3) + shift
    x = rng.normal(means[labels], 1.0)
    logits = x @ (1.5 * np.eye(3)).T
    return Predictions(logits=2 * logits, labels=labels)


@pytest.fixture(scope="module")
def before():
    return TemperatureScaling().fit(draw(OLD, 20_000, 0))


def nll(calibrator, rows):
    probs = calibrator(rows).probs
    return -np.log(probs[np.arange(len(rows)), rows.labels]).mean()


def test_known_priors_multiply_by_the_ratio(before):
    rows = draw(NEW, 50, 1)
    adapted = PriorShift(before=before, trained_priors=OLD).set_priors(NEW)
    expected = before(rows).probs * NEW / OLD
    np.testing.assert_allclose(adapted(rows).probs, expected / expected.sum(axis=1, keepdims=True), rtol=1e-9)


def test_frequencies_of_the_fit_rows_are_the_old_priors(before):
    np.testing.assert_allclose(before.class_frequencies, OLD, atol=0.02)
    unchanged = PriorShift(before=before).set_priors(before.class_frequencies)
    np.testing.assert_allclose(unchanged.result.parameters["log_ratio"], 0.0, atol=1e-12)


def test_it_undoes_class_weights():
    # Trained as if classes were even, although class 0 has 70%: the true posterior is back with the trained priors.
    rows = draw(NEW, 40_000, 2)
    half = Predictions(logits=rows.logits / 2, labels=rows.labels)
    adapted = PriorShift(trained_priors=OLD).set_priors(NEW)
    assert nll(adapted, half) < nll(Identity(), half) - 0.05
    assert adapted(half).probs.mean(axis=0) == pytest.approx(NEW, abs=0.01)


def test_unlabeled_rows_give_the_new_priors_and_lower_the_loss(before):
    rows = draw(NEW, 5000, 3)
    unlabeled = Predictions(logits=rows.logits)
    adapted = PriorShift(before=before).fit_unlabeled(unlabeled)
    np.testing.assert_allclose(adapted.priors, NEW, atol=0.03)
    low, high = adapted.interval.T
    assert ((low <= NEW) & (high >= NEW)).all()
    assert nll(adapted, rows) < nll(before, rows) - 0.05


def test_the_likelihood_is_highest_at_the_estimate(before):
    probs = before(draw(NEW, 2000, 4)).probs
    found = estimate_priors(probs, OLD)

    def likelihood(priors):
        return np.log(probs @ (priors / OLD)).mean()

    for direction in np.eye(3) - 1 / 3:
        assert likelihood(found) >= likelihood(found + 1e-3 * direction) - 1e-12


def test_weights_count_rows(before):
    probs = before(draw(NEW, 200, 5)).probs
    weights = np.arange(200) % 3
    repeated = estimate_priors(np.repeat(probs, weights, axis=0), OLD)
    np.testing.assert_allclose(estimate_priors(probs, OLD, weights.astype(float)), repeated, atol=1e-6)


@pytest.mark.parametrize("ending", ["json", "safetensors"])
@pytest.mark.parametrize("inner", [None, TemperatureScaling(), IsotonicCalibration()])
def test_a_file_keeps_both_steps(tmp_path, ending, inner):
    rows = draw(OLD, 300, 6)
    first = None if inner is None else inner.fit(rows)
    adapted = PriorShift(before=first, trained_priors=OLD).set_priors(NEW)
    adapted.save(tmp_path / f"adapted.{ending}")
    back = load(tmp_path / f"adapted.{ending}")
    fresh = draw(NEW, 20, 7)
    np.testing.assert_array_equal(back(fresh).probs, adapted(fresh).probs)
    assert back.result.words == adapted.result.words


def test_the_module_agrees(before):
    torch = pytest.importorskip("torch")
    adapted = PriorShift(before=before).set_priors(NEW)
    logits = draw(NEW, 20, 8).logits
    np.testing.assert_allclose(adapted.as_module()(torch.tensor(logits)).numpy(), adapted(logits), rtol=1e-12)


def test_uncalibrated_probabilities_are_an_error():
    rows = Predictions(logits=draw(NEW, 50, 9).logits)
    with pytest.raises(DataError, match="not calibrated"):
        PriorShift(trained_priors=OLD).fit_unlabeled(rows)
    with pytest.raises(DataError, match="not calibrated"):
        PriorShift(before=Identity(), trained_priors=OLD).fit_unlabeled(rows)
    assert PriorShift(trained_priors=OLD).fit_unlabeled(rows, calibrated=True).fitted


def test_labels_that_contradict_the_assumption_are_an_error(before):
    rows = draw(NEW, 3000, 10)
    assert PriorShift(before=before).fit_unlabeled(rows).fitted  # these do not
    moved = Predictions(logits=rows.logits + np.array([0.0, 2.5, 0.0]), labels=rows.labels)
    with pytest.raises(DataError, match="labels contradict"):
        PriorShift(before=before).fit_unlabeled(moved)
    with pytest.raises(DataError, match="labels contradict"):
        PriorShift(before=before).fit_unlabeled(moved, reference=draw(OLD, 1000, 31))


def recognized_otherwise(noise, seed):
    """Return whether labels, of which a share is wrong, contradict reference rows of other frequencies."""
    rng, rows = np.random.default_rng(seed), confusing(NEW, 300, 10**6 + seed)
    labels = np.where(rng.random(300) < noise, (rows.labels + 1) % 3, rows.labels)
    try:
        _check_recognition(
            Predictions(logits=rows.logits, labels=labels), confusing(OLD, 300, 2 * 10**6 + seed)
        )
    except DataError:
        return True
    return False


def test_labels_that_have_the_frequencies_but_not_the_inputs_of_their_classes(before):
    assert sum(recognized_otherwise(0.4, seed) for seed in range(20)) >= 19
    rows, rng = draw(OLD, 600, 12), np.random.default_rng(0)
    labels = np.where(rng.random(600) < 0.4, (rows.labels + 1) % 3, rows.labels)
    with pytest.raises(DataError, match="true class has a mean probability of"):
        PriorShift(before=before).fit_unlabeled(
            Predictions(logits=rows.logits, labels=labels), reference=draw(OLD, 600, 13)
        )


@pytest.mark.simulation
def test_labels_are_refused_without_reason_once_in_a_thousand_files():
    assert sum(recognized_otherwise(0.0, seed) for seed in range(10_000)) <= binom.ppf(0.999, 10_000, 0.001)


def test_shares_sum_to_one(before):
    for wrong in (["a", "b", "c"], {0: 0.7, 1: 0.2, 2: 0.1}):
        with pytest.raises(DataError, match="one number per class"):
            PriorShift(before=before).set_priors(wrong)
    for wrong in ([0.6, 0.2, 0.1], [0.5, 0.5, 0.5]):
        with pytest.raises(DataError, match="shares that sum to 1, or counts, got shares that sum to"):
            PriorShift(before=before).set_priors(wrong)
    for same in ([0.7, 0.2, 0.1], [70, 20, 10], [699.3, 199.8, 99.9], [0.699, 0.2, 0.099]):
        assert PriorShift(before=before).set_priors(same).priors == pytest.approx(NEW, abs=0.002)


def test_classes_are_matched_by_name(before):
    names, today, reference = ["a", "b", "c"], draw(NEW, 400, 3), draw(OLD, 400, 4)
    named = Predictions(logits=reference.logits, labels=reference.labels, class_names=names)
    straight = Predictions(logits=today.logits, class_names=names)
    turned = Predictions(logits=today.logits[:, ::-1], class_names=names[::-1])
    words = PriorShift().fit_unlabeled(straight, reference=named, calibrated=True).result.words
    assert any(f"class '{name}' changes most" in words for name in names)
    one, two = (PriorShift(before=before).fit_unlabeled(rows, reference=named) for rows in (straight, turned))
    np.testing.assert_allclose(one.priors, two.priors)


def test_classes_without_mass(before):
    with pytest.raises(DataError, match="above 0, got 0 for class 2"):
        PriorShift(before=before).set_priors([0.5, 0.5, 0.0])
    with pytest.raises(DataError, match="`trained_priors` must be above 0"):
        PriorShift(before=before, trained_priors=[0.5, 0.5, 0.0])
    rows = draw(np.array([1.0, 0.0, 0.0]), 400, 11)
    adapted = PriorShift(before=before).fit_unlabeled(Predictions(logits=rows.logits))
    assert (adapted.priors > 0).all()
    assert np.isfinite(adapted(rows).logits).all()


def test_what_is_missing_is_reported(before):
    with pytest.raises(DataError, match=r"frequencies .* not known"):
        PriorShift().set_priors(NEW)
    with pytest.raises(DataError, match="equally many classes, got 2 and 3"):
        PriorShift(before=before).set_priors([0.5, 0.5])
    with pytest.raises(NotFittedError):
        PriorShift(before=TemperatureScaling())
    with pytest.raises(NotFittedError):
        PriorShift(before=before)(draw(NEW, 5, 12))


def confusing(priors, n, seed):
    """Draw logits of a network that is overconfident, and prefers class 1 by more than a temperature can correct."""
    rows = draw(priors, n, seed)
    return Predictions(logits=rows.logits + np.array([0.0, 1.0, 0.0]), labels=rows.labels)


@pytest.mark.parametrize("priors", [OLD, NEW, [0.02, 0.08, 0.9]])
def test_intervals_with_reference_rows_cover_even_if_the_calibrator_is_off(priors):
    # A short form of benchmarks/prior_shift.py.
    covered, gains = [], []
    for seed in range(120):
        reference = confusing(OLD, 300, 2000 + seed)
        before = TemperatureScaling()._fit_rows(reference)
        rows = confusing(priors, 300, 5000 + seed)
        shift = PriorShift(before=before).fit_unlabeled(Predictions(logits=rows.logits), reference=reference)
        low, high = shift.interval.T
        covered.append((low <= priors) & (priors <= high))
        gains.append(nll(before, rows) - nll(shift, rows))
    assert 0.92 < np.mean(covered) < 0.98
    if priors is OLD:
        assert np.mean(gains) > -0.001
    else:
        assert np.mean(gains) > 0.05


@pytest.mark.parametrize("majority", [0, 1, 2])
def test_intervals_cover_where_one_class_takes_nearly_all_rows(majority):
    # Few labeled rows of the majority say how often it looks like another class.
    priors = np.where(np.arange(3) == majority, 100, 1) / 102
    covered = []
    for seed in range(150):
        reference = confusing(OLD, 150, 3000 + seed)
        before = TemperatureScaling()._fit_rows(reference)
        rows = Predictions(logits=confusing(priors, 500, 7000 + seed).logits)
        low, high = PriorShift(before=before).fit_unlabeled(rows, reference=reference).interval.T
        covered.append((low <= priors) & (priors <= high))
    assert np.mean(covered, axis=0).min() > 0.9
    assert 0.93 < np.mean(covered) < 0.985


@pytest.mark.simulation
@pytest.mark.filterwarnings("ignore:Stochastic Optimizer")
def test_intervals_are_not_too_wide_where_one_class_is_recognized_best():
    # A short form of benchmarks/prior_shift.py. One temperature for all digits makes zeros underconfident.
    datasets = pytest.importorskip("sklearn.datasets")
    from sklearn.neural_network import MLPClassifier

    rng = np.random.default_rng(0)
    x, y = datasets.load_digits(return_X_y=True)
    x = x / 16 + rng.normal(scale=0.35, size=x.shape)
    train, rest = np.split(rng.permutation(len(y)), [500])
    network = MLPClassifier((32,), max_iter=200, random_state=0).fit(x[train], y[train])
    logits, labels = np.log(np.clip(network.predict_proba(x[rest]), 1e-12, None)), y[rest]
    priors = np.bincount(labels) * np.where(np.arange(10) == 0, 100, 1)
    priors = priors / priors.sum()
    covered = []
    for seed in range(400):
        rng = np.random.default_rng(seed)
        calib = rng.integers(0, len(labels), 500)
        drawn = rng.choice(len(labels), size=500, p=(priors / np.bincount(labels))[labels])
        reference = Predictions(logits=logits[calib], labels=labels[calib], ids=np.arange(500))
        before = TemperatureScaling()._fit_rows(reference)
        rows = Predictions(logits=logits[drawn], ids=np.arange(500, 1000))
        low, high = PriorShift(before=before).fit_unlabeled(rows, reference=reference).interval.T
        covered.append((low <= priors) & (priors <= high))
    assert 0.94 < np.mean(covered, axis=0)[0] < 0.985
    assert 0.95 < np.mean(covered) < 0.975  # 98% if all classes share one temperature


def test_reference_rows_of_a_perfect_classifier_give_wilson_intervals():
    labels = np.repeat([0, 1], [150, 150])
    sure = 20.0 * (2 * labels - 1)[:, None] * np.array([-0.5, 0.5])
    reference = Predictions(logits=sure, labels=labels)
    rows = Predictions(logits=sure[np.repeat([0, 299], [30, 70])])
    shift = PriorShift().fit_unlabeled(rows, reference=reference, calibrated=True)
    assert shift.priors == pytest.approx([0.3, 0.7], abs=1e-6)
    assert shift.interval[0] == pytest.approx([0.2189, 0.3958], abs=2e-3)  # Wilson, 30 of 100


def test_without_a_shift_probabilities_stay_and_the_estimate_is_reported(before):
    rows = draw(OLD, 400, 21)
    shift = PriorShift(before=before).fit_unlabeled(
        Predictions(logits=rows.logits), reference=draw(OLD, 900, 22)
    )
    np.testing.assert_allclose(shift(rows).probs, before(rows).probs, atol=1e-12)
    assert "no change is shown" in shift.result.words
    assert shift.priors == pytest.approx(OLD, abs=0.1)
    assert not np.array_equal(shift.priors, OLD)


def test_an_interval_without_reference_rows_is_warned_about(before):
    rows = Predictions(logits=draw(NEW, 400, 23).logits)
    assert (
        "treats the calibrator as exact" in PriorShift(before=before).fit_unlabeled(rows).result.warnings[0]
    )
    few = PriorShift(before=before).fit_unlabeled(rows, reference=draw([0.9, 0.08, 0.02], 400, 24))
    assert "class 2 has " in few.result.warnings[0]
    enough = PriorShift(before=before).fit_unlabeled(rows, reference=draw(OLD, 400, 25))
    assert enough.result.warnings == ()


def test_reference_rows_that_cannot_serve(before):
    rows = Predictions(logits=draw(NEW, 400, 26).logits)
    with pytest.raises(DataError, match="at least two rows of every class, got 0 of class 2"):
        PriorShift(before=before).fit_unlabeled(rows, reference=draw([0.5, 0.5, 0.0], 100, 27))
    with pytest.raises(DataError, match="either `trained_priors` or `reference`"):
        PriorShift(before=before, trained_priors=OLD).fit_unlabeled(rows, reference=draw(OLD, 100, 28))
    with pytest.raises(DataError, match="no labels"):
        PriorShift(before=before).fit_unlabeled(rows, reference=Predictions(logits=draw(OLD, 9, 5).logits))
    labeled = draw(NEW, 400, 26)
    with pytest.raises(SplitError, match="400 of 400 rows are among the reference rows"):
        PriorShift(before=before).fit_unlabeled(rows, reference=labeled)
    with pytest.raises(DataError, match="a calibrator was applied to these predictions already"):
        PriorShift(before=before).fit_unlabeled(before(rows), reference=draw(OLD, 100, 28))


def test_weights_of_reference_rows_count_as_repetitions(before):
    rows, reference = Predictions(logits=draw(NEW, 300, 29).logits), draw(OLD, 200, 30)
    weights = np.full(200, 2.0)
    weighted = Predictions(logits=reference.logits, labels=reference.labels, weights=weights)
    one, two = (
        PriorShift(before=before).fit_unlabeled(rows, reference=some) for some in (reference, weighted)
    )
    np.testing.assert_allclose(one.priors, two.priors, rtol=1e-9)
    np.testing.assert_allclose(one.interval, two.interval, rtol=1e-9)
