"""What the evidence says in sentences, for its first page and for those that quote it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from evidence_data import arenas, counts, entrants, is_run, letter, pick, rows, seeds_of, told


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
        f"it does not they harm: {told(raw)} in ECE, arena by arena below. Whether it is over-confident is what "
        "the temperature says that it asks for."
    )


def of_arenas() -> Iterator[str]:
    """Say what the files show in each arena, in sentences."""
    for arena in filter(is_run, arenas()):
        about = arenas()[arena]
        labels = [label for label in entrants(arena) if label != "ce"]
        temperature = np.mean([row["temperature"] for row in pick(rows(f"{arena}/runs.csv"), method="ce")])
        one = (
            " With one seed these are verdicts about these networks."
            if seeds_words(arena) == "1 seed"
            else ""
        )
        yield (
            f"**{letter(arena)}, {about['title']}** ({about['regime']}; {seeds_words(arena)}; cross-entropy asks for "
            f"T = {temperature:.2f}). {len(labels)} methods against cross-entropy: ECE {_count(arena, 'ece')}; "
            f"accuracy {_count(arena, 'accuracy')}. After a temperature: ECE "
            f"{_count(arena, 'ece', calibrator='temperature')}; "
            f"NLL {_count(arena, 'nll', calibrator='temperature')}. Unscaled against scaled cross-entropy: ECE "
            f"{_count(arena, 'ece', versus_calibrator='temperature')}.{one}"
        )


def _count(arena: str, metric: str, **where: str) -> str:
    return told(counts(arena, metric, [one for one in entrants(arena) if one != "ce"], **where))


def _summed(metric: str, known: Sequence[str], **where: str) -> dict[str, int]:
    found = [
        counts(arena, metric, [one for one in entrants(arena) if one != "ce"], **where) for arena in known
    ]
    return {name: sum(one[name] for one in found) for name in found[0]}
