"""Comparison: methods x networks x data x seeds x calibrators in one file."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any, final

from equipoise.core.errors import SpecError
from equipoise.core.names import look_up, nearest
from equipoise.experiments.catalogue import CATALOGUE
from equipoise.experiments.fields import set_key
from equipoise.experiments.spec import Spec
from equipoise.experiments.toml import parse_override, read_toml

__all__ = ["Comparison", "read_comparison"]

_LISTS = ("data", "model", "objective", "seed")
_KEYS = (*_LISTS, "name", "recipe", "calibrators", "baseline")


@final
@dataclass(frozen=True, kw_only=True)
class Comparison:
    """Several runs whose results belong in one table.

    Attributes:
        name: A short name, for files.
        specs: Every run.
        calibrators: Post-hoc maps to score, no calibration first.
        baseline: Label of the method that others are compared with.

    Example:
        >>> table = {"data": "digits", "model": "mlp", "objective": ["ce", "focal"], "seed": [0, 1], "recipe": "quick"}
        >>> comparison = Comparison.from_table(table)
        >>> len(comparison.specs), comparison.baseline
        (4, 'ce')
    """

    name: str
    specs: tuple[Spec, ...]
    calibrators: tuple[str, ...]
    baseline: str

    @classmethod
    def from_table(cls, table: Mapping[str, Any], *, where: str = "comparison") -> Comparison:
        """Return the comparison that a table describes.

        ``data``, ``model``, ``objective`` and ``seed`` may be lists; every combination is a run.

        Raises:
            SpecError: With file, key and nearest valid name.
        """
        for key in table:
            if key not in _KEYS:
                guess = nearest(key, _KEYS)
                remedy = f"did you mean {guess!r}?" if guess else f"known: {', '.join(_KEYS)}."
                raise SpecError(f"{where}: no key {key!r}; {remedy}")
        for key in ("data", "model", "objective"):
            if not table.get(key):
                raise SpecError(f"{where}: the key {key!r} is missing.")
        choices = [_as_list(table.get(key, 0)) for key in _LISTS]
        shared = {"recipe": table["recipe"]} if "recipe" in table else {}
        specs = tuple(
            Spec.from_table({**dict(zip(_LISTS, chosen, strict=True)), **shared}, where=where)
            for chosen in product(*choices)
        )
        _check_distinct(specs, where)
        labels = list(dict.fromkeys(spec.objective.label for spec in specs))
        baseline = str(table.get("baseline", labels[0]))
        if baseline not in labels:
            guess = nearest(baseline, labels)
            remedy = f"did you mean {guess!r}?" if guess else f"there are {', '.join(labels)}."
            raise SpecError(f"{where}.baseline: no method {baseline!r} here; {remedy}")
        return cls(
            name=str(table.get("name", Path(where).stem)),
            specs=specs,
            calibrators=_calibrators(table.get("calibrators", ["temperature"]), where),
            baseline=baseline,
        )

    @property
    def methods(self) -> list[str]:
        """Labels of the methods, in the order given."""
        return list(dict.fromkeys(spec.objective.label for spec in self.specs))


def _as_list(value: Any) -> list[Any]:
    return list(value) if isinstance(value, (list, tuple)) else [value]


def _check_distinct(specs: Iterable[Spec], where: str) -> None:
    seen: dict[str, str] = {}
    for spec in specs:
        if spec.identity in seen:
            raise SpecError(f"{where}: {spec.label!r} is listed twice. Leave one out.")
        seen[spec.identity] = spec.label


def _calibrators(names: Any, where: str) -> tuple[str, ...]:
    chosen = [str(name) for name in _as_list(names)]
    for name in chosen:
        try:
            look_up(name, CATALOGUE["calibrators"], what="calibrator")
        except SpecError as error:
            raise SpecError(f"{where}.calibrators: {error}") from error
    return tuple(dict.fromkeys(["identity", *chosen]))


def read_comparison(path: str | os.PathLike[str], *, overrides: Iterable[str] = ()) -> Comparison:
    """Read a comparison from a TOML file, with ``key=value`` overrides.

    Example:
        >>> read_comparison("nowhere.toml")
        Traceback (most recent call last):
        ...
        equipoise.core.errors.SpecError: nowhere.toml: no such file.
    """
    table = read_toml(path)
    for text in overrides:
        set_key(table, *parse_override(text))
    return Comparison.from_table(table, where=str(path))
