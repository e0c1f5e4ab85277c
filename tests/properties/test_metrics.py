"""Laws that hold for every metric; a new metric is one line in the table."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from equipoise import Predictions, metrics
from helpers.backends import go
from helpers.metric_samples import draw, rows, weights_for


@pytest.fixture(scope="module", params=["compiled", "fallback"], autouse=True)
def _way(request):
    yield from go(request.param)


class Law(NamedTuple):
    """What is true of a metric.

    Attributes:
        call: The metric.
        error: Zero for a predictor that is sure and right.
        low: It is never below.
        high: Nor above.
        needs: The fewest rows.
    """

    call: Callable[..., Any]
    error: bool = True
    low: float = 0.0
    high: float = 1.0
    needs: int = 1


METRICS = {
    "accuracy": Law(metrics.accuracy, error=False),
    "top2_accuracy": Law(partial(metrics.top_k_accuracy, k=2), error=False),
    "nll": Law(metrics.negative_log_likelihood, high=math.inf),
    "brier": Law(metrics.brier_score, high=2.0),
    "brier_classwise": Law(partial(metrics.brier_score, target="classwise")),
    "brier_top_label": Law(partial(metrics.brier_score, target="top_label")),
    "root_brier": Law(metrics.root_brier_score, high=2**0.5),
    "brier_calibration": Law(lambda *a, **k: metrics.brier_split(*a, **k).calibration, high=2.0),
    "ece": Law(metrics.expected_calibration_error),
    "ece_left": Law(partial(metrics.expected_calibration_error, closed="left", n_bins=10)),
    "ece_classwise": Law(partial(metrics.expected_calibration_error, target="classwise")),
    "mce": Law(metrics.maximum_calibration_error),
    "rms_ce": Law(metrics.root_mean_square_calibration_error),
    "avg_ce": Law(metrics.average_calibration_error),
    "classwise_ece": Law(metrics.classwise_calibration_error),
    "ada_ece": Law(metrics.adaptive_calibration_error),
    "ada_ece_chunks": Law(partial(metrics.adaptive_calibration_error, construction="chunks")),
    "ace": Law(metrics.thresholded_adaptive_calibration_error),
    "tace": Law(partial(metrics.thresholded_adaptive_calibration_error, threshold=0.01)),
    "debiased_l2": Law(metrics.debiased_calibration_error),
    "debiased_l1": Law(partial(metrics.debiased_calibration_error, norm="l1")),
    "ece_sweep": Law(metrics.sweep_calibration_error),
    "smece": Law(metrics.smooth_calibration_error),
    "ks": Law(metrics.kolmogorov_smirnov_error),
    "sece": Law(metrics.gaussian_calibration_error),
    "kde_ece": Law(partial(metrics.kernel_calibration_error, bandwidth=0.1), error=False, high=2.0, needs=2),
    "kde_ece_top_label": Law(
        partial(metrics.kernel_calibration_error, bandwidth=0.1, target="top_label"), needs=2
    ),
    "confidence_gap": Law(metrics.confidence_gap, low=-1.0),
    "over_confidence_error": Law(metrics.over_confidence_error),
    "auroc": Law(metrics.error_auroc, error=False),
    "aurc": Law(metrics.area_under_risk_coverage),
}
# The bias taken off depends on how many rows there really are, which copies do not add to.
NO_REPETITION = {"debiased_l1", "debiased_l2"}
every = pytest.mark.parametrize("name", sorted(METRICS))


def parameters_of(call):
    inner = call.func if isinstance(call, partial) else call
    return inspect.signature(inner).parameters


WEIGHTED = sorted(
    name
    for name, law in METRICS.items()
    if name == "brier_calibration" or "sample_weight" in parameters_of(law.call)
)


def same(found, want):
    assert found == pytest.approx(want, abs=1e-9, nan_ok=True)


@every
def test_the_order_of_rows_does_not_matter(name):
    probs, labels = draw(120, 4)
    order = np.random.default_rng(0).permutation(120)
    same(METRICS[name].call(probs[order], labels[order]), METRICS[name].call(probs, labels))


@every
def test_the_names_of_classes_do_not_matter(name):
    probs, labels = draw(120, 4)
    order = np.random.default_rng(1).permutation(4)
    same(METRICS[name].call(probs[:, order], np.argsort(order)[labels]), METRICS[name].call(probs, labels))


@pytest.mark.parametrize("name", WEIGHTED)
@settings(max_examples=8)
@given(rows(min_rows=2).flatmap(lambda r: st.tuples(st.just(r), weights_for(len(r[1])))))
def test_a_weight_counts_rows(name, sample):
    (probs, labels), weight = sample
    if name in NO_REPETITION:
        weight = np.minimum(weight, 1)
    times = weight.astype(int)
    found = METRICS[name].call(probs, labels, sample_weight=weight)
    same(found, METRICS[name].call(probs.repeat(times, axis=0), labels.repeat(times)))


@pytest.mark.parametrize("name", sorted(name for name, law in METRICS.items() if law.error))
def test_sure_and_right_is_zero(name):
    labels = np.arange(40) % 4
    assert METRICS[name].call(np.eye(4)[labels], labels) == pytest.approx(0.0, abs=1e-9)


@every
@settings(max_examples=8)
@given(rows(min_rows=2))
def test_bounds_and_finite_on_ties_zeros_and_ones(name, sample):
    law = METRICS[name]
    found = law.call(*sample)
    if name != "auroc" or not math.isnan(found):
        assert law.low - 1e-9 <= found <= law.high + 1e-9
        assert math.isfinite(found)


@every
def test_one_row_is_enough_or_refused(name):
    law, (probs, labels) = METRICS[name], draw(1, 3)
    if law.needs > 1:
        with pytest.raises(ValueError, match="at least two rows"):
            law.call(probs, labels)
    elif name != "auroc":
        assert math.isfinite(law.call(probs, labels))


@every
def test_predictions_equal_arrays_and_logits(name):
    probs, labels = draw(80, 3)
    want = METRICS[name].call(probs, labels)
    same(METRICS[name].call(Predictions(probs=probs, labels=labels)), want)
    same(METRICS[name].call(Predictions(logits=np.log(probs), labels=labels)), want)


@every
def test_one_column_equals_two(name):
    probs, labels = draw(60, 2)
    same(METRICS[name].call(probs[:, 1], labels), METRICS[name].call(probs, labels))


@every
def test_inputs_are_left_as_they_were(name):
    for layout in (np.ascontiguousarray, np.asfortranarray):
        probs, labels = draw(30, 3)
        probs = layout(probs)
        kept = probs.copy(), labels.copy()
        METRICS[name].call(probs, labels)
        assert (probs == kept[0]).all()
        assert (labels == kept[1]).all()


# The faults that were found in peers.


def test_confidence_one_has_no_bin_of_its_own():
    found = metrics.expected_calibration_error([[0.05, 0.95], [0.0, 1.0]], [1, 0], n_bins=10)
    assert found == pytest.approx(0.475)


@pytest.mark.parametrize("n", [1, 3, 14])
def test_adaptive_error_of_fewer_rows_than_bins_is_a_number(n):
    assert math.isfinite(metrics.adaptive_calibration_error(*draw(n, 3), n_bins=15))
    assert math.isfinite(metrics.thresholded_adaptive_calibration_error(*draw(n, 3), n_bins=15))


@every
def test_a_row_that_is_no_number_is_refused(name):
    probs, labels = draw(20, 3)
    probs[7, 1] = np.nan
    with pytest.raises(ValueError, match="row 7"):
        METRICS[name].call(probs, labels)


@every
def test_logits_are_never_taken_for_probabilities(name):
    logits = np.random.default_rng(0).random((20, 3))
    with pytest.raises(ValueError, match="logits"):
        METRICS[name].call(logits, np.zeros(20, int))


def test_the_lowest_confidence_is_not_dropped():
    probs, labels = draw(31, 3)
    kept, dropped = (
        metrics.adaptive_calibration_error(probs, labels, n_bins=1, keep_minimum=m) for m in (True, False)
    )
    assert kept == pytest.approx(abs(metrics.confidence_gap(probs, labels)))
    assert kept != pytest.approx(dropped)
