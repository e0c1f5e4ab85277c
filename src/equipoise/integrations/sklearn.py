"""scikit-learn: any classifier with a calibrator behind it, scorers, and drawings from estimators."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, final

import numpy as np

from equipoise.calibrators.base import Calibrator
from equipoise.calibrators.loading import KINDS
from equipoise.calibrators.prior_shift import PriorShift
from equipoise.calibrators.selection import choose
from equipoise.core.arrays import Array
from equipoise.core.errors import DataError, EquipoiseWarning, needs
from equipoise.core.names import look_up
from equipoise.core.predictions import Predictions
from equipoise.core.probabilities import positive_logits
from equipoise.decisions.certify import certify_threshold
from equipoise.metrics.facts import metric_facts
from equipoise.metrics.inputs import top_label
from equipoise.metrics.state import CalibrationState
from equipoise.metrics.values import row_metrics, state_metrics

with needs("sklearn", extra="sklearn", purpose="calibrate scikit-learn estimators"):
    from sklearn import get_config
    from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
    from sklearn.frozen import FrozenEstimator
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import check_cv, cross_val_predict
    from sklearn.utils import Bunch, _safe_indexing, get_tags, indexable
    from sklearn.utils.metadata_routing import (
        MetadataRouter,
        MethodMapping,
        process_routing,
    )
    from sklearn.utils.multiclass import check_classification_targets
    from sklearn.utils.validation import (
        _check_sample_weight,
        check_is_fitted,
        column_or_1d,
        has_fit_parameter,
    )

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = [
    "CalibratedClassifier",
    "CalibrationScorer",
    "SelectiveClassifier",
    "draw_estimators",
    "predictions_of",
]

# The share of rows whose highest score has to be that of the predicted class, and its mean over predicted classes.
_AGREEING, _AGREEING_BY_CLASS = 0.9, 0.6


@final
class CalibratedClassifier(ClassifierMixin, MetaEstimatorMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier, and behind it a calibrator fitted on predictions for rows that the classifier has not seen.

    The classifier is fitted once per fold to predict the rows left out, the calibrator is fitted on these
    predictions, and the classifier is fitted a last time on everything. A
    :class:`~sklearn.frozen.FrozenEstimator` is left as it is: all rows given to ``fit`` are held out for it.

    Trees and neighbors answer exactly 0 for classes that they have not seen. The calibrator reads such a 0 as at most
    half of the least step between the probabilities, so that one surprise does not decide the whole fit:
    ``calibrator_.result.notes`` reports it.

    Args:
        estimator: The classifier; a logistic regression if None. It must have ``predict_proba`` or, failing that,
            ``decision_function``.
        method: A calibrator's name, a :class:`~equipoise.calibrators.Calibrator` with settings of its own, or
            ``"auto"``: chosen by cross-validated log-loss, which may be none; see
            :func:`~equipoise.calibrators.choose`.
        cv: Folds, a splitter, or a list of splits; every row must be left out exactly once.
        n_jobs: Folds fitted at the same time.

    Attributes:
        classes_: The classes, sorted.
        estimator_: The classifier, fitted on everything.
        calibrator_: The calibrator, fitted on the out-of-fold predictions; ``calibrator_.result`` says what it found.

    Example:
        >>> from sklearn.datasets import load_iris
        >>> from sklearn.naive_bayes import GaussianNB
        >>> X, y = load_iris(return_X_y=True)
        >>> classifier = CalibratedClassifier(GaussianNB(), method="temperature").fit(X, y)
        >>> classifier.calibrator_.result.words
        'overconfident: divide logits by ...'
        >>> classifier.predict_proba(X[:2]).sum(axis=1)
        array([1., 1.])
    """

    def __init__(
        self,
        estimator: Any = None,
        *,
        method: str | Calibrator = "temperature",
        cv: Any = 5,
        n_jobs: int | None = None,
    ) -> None:
        self.estimator = estimator
        self.method = method
        self.cv = cv
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any, sample_weight: Any = None, **fit_params: Any) -> Self:  # noqa: N803
        """Fit classifier and calibrator.

        Args:
            X: Inputs, in any form that the classifier takes.
            y: Classes.
            sample_weight: One weight per row, for the classifier (if it takes weights) and for the calibrator.
            **fit_params: Further arguments of the classifier's ``fit``; with metadata routing, what was requested.

        Returns:
            The estimator itself.
        """
        X, y = indexable(X, y)  # noqa: N806
        y = column_or_1d(y, warn=True)
        check_classification_targets(y)
        self.classes_, codes = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError("CalibratedClassifier.fit: `y` must hold at least two classes, got one class.")
        weights = None if sample_weight is None else _check_sample_weight(sample_weight, X)
        base = self._base()
        routed = self._routed(base, weights, fit_params)
        if isinstance(base, FrozenEstimator):
            self._check_same_classes(base)
            self.estimator_ = base
        else:
            self.estimator_ = clone(base).fit(X, y, **routed.estimator.fit)
        _check_one_score_per_class(self.estimator_, X, self.classes_)
        frozen = isinstance(base, FrozenEstimator)
        scores = getattr(base, _response(base))(X) if frozen else self._out_of_fold(base, X, y, routed)
        self.calibrator_ = self._calibrator(self._predictions(scores, codes, weights))
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(self.estimator_, name):
                setattr(self, name, getattr(self.estimator_, name))
        return self

    def predict_proba(self, X: Any) -> Array:  # noqa: N803
        """Return calibrated probabilities ``(n, k)``, columns in the order of ``classes_``."""
        check_is_fitted(self)
        scores = getattr(self.estimator_, _response(self.estimator_))(X)
        probs: Array = np.array(self.calibrator_(self._predictions(scores)).probs, np.float64)
        return probs

    def predict(self, X: Any) -> Array:  # noqa: N803
        """Return the most probable class of each row."""
        likeliest = self.predict_proba(X).argmax(axis=1)
        named: Array = self.classes_[likeliest]
        return named

    def adapt_priors(
        self,
        priors: Any = None,
        *,
        X: Any = None,  # noqa: N803
        reference: tuple[Any, Any] | None = None,
    ) -> Self:
        """Return a copy whose probabilities are adapted to other class frequencies.

        Only frequencies may have changed: within each class, inputs must be distributed as before.

        Args:
            priors: The new frequencies, in the order of ``classes_``.
            X: Inputs without labels instead, from which the frequencies are estimated.
            reference: Labeled rows ``(X, y)`` with the old frequencies that ``estimator_`` was not fitted on. They
                correct the estimate, and the interval contains their error.

        Returns:
            The copy; its ``calibrator_`` is a :class:`~equipoise.calibrators.PriorShift`, with ``priors`` and
            ``interval``.

        Example:
            >>> from sklearn.datasets import load_iris
            >>> X, y = load_iris(return_X_y=True)
            >>> from sklearn.naive_bayes import GaussianNB
            >>> adapted = CalibratedClassifier(GaussianNB()).fit(X, y).adapt_priors([0.8, 0.1, 0.1])
            >>> adapted.calibrator_.priors
            array([0.8, 0.1, 0.1])
        """
        check_is_fitted(self)
        if (priors is None) == (X is None):
            raise ValueError("CalibratedClassifier.adapt_priors: give either `priors` or `X`.")
        if reference is not None and X is None:
            raise ValueError("CalibratedClassifier.adapt_priors: `reference` needs `X`.")
        shift = PriorShift(before=self.calibrator_)
        if X is None:
            shift.set_priors(priors)
        else:
            respond = getattr(self.estimator_, _response(self.estimator_))
            labeled = None
            if reference is not None:
                codes = _class_codes(self.classes_, reference[1], where="CalibratedClassifier.adapt_priors")
                labeled = self._predictions(respond(reference[0]), codes)
            shift.fit_unlabeled(self._predictions(respond(X)), reference=labeled)
        adapted = copy.copy(self)
        adapted.calibrator_ = shift
        return adapted

    def get_metadata_routing(self) -> Any:
        """Return how metadata are routed: to the classifier's ``fit`` and to the splitter."""
        split = MethodMapping().add(caller="fit", callee="split")
        fit = MethodMapping().add(caller="fit", callee="fit")
        return (
            MetadataRouter(owner=self)
            .add_self_request(self)
            .add(estimator=self._base(), method_mapping=fit)
            .add(splitter=self.cv, method_mapping=split)
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = get_tags(self._base())
        tags.input_tags.sparse = inner.input_tags.sparse
        tags.input_tags.pairwise = inner.input_tags.pairwise
        tags.input_tags.allow_nan = inner.input_tags.allow_nan
        return tags

    def _base(self) -> Any:
        if self.estimator is not None:
            return self.estimator
        base = LogisticRegression()
        return base.set_fit_request(sample_weight=True) if _routes_metadata() else base

    def _routed(self, base: Any, weights: Array | None, fit_params: dict[str, Any]) -> Any:
        if _routes_metadata():
            return process_routing(self, "fit", sample_weight=weights, **fit_params)
        for_fit = dict(fit_params)
        if weights is not None and has_fit_parameter(base, "sample_weight"):
            for_fit["sample_weight"] = weights
        elif weights is not None and not isinstance(base, FrozenEstimator):
            warnings.warn(
                f"CalibratedClassifier.fit: {type(base).__name__}.fit takes no sample_weight, so only the calibrator "
                "is weighted. Route metadata to reach the steps of a pipeline.",
                stacklevel=3,
            )
        return Bunch(estimator=Bunch(fit=for_fit), splitter=Bunch(split={}))

    def _out_of_fold(self, base: Any, X: Any, y: Array, routed: Any) -> Array:  # noqa: N803
        splitter = check_cv(self.cv, y, classifier=True)
        splits = list(splitter.split(X, y, **routed.splitter.split))
        method, params = _response(base), routed.estimator.fit
        scores: Array = cross_val_predict(
            base, X, y, cv=splits, method=method, params=params, n_jobs=self.n_jobs
        )
        return scores

    def _predictions(
        self, scores: Any, labels: Array | None = None, weights: Array | None = None
    ) -> Predictions:
        return _as_predictions(self.estimator_, scores, labels, weights)

    def _calibrator(self, held_out: Predictions) -> Calibrator:
        if self.method == "auto":
            return choose(held_out).calibrator
        if isinstance(self.method, Calibrator):
            return copy.deepcopy(self.method).fit(held_out)
        return look_up(self.method, KINDS, what="calibrator")().fit(held_out)

    def _check_same_classes(self, frozen: Any) -> None:
        if not np.array_equal(frozen.classes_, self.classes_):
            raise ValueError(
                f"CalibratedClassifier.fit: `y` must hold the classes of the frozen estimator, {frozen.classes_}, got "
                f"{self.classes_}. Calibrate on rows of every class."
            )


@final
class SelectiveClassifier(ClassifierMixin, MetaEstimatorMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier that abstains where it would be wrong too often.

    A part of the rows is held out. The classifier is fitted on the others, and the most lenient threshold on its
    confidence is certified on the held-out rows (:func:`~equipoise.decisions.certify_threshold`): with probability
    ``confidence``, at most ``max_error`` of the accepted predictions are wrong. If no threshold can be certified,
    a warning is given, and every prediction is an abstention. All rows certify a
    :class:`~sklearn.frozen.FrozenEstimator`, which is left as it is.

    Args:
        estimator: The classifier; a logistic regression if None. A :class:`CalibratedClassifier` is one, too.
        max_error: Error limit among accepted predictions.
        confidence: Probability with which the limit holds.
        holdout: Share of the rows that certify the threshold.
        abstain: What ``predict`` gives for an abstention; by default "abstain", for numeric classes -1 or, if
            there is such a class, one less than the smallest.
        random_state: Random seed of the choice of held-out rows.

    Attributes:
        classes_: The classes, sorted.
        estimator_: The fitted classifier.
        rule_: The :class:`~equipoise.decisions.AcceptRule`; ``rule_.certificate`` is the record.
        abstain_: The label of an abstention.

    Example:
        >>> from sklearn.datasets import load_iris
        >>> X, y = load_iris(return_X_y=True)
        >>> classifier = SelectiveClassifier(LogisticRegression(max_iter=500), max_error=0.2, holdout=0.5).fit(X, y)
        >>> classifier.rule_.certificate.certified
        True
        >>> classifier.predict(X[:2]), classifier.accept(X[:2])
        (array([0, 0]), array([ True,  True]))
    """

    def __init__(
        self,
        estimator: Any = None,
        *,
        max_error: float = 0.1,
        confidence: float = 0.95,
        holdout: float = 0.3,
        abstain: Any = None,
        random_state: int = 0,
    ) -> None:
        self.estimator = estimator
        self.max_error = max_error
        self.confidence = confidence
        self.holdout = holdout
        self.abstain = abstain
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> Self:  # noqa: N803
        """Fit the classifier and certify the threshold.

        Args:
            X: Inputs, in any form that the classifier takes.
            y: Classes.

        Returns:
            The estimator itself.
        """
        X, y = indexable(X, y)  # noqa: N806
        y = column_or_1d(y, warn=True)
        check_classification_targets(y)
        self.classes_, codes = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError("SelectiveClassifier.fit: `y` must hold at least two classes, got one class.")
        self.abstain_ = self._abstain_label()
        base = LogisticRegression() if self.estimator is None else self.estimator
        if isinstance(base, FrozenEstimator):
            self.estimator_, held_out = base, np.arange(len(y))
        else:
            fitted, held_out = self._divided(codes)
            self.estimator_ = clone(base).fit(_safe_indexing(X, fitted), y[fitted])
        if not np.array_equal(self.estimator_.classes_, self.classes_):
            raise ValueError(
                "SelectiveClassifier.fit: the classifier has other classes than `y`. Give more rows of every class."
            )
        scores = getattr(self.estimator_, _response(self.estimator_))(_safe_indexing(X, held_out))
        labelled = _as_predictions(self.estimator_, scores, codes[held_out])
        self.rule_ = certify_threshold(labelled, max_error=self.max_error, confidence=self.confidence)
        if not self.rule_.certificate.certified:
            warnings.warn(
                f"SelectiveClassifier.fit: every prediction will be an abstention. {self.rule_.certificate.describe()}",
                EquipoiseWarning,
                stacklevel=2,
            )
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(self.estimator_, name):
                setattr(self, name, getattr(self.estimator_, name))
        return self

    def predict(self, X: Any) -> Array:  # noqa: N803
        """Return the most probable class of each accepted row, and the label of an abstention for the others."""
        predictions = self._predictions(X)
        named = self.classes_[predictions.predicted]
        result: Array = np.where(self.rule_(predictions), named, np.array(self.abstain_, dtype=None))
        return result if self.classes_.dtype.kind in "OUS" else result.astype(np.result_type(named, result))

    def accept(self, X: Any) -> Array:  # noqa: N803
        """Return which rows are accepted ``(n,)``."""
        return self.rule_(self._predictions(X))

    def predict_proba(self, X: Any) -> Array:  # noqa: N803
        """Return the classifier's probabilities ``(n, k)``, of accepted rows and others."""
        return np.array(self._predictions(X).probs, np.float64)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = get_tags(LogisticRegression() if self.estimator is None else self.estimator)
        tags.input_tags.sparse = inner.input_tags.sparse
        tags.input_tags.allow_nan = inner.input_tags.allow_nan
        return tags

    def _predictions(self, X: Any) -> Predictions:  # noqa: N803
        check_is_fitted(self)
        return _as_predictions(self.estimator_, getattr(self.estimator_, _response(self.estimator_))(X))

    def _divided(self, codes: Array) -> tuple[Array, Array]:
        """Return rows to fit on and rows to certify on; every class is fitted on if it has two rows."""
        if not 0 < self.holdout < 1:
            raise ValueError(f"SelectiveClassifier: `holdout` must be between 0 and 1, got {self.holdout}.")
        order = np.random.default_rng(self.random_state).permutation(len(codes))
        held_out = order[: max(1, round(self.holdout * len(codes)))]
        fitted = np.setdiff1d(order, held_out)
        missing = np.setdiff1d(codes, codes[fitted])
        if len(missing):
            # One row of each class that would be missing goes back.
            back = np.array([held_out[codes[held_out] == code][0] for code in missing])
            held_out, fitted = np.setdiff1d(held_out, back), np.sort(np.concatenate([fitted, back]))
        if len(held_out) == 0:
            raise ValueError(
                f"SelectiveClassifier.fit: expected rows to hold out, got {len(codes)} samples. Give more rows."
            )
        return fitted, np.sort(held_out)

    def _abstain_label(self) -> Any:
        numeric = self.classes_.dtype.kind in "biuf"
        label = self.abstain
        if label is None:
            label = min(-1, int(np.floor(self.classes_.min())) - 1) if numeric else "abstain"
        if label in self.classes_.tolist():
            raise ValueError(
                f"SelectiveClassifier: `abstain` must differ from every class, got {label!r}. Choose another label."
            )
        return label


@final
class CalibrationScorer:
    """A scorer for ``scoring=``: a calibration metric of ``predict_proba``, higher is better.

    Args:
        metric: A name from the scorecard: ``"nll"``, ``"brier"``, ``"ece"``, ``"smece"`` ... Errors and losses are
            negated. Choose models by ``"nll"`` or ``"brier"``: an error alone is least for a model that says nothing.
        n_bins: Bins of the binned errors.

    Example:
        >>> from sklearn.datasets import load_iris
        >>> from sklearn.model_selection import cross_val_score
        >>> from sklearn.naive_bayes import GaussianNB
        >>> X, y = load_iris(return_X_y=True)
        >>> scores = cross_val_score(CalibratedClassifier(GaussianNB()), X, y, scoring=CalibrationScorer("brier"))
        >>> bool((scores <= 0).all())
        True
    """

    def __init__(self, metric: str = "nll", *, n_bins: int = 15) -> None:
        if metric_facts(metric, what="scorer", of="card").better == "zero":
            raise ValueError(f"CalibrationScorer: {metric!r} has a sign and is best at 0. Use 'ece'.")
        self.metric, self.n_bins = metric, n_bins

    def __call__(self, estimator: Any, X: Any, y: Any, sample_weight: Any = None) -> float:  # noqa: N803
        """Return the metric of a fitted classifier on some rows, negated if lower is better."""
        predictions = predictions_of(estimator, X, y, sample_weight=sample_weight)
        state = CalibrationState.of(predictions, n_bins=self.n_bins)
        values = state_metrics(state)
        if self.metric not in values:
            values = row_metrics(top_label(predictions, None, where="score"), state)
        value = look_up(self.metric, values, what="metric of these predictions")
        return -metric_facts(self.metric).badness(value)

    def __repr__(self) -> str:
        return f"CalibrationScorer({self.metric!r}, n_bins={self.n_bins})"


def predictions_of(
    estimator: Any,
    X: Any,  # noqa: N803
    y: Any,
    *,
    sample_weight: Any = None,
    split: str | None = None,
) -> Predictions:
    """Return what a fitted classifier says about rows, to score, compare, draw or write a report of.

    Args:
        estimator: A fitted classifier with ``predict_proba``.
        X: Inputs.
        y: True classes, members of ``estimator.classes_``.
        sample_weight: One weight per row.
        split: ``"test"`` for rows that judge, so that nothing can be fitted on them.

    Returns:
        Predictions whose classes are named as ``estimator.classes_``.

    Raises:
        DataError: If a label is none of the estimator's classes.

    Example:
        >>> from sklearn.datasets import load_iris
        >>> X, y = load_iris(return_X_y=True)
        >>> predictions_of(LogisticRegression(max_iter=500).fit(X, y), X, y)
        Predictions(probs, n=150, k=3)
    """
    classes = np.asarray(estimator.classes_)
    return Predictions(
        probs=np.asarray(estimator.predict_proba(X)),
        labels=_class_codes(classes, y, where="predictions_of"),
        weights=sample_weight,
        class_names=[str(name) for name in classes],
        split=split,
    )


def _class_codes(classes: Array, y: Any, *, where: str) -> Array:
    """Return the numbers of the labels in the order of the estimator's classes."""
    labels = np.asarray(y)
    codes: Array = np.searchsorted(classes, labels).clip(max=len(classes) - 1)
    unknown = classes[codes] != labels
    if unknown.any():
        raise DataError(
            f"{where}: `y` must hold classes of the estimator, {classes}, got {labels[unknown][0]}."
        )
    return codes


def draw_estimators(
    estimators: Mapping[str, Any] | Any,
    X: Any,  # noqa: N803
    y: Any,
    *,
    sample_weight: Any = None,
    n_bins: int = 15,
) -> Figure:
    """Draw the reliability diagrams of one or several fitted classifiers side by side.

    Args:
        estimators: A fitted classifier, or several by name.
        X: Inputs that none of them was fitted on.
        y: True classes.
        sample_weight: One weight per row.
        n_bins: Bins of equal width.

    Returns:
        The figure.

    Example:
        >>> from sklearn.datasets import load_iris
        >>> from sklearn.naive_bayes import GaussianNB
        >>> X, y = load_iris(return_X_y=True)
        >>> raw, mapped = GaussianNB().fit(X[::2], y[::2]), CalibratedClassifier(GaussianNB()).fit(X[::2], y[::2])
        >>> figure = draw_estimators({"raw": raw, "calibrated": mapped}, X[1::2], y[1::2])
        >>> len(figure.axes)
        4
    """
    from equipoise.plots import draw_reliability_diagrams  # matplotlib is loaded when something is drawn

    named = estimators if isinstance(estimators, Mapping) else {type(estimators).__name__: estimators}
    curves = {
        name: CalibrationState.of(
            predictions_of(one, X, y, sample_weight=sample_weight), n_bins=n_bins
        ).curve()
        for name, one in named.items()
    }
    return draw_reliability_diagrams(curves)


def _routes_metadata() -> bool:
    return bool(get_config()["enable_metadata_routing"])


def _as_predictions(
    estimator: Any, scores: Any, labels: Array | None = None, weights: Array | None = None
) -> Predictions:
    values, split = np.asarray(scores, np.float64), None if labels is None else "calib"
    if _response(estimator) == "predict_proba":
        return Predictions(probs=values, labels=labels, weights=weights, split=split)
    columns = positive_logits(values) if values.ndim == 1 else values
    return Predictions(logits=columns, labels=labels, weights=weights, split=split)


def _response(estimator: Any) -> str:
    for method in ("predict_proba", "decision_function"):
        if hasattr(estimator, method):
            return method
    raise TypeError(
        f"CalibratedClassifier: `estimator` must have predict_proba or decision_function, {type(estimator).__name__} "
        "has neither."
    )


def _check_one_score_per_class(estimator: Any, X: Any, classes: Array) -> None:  # noqa: N803
    """Raise unless the scores of a fitted classifier are of its classes, rather than of pairs of classes.

    Three classes have three pairs, so the number of columns does not tell. The prediction does: the class with the
    highest score is the predicted one, except for ties and for classifiers that predict by another rule now and then.
    """
    if _response(estimator) != "decision_function" or len(classes) < 3:
        return
    scores = np.asarray(estimator.decision_function(X))
    predicted = np.searchsorted(classes, np.asarray(estimator.predict(X))).clip(max=len(classes) - 1)
    if scores.shape == (len(predicted), len(classes)):
        own = np.take_along_axis(scores, predicted[:, None], axis=1)[:, 0]
        agrees = own >= scores.max(axis=1)
        agreeing = float(agrees.mean())
        # One frequent class can hide that the columns of the others are wrong.
        by_class = np.mean([agrees[predicted == code].mean() for code in np.unique(predicted)])
        if agreeing >= _AGREEING and by_class >= _AGREEING_BY_CLASS:
            return
        got = f"the highest one is of the predicted class in {100 * agreeing:.0f}% of the rows"
    else:
        got = f"the shape is {scores.shape}"
    raise DataError(
        f"CalibratedClassifier.fit: decision_function must give one score per class, {len(classes)} in all, but {got}. "
        "Are they of pairs of classes? Use decision_function_shape='ovr', or OneVsRestClassifier."
    )
