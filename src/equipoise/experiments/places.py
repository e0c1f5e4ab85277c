"""Runs that may stand in one table: the same data, network and recipe."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from equipoise.core.errors import SpecError
from equipoise.core.names import nearest
from equipoise.experiments.fields import plain
from equipoise.experiments.folder import RunFolder
from equipoise.experiments.spec import Spec

__all__ = ["Place", "check_baseline", "find_places"]


class Place(NamedTuple):
    """Runs of the same data, network and recipe.

    Attributes:
        data: Key of the dataset.
        model: Key of the network.
        note: What sets it apart from other places of the same data and network; mostly empty.
        methods: Runs by label of the method, in the order in which methods first come, each sorted by seed.
        specs: Spec of every run by its name.
    """

    data: str
    model: str
    note: str
    methods: Mapping[str, list[RunFolder]]
    specs: Mapping[str, Spec]

    @property
    def title(self) -> str:
        """The dataset, with what sets the place apart."""
        return f"{self.data} ({self.note})" if self.note else self.data

    @property
    def slug(self) -> str:
        """A name for files."""
        return re.sub(r"[^\w.]+", "-", "-".join(filter(None, (self.data, self.model, self.note)))).strip("-")

    @property
    def runs(self) -> list[RunFolder]:
        """All runs."""
        return [run for group in self.methods.values() for run in group]

    def baseline(self, wanted: str | None) -> str:
        """Return the wanted method's label if there are runs of it, else that of the first method."""
        return wanted if wanted in self.methods and wanted is not None else next(iter(self.methods))

    def seeds(self, label: str) -> dict[int, RunFolder]:
        """Return the runs of a method by seed."""
        return {self.specs[run.name].seed: run for run in self.methods[label]}


def find_places(runs: Sequence[RunFolder]) -> list[Place]:
    """Group runs by data, network and recipe, all their settings included.

    Example:
        >>> find_places([])
        []
    """
    specs = {run.name: run.spec() for run in runs}
    groups: dict[str, list[RunFolder]] = {}
    for run in runs:
        groups.setdefault(json.dumps(_settings(specs[run.name]), sort_keys=True), []).append(run)
    return [_place(group, _note(json.loads(key), groups), specs) for key, group in groups.items()]


def _settings(spec: Spec) -> dict[str, Any]:
    recipe: dict[str, Any] = plain(spec)["recipe"]
    recipe.pop("name", None)
    return {
        "data": spec.data.name,
        "model": spec.model.name,
        "split seed": spec.data.seed,
        **{f"data.{key}": plain(value) for key, value in spec.data.options.items()},
        **{f"model.{key}": plain(value) for key, value in spec.model.options.items()},
        **recipe,
    }


def _note(own: Mapping[str, Any], groups: Mapping[str, Any]) -> str:
    """Say what differs from other groups of the same data and network."""
    others = [json.loads(key) for key in groups]
    rivals = [other for other in others if all(other[key] == own[key] for key in ("data", "model"))]
    names = dict.fromkeys(name for rival in rivals for name in rival)
    differing = [name for name in names if len({json.dumps(rival.get(name)) for rival in rivals}) > 1]
    return ", ".join(f"{name.partition('.')[2] or name}={own.get(name, 'default')}" for name in differing)


def _place(group: Sequence[RunFolder], note: str, specs: Mapping[str, Spec]) -> Place:
    methods: dict[str, list[RunFolder]] = {}
    for run in group:
        methods.setdefault(specs[run.name].objective.label, []).append(run)
    for members in methods.values():
        members.sort(key=lambda run: specs[run.name].seed)
    own = {run.name: specs[run.name] for run in group}
    first = own[group[0].name]
    return Place(first.data.name, first.model.name, note, methods, own)


def check_baseline(baseline: str | None, places: Sequence[Place]) -> None:
    """Raise if no place has such a method.

    Raises:
        SpecError: With the nearest method there is.

    Example:
        >>> check_baseline(None, [])
    """
    known = list(dict.fromkeys(label for place in places for label in place.methods))
    if baseline is not None and known and baseline not in known:
        guess = nearest(baseline, known)
        remedy = f"did you mean {guess!r}?" if guess else f"there are {', '.join(known)}."
        raise SpecError(f"baseline: no run of a method {baseline!r}; {remedy}")
