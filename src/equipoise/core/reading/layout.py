"""Which column is what: known by its name, or named by the caller, never guessed from its values."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from equipoise.core.errors import DataError
from equipoise.core.names import nearest
from equipoise.core.predictions.arguments import Kind
from equipoise.core.reading.columns import AMBIGUOUS_NAMES, CLASS_PREFIXES, KNOWN_NAMES, Columns
from equipoise.core.reading.formats.base import ColumnReader, Reading

__all__ = ["Layout", "find_layout"]

#: What stands for a name that the caller has to give.
_ANY = '"..."'

_GROUP = "group_"
_MANY, _LONG = 500, 100


@dataclass(frozen=True)
class Layout:
    """Which columns to read, and as what.

    Attributes:
        kind: ``logits``, ``probs``, ``top1`` or ``confidence``.
        labels: The true class; None if no column has such a name.
        scores: One array of scores, or a column per class; empty where only confidences are known.
        predicted: The class named, in the top-1 form.
        confidence: Its probability, or that of being right.
        correct: Whether the prediction was right.
        weights: Sample weights.
        groups: Group names and their columns.
        ids: Ids of the rows.
        hashes: Hashes of the rows that an earlier writer kept.
        class_names: Names in the columns of classes.
        one_per_class: True if every column of scores is a class.
        first_label: 1 if the columns of classes are numbered from 1; None if they do not tell.
        no_labels: The error to raise where labels are needed and there are none.
    """

    kind: Kind
    labels: str | None
    scores: tuple[str, ...] = ()
    predicted: str | None = None
    confidence: str | None = None
    correct: str | None = None
    weights: str | None = None
    groups: Mapping[str, str] = field(default_factory=dict)
    ids: str | None = None
    hashes: str | None = None
    class_names: tuple[str, ...] | None = None
    one_per_class: bool = False
    first_label: Literal[1] | None = None
    no_labels: DataError | None = None

    @property
    def score_columns(self) -> tuple[str, ...]:
        """The columns that hold scores, or the confidence in the top-1 form."""
        return self.scores or tuple(name for name in (self.confidence,) if name is not None)

    def readings(self) -> dict[str, Reading]:
        """Return every column that is needed and how it is meant."""
        roles: list[tuple[Sequence[str | None], Reading]] = [
            (self.scores, "number"),
            ((self.labels, self.predicted), "label"),
            ((self.confidence, self.weights), "number"),
            ((self.correct,), "correct"),
            (tuple(self.groups.values()), "group"),
            ((self.ids,), "text"),
            ((self.hashes,), "hash"),
        ]
        found: dict[str, Reading] = {}
        for names, reading in roles:
            found |= {name: found.get(name, reading) for name in names if name is not None}
        return found


def find_layout(reader: ColumnReader, columns: Columns) -> Layout:
    r"""Find the columns of a file by the names the caller gave, else by the names that are known.

    Raises:
        DataError: If a column is missing or several would do; the message lists what there is and how to name it.

    Example:
        >>> import tempfile, pathlib
        >>> from equipoise.core.reading.formats.csv import CsvReader
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "a.csv"
        >>> _ = path.write_text("p_cat,p_dog,true_label\n0.5,0.5,cat\n")
        >>> layout = find_layout(CsvReader(path), Columns())
        >>> layout.kind, layout.labels, layout.class_names
        ('probs', 'true_label', ('cat', 'dog'))
    """
    layout = _Finder(reader, columns).layout()
    _check_roles(layout, reader)
    return layout


def _check_roles(layout: Layout, reader: ColumnReader) -> None:
    """Raise for a column that has two roles, such as labels that are also the predicted classes.

    Groups may be any columns, the labels too.
    """
    roles = [
        *(("scores", name) for name in layout.scores),
        ("labels", layout.labels),
        ("predicted", layout.predicted),
        ("confidence", layout.confidence),
        ("correct", layout.correct),
        ("weights", layout.weights),
        ("ids", layout.ids),
    ]
    seen: dict[str, str] = {}
    for role, name in roles:
        if name is not None and name in seen:
            both = f"{seen[name]} and {role}" if seen[name] != role else f"{role} twice"
            other = "labels" if "labels" in both else role
            raise reader.fail(
                f"the column {name[:60]!r} would be {both}. Name another column for one of them, such as {{{other}}}.",
                arguments={other: _ANY},
            )
        if name is not None:
            seen[name] = role


class _Finder:
    def __init__(self, reader: ColumnReader, columns: Columns) -> None:
        self._reader, self._columns = reader, columns
        self._names = list(reader.row_shapes)
        self._by_lower: dict[str, list[str]] = {}
        for name in self._names:
            self._by_lower.setdefault(name.strip().lower(), []).append(name)

    def layout(self) -> Layout:
        kind, scores, names = self._scores()
        top1, outcomes = kind == "top1", kind == "confidence"
        ids = self._columns.get("ids")
        labels = None if outcomes else self._one("labels")
        correct = self._one("correct") if outcomes else None
        hashes = [name for name in ("id_hash", "row_hash") if name in self._reader.row_shapes]
        return Layout(
            kind=kind,
            scores=scores,
            labels=labels,
            predicted=self._need("predicted") if top1 else None,
            confidence=self._need("confidence") if top1 or outcomes else None,
            correct=correct,
            weights=self._one("weights"),
            groups=self._groups(),
            ids=None if ids is None else self._exact(ids, "ids"),
            hashes=hashes[0] if hashes and ids is None else None,
            class_names=names,
            one_per_class=len(scores) > 1,
            first_label=1 if len(scores) > 1 and names is None and _run_from_one(scores) else None,
            no_labels=None if labels or correct else self._no_column("correct" if outcomes else "labels"),
        )

    def _scores(self) -> tuple[Kind, tuple[str, ...], tuple[str, ...] | None]:
        logits_given, probs_given = self._columns.get("logits"), self._columns.get("probs")
        if logits_given is not None and probs_given is not None:
            raise self._reader.fail(
                "give {logits} or {probs}, not both.", arguments={"logits": "", "probs": ""}
            )
        if "correct" in self._columns:
            return self._outcomes()
        if logits_given is not None:
            return "logits", *self._named(logits_given, "logits")
        if probs_given is not None:
            return "probs", *self._named(probs_given, "probs")
        if "predicted" in self._columns or "confidence" in self._columns:
            return self._confidence_form(), (), None
        if self._reader.notes.has_originals:
            raise self._reader.fail(
                f"holds scores before and after a calibrator; {_listed(self._reader.notes.calibrated or ())} are "
                "calibrated. Name those to use: {logits}, {probs} or {confidence}.",
                arguments={"logits": "", "probs": "", "confidence": ""},
            )
        logits, probs = self._known_scores("logits"), self._known_scores("probs")
        if logits and probs:
            raise self._reader.fail(
                f"holds both logits ({_listed(logits)}) and probabilities ({_listed(probs)}). "
                "Say which to use: {logits} or {probs}.",
                arguments={"logits": _example(logits), "probs": _example(probs)},
            )
        predicted, confidence = self._one("predicted"), self._one("confidence")
        if len(probs) == 1 and predicted and not confidence and self._reader.row_shapes[probs[0]] == ():
            raise self._reader.fail(
                f"`{probs[0]}` beside `{predicted}` may be the probability of class 1 or of the predicted class. "
                "Pass {probs} or {confidence}.",
                arguments={"probs": repr(probs[0]), "confidence": repr(probs[0])},
            )
        if len(probs) == 1 and self._one("correct") and not confidence and not self._one("labels"):
            raise self._reader.fail(
                f"`{probs[0]}` beside `{self._one('correct')}`, without labels, is most likely the probability of "
                "being right. If so, pass {confidence}; otherwise name the true classes: {labels}.",
                arguments={"confidence": repr(probs[0]), "labels": _ANY},
            )
        if logits or probs:
            found = logits or probs
            names = self._class_names(found) if len(found) > 1 else None
            return ("logits" if logits else "probs"), found, names
        if predicted or confidence:
            return self._confidence_form(), (), None
        raise self._no_scores()

    def _outcomes(self) -> tuple[Kind, tuple[str, ...], tuple[str, ...] | None]:
        """Return the form that a column of outcomes was named for; raise for columns of another form."""
        for role in ("logits", "probs", "labels", "predicted"):
            if role in self._columns:
                raise self._reader.fail(
                    f"{{correct}} goes with {{confidence}} alone, not with {{{role}}}. Leave one of them out.",
                    arguments={"correct": "", "confidence": "", role: ""},
                )
        return "confidence", (), None

    def _confidence_form(self) -> Kind:
        """Return which form a file with confidences has: with classes, or with outcomes; both may be missing.

        Raises:
            DataError: If there are labels, and nothing to compare them with.
        """
        predicted, labels, correct = (self._one(role) for role in ("predicted", "labels", "correct"))
        if predicted and (labels or not correct):
            return "top1"
        if "labels" in self._columns or (labels and not correct):
            raise self._reader.fail(
                f"`{labels}` cannot be compared with anything: there is no predicted class. Name its column: "
                f"{{predicted}}; or, if `{labels}` is 1 where the prediction was right, pass {{correct}}.",
                arguments={"predicted": _ANY, "correct": repr(labels)},
            )
        return "confidence"

    def _known_scores(self, kind: Literal["logits", "probs"]) -> tuple[str, ...]:
        """Return one array of scores by name, or the columns of classes; empty if there are none."""
        single = self._one(kind)
        families: dict[str, list[str]] = {}
        for name in self._names:
            prefix, found, suffix = name.strip().partition("_")
            if found and suffix and CLASS_PREFIXES.get(prefix.lower()) == kind:
                families.setdefault(prefix.lower(), []).append(name)
        families = {
            prefix: names
            for prefix, names in families.items()
            if len(names) > 1 and all(name.strip().lower() not in KNOWN_NAMES[kind] for name in names)
        }
        if len(families) + bool(single) > 1:
            choices = [*([single] if single else []), *(f"{prefix}_*" for prefix in families)]
            raise self._several(kind, choices)
        for names in families.values():
            return self._in_order(names)
        return (single,) if single else ()

    def _in_order(self, names: Collection[str]) -> tuple[str, ...]:
        """Return class columns by number; named classes keep the order of the file."""
        numbers = {name: _suffix(name) for name in names}
        if not all(suffix.isascii() and suffix.isdigit() for suffix in numbers.values()):
            return tuple(names)
        ordered = sorted(names, key=lambda name: int(numbers[name]))
        first = 1 if int(numbers[ordered[0]]) == 1 else 0
        for expected, name in enumerate(ordered, start=first):
            if int(numbers[name]) != expected:
                stem = name.strip()[: -len(numbers[name])]
                raise self._reader.fail(
                    f"the columns of classes must be numbered from 0 or 1 without gaps, `{stem}{expected}` is missing. "
                    "Otherwise list them in order: {probs} or {logits}.",
                    arguments={"probs": "[...]", "logits": "[...]"},
                )
        return tuple(ordered)

    def _class_names(self, names: Sequence[str]) -> tuple[str, ...] | None:
        suffixes = tuple(_suffix(name) for name in names)
        return None if all(suffix.isdigit() for suffix in suffixes) else suffixes

    def _named(self, given: str | Sequence[str], role: str) -> tuple[tuple[str, ...], tuple[str, ...] | None]:
        if not isinstance(given, str):
            names = tuple(self._exact(name, role) for name in given)
            named = len(names) > 1 and names != self._reader.notes.calibrated
            return names, tuple(name.strip() for name in names) if named else None
        if "*" not in given or given in self._reader.row_shapes:
            return (self._exact(given, role),), None
        pattern = re.compile(".*".join(re.escape(part) for part in given.split("*")), re.IGNORECASE)
        stem = len(given.split("*", maxsplit=1)[0])
        found = [name for name in self._names if pattern.fullmatch(name.strip())]
        if not found:
            raise self._missing(given, role)
        if self._reader.notes.has_originals:
            calibrated = self._reader.notes.calibrated or ()
            found = [name for name in found if name not in calibrated] or found
            if tuple(found) == calibrated:
                return calibrated, None
        suffixes = [name.strip()[stem:] for name in found]
        if all(suffix.isascii() and suffix.isdigit() for suffix in suffixes):
            return tuple(sorted(found, key=lambda name: int(name.strip()[stem:]))), None
        return tuple(found), tuple(suffixes)

    def _need(self, role: str) -> str:
        found = self._one(role)
        if found is None:
            raise self._no_column(role)
        return found

    def _one(self, role: str) -> str | None:
        given: object = self._columns.get(role)
        if isinstance(given, str):
            return self._exact(given, role)
        found = [name for known in KNOWN_NAMES[role] for name in self._by_lower.get(known, ())]
        if len(found) > 1:
            raise self._several(role, found)
        return found[0] if found else None

    def _exact(self, name: str, role: str) -> str:
        if name in self._reader.row_shapes:
            return name
        alike = self._by_lower.get(name.strip().lower(), [])
        if len(alike) != 1:
            raise self._missing(name, role)
        return alike[0]

    def _groups(self) -> dict[str, str]:
        given = self._columns.get("groups")
        if not given:
            marked = [
                name for name in self._names if name.lower().startswith(_GROUP) and len(name) > len(_GROUP)
            ]
            return {name[len(_GROUP) :]: name for name in marked}
        names = [given] if isinstance(given, str) else given
        return {
            name: _GROUP + name
            if name not in self._reader.row_shapes and _GROUP + name in self._reader.row_shapes
            else self._exact(name, "groups")
            for name in names
        }

    def _missing(self, name: str, role: str) -> DataError:
        guess = nearest(name[:_LONG], self._short_list())
        remedy = f" Did you mean {guess!r}?" if guess else ""
        return self._reader.fail(f"holds no column {name!r} for {role}; {self._held()}.{remedy}")

    def _several(self, role: str, found: Iterable[str]) -> DataError:
        names = list(found)
        return self._reader.fail(
            f"several columns may be the {role}: {_listed(names)}. Say which: {{{role}}}.",
            arguments={role: _example(names)},
        )

    def _no_column(self, role: str) -> DataError:
        return self._reader.fail(
            f"holds no {role} under a known name; {self._held()}. {self._near((role,))}Name the column: {{{role}}}.",
            arguments={role: _ANY},
        )

    def _no_scores(self) -> DataError:
        ambiguous = [name for known in AMBIGUOUS_NAMES for name in self._by_lower.get(known, ())]
        if ambiguous:
            name = ambiguous[0]
            return self._reader.fail(
                f"`{name}` may be logits or probabilities, and values are never looked at. "
                "Pass {logits} or {probs}.",
                arguments={"logits": repr(name), "probs": repr(name)},
            )
        return self._reader.fail(
            f"holds no scores under a known name; {self._held()}. {self._near(('logits', 'probs', 'confidence'))}"
            "Name them: {logits}, {probs}, {predicted} with {confidence}, or {correct} with {confidence}.",
            arguments=dict.fromkeys(("logits", "probs", "predicted", "confidence", "correct"), _ANY),
        )

    def _near(self, roles: Iterable[str]) -> str:
        known = {alias: role for role in roles for alias in KNOWN_NAMES[role]}
        for name in self._short_list():
            guess = nearest(name.strip(), known)
            if guess:
                return f"{name!r} is near {guess!r}. "
        return ""

    def _short_list(self) -> list[str]:
        """Return names to compare letter by letter: files may have millions, or one of a million letters."""
        return [name for name in self._names[:_MANY] if len(name) <= _LONG]

    def _held(self) -> str:
        return f"it holds {_listed(self._names)}"


def _run_from_one(names: Sequence[str]) -> bool:
    """Return whether the names of columns of classes end in 1, 2, and so on."""
    ends = [re.search(r"([0-9]{1,9})$", name.strip()) for name in names]
    return [end and int(end[1]) for end in ends] == list(range(1, len(names) + 1))


def _suffix(name: str) -> str:
    return name.strip().partition("_")[2]


def _listed(names: Sequence[str]) -> str:
    shown = [repr(name if len(name) <= 60 else name[:57] + "...") for name in names[:12]]
    return ", ".join(shown) + (f" and {len(names) - 12} more" if len(names) > 12 else "")


def _example(names: Sequence[str]) -> str:
    return repr(names[0]) if len(names) == 1 or "*" in names[0] else f"{_suffix_pattern(names[0])!r}"


def _suffix_pattern(name: str) -> str:
    prefix, found, _ = name.strip().partition("_")
    return f"{prefix}_*" if found and prefix.lower() in CLASS_PREFIXES else name
