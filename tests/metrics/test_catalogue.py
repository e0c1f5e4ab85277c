import importlib
import inspect
import re

import pytest

from equipoise import metrics
from equipoise.catalogue import CATALOGUE, METRIC_PARTS
from equipoise.metrics.facts import ALONE_FACTS, DETECTION_FACTS, EXTRA_FACTS, FACTS, metric_facts

METRICS = CATALOGUE["metrics"]


@pytest.mark.parametrize("key", sorted(METRICS))
def test_entries_are_complete_and_their_parameters_exist(key):
    entry = METRICS[key]
    assert entry.key == key
    assert all((entry.title, entry.summary, entry.use_when, entry.avoid_when, entry.formula))
    assert set(entry.options) <= set(inspect.signature(entry.factory).parameters)
    assert entry.factory.__name__ in metrics.__all__


def test_facts_and_catalogue_know_the_same_metrics():
    known = {*FACTS, *EXTRA_FACTS, *ALONE_FACTS, *DETECTION_FACTS}
    assert known == {*METRICS, *METRIC_PARTS}
    assert not set(METRICS) & set(METRIC_PARTS)
    assert {key for key, facts in FACTS.items() if facts.part_of} <= set(METRIC_PARTS)


@pytest.mark.parametrize("key", sorted(METRICS))
def test_facts_and_catalogue_call_a_metric_the_same(key):
    # What a sentence shortens, the list may spell out; or it names the short form in brackets.
    facts, title = metric_facts(key), METRICS[key].title.lower()
    spelled = re.sub(r"\bCE\b", "calibration error", re.sub("^ECE$", "expected CE", facts.title)).lower()
    assert title in (facts.title.lower(), spelled) or title.endswith(f"({facts.short.lower()})")


@pytest.mark.parametrize("key", sorted({**ALONE_FACTS, **DETECTION_FACTS}))
def test_what_stands_alone_is_computed_by_what_its_facts_name(key):
    named = re.findall(r"equipoise\.(\w+)\.(\w+) computes it$", metric_facts(key).instead)
    others = re.findall("'([a-z_]+)'", metric_facts(key).instead)
    assert all(
        callable(getattr(importlib.import_module(f"equipoise.{package}"), name)) for package, name in named
    )
    assert all(other in FACTS for other in others)
    assert named or others
    if key in METRICS and key in ALONE_FACTS and named:
        assert METRICS[key].made_by == "equipoise.{}:{}".format(*named[0])


def test_every_metric_function_has_an_entry():
    helpers = {
        "adaptive_edges", "area_under_roc", "choose_bandwidth", "classwise_calibration_errors", "consistency_test",
        "corp_curve", "reliability_curve", "risk_coverage", "rival_probability", "smooth_curve", "sweep_temperatures",
    }  # fmt: skip
    functions = {name for name in metrics.__all__ if inspect.isfunction(getattr(metrics, name))}
    assert functions - helpers == {entry.factory.__name__ for entry in METRICS.values()}
