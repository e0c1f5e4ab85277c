"""Trainings with known truth: predictions of simulated networks, cheap enough for thousands of comparisons.

Every row has a true distribution of its class. There are two ways to predict it, a better and a worse one, both
overconfident in every confidence bin. A training predicts a share of the rows in the worse way. Which rows these are
depends on the method (the same rows for all its trainings) and on the training, as ``shared`` says. The share itself
scatters over trainings around the mean of the method. Accuracy, NLL, Brier score and ECE of the population are linear
in the share. So methods with the same mean share have the same expected metrics, however much their trainings scatter.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from scipy.special import ndtri

from equipoise import Predictions, score
from equipoise.evaluate import Score
from equipoise.experiments.results.tables import ResultTable, table_of
from equipoise.experiments.runs.scores import RunScores
from equipoise.metrics import row_draws
from equipoise.metrics.row_draws import RowDraws
from helpers.numbers import softmax

__all__ = [
    "METRICS",
    "ROWS_DOMINATED",
    "SEEDS_DOMINATED",
    "Method",
    "Source",
    "Trainings",
    "calibrated_rows",
    "draw_trainings",
    "make_table",
    "resample",
    "true_scores",
    "true_values",
]

METRICS = ("accuracy", "nll", "ece")
_CLASSES = 4
_SPREAD = 1.5
_SHARPNESS = 1.6
_NOISE = 1.2
_N_BINS = 10


class Source(NamedTuple):
    """How much rows and trainings add to the noise of a comparison.

    Attributes:
        name: For tables.
        shared: How much the choice of rows depends on the method instead of the training, from 0 to 1.
        scatter: Standard deviation over trainings of the share of rows that are predicted in the worse way.
    """

    name: str
    shared: float
    scatter: float


ROWS_DOMINATED = Source("rows", 0.95, 0.01)
SEEDS_DOMINATED = Source("seeds", 0.1, 0.045)


class Method(NamedTuple):
    """A method of training.

    Attributes:
        share: Mean share of rows that its trainings predict in the worse way.
        factor: How much more its trainings scatter than those of others.
    """

    share: float = 0.5
    factor: float = 1.0


def _draw_population(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return true logits, and logits of the better and the worse way to predict them."""
    logits = _SPREAD * rng.standard_normal((n, _CLASSES))
    worse = logits + _NOISE * rng.standard_normal(logits.shape)
    return logits, _SHARPNESS * logits, _SHARPNESS * worse


def _draw_labels(rng: np.random.Generator, truth: np.ndarray) -> np.ndarray:
    labels: np.ndarray = (truth.cumsum(axis=1) < rng.random((len(truth), 1))).sum(axis=1)
    return labels.clip(0, truth.shape[1] - 1)


class Trainings(NamedTuple):
    """Trainings of several methods, and the rows that they predict.

    Attributes:
        logits: ``(methods, seeds, rows, classes)``.
        labels: ``(rows,)``.
    """

    logits: np.ndarray
    labels: np.ndarray

    def predictions(self) -> list[list[Predictions]]:
        """Return the predictions of each seed of each method."""
        return [[Predictions(logits=one, labels=self.labels) for one in part] for part in self.logits]


def draw_trainings(
    rng: np.random.Generator,
    methods: Sequence[Method],
    *,
    n_seeds: int,
    source: Source,
    n_rows: int = 1000,
) -> Trainings:
    """Draw test rows and the predictions of several trainings of each method for them."""
    logits, better, worse = _draw_population(rng, n_rows)
    labels = _draw_labels(rng, softmax(logits))
    # Cut off at 2.5 standard deviations on both sides, which keeps the mean and stays between 0 and 1.
    deviations = np.clip(rng.standard_normal((len(methods), n_seeds)), -2.5, 2.5) * source.scatter
    shares = [[method.share] for method in methods] + deviations * [[method.factor] for method in methods]
    of_method = np.sqrt(source.shared) * rng.standard_normal((len(methods), 1, n_rows))
    of_training = np.sqrt(1 - source.shared) * rng.standard_normal((len(methods), n_seeds, n_rows))
    is_worse = of_method + of_training < ndtri(shares)[..., None]
    return Trainings(np.where(is_worse[..., None], worse, better), labels)


def _true_metrics(logits: np.ndarray, truth: np.ndarray, *, n_bins: int = _N_BINS) -> dict[str, float]:
    """Return metrics in expectation over the labels of given rows."""
    probs = softmax(logits)
    rows, predicted = np.arange(len(probs)), probs.argmax(axis=1)
    confidence, right = probs[rows, predicted], truth[rows, predicted]
    bins = np.ceil(confidence * n_bins).astype(int)
    gaps = np.bincount(bins, confidence - right)
    return {
        "accuracy": float(right.mean()),
        "nll": float(-(truth * np.log(probs)).sum(axis=1).mean()),
        "brier": float(((probs**2).sum(axis=1) - 2 * (truth * probs).sum(axis=1) + 1).mean()),
        "ece": float(np.abs(gaps).sum() / len(probs)),
        "confidence_gap": float((confidence - right).mean()),
    }


@cache
def _ways(n: int = 1_000_000) -> tuple[dict[str, float], dict[str, float]]:
    logits, *ways = _draw_population(np.random.default_rng(2024), n)
    truth = softmax(logits)
    better, worse = (_true_metrics(way, truth) for way in ways)
    return better, worse


def true_values(method: Method) -> dict[str, float]:
    """Return the expected metrics of a method, over all its trainings and all rows."""
    better, worse = _ways()
    return {key: (1 - method.share) * better[key] + method.share * worse[key] for key in better}


def calibrated_rows(rng: np.random.Generator, n_rows: int, *, sharpness: float = 1.0) -> Predictions:
    """Draw rows of one network: calibrated at a sharpness of 1, overconfident above."""
    logits = _SPREAD * rng.standard_normal((n_rows, _CLASSES))
    return Predictions(logits=sharpness * logits, labels=_draw_labels(rng, softmax(logits)))


@cache
def true_scores(sharpness: float, n: int = 1_000_000) -> dict[str, float]:
    """Return the true metrics of the network of :func:`calibrated_rows`."""
    logits = _SPREAD * np.random.default_rng(7).standard_normal((n, _CLASSES))
    return _true_metrics(sharpness * logits, softmax(logits), n_bins=15)


def resample(trainings: Trainings, *, n_resamples: int = 200) -> list[list[RowDraws]]:
    """Return what :func:`equipoise.metrics.row_draws.draw_rows` does for :data:`METRICS`, of all trainings at once."""
    logits, labels = trainings
    n_methods, n_seeds, n_rows, _ = logits.shape
    probs = softmax(logits)
    confidence, right = probs.max(axis=-1), probs.argmax(axis=-1) == labels
    nll = -np.log(np.take_along_axis(probs, labels[None, None, :, None], axis=-1)[..., 0])
    in_bin = np.ceil(confidence * _N_BINS)[..., None] == np.arange(1, _N_BINS + 1)
    columns = np.concatenate(
        [np.stack([right, nll], axis=-1), (confidence - right)[..., None] * in_bin], axis=-1
    )
    counts = row_draws._counts(n_rows, n_resamples, 0)
    drawn = np.concatenate([np.ones((1, n_rows)), counts]) @ columns / n_rows
    metrics = {"accuracy": drawn[..., 0], "nll": drawn[..., 1], "ece": np.abs(drawn[..., 2:]).sum(axis=-1)}
    plan = row_draws.ResamplePlan(n_rows, n_rows, n_resamples, 0)
    return [
        [
            RowDraws(
                {key: float(found[method, seed, 0]) for key, found in metrics.items()},
                {key: found[method, seed, 1:] - found[method, seed, 0] for key, found in metrics.items()},
                plan,
            )
            for seed in range(n_seeds)
        ]
        for method in range(n_methods)
    ]


@cache
def _any_card() -> Any:
    return score(Predictions(probs=[[0.9, 0.1], [0.2, 0.8]], labels=[0, 1]), n_resamples=20)


@dataclass(frozen=True)
class _Group:
    """Scores of simulated trainings, as a table takes them."""

    draws: Mapping[str, Sequence[RowDraws]]
    title: str = "simulated"
    model: str = ""
    calibrators: tuple[str, ...] = ("identity",)

    @property
    def methods(self) -> Mapping[str, Sequence[RowDraws]]:
        return self.draws

    @property
    def scores(self) -> Mapping[str, Mapping[str, RunScores]]:
        return {"any": {"identity": _scores_of(next(iter(self.draws.values()))[0])}}

    def seeds(self, label: str, calibrator: str) -> dict[int, RunScores]:
        return {seed: _scores_of(one) for seed, one in enumerate(self.draws[label])}

    def fidelity(self, label: str) -> str:
        return ""

    def printed(self, label: str, calibrator: str, metrics: Sequence[str]) -> dict[str, str]:
        return {}


def _scores_of(draws: RowDraws) -> RunScores:
    # The scorecard gives the level only: values and intervals come from the draws.
    extras = {key: Score(value, value, value) for key, value in draws.values.items()}
    return RunScores(calibrator="identity", cards={"test": _any_card()}, extras=extras, draws=draws)


def make_table(draws: Sequence[Sequence[RowDraws]]) -> ResultTable:
    """Return the table that :func:`equipoise.compare_seeds` would make, without scoring every training in full."""
    labels = {f"method {number}": part for number, part in enumerate(draws)}
    return table_of(_Group(labels), baseline="method 0", metrics=METRICS)
