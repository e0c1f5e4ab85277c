"""A scorecard as text: a table, and what it means in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from equipoise.evaluate.values import PERCENT, TITLES

if TYPE_CHECKING:
    from equipoise.evaluate.scorecard import Score, Scorecard

__all__ = ["describe", "heading", "remarks", "score_cells", "verdict"]


def describe(card: Scorecard) -> str:
    """Return the whole scorecard as text."""
    lines = [_heading(card), ""]
    width = max(len(TITLES[key]) for key in card.scores)
    lines += [f"  {TITLES[key]:<{width}}  {_number(key, score)}" for key, score in card.scores.items()]
    lines += ["", f"  {verdict(card)}"]
    lines += [f"  Note: {note}" for note in card.notes]
    for why in dict.fromkeys(card.missing.values()):
        names = ", ".join(TITLES[key].strip() for key in card.missing if card.missing[key] == why)
        lines.append(f"  Not known: {names} ({why}).")
    return "\n".join(lines)


def _heading(card: Scorecard) -> str:
    classes = f", {card.n_classes} classes" if card.n_classes else ""
    split = f", split {card.split}" if card.split else ""
    return (
        f"Scorecard of {card.n_samples:,} rows{classes}{split}\n"
        f"{card.n_bins} bins, {card.closed}-closed; {100 * card.level:g} % intervals from "
        f"{card.n_resamples} resamples, seed {card.seed}"
    )


def _number(key: str, score: Score) -> str:
    factor, unit, digits = (100.0, " %", 2) if key in PERCENT else (1.0, "  ", 4)
    value, low, high = (f"{factor * number:.{digits}f}" for number in (score.value, score.low, score.high))
    return f"{value:>8}{unit}  [{low}, {high}]"


def verdict(card: Scorecard) -> str:
    """Return one or two sentences: is it calibrated, and if not, which way is it off?"""
    ece, gap = card.scores["ece"], card.scores["confidence_gap"]
    if ece.p_value is not None and ece.p_value > 0.05:
        return (
            f"Consistent with a calibrated model: one with the same confidences scores an ECE of "
            f"{100 * ece.value:.2f} % or more in {100 * ece.p_value:.0f} of 100 samples."
        )
    points = f"{100 * abs(gap.value):.1f} points"
    if gap.low > 0:
        direction = f"Over-confident by {points}: says {_says(card)}."
    elif gap.high < 0:
        direction = f"Under-confident by {points}: says {_says(card)}."
    else:
        direction = "Over-confident in places and under-confident in others; on average they cancel."
    return f"{direction} A calibrated model would score such an ECE by chance with p = {ece.p_value:.3f}."


def _says(card: Scorecard) -> str:
    accuracy = card.scores["accuracy"].value
    confidence = accuracy + card.scores["confidence_gap"].value
    return f"{100 * confidence:.1f} % and is right {100 * accuracy:.1f} % of the time"


def heading(card: Scorecard) -> str:
    """Return what was scored and how, in two lines."""
    return _heading(card).replace("Scorecard of ", "", 1)


def score_cells(card: Scorecard) -> list[tuple[str, str, str]]:
    """Return title, value and interval of every score, as text."""
    cells = []
    for key, score in card.scores.items():
        value, interval = _number(key, score).split("[", 1)
        cells.append((TITLES[key], value.strip(), f"[{interval}"))
    return cells


def remarks(card: Scorecard) -> list[str]:
    """Return the notes of a scorecard, and what is not known."""
    found = list(card.notes)
    for why in dict.fromkeys(card.missing.values()):
        names = ", ".join(TITLES[key].strip() for key in card.missing if card.missing[key] == why)
        found.append(f"Not known: {names} ({why}).")
    return found
