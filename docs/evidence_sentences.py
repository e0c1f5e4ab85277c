"""What the evidence says in sentences, for its first page and for those that quote it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from evidence_data import (
    arenas,
    counts,
    difference,
    entrants,
    is_run,
    letter,
    pick,
    rivals,
    rows,
    seeds_of,
    summed,
    table,
    told,
)


def seeds_words(arena: str) -> str:
    """Write how many seeds the methods of an arena have."""
    counted = [len(seeds_of(arena)[label]) for label in entrants(arena)]
    few, many = min(counted), max(counted)
    if few != many:
        return f"{few} to {many} seeds"
    return f"{many} seeds" if many > 1 else "1 seed"


def in_short() -> Iterator[str]:
    """Say what the files show over all arenas, in sentences."""
    known = list(filter(is_run, arenas()))
    raw = _summed("ece", known)
    unscaled = _summed("ece", known, versus_calibrator="temperature")
    both = _summed("ece", known, calibrator="temperature")
    sharp = _summed("nll", known, calibrator="temperature")
    yield (
        "**A temperature is hard to beat.** Over all arenas and methods, a loss without scaling against cross-entropy "
        f"with a temperature: {told(unscaled)} in ECE. With a temperature on both sides: {told(both)} in ECE, "
        f"{told(sharp)} in NLL."
    )
    yield (
        "**Unscaled, it depends on the network.** Where cross-entropy ends over-confident most losses help, and where "
        f"it does not they harm: {told(raw)} in ECE, arena by arena in the evidence. The temperature that it asks "
        "for says which it is."
    )


def verdicts() -> list[str]:
    """Write a table of verdicts against cross-entropy: how many methods are better, tied and worse in each arena."""
    lines = []
    for arena in filter(is_run, arenas()):
        asked = np.mean([row["temperature"] for row in pick(rows(f"{arena}/runs.csv"), method="ce")])
        lines.append(
            (
                f"{letter(arena)}, {arenas()[arena]['title']}",
                seeds_words(arena).partition(" seed")[0],
                f"{asked:.2f}",
                _count(arena, "accuracy"),
                _count(arena, "ece"),
                _count(arena, "ece", versus_calibrator="temperature"),
                _count(arena, "ece", calibrator="temperature"),
                _count(arena, "nll", calibrator="temperature"),
            )
        )
    heads = (
        "arena",
        "seeds",
        "T of ce",
        "accuracy",
        "ECE",
        "ECE, unscaled against scaled ce",
        "ECE, both scaled",
        "NLL, both scaled",
    )
    return table(heads, lines)


def _count(arena: str, metric: str, **where: str) -> str:
    found = counts(arena, metric, rivals(arena), **where)
    text = " / ".join(str(found[name]) for name in ("better", "tie", "worse"))
    pairs = [difference(arena, label, metric, **where) for label in rivals(arena)]
    return f"({text})" if any(pair and pair["n_seeds"] == 1 for pair in pairs) else text


def _summed(metric: str, known: Sequence[str], **where: str) -> dict[str, int]:
    return summed(counts(arena, metric, rivals(arena), **where) for arena in known)
