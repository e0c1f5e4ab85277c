"""Ranks of methods over seeds, and how many rivals each beats, with intervals from resampling the seeds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from typing import Any

import numpy as np
from scipy.stats import rankdata

RESAMPLES = 2000
#: A seed that fewer methods have is not finished, and takes no part.
MOST = 0.8
QUESTIONS = [(metric, calibrator) for metric in ("nll", "ece") for calibrator in ("identity", "temperature")]


def ranks(arena: str, scores: Sequence[dict[str, Any]], labels: Collection[str]) -> Iterator[dict[str, Any]]:
    """Give one row per question and method, the best first; methods that lack a finished seed take no part.

    Args:
        arena: Its name.
        scores: Rows of ``scores.csv``.
        labels: The methods that were compared.
    """
    for metric, calibrator in QUESTIONS:
        found: dict[str, dict[int, float]] = {}
        for row in scores:
            if (row["metric"], row["calibrator"], row["split"]) == (metric, calibrator, "test") and row[
                "method"
            ] in labels:
                found.setdefault(row["method"], {})[row["seed"]] = row["value"]
        if not found:
            continue
        have = Counter(seed for known in found.values() for seed in known)
        seeds = sorted(seed for seed, count in have.items() if count >= MOST * len(found))
        whole = [label for label in found if set(seeds) <= found[label].keys()]
        places = rankdata([[found[label][seed] for seed in seeds] for label in whole], axis=0)
        draws = np.random.default_rng(0).integers(0, len(seeds), (RESAMPLES, len(seeds)))
        middle, drawn = places.mean(axis=1), places[:, draws].mean(axis=2)
        low, high = np.quantile(drawn, (0.025, 0.975), axis=1)
        rivals = max(len(whole) - 1, 1)
        for place in np.argsort(middle, kind="stable"):
            yield {
                "arena": arena,
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
