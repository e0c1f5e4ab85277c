"""What goes wrong slowly: signs of failure in the rows of a history, said in words."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence

__all__ = ["watch"]

_RECENT = 5  # epochs that a finding looks back over
_PATIENT = 10  # epochs before "no gain" is a finding
_LOST = 0.03  # accuracy that may be lost before it is a finding
_TINY, _HUGE = 0.02, 15.0  # gammas beyond these are at an end of their range
_BOUNDS = (1e-6, 1e6)  # of multipliers
_BEHIND = 2.0  # times the loss of the other network

_Rows = Sequence[Mapping[str, float]]


def watch(rows: _Rows) -> list[str]:
    """Return a sentence for each sign that a method is failing, from a run's history alone.

    Args:
        rows: One per epoch, oldest first, with the columns of :class:`History`; those that lack are passed over.

    Returns:
        Findings about the end of the run so far; empty if nothing is to be said.

    Example:
        >>> watch([{"epoch": n, "loss": 1.0, "gamma_min": 0.0, "gamma_max": 0.001} for n in range(6)])
        ['gammas are all below 0.02 since epoch 1: the focal loss has become cross-entropy. ...']
    """
    finders = (_gammas, _multipliers, _outer_loss, _trade, _pair)
    return [sentence for find in finders for sentence in find(rows)]


def _column(rows: _Rows, name: str) -> list[float]:
    """Return a column if every row has it, else nothing."""
    values = [float(row.get(name, math.nan)) for row in rows]
    return values if values and not any(map(math.isnan, values)) else []


def _since(rows: _Rows, held: Sequence[bool]) -> int | None:
    """Return the epoch since which something holds, if it has held for the last few epochs."""
    if len(held) < _RECENT or not all(held[-_RECENT:]):
        return None
    last = len(held) - 1
    first = next((n + 1 for n in range(last, -1, -1) if not held[n]), 0)
    return int(rows[max(first, len(held) - _RECENT)].get("epoch", first))


def _gammas(rows: _Rows) -> Iterator[str]:
    for one, many in (("gamma", "gammas"), ("gammas", "gammas")):
        low, high = _column(rows, f"{one}_min"), _column(rows, f"{one}_max")
        if not low or not high:
            continue
        small = _since(rows, [abs(a) < _TINY and abs(b) < _TINY for a, b in zip(low, high, strict=True)])
        if small is not None:
            yield (
                f"{many} are all below {_TINY} since epoch {small}: the focal loss has become cross-entropy. "
                "Lower the rate of what learns them, or start them higher."
            )
        large = _since(rows, [value > _HUGE for value in low])
        if large is not None:
            yield (
                f"{many} are all above {_HUGE:g} since epoch {large}: samples that are right teach nothing any "
                "more. Lower the rate of what learns them."
            )


def _multipliers(rows: _Rows) -> Iterator[str]:
    low, high = _column(rows, "multipliers_min"), _column(rows, "multipliers_max")
    if not low or not high:
        return
    top = _since(rows, [value >= _BOUNDS[1] for value in high])
    if top is not None:
        yield (
            f"a multiplier stands at its upper bound {_BOUNDS[1]:g} since epoch {top}: its constraint cannot be met. "
            "Widen the margin."
        )
    bottom = _since(rows, [value <= _BOUNDS[0] for value in high])
    if bottom is not None:
        yield (
            f"all multipliers stand at their lower bound {_BOUNDS[0]:g} since epoch {bottom}: the penalty does "
            "nothing. Narrow the margin."
        )


def _outer_loss(rows: _Rows) -> Iterator[str]:
    values = _column(rows, "outer_loss")
    if len(values) < _RECENT:
        return
    recent, best = values[-_RECENT:], min(values)
    place = values.index(best)
    if min(recent) > 2 * best and recent[-1] >= recent[0] and place < len(values) - _RECENT:
        yield (
            f"the held-out calibration error that is learned from diverges: {best:.3g} in epoch {place}, "
            f"{recent[-1]:.3g} now. Lower the rate of what learns from it."
        )
    steps = [after - before for before, after in itertools.pairwise(recent)]
    turns = sum(one * two < 0 for one, two in itertools.pairwise(steps))
    swing = max(recent) - min(recent)
    if turns == len(steps) - 1 and swing > 0.5 * sum(recent) / len(recent):
        yield (
            f"the held-out calibration error that is learned from oscillates between {min(recent):.3g} and "
            f"{max(recent):.3g}. Use larger held-out batches, or a lower rate."
        )
    early = min(values[: max(2, len(values) // 5)])
    if len(values) >= _PATIENT and min(values[-_RECENT:]) > 0.98 * early:
        yield (
            f"the held-out calibration error that is learned from gained nothing after the first epochs "
            f"({early:.3g}, then {min(values[-_RECENT:]):.3g}). What is learned may not pay for its cost."
        )


def _trade(rows: _Rows) -> Iterator[str]:
    accuracy, error = _column(rows, "tune_accuracy"), _column(rows, "tune_ece")
    if len(accuracy) < _RECENT or not error:
        return
    place = accuracy.index(max(accuracy))
    if max(accuracy[-_RECENT:]) < accuracy[place] - _LOST and max(error[-_RECENT:]) < error[place]:
        yield (
            f"accuracy was lost while calibration was gained: on tune {100 * accuracy[place]:.1f}% right in epoch "
            f"{place}, {100 * accuracy[-1]:.1f}% now. Weaken the term that calibrates."
        )


def _pair(rows: _Rows) -> Iterator[str]:
    first = _column(rows, "loss")
    others = [name for name in (rows[-1] if rows else ()) if name.removeprefix("loss_").isdigit()]
    for name in others:
        other = _column(rows, name)
        if not other or "kl" not in rows[-1]:
            continue
        behind = _since(rows, [b > _BEHIND * a for a, b in zip(first, other, strict=True)])
        ahead = _since(rows, [a > _BEHIND * b for a, b in zip(first, other, strict=True)])
        since = ahead if behind is None else behind
        if since is not None:
            who = f"network {name.removeprefix('loss_')}" if ahead is None else "the first network"
            yield (
                f"{who} is far behind the other since epoch {since} (losses {first[-1]:.3g} and {other[-1]:.3g}): a "
                "weak peer teaches doubt. Choose networks that are alike, or lower the weight."
            )
    disagreement = _column(rows, "disagreement")
    since = _since(rows, [value > 0.5 for value in disagreement])
    if since is not None:
        yield (
            f"primary and auxiliaries disagree on more than half of the samples since epoch {since}: the "
            "auxiliaries are far behind. Raise their rate, or take stronger ones."
        )
