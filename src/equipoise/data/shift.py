"""Additional test sets of a run, from entries of a spec: corrupted, or out of distribution."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any, Literal, final

from equipoise.core.errors import SpecError, located
from equipoise.core.names import check_choice, look_up
from equipoise.core.read_only import ReadOnly
from equipoise.data.corruptions import CORRUPTIONS, corrupt
from equipoise.data.dataset import Dataset
from equipoise.data.loading import READERS, load
from equipoise.data.ood import ood_pair

__all__ = ["Shift", "load_shift", "read_shifts"]

#: The keys of an entry that names a corruption, and of one that names a dataset.
_KEYS = {
    "corruption": ("name", "corruption", "severity"),
    "data": ("name", "data", "kind", "options"),
}
_HINT = "`equipoise list datasets` shows all; code of your own is 'file.py:name'."
_NAME = re.compile(r"\w[\w.-]*")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Shift:
    """One additional test set, to be judged and never fitted on.

    Attributes:
        name: What it is called in tables and files.
        kind: ``"corrupted"`` has the classes of the test set; ``"ood"`` has none of them, and only asks whether
            confidence tells it apart; ``"shifted"`` is another dataset with the same classes.
        corruption: A key of :data:`CORRUPTIONS`, if the run's own test images are corrupted.
        severity: 1 to 5, of a corruption.
        data: A dataset by name, if it is another one; or code, which whoever loads it finds.
        options: Parameters of its reader.

    Example:
        >>> Shift(name="svhn", kind="ood", data="svhn").kind
        'ood'
    """

    name: str
    kind: Literal["corrupted", "shifted", "ood"]
    corruption: str = ""
    severity: int = 0
    data: str = ""
    options: Mapping[str, Any] = field(default_factory=ReadOnly)


def read_shifts(entries: Sequence[Mapping[str, Any]], *, where: str = "shift") -> list[Shift]:
    """Return the test sets that entries of a spec name, one per severity.

    Args:
        entries: ``{"corruption": name, "severity": number or list}``, or ``{"data": name, "kind": "ood"}`` with
            ``"shifted"`` for the same classes, and ``options`` of the dataset. Either may have a ``name``.
        where: The key, for errors.

    Returns:
        What :func:`load_shift` takes.

    Raises:
        SpecError: If a key, name or severity is not known, or one test set is named twice.

    Example:
        >>> entries = [{"corruption": "contrast", "severity": [1, 5]}, {"data": "svhn", "kind": "ood"}]
        >>> [shift.name for shift in read_shifts(entries)]
        ['contrast_1', 'contrast_5', 'svhn']
    """
    made = [shift for place, entry in enumerate(entries) for shift in _read(entry, f"{where}[{place}]")]
    names = [shift.name for shift in made]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise SpecError(f"{where}: {twice!r} is named twice. Remove one, or give it another `name`.")
    return made


def _read(entry: Mapping[str, Any], where: str) -> list[Shift]:
    if not isinstance(entry, Mapping) or ("corruption" in entry) == ("data" in entry):
        raise SpecError(f"{where}: expected a table with either 'corruption' or 'data', got {entry!r}.")
    with located(where):
        for key in entry:
            look_up(key, dict.fromkeys(chain(*_KEYS.values())), what="key")
    form = "data" if "data" in entry else "corruption"
    for key in entry:
        if key not in _KEYS[form]:
            raise SpecError(f"{where}: `{key}` has no effect in an entry with `{form}`. Remove it.")
    if form == "data":
        _, is_code, inner = str(entry["data"]).rpartition(":")
        if not is_code:
            with located(f"{where}.data"):
                look_up(str(entry["data"]), READERS, what="dataset", hint=_HINT)
        kind = entry.get("kind", "ood")
        check_choice(kind, ("ood", "shifted"), where=where, name="kind")
        options = entry.get("options", {})
        name = _checked_name(entry.get("name", inner), where)
        return [Shift(name=name, kind=kind, data=entry["data"], options=options)]
    corruption = str(entry["corruption"])
    with located(f"{where}.corruption"):
        look_up(corruption, CORRUPTIONS, what="corruption")
    name = _checked_name(entry.get("name", corruption), where)
    given = entry.get("severity", [1, 2, 3, 4, 5])
    levels = given if isinstance(given, list | tuple) else [given]
    for level in levels:
        if level not in range(1, 6) or isinstance(level, bool):
            raise SpecError(f"{where}: `severity` must be 1 to 5 or a list of these, got {given!r}.")
    return [Shift(name=f"{name}_{n}", kind="corrupted", corruption=corruption, severity=n) for n in levels]


def _checked_name(name: Any, where: str) -> str:
    """Return a name that can be that of a file and of nothing else."""
    if isinstance(name, str) and _NAME.fullmatch(name):
        return name
    raise SpecError(f"{where}: `name` must be letters, digits, '_', '-' and '.', got {name!r}.")


def load_shift(
    shift: Shift,
    dataset: Dataset,
    *,
    other: Dataset | None = None,
    root: str | os.PathLike[str] | None = None,
    seed: int = 0,
    download: bool = False,
) -> Dataset:
    """Return a additional test set for networks trained on a dataset; it has ``test`` rows and is normalized likewise.

    Args:
        shift: Which one.
        dataset: What the networks were trained on.
        other: The other dataset, if it is loaded already.
        root: The data folder.
        seed: Of splits and noise.
        download: Bring what is not there.

    Returns:
        A dataset whose only split is ``test``.

    Raises:
        DataError: If inputs differ in shape.
        SpecError: If a shifted dataset has another number of classes.

    Example:
        >>> [shift] = read_shifts([{"corruption": "gaussian_noise", "severity": 3}])
        >>> list(load_shift(shift, load("digits")).splits)
        ['test']
    """
    if shift.corruption:
        return corrupt(dataset, shift.corruption, severity=shift.severity, seed=seed)
    if other is None:
        other = load(shift.data, root=root, seed=seed, download=download, options=shift.options)
    if shift.kind == "shifted" and other.n_classes != dataset.n_classes:
        raise SpecError(
            f"shift: {shift.data!r} must have the {dataset.n_classes} classes of {dataset.name!r}, got "
            f'{other.n_classes}. If its classes are others, say kind = "ood".'
        )
    outside = ood_pair(dataset, other).outside
    return replace(outside, splits={"test": outside.rows("test")})
