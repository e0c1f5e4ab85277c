"""The audit: its record, and its text: the verdict first, then numbers, where it goes wrong, and warnings."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any, final

import numpy as np

from equipoise.core.errors import DataError, first_line
from equipoise.core.escaping import visible
from equipoise.core.frames import to_frame
from equipoise.core.tables import Table
from equipoise.evaluate.cautions import Caution
from equipoise.evaluate.record_checks import check_audit
from equipoise.evaluate.scorecard import Scorecard, circumstances, html_of_card, remarks, score_cells
from equipoise.evaluate.slices import Slice, slices_off
from equipoise.evaluate.verdict import both_words, p_number, views_of_card
from equipoise.metrics.consistency import ConsistencyTest
from equipoise.metrics.selective import RiskCoverage
from equipoise.metrics.target import Target

__all__ = [
    "Audit",
    "chance_words",
    "describe_audit",
    "later_cautions",
    "off_words",
    "printable",
    "slice_cells",
    "slice_heads",
    "slice_words",
]


@final
@dataclass(frozen=True, eq=False, repr=False)
class Audit:
    """What an audit found; print it to read it.

    Attributes:
        card: Every metric with its interval, and the target it is of; ``card.event`` judges the probability of class 1
            where two classes have clearly unequal frequencies and no target was named.
        classes: Calibration when each class is predicted, those first that chance does not explain, corrected by Holm's
            rule. For the target ``"classwise"``: probability of each class against its frequency, over all rows.
        groups: The same by value of each column of groups.
        risk: Error rate among the most confident rows, by how many are kept.
        cautions: What to know before believing the numbers.
    """

    card: Scorecard
    classes: tuple[Slice, ...]
    groups: Mapping[str, tuple[Slice, ...]]
    risk: RiskCoverage
    cautions: tuple[Caution, ...]

    @property
    def consistency(self) -> ConsistencyTest:
        """Whether a calibrated model could score this ECE by chance."""
        return self.card.consistency

    def worst(self, slices: Sequence[Slice], *, most: int = 5) -> tuple[Slice, ...]:
        """Return the slices that chance does not explain at the audit's level, at most so many.

        Example:
            >>> from equipoise import Predictions
            >>> from equipoise.evaluate import audit
            >>> rows = Predictions(probs=[[0.9, 0.1]] * 40, labels=[0] * 20 + [1] * 20)
            >>> found = audit(rows)
            >>> [part.name for part in found.worst(found.classes)]
            ['0']
        """
        return slices_off(slices, level=self.card.level)[:most]

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values, for JSON; :meth:`from_dict` reads them back without loss.

        Example:
            >>> from equipoise import Predictions
            >>> from equipoise.evaluate import audit
            >>> found = audit(Predictions(probs=[0.9, 0.2], labels=[1, 0]))
            >>> sorted(set(found.to_dict()) - set(found.card.to_dict()))
            ['classes', 'groups', 'risk']
        """
        return {
            **self.card.to_dict(),
            "classes": [part._asdict() for part in self.classes],
            "groups": {name: [part._asdict() for part in parts] for name, parts in self.groups.items()},
            "risk": {name: column.tolist() for name, column in self.risk._asdict().items()},
            "cautions": [caution._asdict() for caution in self.cautions],
        }

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Audit:
        """Return the audit that :meth:`to_dict` described.

        Raises:
            DataError: If the values are no audit, or one of another version.

        Example:
            >>> from equipoise import Predictions
            >>> from equipoise.evaluate import audit
            >>> found = audit(Predictions(probs=[0.9, 0.2], labels=[1, 0]))
            >>> Audit.from_dict(found.to_dict()).to_dict() == found.to_dict()
            True
        """
        card = Scorecard.from_dict(content)
        try:
            found = cls(
                card=card,
                classes=_slices(content["classes"]),
                groups={name: _slices(parts) for name, parts in content["groups"].items()},
                risk=RiskCoverage(**{name: np.array(column) for name, column in content["risk"].items()}),
                cautions=tuple(Caution(**one) for one in content["cautions"]),
            )
            check_audit(found)
        except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError) as error:
            raise DataError(
                f"Audit.from_dict: these values are not a complete audit ({first_line(error)}). "
                "Audit the predictions again."
            ) from error
        return found

    def to_frame(self) -> Any:
        """Return classes and groups as a pandas DataFrame, one row per slice; ``found.card.to_frame()`` has the scores.

        Raises:
            MissingExtraError: If pandas is not installed.

        Example:
            >>> from equipoise import Predictions
            >>> from equipoise.evaluate import audit
            >>> found = audit(Predictions(probs=[0.9, 0.2], labels=[1, 0], groups={"site": ["a", "b"]}))
            >>> found.to_frame()["by"].tolist()
            ['predicted class', 'predicted class', 'site', 'site']
        """
        first = "class" if self.card.target.kind == "classwise" else "predicted class"
        tables = {first: self.classes, **self.groups}
        return to_frame({"by": by, **part._asdict()} for by, parts in tables.items() for part in parts)

    def describe(self, *, quiet: bool = False) -> str:
        """Return the audit as plain text.

        Args:
            quiet: Results only, without heading and notes; of the warnings those that cast doubt on every number.

        Example:
            >>> from equipoise import Predictions
            >>> from equipoise.evaluate import audit
            >>> print(audit(Predictions(probs=[0.5] * 50, labels=[1, 0] * 25)).describe(quiet=True))
            Consistent with a calibrated model...
        """
        return describe_audit(self, quiet=quiet)

    def __str__(self) -> str:
        return self.describe()

    def __repr__(self) -> str:
        n_off = len(self.worst(self.classes, most=len(self.classes)))
        return (
            f"Audit({self.card!r}, {n_off} of {len(self.classes)} classes off, {len(self.cautions)} warnings)"
        )

    def _repr_html_(self) -> str:
        return html_of_audit(self)


def _slices(parts: Iterable[Mapping[str, Any]]) -> tuple[Slice, ...]:
    return tuple(Slice(**part) for part in parts)


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
    lines.append(Table.of(("", "", ""), score_cells(card)).to_text(indent=2))
    for title, slices in titled_slices(found):
        lines += ["", *_wrapped(slice_words(found, title, slices))]
        worst = found.worst(slices)
        if worst:
            lines.append(Table.of(slice_heads(card.target), map(slice_cells, worst)).to_text(indent=2))
    warnings = [f"Warning: {caution.text}" for caution in later_cautions(found)]
    notes = [f"Note: {remark}" for remark in remarks(card)]
    for text in () if quiet else (*warnings, *notes):
        lines += ["", *_wrapped(text)]
    return "\n".join(lines)


def html_of_audit(found: Audit) -> str:
    """Return an audit as a notebook shows it."""
    parts = [html_of_card(found.card)]
    for title, slices in titled_slices(found):
        heads, worst = slice_heads(found.card.target), map(slice_cells, found.worst(slices))
        parts.append(Table.of(heads, worst, caption=slice_words(found, title, slices)).to_html())
    parts += [f"<p>Warning: {escape(caution.text)}</p>" for caution in later_cautions(found)]
    return "".join(parts)


def later_cautions(found: Audit) -> tuple[Caution, ...]:
    """Return the cautions that are printed after the numbers; those of the scorecard stand before them."""
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
        f"{100 * test.expected:.2f}% on average, and above {100 * test.highest:.2f}% only once in twenty; this one "
        f"has {100 * test.value:.2f}%."
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
        "none is off by more than chance explains (at level 99%, corrected for all 0 by Holm's rule)"
    """
    n_off = len(slices_off(slices, level=level))
    number = f"{n_off} of {len(slices):,} are" if n_off else "none is"
    rule = f"at level {100 * level:g}%, corrected for all {len(slices):,} by Holm's rule"
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
        f"{100 * part.confidence:.1f}%",
        f"{100 * part.accuracy:.1f}%",
        f"{100 * part.gap:+.1f}",
        f"[{100 * part.low:+.1f}, {100 * part.high:+.1f}]",
        p_number(part.p_value),
    )


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
