"""Metrics by name that are computed from rows on request: of the catalogue, or the user's own code."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

from equipoise.core.errors import SpecError, located
from equipoise.core.predictions import Predictions
from equipoise.evaluate import EXTRA, Score, score_extra
from equipoise.experiments.code.adapters import check_keywords
from equipoise.experiments.code.component import Component, format_label
from equipoise.experiments.code.source import split_reference
from equipoise.experiments.specs.parsing import parse_component
from equipoise.metrics.facts import learn_facts, metric_facts

__all__ = ["load_metric", "metric_mark", "parse_metric", "score_metric"]


def parse_metric(given: Any, *, where: str, base_dir: str | None = None) -> Component | str:
    """Return a metric that was given by name, as a table or as a function; those of a scorecard stay names.

    Args:
        given: A key of a scorecard, of :data:`~equipoise.evaluate.EXTRA`, code, a table of name and options, or a
            function of predictions.
        where: File and key, for the message.
        base_dir: The folder that files of code are relative to; None is the current one.

    Raises:
        SpecError: If there is no such metric.

    Example:
        >>> parse_metric("ece", where="doc"), parse_metric("worst.py:worst", where="doc").label
        ('ece', 'worst.py:worst')
    """
    if isinstance(given, Component):
        return given
    if callable(given):
        return Component(name=str(getattr(given, "__name__", type(given).__name__)), value=given)
    found = parse_component(given, where=where, base_dir=base_dir)
    with located(where):
        if found.is_code:
            split_reference(found.name)
            return found
        metric_facts(found.name, what="metric of a table", of="runs")
    if found.options:
        raise SpecError(f"{where}: {found.name!r} takes no options; only your own code does.")
    return found if found.name in EXTRA else found.name


def metric_mark(metric: Component) -> str:
    """Return the label of a metric, and for code its content: a run that has it need not compute it again.

    Example:
        >>> metric_mark(Component(name="worst.py:worst", options={"k": 3}, digest="0123456789abcdef01"))
        'worst.py:worst(k=3)@0123456789abcdef'
    """
    return f"{metric.label}@{metric.digest[:16]}" if metric.digest else metric.label


def load_metric(metric: Component) -> tuple[Callable[[Predictions], float], dict[str, Any]]:
    """Return the function that computes a metric, and the facts that its author states; none for ours.

    Raises:
        SpecError: If the code is missing, or does not take the options.

    Example:
        >>> load_metric(Component(name="sece"))[1]
        {}
    """
    if not metric.is_code:
        return EXTRA[metric.name], {}
    found = metric.load()
    name = metric.name if metric.value is not None else split_reference(metric.name)[1]
    facts = {"title": format_label(name, metric.options), **getattr(found, "facts", {})}
    if metric.value is None:
        check_keywords(found, metric.options, name=metric.name)
        found = found(**metric.keywords) if isinstance(found, type) else partial(found, **metric.keywords)
    facts = {key: float(value) if key in ("low", "high") else value for key, value in facts.items()}
    learn_facts(metric.label, facts)
    return partial(_finite, found, metric.name), facts


def score_metric(
    metric: Component, predictions: Predictions, *, level: float, seed: int, clusters: Any = None
) -> Score:
    """Return the value of a metric with its interval; clusters are resampled if rows depend on each other.

    Example:
        >>> rows = Predictions(probs=[[0.9, 0.1]] * 40, labels=[0] * 30 + [1] * 10)
        >>> score_metric(Component(name="sece"), rows, level=0.95, seed=0).value < 0.2
        True
    """
    function, _ = load_metric(metric)  # first: its author may state facts
    facts = metric_facts(metric.label)
    within = (facts.low, facts.high)
    return score_extra(predictions, function, level=level, seed=seed, within=within, clusters=clusters)


def _finite(function: Callable[[Predictions], Any], name: str, predictions: Predictions) -> float:
    """Return what the user's own metric gives, or raise."""
    found = function(predictions)
    try:
        value = float(found)
    except (TypeError, ValueError, RuntimeError):
        value = math.nan
    if not math.isfinite(value):
        raise SpecError(
            f"{name}: expected one finite number for {len(predictions)} rows, got {found!r}. A metric is also computed "
            "on nine tenths of the rows, for its interval."
        )
    return value
