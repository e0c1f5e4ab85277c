import inspect

import pytest

from equipoise import metrics
from equipoise.experiments.catalogue.metrics import METRICS
from equipoise.metrics.facts import FACTS


@pytest.mark.parametrize("key", sorted(METRICS))
def test_entries_are_complete_and_their_parameters_exist(key):
    entry = METRICS[key]
    assert entry.key == key
    assert all((entry.title, entry.summary, entry.use_when, entry.avoid_when, entry.formula))
    assert set(entry.parameters) <= set(inspect.signature(entry.factory).parameters)
    assert entry.factory.__name__ in metrics.__all__


def test_everything_on_a_scorecard_has_an_entry():
    # A part of another metric is told by that one's entry.
    assert {key for key, facts in FACTS.items() if facts.part_of is None} <= set(METRICS)


def test_every_metric_function_has_an_entry():
    helpers = {
        "adaptive_edges", "area_under_roc", "choose_bandwidth", "classwise_calibration_errors", "consistency_test",
        "reliability_curve", "risk_coverage", "rival_probability", "smooth_curve", "sweep_temperatures",
    }  # fmt: skip
    functions = {name for name in metrics.__all__ if inspect.isfunction(getattr(metrics, name))}
    assert functions - helpers == {entry.factory.__name__ for entry in METRICS.values()}
