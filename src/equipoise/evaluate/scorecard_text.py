"""A scorecard as text: a table, and what it means in words."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from equipoise.core.notebook import html_table
from equipoise.evaluate.verdict import both_words, verdict_of_card, views_of_card
from equipoise.metrics.target import target_facts

if TYPE_CHECKING:
    from equipoise.evaluate.scorecard import Scorecard

__all__ = ["circumstances", "describe_card", "html_of_card", "remarks", "score_cells", "unknown_words"]


#: How the reason begins why a metric is left out for a target.
NOT_OF_TARGET = "it is about"


def describe_card(card: Scorecard) -> str:
    """Return the whole scorecard as text."""
    cells = score_cells(card)
    width = max(len(label) for label, _, _ in cells)
    lines = [f"Scorecard of {circumstances(card)}", ""]
    lines += [f"  Warning: {caution.text}\n" for caution in card.cautions]
    if card.event is not None:
        lines += [f"  {words}" for words in (*map(str, views_of_card(card)), both_words(card))]
        lines += ["", "  Predicted class:"]
    lines += [f"  {label:<{width}}  {value:>10}  {ends}" for label, value, ends in cells]
    lines += [] if card.event is not None else ["", f"  {verdict_of_card(card)}"]
    lines += [f"  Note: {remark}" for remark in remarks(card)]
    return "\n".join(lines)


def html_of_card(card: Scorecard) -> str:
    """Return the scorecard as a notebook shows it."""
    heads = ("", "value", f"{100 * card.level:g} % interval")
    warnings = "".join(f"<p>Warning: {escape(caution.text)}</p>" for caution in card.cautions)
    clusters = "" if card.clusters is None else f". {card.clusters.sentence(card.n_samples)}"
    views = " ".join((*map(str, views_of_card(card)), both_words(card))).strip()
    return warnings + html_table(
        heads,
        score_cells(card),
        above=f"Scorecard of {_rows(card)}{clusters}",
        below=views,
    )


def circumstances(card: Scorecard) -> str:
    """Return what was scored and how, in two lines; in three if clusters were resampled."""
    clusters = "" if card.clusters is None else f"\n{card.clusters.sentence(card.n_samples)}"
    return (
        f"{_rows(card)}\n{card.n_bins} bins, {card.closed}-closed; {100 * card.level:g} % intervals from "
        f"{card.n_resamples} resamples, seed {card.seed}{clusters}"
    )


def _rows(card: Scorecard) -> str:
    classes = f", {card.n_classes} classes" if card.n_classes else ""
    split = f", split {card.split}" if card.split else ""
    of = {"top": "", "positive": f"; {card.target.label} is judged", "classwise": "; every class is judged"}
    return f"{card.n_samples:,} rows{classes}{split}{of[card.target.kind]}"


def score_cells(card: Scorecard) -> list[tuple[str, str, str]]:
    """Return label, value and interval of every score, as text."""
    cells = []
    for key, score in card.scores.items():
        facts = target_facts(key, card.target)
        unit = " %" if facts.percent else "  "
        ends = f"[{facts.number(score.low)}, {facts.number(score.high)}]"
        cells.append((facts.label, facts.number(score.value) + unit, ends))
    return cells


def remarks(card: Scorecard) -> list[str]:
    """Return the notes of a scorecard, and what is not known."""
    return [*card.notes, *unknown_words(card)]


def unknown_words(card: Scorecard) -> list[str]:
    """Say what is not known, a sentence for each reason; pages and terminals say the same."""
    found = []
    for why in dict.fromkeys(card.missing.values()):
        if why.startswith(NOT_OF_TARGET):
            continue
        names = ", ".join(
            target_facts(key, card.target).title for key in card.missing if card.missing[key] == why
        )
        found.append(f"Not known: {names} ({why}).")
    return found
