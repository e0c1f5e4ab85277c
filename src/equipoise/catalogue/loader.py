"""The catalogue as a mapping; a category's TOML file is read when the category is first used."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from importlib.resources import files
from typing import Any, final

from equipoise.catalogue.entry import Entry
from equipoise.catalogue.sums import sum_entry
from equipoise.core.errors import SpecError
from equipoise.core.names import look_up
from equipoise.core.read_only import ReadOnly

__all__ = ["CATALOGUE", "CATEGORIES", "check_match", "find_loss"]

#: Categories of the catalogue, each with a file of entries.
CATEGORIES = ("losses", "penalties", "objectives", "calibrators", "metrics", "datasets", "models", "recipes")


@final
class _Catalogue(Mapping[str, dict[str, Entry]]):
    """Entries by category and key."""

    def __init__(self) -> None:
        self._loaded: dict[str, dict[str, Entry]] = {}

    def __getitem__(self, category: str) -> dict[str, Entry]:
        if category not in CATEGORIES:
            raise KeyError(category)
        if category not in self._loaded:
            self._loaded[category] = self._load(category)
        return self._loaded[category]

    def __iter__(self) -> Iterator[str]:
        return iter(CATEGORIES)

    def __len__(self) -> int:
        return len(CATEGORIES)

    def _load(self, category: str) -> dict[str, Entry]:
        text = (
            files("equipoise.catalogue").joinpath("entries", f"{category}.toml").read_text(encoding="utf-8")
        )
        content = tomllib.loads(text)
        # What stands above the first entry holds for all of them.
        common = {key: value for key, value in content.items() if not isinstance(value, dict)}
        entries: dict[str, Entry] = {}
        for key, table in content.items():
            if not isinstance(table, dict):
                continue
            fields = {
                **common,
                **{name: _immutable(name, value) for name, value in table.items()},
                "key": key,
            }
            if "sum" in table:
                known = {**entries, **self["penalties"]}
                whole = sum_entry(table["sum"], known.__getitem__, known=known, penalties=self["penalties"])
                entries[key] = replace(whole, **fields)
            else:
                entries[key] = Entry(**fields)
        return entries


def _immutable(name: str, value: Any) -> Any:
    if isinstance(value, dict):
        return ReadOnly({key: _immutable(key, one) for key, one in value.items()})
    if isinstance(value, list):
        return frozenset(value) if name == "needs" else tuple(_immutable(name, one) for one in value)
    return value


#: Every entry, by category and key.
CATALOGUE: Mapping[str, dict[str, Entry]] = _Catalogue()


def find_loss(name: str) -> Entry:
    """Return the entry of a loss, or of any sum of losses and penalties.

    Raises:
        SpecError: With the nearest name.

    Example:
        >>> find_loss("focal+0.5*mdca").make(gamma=2.0).terms[1].factor
        0.5
    """
    losses, penalties = CATALOGUE["losses"], CATALOGUE["penalties"]
    if name in losses:
        return losses[name]
    known = {**losses, **penalties}
    return sum_entry(
        name, lambda term: look_up(term, known, what="loss or penalty"), known=known, penalties=penalties
    )


def check_match(model: str, data: str, kinds: Sequence[str]) -> None:
    """Raise unless a network takes such data.

    Args:
        model: Key of the network.
        data: Name of the data, for the message.
        kinds: Kinds of inputs that the data contain, or may contain.

    Raises:
        SpecError: With networks that do.

    Example:
        >>> check_match("mlp", "digits", ("image",))
        >>> check_match("resnet8", "mixture", ("features",))
        Traceback (most recent call last):
        ...
        equipoise.core.errors.SpecError: model 'resnet8' takes image, but 'mixture' holds features. Use 'mlp'.
    """
    models = CATALOGUE["models"]
    takes = models[model].kinds
    if set(takes) & set(kinds):
        return
    fitting = [entry.key for entry in models.values() if set(entry.kinds) & set(kinds)]
    raise SpecError(
        f"model {model!r} takes {' or '.join(takes)}, but {data!r} holds {' or '.join(kinds)}. "
        f"Use {' or '.join(map(repr, fitting[:4]))}."
    )
