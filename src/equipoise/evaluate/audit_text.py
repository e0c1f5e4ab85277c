"""An audit in words: the verdict first, then numbers, where it goes wrong, and what to beware of."""

from __future__ import annotations

import textwrap
from html import escape
from typing import TYPE_CHECKING

from equipoise.core.escaping import visible
from equipoise.core.notebook import html_table
from equipoise.evaluate.scorecard_text import circumstances, html_of_card, remarks, score_cells
from equipoise.evaluate.slices import slices_off
from equipoise.evaluate.verdict import both_words, p_number, views_of_card

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from equipoise.evaluate.audit import Audit
    from equipoise.evaluate.cautions import Caution
    from equipoise.evaluate.slices import Slice
    from equipoise.metrics.target import Target

__all__ = [
    "chance_words",
    "describe_audit",
    "html_of_audit",
    "later_cautions",
    "off_words",
    "plain_table",
    "printable",
    "slice_cells",
    "slice_heads",
    "slice_words",
]

_WIDTH = 100
_LONGEST_NAME = 32


def describe_audit(found: Audit, *, quiet: bool = False) -> str:
    """Return an audit as plain text; if quiet, without heading, later warnings and notes."""
    card = found.card
    lines = [] if quiet else [f"Audit of {circumstances(card)}", ""]
    for caution in card.cautions:
        lines += [*_wrapped(f"Warning: {caution.text}"), ""]
    for verdict in views_of_card(card):
        lines += _wrapped(str(verdict))
    lines += [*_wrapped(both_words(card)), *_wrapped(chance_words(found)), ""]
    lines += ["Predicted class:"] if card.event is not None else []
    lines += plain_table([], score_cells(card))
    for title, slices in titled_slices(found):
        lines += ["", *_wrapped(slice_words(found, title, slices))]
        worst = found.worst(slices)
        lines += plain_table(slice_heads(card.target), map(slice_cells, worst)) if worst else []
    warnings = [f"Warning: {caution.text}" for caution in later_cautions(found)]
    notes = [f"Note: {remark}" for remark in remarks(card)]
    for text in () if quiet else (*warnings, *notes):
        lines += ["", *_wrapped(text)]
    return "\n".join(lines)


def html_of_audit(found: Audit) -> str:
    """Return an audit as a notebook shows it."""
    parts = [html_of_card(found.card)]
    for title, slices in titled_slices(found):
        worst = map(slice_cells, found.worst(slices))
        parts.append(
            html_table(slice_heads(found.card.target), worst, above=slice_words(found, title, slices))
        )
    parts += [f"<p>Warning: {escape(caution.text)}</p>" for caution in later_cautions(found)]
    return "".join(parts)


def later_cautions(found: Audit) -> tuple[Caution, ...]:
    """Return the cautions that are told after the numbers; those of the scorecard stand before them."""
    return tuple(caution for caution in found.cautions if caution not in found.card.cautions)


def titled_slices(found: Audit) -> Iterator[tuple[str, Sequence[Slice]]]:
    """Yield every set of slices with a title."""
    if found.classes:
        yield "Classes" if found.card.target.kind == "classwise" else "Predicted classes", found.classes
    for name, slices in found.groups.items():
        yield f"Groups by {printable(name)}", slices


def chance_words(found: Audit) -> str:
    """Say what a calibrated model would score on as many rows."""
    test, target = found.consistency, found.card.target
    said = "confidences" if target.kind == "top" else "probabilities"
    return (
        f"On these rows a calibrated model with the same {said} has an {target.titled('ECE')} of "
        f"{100 * test.expected:.2f} % on average, and above {100 * test.highest:.2f} % only once in twenty; this one "
        f"has {100 * test.value:.2f} %."
    )


def slice_words(found: Audit, title: str, slices: Sequence[Slice]) -> str:
    """Say how many slices are off by more than chance explains."""
    n_off, shown = len(slices_off(slices, level=found.card.level)), len(found.worst(slices))
    words = f"{title}: {off_words(slices, level=found.card.level)}"
    if n_off == 0:
        return f"{words}."
    return f"{words}:" if shown == n_off else f"{words}; the {shown} widest gaps:"


def off_words(slices: Sequence[Slice], *, level: float) -> str:
    """Say how many slices are off by more than chance explains, and by which rule; pages and terminals say the same.

    Example:
        >>> off_words([], level=0.99)
        "none is off by more than chance explains (at level 99 %, corrected for all 0 by Holm's rule)"
    """
    n_off = len(slices_off(slices, level=level))
    number = f"{n_off} of {len(slices):,} are" if n_off else "none is"
    rule = f"at level {100 * level:g} %, corrected for all {len(slices):,} by Holm's rule"
    return f"{number} off by more than chance explains ({rule})"


def slice_heads(target: Target) -> tuple[str, ...]:
    """Return the columns of a table of slices.

    Example:
        >>> from equipoise.metrics.target import Target
        >>> slice_heads(Target("positive", 1, "fraud"))[2:4]
        ('P(fraud)', 'is fraud')
    """
    said, true = {
        "top": ("says", "is right"),
        "positive": (target.label, f"is {target.event}"),
        "classwise": ("probability", "frequency"),
    }[target.kind]
    return ("", "rows", said, true, "gap", "interval", "p")


def slice_cells(part: Slice) -> tuple[str, ...]:
    """Return one line of a table of slices, as text."""
    return (
        printable(part.name),
        f"{part.n_samples:,}",
        f"{100 * part.confidence:.1f} %",
        f"{100 * part.accuracy:.1f} %",
        f"{100 * part.gap:+.1f}",
        f"[{100 * part.low:+.1f}, {100 * part.high:+.1f}]",
        p_number(part.p_value),
    )


def plain_table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Return the lines of a table: the first column to the left, numbers to the right.

    Example:
        >>> plain_table(("", "rows"), [("cat", "7"), ("dog", "12")])
        ['       rows', '  cat     7', '  dog    12']
    """
    lines = [*([heads] if heads else []), *rows]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return [
        "  "
        + "  ".join(
            cell.rjust(width) if column else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    ]


def printable(text: str) -> str:
    r"""Return a name from a file as it may be shown: short, and without characters that steer a terminal.

    Example:
        >>> printable("a\x1b[2Jb\n")
        'a\\x1b[2Jb\\n'
    """
    shown = visible(text[: _LONGEST_NAME + 1])
    return shown if len(text) <= _LONGEST_NAME else f"{shown[: _LONGEST_NAME - 3]}..."


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(text, _WIDTH)
