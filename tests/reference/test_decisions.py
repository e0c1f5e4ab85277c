"""Prediction sets agree with MAPIE and TorchCP, where these are installed."""

import numpy as np
import pytest

from equipoise.core import Predictions
from equipoise.decisions import PredictionSets, set_scores

pytestmark = [pytest.mark.reference, pytest.mark.integrations, pytest.mark.filterwarnings("ignore")]


def draw(n, seed, k=8):
    rng = np.random.default_rng(seed)
    logits = 2 * rng.normal(size=(n, k))
    labels = (logits + rng.gumbel(size=(n, k))).argmax(1)
    return Predictions(logits=logits, labels=labels, ids=np.arange(n) + 10**6 * seed)


CALIB, TEST = draw(500, 1), draw(2000, 2)
METHODS = [("lac", {}), ("aps", {}), ("raps", {"penalty": 0.0625, "k_reg": 2})]


def ours(method, coverage, **options):
    return PredictionSets(method, coverage=coverage, randomized=False, **options).fit(CALIB)


def probabilities():
    """Return a fitted scikit-learn classifier whose inputs are its probabilities."""
    base = pytest.importorskip("sklearn.base")

    class Given(base.ClassifierMixin, base.BaseEstimator):
        def fit(self, rows, labels):
            self.classes_, self.n_features_in_ = np.unique(labels), rows.shape[1]
            return self

        def predict_proba(self, rows):
            return rows

        def predict(self, rows):
            return self.classes_[rows.argmax(1)]

    return Given().fit(CALIB.probs, np.arange(8))


@pytest.mark.parametrize("coverage", [0.8, 0.9, 0.95])
@pytest.mark.parametrize("method", ["lac", "aps"])
def test_limits_and_sets_agree_with_mapie(method, coverage):
    peer = pytest.importorskip("mapie.classification")
    made = peer.SplitConformalClassifier(
        probabilities(), confidence_level=coverage, conformity_score=method, prefit=True, random_state=0
    ).conformalize(CALIB.probs, CALIB.labels)
    more = {"include_last_label": "randomized"} if method == "aps" else {}
    _, members = made.predict_set(TEST.probs, conformity_score_params=more)

    def scores(rows):
        # MAPIE subtracts a uniform share of a class's probability, where ours adds one.
        uniform = 1 - np.random.RandomState(0).uniform(size=len(rows))
        return set_scores(rows.probs, method, uniform=uniform)

    own = np.sort(scores(CALIB)[np.arange(len(CALIB)), CALIB.labels])
    limit = own[int(np.ceil((len(CALIB) + 1) * coverage - 1e-9)) - 1]
    assert float(made._conformity_score.quantiles_[0]) == pytest.approx(limit, abs=1e-12)
    assert np.array_equal(members[:, :, 0], scores(TEST) <= limit)
    if method == "lac":
        assert ours(method, coverage).limits[""] == limit


@pytest.mark.parametrize("method", ["lac", "aps"])
def test_reports_agree_with_metrics_of_mapie(method):
    peer = pytest.importorskip("mapie.metrics.classification")
    found = PredictionSets(method).fit(CALIB)(TEST)
    report, members = found.report(), found.members[:, :, None]
    assert peer.classification_coverage_score(TEST.labels, members)[0] == pytest.approx(report.coverage)
    assert peer.classification_mean_width_score(members)[0] == pytest.approx(report.mean_size)
    worst = peer.classification_ssc_score(TEST.labels, members)[0]
    assert worst == pytest.approx(min(row.coverage for row in report.by_size))


@pytest.mark.parametrize("coverage", [0.8, 0.9, 0.95])
@pytest.mark.parametrize(("method", "options"), METHODS)
def test_scores_limits_and_sets_agree_with_torchcp(method, options, coverage):
    score = pytest.importorskip("torchcp.classification.score")
    predictor = pytest.importorskip("torchcp.classification.predictor")
    import torch

    named = {"penalty": options["penalty"], "kreg": options["k_reg"]} if options else {}
    made = {"lac": score.LAC, "aps": score.APS, "raps": score.RAPS}[method](
        score_type="softmax", **({} if method == "lac" else {"randomized": False}), **named
    )
    logits = [torch.tensor(np.array(rows.logits)) for rows in (CALIB, TEST)]
    theirs = made(logits[1]).numpy()
    assert theirs == pytest.approx(set_scores(TEST.probs, method, **options), abs=1e-12)
    split = predictor.SplitPredictor(made)
    split.calculate_threshold(logits[0], torch.tensor(np.array(CALIB.labels)), 1 - coverage)
    sets = ours(method, coverage, **options)
    assert float(split.q_hat) == pytest.approx(sets.limits[""], abs=1e-12)
    members = split.predict_with_logits(logits[1]).numpy().astype(bool)
    assert np.array_equal(members, sets(TEST).members)


@pytest.mark.parametrize("coverage", [0.8, 0.9])
def test_class_conditional_limits_agree_with_torchcp(coverage):
    score = pytest.importorskip("torchcp.classification.score")
    predictor = pytest.importorskip("torchcp.classification.predictor")
    import torch

    split = predictor.ClassConditionalPredictor(score.LAC(score_type="softmax"))
    split.calculate_threshold(
        torch.tensor(np.array(CALIB.logits)), torch.tensor(np.array(CALIB.labels)), 1 - coverage
    )
    sets = PredictionSets("lac", coverage=coverage, conditional="class").fit(CALIB)
    assert split.q_hat.numpy() == pytest.approx([sets.limits[str(j)] for j in range(8)], abs=1e-12)
