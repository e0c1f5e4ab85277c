"""Metrics of a comparison that are computed from rows when asked for: of the catalogue, or code."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, final

from equipoise.core.errors import SpecError, located
from equipoise.core.predictions import Predictions
from equipoise.evaluate import EXTRA, Score, score_extra
from equipoise.experiments.code.adapters import check_keywords
from equipoise.experiments.code.named import Wanted
from equipoise.experiments.code.names import is_code, split_reference
from equipoise.experiments.specs.parsing import number_keys, read_named
from equipoise.metrics.facts import learn_facts, metric_facts

__all__ = ["GivenMetric", "MetricSpec", "as_metric", "score_metric"]


@final
@dataclass(frozen=True, kw_only=True)
class MetricSpec(Wanted):
    """A metric that shall be computed beside those of a scorecard.

    It is one of :data:`~equipoise.evaluate.EXTRA`, or code: a function of predictions that gives a number.

    Example:
        >>> MetricSpec(name="worst.py:worst", options={"k": 3}).key
        'worst.py:worst(k=3)'
    """

    @property
    def key(self) -> str:
        """What it is called in tables and files."""
        return self.name + self.settings(", ")

    @property
    def mark(self) -> str:
        """The key, and of code which content: a run that has it need not compute it again."""
        return f"{self.key}@{self.digest[:16]}" if self.digest else self.key

    def load(self) -> tuple[Callable[[Predictions], float], dict[str, Any]]:
        """Return what computes it, and what its author says about it; nothing is said about ours.

        Raises:
            SpecError: If the code is not there, or does not take the options.
        """
        if not is_code(self.name):
            return EXTRA[self.name], {}
        found = self.code.load()
        check_keywords(found, self.options, name=self.name)
        options = number_keys(self.options)
        measure = found(**options) if isinstance(found, type) else partial(found, **options)
        title = split_reference(self.name)[1] + self.settings(", ")
        return _Checked(measure, self.name), _learnt(
            self.key, {"title": title, **getattr(found, "facts", {})}
        )


@final
@dataclass(frozen=True)
class GivenMetric:
    """A function of predictions that someone holds in their hands; like code that a spec names, with no file to find.

    Attributes:
        function: Gives one finite number.

    Example:
        >>> def mean(predictions):
        ...     return predictions.confidence.mean()
        >>> rows = Predictions(probs=[[0.9, 0.1]] * 40, labels=[0] * 30 + [1] * 10)
        >>> round(score_metric(GivenMetric(mean), rows, level=0.95, seed=0).value, 3)
        0.9
    """

    function: Callable[[Predictions], Any]

    @property
    def key(self) -> str:
        """What it is called."""
        return str(getattr(self.function, "__name__", type(self.function).__name__))

    mark = key

    def load(self) -> tuple[Callable[[Predictions], float], dict[str, Any]]:
        """Return what computes it, and what its author says about it."""
        said = {"title": self.key, **getattr(self.function, "facts", {})}
        return _Checked(self.function, self.key), _learnt(self.key, said)


def _learnt(key: str, said: dict[str, Any]) -> dict[str, Any]:
    """Let everyone know what is said about a metric; return it as JSON can hold it."""
    kept = {name: float(value) if name in ("low", "high") else value for name, value in said.items()}
    learn_facts(key, kept)
    return kept


def score_metric(
    metric: MetricSpec | GivenMetric, judged: Predictions, *, level: float, seed: int, clusters: Any = None
) -> Score:
    """Return the number of a metric with its interval, of clusters if rows depend on each other.

    Example:
        >>> rows = Predictions(probs=[[0.9, 0.1]] * 40, labels=[0] * 30 + [1] * 10)
        >>> score_metric(MetricSpec(name="sece"), rows, level=0.95, seed=0).value < 0.2
        True
    """
    measure, _ = metric.load()  # first: its author may say what the facts are
    facts = metric_facts(metric.key)
    within = (facts.low, facts.high)
    return score_extra(judged, measure, level=level, seed=seed, within=within, clusters=clusters)


@final
@dataclass(frozen=True)
class _Checked:
    """A metric of someone's own, whose answers are looked at."""

    measure: Callable[[Predictions], Any]
    name: str

    def __call__(self, predictions: Predictions) -> float:
        found = self.measure(predictions)
        try:
            value = float(found)
        except (TypeError, ValueError, RuntimeError):
            value = math.nan
        if not math.isfinite(value):
            raise SpecError(
                f"{self.name}: one finite number was wanted for {len(predictions)} rows, got {found!r}. A metric is "
                "also computed on nine tenths of the rows, for its interval."
            )
        return value


def as_metric(given: Any, *, where: str, home: str | None = None) -> MetricSpec | str:
    """Return a metric that was given by name or as a table; those of a scorecard stay names. Nothing is loaded.

    Args:
        given: A key of a scorecard, of :data:`~equipoise.evaluate.EXTRA`, or code; or a table of name and options.
        where: File and key, for the message.
        home: The folder that files of code are relative to; None is the current one.

    Raises:
        SpecError: If there is no such metric.

    Example:
        >>> as_metric("ece", where="doc"), as_metric("worst.py:worst", where="doc", home="/a").key
        ('ece', 'worst.py:worst')
    """
    if isinstance(given, MetricSpec):
        return given
    found = read_named(MetricSpec, given, where=where)
    with located(where):
        if is_code(found.name):
            return found.at(home)
        metric_facts(found.name, what="metric of a table", of="runs")
    if found.options:
        raise SpecError(f"{where}: {found.name!r} takes no options; only code of your own does.")
    return MetricSpec(name=found.name) if found.name in EXTRA else found.name
