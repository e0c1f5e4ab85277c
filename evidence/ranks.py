"""Ranks of methods over seeds, and the share of rivals that each beats, with ranges or intervals."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pairs import is_variant
from scipy.stats import rankdata

RESAMPLES = 2000
#: A seed that fewer methods have is not finished, and takes no part.
MOST = 0.8
QUESTIONS = [(metric, calibrator) for metric in ("nll", "ece") for calibrator in ("identity", "temperature")]


def ranks(
    benchmark: str, scores: Sequence[dict[str, Any]], labels: Collection[str]
) -> Iterator[dict[str, Any]]:
    """Give one row per question and method, the best first; methods that lack a finished seed take no part.

    Ends are the ranges over seeds: resampling two or three of them would pretend to know more.

    Args:
        benchmark: Its name.
        scores: Rows of ``scores.csv``.
        labels: The methods that were compared; of each only the paper's setting takes part.
    """
    entrants = {label for label in labels if not is_variant(label, labels)}
    for metric, calibrator in QUESTIONS:
        found = _by_seed(scores, metric, calibrator, entrants)
        if not found:
            continue
        have = Counter(seed for known in found.values() for seed in known)
        seeds = sorted(seed for seed, count in have.items() if count >= MOST * len(found))
        whole = [label for label in found if set(seeds) <= found[label].keys()]
        places = rankdata([[found[label][seed] for seed in seeds] for label in whole], axis=0)
        middle, low, high = places.mean(axis=1), places.min(axis=1), places.max(axis=1)
        rivals = max(len(whole) - 1, 1)
        for place in np.argsort(middle, kind="stable"):
            yield {
                "benchmark": benchmark,
                "metric": metric,
                "calibrator": calibrator,
                "method": whole[place],
                "n_seeds": len(seeds),
                "rank": middle[place],
                "rank_low": low[place],
                "rank_high": high[place],
                "wins": (len(whole) - middle[place]) / rivals,
                "wins_low": (len(whole) - high[place]) / rivals,
                "wins_high": (len(whole) - low[place]) / rivals,
            }


def wins(tasks: Mapping[str, Sequence[dict[str, Any]]]) -> Iterator[dict[str, Any]]:
    """Give one row per question and method that every task has: the share of rivals, tasks and seeds that it beats.

    Intervals come from resampling the tasks, and the seeds within each; few tasks make them wide, as they should.

    Args:
        tasks: Rows of each benchmark's ``scores.csv``.
    """
    for metric, calibrator in QUESTIONS:
        found = {
            benchmark: _by_seed(scores, metric, calibrator) for benchmark, scores in sorted(tasks.items())
        }
        labels = [
            one for one in next(iter(found.values()), {}) if all(one in known for known in found.values())
        ]
        if len(labels) < 2 or len(found) < 2:
            continue
        shares = [_shares([known[label] for label in labels]) for known in found.values()]
        random = np.random.default_rng(0)
        drawn = np.stack([_draw(shares, random) for _ in range(RESAMPLES)])
        low, high = np.quantile(drawn, (0.025, 0.975), axis=0)
        middle = np.mean([share.mean(axis=1) for share in shares], axis=0)
        for place in np.argsort(-middle, kind="stable"):
            yield {
                "metric": metric,
                "calibrator": calibrator,
                "method": labels[place],
                "tasks": " ".join(found),
                "wins": middle[place],
                "wins_low": low[place],
                "wins_high": high[place],
            }


def _by_seed(
    scores: Sequence[dict[str, Any]], metric: str, calibrator: str, labels: Collection[str] | None = None
) -> dict[str, dict[int, float]]:
    """Give a number of test by method and seed."""
    found: dict[str, dict[int, float]] = {}
    for row in scores:
        if (row["metric"], row["calibrator"], row["split"]) == (metric, calibrator, "test") and (
            labels is None or row["method"] in labels
        ):
            found.setdefault(row["method"], {})[row["seed"]] = row["value"]
    return found


def _shares(known: Sequence[Mapping[int, float]]) -> NDArray[np.float64]:
    """Give the share of rivals beaten ``(methods, seeds)``, over the seeds that all have; half a win for a draw."""
    seeds = sorted(set.intersection(*(set(one) for one in known)))
    places = rankdata([[one[seed] for seed in seeds] for one in known], axis=0)
    return (len(known) - places) / (len(known) - 1)


def _draw(shares: Sequence[NDArray[np.float64]], random: np.random.Generator) -> NDArray[np.float64]:
    """Resample tasks, and the seeds of each."""
    taken = [shares[task] for task in random.integers(0, len(shares), len(shares))]
    return np.mean(
        [one[:, random.integers(0, one.shape[1], one.shape[1])].mean(axis=1) for one in taken], axis=0
    )
