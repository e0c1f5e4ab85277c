"""Estimators of scikit-learn with our calibrators behind them keep every promise of both sides."""

import copy
import pickle
import warnings
from typing import ClassVar

import numpy as np
import pytest
import scipy.sparse
import sklearn
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_breast_cancer, load_digits, make_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, GroupKFold, StratifiedKFold, cross_val_predict
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier
from sklearn.naive_bayes import GaussianNB, MultinomialNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC, NuSVC
from sklearn.utils.estimator_checks import check_estimator

from equipoise import Predictions, score
from equipoise.calibrators import HistogramBinning, TemperatureScaling
from equipoise.calibrators.loading import KINDS
from equipoise.core.errors import DataError, SpecError
from equipoise.integrations.sklearn import (
    CalibratedClassifier,
    CalibrationScorer,
    draw_estimators,
    predictions_of,
)
from helpers.daily import daily


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return X[:900], y[:900], X[900:], y[900:]


@pytest.fixture
def routing():
    sklearn.set_config(enable_metadata_routing=True)
    yield
    sklearn.set_config(enable_metadata_routing=False)


@pytest.mark.parametrize("method", daily(["temperature", "isotonic"], keep=["temperature"]))
def test_every_check_of_the_host_passes(method):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = check_estimator(CalibratedClassifier(GaussianNB(), method=method), on_fail=None, on_skip=None)
    assert [(one["check_name"], one["exception"]) for one in found if one["status"] == "failed"] == []
    assert sum(one["status"] == "passed" for one in found) >= 55


@pytest.mark.parametrize(
    "method",
    [*KINDS, pytest.param("auto", marks=pytest.mark.slow), HistogramBinning(share="top_label")],
    ids=str,
)
def test_every_calibrator_gives_distributions(method, digits):
    X, y, unseen, _ = digits
    classifier = CalibratedClassifier(GaussianNB(), method=copy.deepcopy(method), cv=3).fit(X[:300], y[:300])
    probs = classifier.predict_proba(unseen)
    np.testing.assert_allclose(probs.sum(axis=1), 1)
    assert set(classifier.predict(unseen)) <= set(classifier.classes_)


def test_the_map_is_fitted_on_out_of_fold_predictions_alone(digits):
    X, y, unseen, _ = digits
    folds = StratifiedKFold(4)
    classifier = CalibratedClassifier(GaussianNB(), cv=folds).fit(X, y)
    probs = cross_val_predict(GaussianNB(), X, y, cv=folds, method="predict_proba")
    by_hand = TemperatureScaling().fit(Predictions(probs=probs, labels=y))
    assert classifier.calibrator_.temperature == pytest.approx(by_hand.temperature, rel=1e-6)
    raw = GaussianNB().fit(X, y).predict_proba(unseen)
    expected = by_hand(Predictions(probs=raw)).probs
    np.testing.assert_allclose(classifier.predict_proba(unseen), expected, rtol=1e-6, atol=1e-9)


def test_a_memoriser_does_not_look_calibrated():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(400, 3)), rng.integers(0, 2, 400)  # nothing to learn
    classifier = CalibratedClassifier(KNeighborsClassifier(1)).fit(X, y)
    assert classifier.predict_proba(X).max() < 0.6


class RowSpy(ClassifierMixin, BaseEstimator):
    """Notes the rows it is asked about, and fails if it was fitted on one of them in a fold."""

    asked: ClassVar[list[float]] = []  # of all copies

    def fit(self, X, y):
        self.classes_, self.seen_ = np.unique(y), set(X[:, 0])
        return self

    def predict(self, X):
        return self.classes_[self.predict_proba(X).argmax(axis=1)]

    def predict_proba(self, X):
        assert len(self.seen_) == 40 or self.seen_.isdisjoint(X[:, 0])
        self.asked.extend(X[:, 0])
        return np.tile([0.25, 0.75], (len(X), 1))


def test_no_fold_predicts_a_row_it_was_fitted_on():
    X, y = np.arange(40.0)[:, None], np.arange(40) % 2
    RowSpy.asked.clear()
    CalibratedClassifier(RowSpy(), cv=4).fit(X, y)
    assert sorted(RowSpy.asked) == list(range(40)), "every row is left out once"


def test_a_frozen_estimator_stays_as_it_is_and_all_rows_calibrate(digits):
    X, y, unseen, _ = digits
    fitted = GaussianNB().fit(X[:400], y[:400])
    before = fitted.predict_proba(unseen)
    classifier = CalibratedClassifier(FrozenEstimator(fitted)).fit(X[400:], y[400:])
    assert classifier.estimator_.estimator is fitted
    np.testing.assert_array_equal(fitted.predict_proba(unseen), before)
    by_hand = TemperatureScaling().fit(Predictions(probs=fitted.predict_proba(X[400:]), labels=y[400:]))
    assert classifier.calibrator_.temperature == by_hand.temperature


def test_a_frozen_estimator_of_other_classes_is_refused(digits):
    X, y, _, _ = digits
    fitted = GaussianNB().fit(X, y)
    with pytest.raises(ValueError, match="rows of every class"):
        CalibratedClassifier(FrozenEstimator(fitted)).fit(X[y < 5], y[y < 5])


def test_weights_count_rows(digits):
    X, y, _, _ = digits
    weights = np.arange(len(y)) % 3  # a zero is a row that is not there
    repeated = np.repeat(np.arange(len(y)), weights)
    fitted = FrozenEstimator(GaussianNB().fit(X[:300], y[:300]))
    weighted = CalibratedClassifier(fitted).fit(X[300:], y[300:], sample_weight=weights[300:])
    rows = repeated[repeated >= 300]
    copied = CalibratedClassifier(fitted).fit(X[rows], y[rows])
    assert weighted.calibrator_.temperature == pytest.approx(copied.calibrator_.temperature, rel=1e-6)


def test_a_classifier_without_weights_is_told_of():
    X, y = np.arange(40.0)[:, None], np.arange(40) % 2
    with pytest.warns(UserWarning, match="takes no sample_weight"):
        CalibratedClassifier(KNeighborsClassifier(), cv=2).fit(X, y, sample_weight=np.ones(40))


@pytest.mark.usefixtures("routing")
def test_metadata_reach_the_classifier_and_the_splitter(digits):
    X, y, _, _ = digits
    groups = np.arange(len(y)) // 9
    weights = 1.0 + np.arange(len(y)) % 2
    base = GaussianNB().set_fit_request(sample_weight=True)
    classifier = CalibratedClassifier(base, cv=GroupKFold(3)).fit(X, y, sample_weight=weights, groups=groups)
    folds = list(GroupKFold(3).split(X, y, groups))
    sklearn.set_config(enable_metadata_routing=False)
    by_hand = CalibratedClassifier(GaussianNB(), cv=folds).fit(X, y, sample_weight=weights)
    assert classifier.calibrator_.temperature == by_hand.calibrator_.temperature
    np.testing.assert_array_equal(classifier.estimator_.var_, by_hand.estimator_.var_)
    assert not np.array_equal(classifier.estimator_.var_, GaussianNB().fit(X, y).var_)


def test_sparse_inputs_and_text_labels(digits):
    X, y, unseen, _ = digits
    names = np.array([f"digit {label}" for label in y])
    dense = CalibratedClassifier(MultinomialNB()).fit(X, names)
    sparse = CalibratedClassifier(MultinomialNB()).fit(scipy.sparse.csr_matrix(X), names)
    np.testing.assert_allclose(
        sparse.predict_proba(scipy.sparse.csr_matrix(unseen)), dense.predict_proba(unseen)
    )
    assert sparse.predict(scipy.sparse.csr_matrix(unseen[:1]))[0].startswith("digit ")


def test_grid_search_over_the_method_in_a_pipeline(digits):
    X, y, _, _ = digits
    search = GridSearchCV(
        make_pipeline(StandardScaler(), CalibratedClassifier(LogisticRegression(max_iter=500), cv=3)),
        {
            "calibratedclassifier__method": ["identity", "temperature", HistogramBinning(n_bins=5)],
            "calibratedclassifier__estimator__C": [0.001, 1.0],
        },
        scoring=CalibrationScorer("nll"),
        cv=2,
    ).fit(X[:300], y[:300])
    assert len(search.cv_results_["params"]) == 6
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    assert (search.cv_results_["mean_test_score"] < 0).all()


def test_a_margin_without_probabilities_is_calibrated_too(digits):
    X, y, unseen, labels = digits
    classifier = CalibratedClassifier(LinearSVC(), method="temperature", cv=3).fit(X / 16, y)
    assert (classifier.predict(unseen / 16) == labels).mean() > 0.85
    two = CalibratedClassifier(LinearSVC(), method="platt", cv=3).fit(X / 16, y > 4)
    assert two.predict_proba(unseen / 16).shape == (len(unseen), 2)


@pytest.mark.parametrize(
    "estimator",
    [GaussianNB(), RandomForestClassifier(20, random_state=0), KNeighborsClassifier(), LinearSVC()],
    ids=lambda one: type(one).__name__,
)
@pytest.mark.parametrize("load", [load_digits, load_breast_cancer])
def test_it_is_no_worse_than_the_hosts_own_on_the_same_folds(estimator, load):
    X, y = load(return_X_y=True)
    X = X / X.max(axis=0).clip(min=1)
    fit, judge, folds = np.arange(len(y)) % 2 == 0, np.arange(len(y)) % 2 == 1, StratifiedKFold(5)
    ours = CalibratedClassifier(estimator, method="temperature", cv=folds).fit(X[fit], y[fit])
    theirs = CalibratedClassifierCV(estimator, method="temperature", cv=folds, ensemble=False)
    theirs.fit(X[fit], y[fit])
    losses = [
        -np.log(one.predict_proba(X[judge])[np.arange(judge.sum()), y[judge]].clip(min=1e-15))
        for one in (ours, theirs)
    ]
    excess = losses[0] - losses[1]
    assert excess.mean() <= 1e-6 + 2 * excess.std() / np.sqrt(len(excess))  # no more than chance explains


def test_pickle_and_deepcopy_keep_what_it_computes(digits):
    X, y, unseen, _ = digits
    classifier = CalibratedClassifier(GaussianNB(), method="isotonic").fit(X, y)
    wanted = classifier.predict_proba(unseen)
    for twin in (pickle.loads(pickle.dumps(classifier)), copy.deepcopy(classifier)):
        np.testing.assert_array_equal(twin.predict_proba(unseen), wanted)


def test_an_unknown_method_is_answered_with_the_nearest():
    with pytest.raises(SpecError, match="did you mean 'temperature'"):
        CalibratedClassifier(method="temprature", cv=2).fit([[0.0], [1.0]] * 4, [0, 1] * 4)


def test_the_scorer_is_the_scorecard(digits):
    X, y, unseen, labels = digits
    fitted = GaussianNB().fit(X, y)
    card = score(predictions_of(fitted, unseen, labels))
    for name in ("nll", "ece", "brier", "smece", "classwise_ece"):
        assert CalibrationScorer(name)(fitted, unseen, labels) == pytest.approx(-card[name].value)
    assert CalibrationScorer("accuracy")(fitted, unseen, labels) == pytest.approx(
        fitted.score(unseen, labels)
    )


def test_the_scorer_refuses_what_has_no_best_end():
    with pytest.raises(ValueError, match="Use 'ece'"):
        CalibrationScorer("confidence_gap")
    with pytest.raises(SpecError, match="did you mean 'ece'"):
        CalibrationScorer("eec")
    with pytest.raises(SpecError, match="no scorecard has it"):
        CalibrationScorer("tace")


def test_labels_that_the_estimator_does_not_know_are_refused(digits):
    X, y, _, _ = digits
    fitted = GaussianNB().fit(X, y)
    with pytest.raises(DataError, match="got 11"):
        predictions_of(fitted, X[:2], [1, 11])


def test_one_estimator_or_several_are_drawn(digits):
    X, y, unseen, labels = digits
    fitted = GaussianNB().fit(X, y)
    assert draw_estimators(fitted, unseen, labels).axes[0].get_title(loc="left") == "GaussianNB"
    assert len(draw_estimators({"a": fitted, "b": fitted}, unseen, labels).axes) == 4


PAIRWISE = {
    "SVC": SVC(decision_function_shape="ovo"),
    "NuSVC": NuSVC(nu=0.1, decision_function_shape="ovo"),
    "pipeline": make_pipeline(StandardScaler(), SVC(decision_function_shape="ovo")),
    "grid": GridSearchCV(SVC(decision_function_shape="ovo"), {"C": [1, 10]}, cv=2),
}


def classes_of(k, n=240, shares=None):
    return make_classification(
        n, 8, n_informative=6, n_classes=k, n_clusters_per_class=1, weights=shares, random_state=0
    )


@pytest.mark.parametrize("k", [3, 5])
@pytest.mark.parametrize("name", PAIRWISE)
def test_scores_of_pairs_are_not_taken_for_classes(name, k):
    """Three classes have three pairs, so the shape alone does not tell."""
    with pytest.raises(DataError, match="decision_function_shape='ovr'"):
        CalibratedClassifier(clone(PAIRWISE[name]), cv=2).fit(*classes_of(k))


def test_scores_of_pairs_are_found_where_one_class_is_frequent():
    given = classes_of(3, n=600, shares=[0.94, 0.03, 0.03])
    with pytest.raises(DataError, match="one score per class"):
        CalibratedClassifier(SVC(decision_function_shape="ovo"), cv=2).fit(*given)


def test_scores_of_pairs_are_found_in_a_frozen_classifier():
    given = classes_of(3)
    frozen = FrozenEstimator(SVC(decision_function_shape="ovo").fit(*given))
    with pytest.raises(DataError, match="one score per class"):
        CalibratedClassifier(frozen).fit(*given)


@pytest.mark.parametrize("k", [2, 3, 5])
@pytest.mark.parametrize(
    "make", [SVC, LinearSVC, lambda: OneVsOneClassifier(LinearSVC()), lambda: OneVsRestClassifier(SVC())]
)
def test_scores_of_classes_keep_the_accuracy(make, k):
    given = classes_of(k)
    calibrated = CalibratedClassifier(make(), cv=2).fit(*given)
    assert calibrated.score(*given) == pytest.approx(calibrated.estimator_.score(*given), abs=0.02)


def test_priors_are_adapted_with_reference_rows():
    X, y = make_classification(6000, 8, n_informative=5, weights=[0.5], flip_y=0.05, random_state=0)
    names = np.array(["no", "yes"])[y]
    model = CalibratedClassifier(GaussianNB(), method="temperature").fit(X[:3000], names[:3000])
    rows = np.arange(4500, 6000)
    rows = rows[(y[rows] == 0) | (np.arange(1500) % 5 == 0)]  # "yes" becomes rare
    reference = (X[3000:4500], names[3000:4500])
    adapted = model.adapt_priors(X=X[rows], reference=reference)
    share = y[rows].mean()
    low, high = adapted.calibrator_.interval[1]
    assert low <= share <= high
    assert adapted.calibrator_.result.warnings == ()
    before, after = (
        -np.log(one.predict_proba(X[rows])[np.arange(len(rows)), y[rows]]).mean() for one in (model, adapted)
    )
    assert after < before
    with pytest.raises(ValueError, match="`reference` needs `X`"):
        model.adapt_priors([0.5, 0.5], reference=reference)
    with pytest.raises(DataError, match="must hold classes"):
        model.adapt_priors(X=X[rows], reference=(X[:3], ["no", "maybe", "yes"]))
