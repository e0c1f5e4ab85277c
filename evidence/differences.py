"""Differences between methods over seeds, with verdicts: from the paired differences of each seed, whoever ran it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any

import numpy as np
from pairs import KEYS

from equipoise.evaluate import Difference
from equipoise.evaluate.chance import holm
from equipoise.experiments.results import combine

ALPHA = 0.05
#: Comparisons that share these are corrected for being many.
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
    found = [(dict(zip(KEYS, about, strict=True)), len(rows), combine(rows)) for about, rows in seeds.items()]
    # Families keep the order in which they came, and pairs theirs within a family.
    place = {family: n for n, family in enumerate(dict.fromkeys(_family(about) for about, _, _ in found))}
    ordered = sorted(found, key=lambda one: place[_family(one[0])])
    for _, family in groupby(ordered, key=lambda one: _family(one[0])):
        members = list(family)
        corrected = holm(np.array([one.p_value for _, _, one in members]))
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
    # Of all these only accuracy is better when it is larger.
    return "better" if (one.difference > 0) == (one.metric == "accuracy") else "worse"
