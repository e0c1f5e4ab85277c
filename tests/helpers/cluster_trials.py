"""Data sets whose rows depend on each other, and how often intervals and tests on them are right."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from scipy.special import expit, logit, ndtri

from equipoise import Predictions, compare, score
from equipoise.core.arrays import Array
from equipoise.evaluate import score_by_class

__all__ = ["AUTHORS", "IMAGES", "METRICS", "Design", "Outcome", "draw_models", "simulate", "true_values"]

#: Metrics whose intervals are checked, with those that the design effect widens last.
METRICS = ("accuracy", "nll", "brier", "ece", "rms_ce", "ada_ece", "ks", "smece", "aurc", "auroc")
_DRAWS_FOR_TRUTH = 1_000_000


class Design(NamedTuple):
    """Clusters and how much their rows have in common.

    Attributes:
        name: For the table.
        sizes: Rows of each cluster.
        correlation: Of the latent variables that decide which rows are right, within a cluster.
        difficulty: Standard deviation of the clusters' mean confidence, on the scale of log-odds.
    """

    name: str
    sizes: Sequence[int]
    correlation: float = 0.3
    difficulty: float = 0.7


IMAGES = Design("20 images of 400 pixels", (400,) * 20)
AUTHORS = Design(
    "100 authors, 1 to 138 posts",
    tuple(np.maximum(1, np.random.default_rng(5).lognormal(2.5, 1.0, 100)).astype(int).tolist()),
)


class Outcome(NamedTuple):
    """Shares of data sets.

    Attributes:
        coverage: By metric, in which the interval contains the true value.
        consistency: In which the consistency test rejects calibration.
        compare: By metric, in which two equally good models are called different.
        slices: In which a predicted class is called miscalibrated.
    """

    coverage: Mapping[str, float]
    consistency: float
    compare: Mapping[str, float]
    slices: float


def draw_models(
    rng: np.random.Generator, design: Design, *, sharpness: float = 1.0
) -> tuple[Predictions, Predictions]:
    """Return two equally good models of two classes on the same rows, which have a column ``cluster``.

    With sharpness 1 both are calibrated: a row is right with the probability that they state, whatever other rows of
    its cluster are. Above 1 they are overconfident.
    """
    cluster = np.repeat(np.arange(len(design.sizes)), design.sizes)
    n_rows, n_clusters = len(cluster), len(design.sizes)
    labels = rng.integers(2, size=n_rows)
    shared = rng.normal(size=n_clusters)
    models = []
    for _ in range(2):
        own = design.difficulty * rng.normal(size=n_clusters)
        chance = 0.5 + 0.5 * expit(1.2 + own[cluster] + rng.normal(size=n_rows))
        effect = np.sqrt(0.5) * (shared + rng.normal(size=n_clusters))
        latent = np.sqrt(design.correlation) * effect[cluster]
        latent += np.sqrt(1 - design.correlation) * rng.normal(size=n_rows)
        predicted = np.where(latent < ndtri(chance), labels, 1 - labels)
        stated = expit(sharpness * logit(chance))
        positive: Array = np.where(predicted == 1, stated, 1 - stated)
        models.append(
            Predictions(
                probs=np.stack([1 - positive, positive], 1), labels=labels, groups={"cluster": cluster}
            )
        )
    return models[0], models[1]


def true_values(design: Design, *, sharpness: float = 1.0) -> dict[str, float]:
    """Return the metrics of a very large data set, by which intervals are judged."""
    return _true_values(design.correlation, design.difficulty, sharpness)


@lru_cache
def _true_values(correlation: float, difficulty: float, sharpness: float) -> dict[str, float]:
    # The truth does not depend on how many rows a cluster has, since sizes are independent of everything else.
    singles = Design("", (1,) * _DRAWS_FOR_TRUTH, correlation, difficulty)
    card = score(draw_models(np.random.default_rng(99), singles, sharpness=sharpness)[0], n_resamples=1)
    return {key: card[key].value for key in METRICS}


def simulate(
    design: Design,
    *,
    sharpness: float = 1.0,
    n_sets: int = 100,
    n_resamples: int = 300,
    clustered: bool = True,
    seed: int = 0,
) -> Outcome:
    """Score and compare models on many data sets.

    Args:
        design: How rows depend on each other.
        sharpness: 1 for calibrated models, more for overconfident ones.
        n_sets: Data sets.
        n_resamples: Bootstrap resamples for each.
        clustered: Whether clusters are resampled; otherwise rows, as if they were independent.
        seed: Random seed.
    """
    truth, rng = true_values(design, sharpness=sharpness), np.random.default_rng(seed)
    clusters = "cluster" if clustered else None
    covered = dict.fromkeys(METRICS, 0)
    called_different = dict.fromkeys(("accuracy", "nll", "brier", "ece"), 0)
    rejected = sliced = 0
    for number in range(n_sets):
        first, second = draw_models(rng, design, sharpness=sharpness)
        card = score(first, n_resamples=n_resamples, seed=number, clusters=clusters)
        for key in METRICS:
            covered[key] += card[key].low <= truth[key] <= card[key].high
        rejected += card.consistency.p_value <= 0.05
        inflation = 1.0 if card.clusters is None else card.clusters.inflation(0.95)
        sliced += any(part.p_value < 0.05 for part in score_by_class(first, inflation=inflation))
        differences = compare(first, second, n_resamples=n_resamples, seed=number, clusters=clusters)
        for key in called_different:
            called_different[key] += differences.of(key).verdict != "tie"
    return Outcome(
        {key: count / n_sets for key, count in covered.items()},
        rejected / n_sets,
        {key: count / n_sets for key, count in called_different.items()},
        sliced / n_sets,
    )
