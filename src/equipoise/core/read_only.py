"""A mapping that cannot be changed, and that can be pickled and copied, unlike ``types.MappingProxyType``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, TypeVar, final

__all__ = ["ReadOnly"]

K = TypeVar("K")
V = TypeVar("V")


@final
class ReadOnly(Mapping[K, V]):
    """The items of a mapping, for records that must not change.

    Args:
        items: Copied, so that changing them later changes nothing here.

    Example:
        >>> import pickle
        >>> kept = ReadOnly({"gamma": 3.0})
        >>> pickle.loads(pickle.dumps(kept))
        {'gamma': 3.0}
        >>> kept["gamma"] = 5.0
        Traceback (most recent call last):
        ...
        TypeError: 'ReadOnly' object does not support item assignment
    """

    __slots__ = ("_items",)

    def __init__(self, items: Mapping[K, V] = MappingProxyType({})) -> None:
        self._items = dict(items)

    def __getitem__(self, key: K) -> V:
        return self._items[key]

    def __iter__(self) -> Iterator[K]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def __hash__(self) -> int:
        return hash(frozenset(self._items.items()))

    def __or__(self, other: Mapping[Any, Any]) -> dict[Any, Any]:
        return {**self._items, **other}

    def __ror__(self, other: Mapping[Any, Any]) -> dict[Any, Any]:
        return {**other, **self._items}

    def __repr__(self) -> str:
        return repr(self._items)
