"""Everything an audit sums: of fixed size, mergeable over files, machines and days, and kept in a file."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, final

import numpy as np

from equipoise.core.arrays import Array
from equipoise.core.errors import DataError, SpecError, first_line
from equipoise.core.escaping import visible
from equipoise.core.names import look_up
from equipoise.core.predictions import Predictions
from equipoise.core.reading.files import AnyPath
from equipoise.core.records import Record, read_record, write_record
from equipoise.core.row_identity import RowIdentity
from equipoise.evaluate.cautions import InputDiagnostics
from equipoise.evaluate.record_checks import check_state
from equipoise.evaluate.slices import SliceSums
from equipoise.metrics.inputs import as_predictions
from equipoise.metrics.state import CalibrationState
from equipoise.metrics.target import Target, event_view, find_target

__all__ = ["AuditState", "EventSums", "merge_states", "read_audit_state", "write_audit_state"]

_WHERE = "AuditState"
_KIND, _VERSION = "equipoise.audit", 4
_MOST_CLASSES = 100_000


@final
@dataclass(eq=False, repr=False)
class EventSums:
    """What an audit sums to judge the probability of one of two classes.

    Attributes:
        positive: The class.
        calibration: Sums over bins of its probability.
        classes: The same by predicted class.
        groups: The same by the values of each column of groups.
    """

    positive: int
    calibration: CalibrationState
    classes: SliceSums
    groups: dict[str, SliceSums]


@final
@dataclass(eq=False, repr=False)
class AuditState:
    """All sums of one audit; their size depends on bins, classes, groups and merges, never on rows.

    Adding states adds their rows, so an audit of any size is a map and a sum: one state per file, partition or day,
    merged in any way, then audited. :func:`equipoise.evaluate.write_audit_state` keeps one in a file.

    Attributes:
        calibration: The sums behind every metric.
        classes: Sums by predicted class.
        groups: Sums by the values of each column of groups.
        diagnostics: Signs of mistakes in how the predictions were saved.
        class_names: One name per class, if they have names.
        refused: Columns that nobody asked for and that are no groups, with the reason.
        optional: Whether columns of groups were taken because they were there, not because they were asked for.
        identity: Which rows were added, so that no row is counted twice.
        n_dropped: How many rows were left out because of missing values.
        event: Sums of the probability of the positive class; None unless there are scores of two classes.

    Example:
        >>> monday = AuditState.of(Predictions(probs=[0.9, 0.8], labels=[1, 1], groups={"site": ["a", "b"]}))
        >>> tuesday = AuditState.of(Predictions(probs=[0.3], labels=[0], groups={"site": ["a"]}))
        >>> monday.merge(tuesday)
        >>> monday.n_samples
        3
    """

    calibration: CalibrationState
    classes: SliceSums
    groups: dict[str, SliceSums]
    diagnostics: InputDiagnostics
    class_names: tuple[str, ...] | None
    refused: dict[str, str]
    optional: bool
    identity: RowIdentity
    n_dropped: int = 0
    event: EventSums | None = None

    @classmethod
    def of(
        cls,
        predictions: Predictions | Iterable[Predictions],
        *,
        by: Sequence[str] | None = None,
        n_bins: int = 15,
        closed: str = "right",
        positive: str | int | None = None,
    ) -> AuditState:
        """Return the sums of predictions, or of chunks of them, which are visited once.

        Args:
            predictions: At least one chunk.
            by: Columns of groups to look at one by one; by default all that the predictions have.
            n_bins: Bins of equal width.
            closed: Which side of a bin belongs to it.
            positive: Of two classes, the one whose probability is summed too, by name or number; by default class 1.

        Raises:
            DataError: If there are no rows, or a column asked for has too many different values.
            SpecError: If there is no such class, or there are more than two.
        """
        state: AuditState | None = None
        for chunk in (predictions,) if isinstance(predictions, Predictions) else predictions:
            state = state or cls.like(chunk, by=by, n_bins=n_bins, closed=closed, positive=positive)
            state.update(chunk)
        if state is None:
            raise DataError("audit: no predictions were given. Pass at least one chunk.")
        return state

    @classmethod
    def like(
        cls,
        first: Predictions,
        *,
        by: Sequence[str] | None = None,
        n_bins: int = 15,
        closed: str = "right",
        positive: str | int | None = None,
    ) -> AuditState:
        """Return sums without rows, for predictions of the form of these.

        Raises:
            SpecError: If a column asked for is not there.
        """
        n_classes = first.n_classes or 0 if first.has_scores else 0
        names = list(first.groups) if by is None else list(by)
        for name in names:
            look_up(name, first.groups, what="column of groups")
        event = None
        if n_classes == 2 or positive is not None:
            chosen = find_target(
                "positive", positive, n_classes=n_classes, class_names=first.class_names, where="audit"
            )
            event = _empty_event(chosen.positive if chosen else 1, names, n_bins, closed)
        return cls(
            calibration=CalibrationState(n_classes, n_bins=n_bins, closed=closed),
            classes=SliceSums(n_bins=n_bins, closed=closed, most=_MOST_CLASSES),
            groups={name: SliceSums(n_bins=n_bins, closed=closed) for name in names},
            event=event,
            diagnostics=InputDiagnostics(),
            class_names=first.class_names,
            refused={},
            optional=by is None,
            identity=RowIdentity(),
        )

    @property
    def n_samples(self) -> int:
        """How many rows were added."""
        return self.calibration.n_samples

    def update(self, chunk: Predictions) -> None:
        """Add a chunk of rows.

        Raises:
            DataError: If the rows do not fit this state.
            SplitError: If the rows were used to fit the calibrator that made these predictions.
        """
        rows = as_predictions(chunk, None, where="audit")
        self.calibration.add_checked(rows)
        self.n_dropped += rows.n_dropped
        if rows.kind != "confidence":
            self.classes.update(rows, rows.predicted, name="predicted classes")
        self.diagnostics.update(rows)
        self.identity.update(rows)
        for name, sums in list(self.groups.items()):
            try:
                sums.update(rows, rows.groups[name], name=name)
            except DataError as error:
                self._refuse(name, error)
        if self.event is not None:
            view = event_view(rows, self.event.positive)
            self.event.calibration.add_checked(view)
            self.event.classes.update(view, rows.predicted, name="predicted classes")
            for name, sums in self.event.groups.items():
                sums.update(view, rows.groups[name], name=name)

    def merge(self, other: AuditState, *, same_source: bool = False) -> None:
        """Add the rows of another state to this one.

        Args:
            other: The state to add.
            same_source: Whether both hold parts of one source, such as the files of a folder, that are known to be
                different rows; whether rows are shared is not checked then.

        Raises:
            DataError: If the states are of other bins, classes, groups or kinds of predictions, or share rows.
        """
        self._check_alike(other)
        shared = "" if same_source else other.identity.overlap(self.identity)
        if shared:
            raise _counted_twice(f"{_WHERE}.merge", shared, "this state")
        self.identity.merge(other.identity, same_source=same_source)
        self.calibration.merge(other.calibration)
        self.n_dropped += other.n_dropped
        self.classes.merge(other.classes, name="predicted classes")
        self.diagnostics.merge(other.diagnostics)
        self.refused |= other.refused
        for name, sums in list(self.groups.items()):
            try:
                if name not in self.refused:
                    sums.merge(other.groups[name], name=name)
            except DataError as error:
                self._refuse(name, error)
        for name in self.refused:
            self.groups.pop(name, None)
        if self.event is not None and other.event is not None:
            self._merge_event(self.event, other.event)

    def _merge_event(self, mine: EventSums, other: EventSums) -> None:
        mine.calibration.merge(other.calibration)
        mine.classes.merge(other.classes, name="predicted classes")
        for name in list(mine.groups):
            if name in self.groups:
                mine.groups[name].merge(other.groups[name], name=name)
            else:
                del mine.groups[name]

    def find_target(self, target: str | None, positive: str | int | None, *, where: str) -> Target | None:
        """Return what is to be judged, if this state keeps the sums for it; None if nothing was said.

        Raises:
            SpecError: If the target does not fit the classes, or the state keeps too little for it.

        Example:
            >>> state = AuditState.of(Predictions(probs=[0.9, 0.8], labels=[1, 1]))
            >>> state.find_target(None, 0, where="audit")
            Traceback (most recent call last):
            ...
            equipoise.core.errors.SpecError: audit: the state keeps sums of P(1), not of P(0). Sum the rows again ...
        """
        chosen = find_target(
            target,
            positive,
            n_classes=self.calibration.n_classes,
            class_names=self.class_names,
            where=where,
        )
        if chosen is None or chosen.kind != "positive" or self.event is None:
            return chosen
        if positive is None and target == "positive":
            kept = self.event.positive
            return Target("positive", kept, self.class_names[kept] if self.class_names else str(kept))
        if chosen.positive != self.event.positive:
            kept_name = (
                self.class_names[self.event.positive] if self.class_names else str(self.event.positive)
            )
            raise SpecError(
                f"the state keeps sums of P({visible(kept_name)}), not of {chosen.label}. Sum the rows again with "
                "{positive}.",
                where=where,
                arguments={"positive": ""},
            )
        return chosen

    def with_groups(self, by: Sequence[str]) -> AuditState:
        """Return the same sums with some of the columns of groups.

        Raises:
            SpecError: If one is not there.
        """
        hint = "the state was saved without groups."
        kept = {name: look_up(name, self.groups, what="column of groups", hint=hint) for name in by}
        event = self.event
        if event is not None:
            event = replace(event, groups={name: event.groups[name] for name in by})
        return replace(self, groups=kept, refused={}, optional=False, event=event)

    def _refuse(self, name: str, error: DataError) -> None:
        if not self.optional:
            raise error
        # Nobody asked for this column: it stands in the file under a name that marks groups.
        del self.groups[name]
        if self.event is not None:
            self.event.groups.pop(name, None)
        self.refused[name] = visible(error)

    def _check_alike(self, other: AuditState) -> None:
        mine, theirs = ({**one.calibration.settings(), **one.diagnostics.form} for one in (self, other))
        mine["class names"], theirs["class names"] = self.class_names, other.class_names
        mine["groups"], theirs["groups"] = (
            tuple(sorted({*one.groups, *one.refused})) for one in (self, other)
        )
        if self.event is not None and other.event is not None:
            mine["positive class"], theirs["positive class"] = self.event.positive, other.event.positive
        for what, value in mine.items():
            if value != theirs[what]:
                raise DataError(
                    f"{what} must be the same, got {_short(value)} and {_short(theirs[what])}. "
                    "Sum all parts with the same settings; name classes with {class_names}.",
                    where=f"{_WHERE}.merge",
                    arguments={"class_names": ""},
                )

    def __repr__(self) -> str:
        return f"AuditState({self.calibration!r}, groups={list(self.groups)})"


def write_audit_state(state: AuditState, path: AnyPath) -> None:
    """Write the sums of an audit to a file, whole or not at all, with version and digest.

    Args:
        state: What to write.
        path: ``.state`` or ``.npz``, an archive; or ``.json``, text.

    Raises:
        DataError: For another ending.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "monday.state"
        >>> write_audit_state(AuditState.of(Predictions(probs=[0.9, 0.2], labels=[1, 0])), path)
        >>> read_audit_state(path).n_samples
        2
    """
    write_record(path, _KIND, _VERSION, _packed(state))


def read_audit_state(path: AnyPath) -> AuditState:
    """Read the sums of an audit; nothing but numbers and text is loaded.

    Raises:
        DataError: If the file is missing, damaged, changed, newer, or something else, or if its numbers cannot be the
            sums of any rows.

    Example:
        >>> read_audit_state("missing.state")
        Traceback (most recent call last):
        ...
        equipoise.core.errors.DataError: missing.state: cannot be read (No such file or directory).
    """
    record = read_record(path, _KIND, _VERSION)
    try:
        return _unpacked(record)
    except (
        KeyError,
        TypeError,
        ValueError,
        AttributeError,
        IndexError,
        RuntimeError,
        ArithmeticError,
        MemoryError,
    ) as error:
        raise DataError(
            f"{Path(path).name}: is not a complete state of an audit ({first_line(error)}). Audit the rows again."
        ) from error


def merge_states(named: Mapping[str, AuditState]) -> AuditState:
    """Return several states as one.

    Args:
        named: States by the name of their file, at least one.

    Raises:
        DataError: If rows would count twice, or states do not belong together.

    Example:
        >>> day = AuditState.of(Predictions(probs=[0.9], labels=[1]))
        >>> merge_states({"a.state": day, "b.state": day})
        Traceback (most recent call last):
        ...
        equipoise.core.errors.DataError: b.state: its rows are in a.state already, and would count twice. Leave ...
    """
    total: AuditState | None = None
    for name, state in named.items():
        if total is None:
            total = deepcopy(state)
            continue
        shared = state.identity.overlap(total.identity)
        if shared:
            raise _counted_twice(name, shared, _holder(name, named))
        try:
            total.merge(state)
        except DataError as error:
            raise DataError(f"{name}: {str(error).removeprefix(f'{_WHERE}.merge: ')}") from None
    if total is None:
        raise DataError("merge: no state was given. Name at least one file.")
    return total


def _holder(name: str, named: Mapping[str, AuditState]) -> str:
    """Return the first state before this one that shares rows with it."""
    before = list(named)[: list(named).index(name)]
    own = named[name].identity
    return next((one for one in before if own.overlap(named[one].identity)), "the states before it")


def _counted_twice(where: str, shared: str, holder: str) -> DataError:
    return DataError(
        f"{shared} are in {holder} already, and would count twice. Leave one of them out; if equal rows are different "
        "samples, audit both again with {ids}.",
        where=where,
        arguments={"ids": ""},
    )


def _packed(state: AuditState) -> Record:
    seen, counted = state.diagnostics.parts()
    identity, hashes = state.identity.parts()
    arrays = {f"diagnostics.{name}": part for name, part in counted.items()}
    arrays |= {f"identity.{name}": part for name, part in hashes.items()}
    slices: dict[str, SliceSums] = {}
    kept: dict[str, AuditState | EventSums] = {"": state}
    if state.event is not None:
        kept["event."] = state.event
    for start, part in kept.items():
        sums = part.calibration.arrays.parts().items()
        arrays |= {f"{start}calibration.{name}": one for name, one in sums}
        slices[f"{start}classes"] = part.classes
        slices |= {f"{start}groups.{n}": part.groups[name] for n, name in enumerate(state.groups)}
    names = {}
    for place, one in slices.items():
        names[place], parts = one.parts()
        arrays |= {f"{place}.{name}": part for name, part in parts.items()}
    plain = {
        "closed": state.calibration.closed,
        "class_names": None if state.class_names is None else list(state.class_names),
        "groups": list(state.groups),
        "names": names,
        "refused": state.refused,
        "optional": state.optional,
        "diagnostics": seen,
        "identity": identity,
        **({"n_dropped": state.n_dropped} if state.n_dropped else {}),
        **({} if state.event is None else {"positive": state.event.positive}),
    }
    return Record(plain, arrays)


def _unpacked(record: Record) -> AuditState:
    plain, arrays = record
    for name, array in arrays.items():
        if not np.isfinite(array).all():
            raise ValueError(f"`{name}` is not finite")
    calibration, classes, groups = _summed("", plain, arrays)
    event = None
    if "positive" in plain:
        event = EventSums(plain["positive"], *_summed("event.", plain, arrays))
    diagnostics, identity = InputDiagnostics(), RowIdentity()
    diagnostics.fill(plain["diagnostics"], _below("diagnostics", arrays))
    identity.fill(plain["identity"], _below("identity", arrays))
    names = plain["class_names"]
    state = AuditState(
        calibration=calibration,
        classes=classes,
        groups=groups,
        diagnostics=diagnostics,
        class_names=None if names is None else tuple(names),
        refused=dict(plain["refused"]),
        optional=plain["optional"],
        identity=identity,
        n_dropped=plain.get("n_dropped", 0),
        event=event,
    )
    check_state(state)
    again = _packed(state)
    if again.plain != plain or again.arrays.keys() != arrays.keys():
        raise ValueError("it holds more, or less, than is written")
    return state


def _summed(
    start: str, plain: Mapping[str, Any], arrays: Mapping[str, Array]
) -> tuple[CalibrationState, SliceSums, dict[str, SliceSums]]:
    calibration = _calibration(_below(f"{start}calibration", arrays), plain["closed"])
    n_bins, closed = calibration.n_bins, calibration.closed
    classes = SliceSums(n_bins=n_bins, closed=closed, most=_MOST_CLASSES)
    classes.fill(plain["names"][f"{start}classes"], _below(f"{start}classes", arrays))
    groups = {name: SliceSums(n_bins=n_bins, closed=closed) for name in plain["groups"]}
    for number, sums in enumerate(groups.values()):
        place = f"{start}groups.{number}"
        sums.fill(plain["names"][place], _below(place, arrays))
    return calibration, classes, groups


def _empty_event(positive: int | None, names: Sequence[str], n_bins: int, closed: str) -> EventSums:
    return EventSums(
        positive=1 if positive is None else positive,
        calibration=CalibrationState(0, n_bins=n_bins, closed=closed),
        classes=SliceSums(n_bins=n_bins, closed=closed, most=_MOST_CLASSES),
        groups={name: SliceSums(n_bins=n_bins, closed=closed) for name in names},
    )


def _calibration(sums: Mapping[str, Array], closed: str) -> CalibrationState:
    """Return a state whose sizes are those of its sums, so that no file can request more memory than it fills."""
    n_bins, n_classes = len(sums["cells"]), len(sums["classwise"])
    shapes = {"cells": (n_bins, 2, 7), "classwise": (n_classes, n_bins, 3), "rows": (n_bins, 2)}
    for name, shape in shapes.items():
        if n_bins < 1 or sums[name].shape != shape:
            raise ValueError(f"`{name}` must have the shape {shape}, got {sums[name].shape}")
    for name, array in sums.items():
        if (array.dtype.kind == "i") != (name in ("rows", "impossible")):
            raise ValueError(f"`{name}` has another type of numbers")
    state = CalibrationState(n_classes, n_bins=n_bins, closed=closed)
    state.sums.fill(sums)
    return state


def _below(place: str, arrays: Mapping[str, Array]) -> dict[str, Array]:
    start = f"{place}."
    return {name[len(start) :]: part for name, part in arrays.items() if name.startswith(start)}


def _short(value: Any) -> str:
    return repr(value)[:60]
