"""Differences between methods over seeds, with verdicts: from the paired differences of each seed, whoever ran it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from pairs import KEYS, is_variant

from equipoise.evaluate import Difference
from equipoise.evaluate.chance import holm
from equipoise.experiments.results import combine_family
from equipoise.metrics.facts import metric_facts

ALPHA = 0.05
#: Comparisons that share these tell each other what scatter over seeds is usual, and are corrected for being many.
FAMILY = ("question", "split", "calibrator", "versus_calibrator", "metric")


def differences(arena: str, paired: Sequence[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Give one row per question, pair of methods and metric; verdicts allow for there being many methods (Holm).

    Args:
        arena: Its name.
        paired: Rows of ``paired.csv``.
    """
    seeds: dict[tuple[str, ...], list[Difference]] = {}
    for row in paired:
        seeds.setdefault(tuple(row[key] for key in KEYS), []).append(_difference(row))
    labels = {str(row["method"]) for row in paired}
    # Families keep the order in which they came, and pairs theirs within a family. Settings of a method other than the
    # paper's are families of their own: some are the same runs under another name.
    families: dict[tuple[object, ...], list[tuple[dict[str, str], list[Difference]]]] = {}
    for key, rows in seeds.items():
        about = dict(zip(KEYS, key, strict=True))
        families.setdefault((*_family(about), is_variant(about["method"], labels)), []).append((about, rows))
    for family in families.values():
        joined = combine_family([rows for _, rows in family])
        corrected = holm(np.array([one.p_value for one in joined]))
        members = [(about, len(rows), one) for (about, rows), one in zip(family, joined, strict=True)]
        for (about, n_seeds, one), p_value in zip(members, corrected, strict=True):
            yield {
                "arena": arena,
                **about,
                "n_seeds": n_seeds,
                "value": one.second,
                "versus_value": one.first,
                "difference": one.difference,
                "low": one.low,
                "high": one.high,
                "p_value": one.p_value,
                "p_holm": float(p_value),
                "verdict": _verdict(one, float(p_value)),
            }


def _family(about: dict[str, str]) -> tuple[str, ...]:
    return tuple(about[key] for key in FAMILY)


def _difference(row: dict[str, Any]) -> Difference:
    return Difference(
        metric=row["metric"],
        first=row["versus_value"],
        second=row["value"],
        difference=row["value"] - row["versus_value"],
        low=row["low"],
        high=row["high"],
        p_value=float("nan"),  # neither is asked of one seed: they are found over all of them
        verdict="",
    )


def _verdict(one: Difference, p_value: float) -> str:
    if p_value >= ALPHA or one.difference == 0:
        return "tie"
    return "better" if metric_facts(one.metric).is_better(one.second, than=one.first) else "worse"
