"""The arguments of Predictions: which form was given, weights, groups, class names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Literal, TypeAlias

import numpy as np

from equipoise.core.arrays import Array, as_floats, as_numpy, freeze
from equipoise.core.predictions import as_rows

__all__ = [
    "Kind",
    "agreed_classes",
    "class_names_of",
    "frozen_map",
    "groups_of",
    "kind_of",
    "tolerance_of",
    "weights_of",
]

#: What the scores are. They are told apart by the name of the argument, never by their values.
Kind: TypeAlias = Literal["logits", "probs", "top1"]

_WHERE = "Predictions"


def kind_of(logits: Any, probs: Any, predicted: Any, confidence: Any) -> Kind:
    """Return which form was given.

    Raises:
        ValueError: Unless it is exactly one.

    Example:
        >>> kind_of(None, [0.5], None, None)
        'probs'
    """
    named = {"logits": logits, "probs": probs, "predicted": predicted, "confidence": confidence}
    given = [name for name, value in named.items() if value is not None]
    if given == ["logits"]:
        return "logits"
    if given == ["probs"]:
        return "probs"
    if given == ["predicted", "confidence"]:
        return "top1"
    raise ValueError(
        f"{_WHERE}: give exactly one of logits=, probs=, or predicted= with confidence=, "
        f"got {' and '.join(given) or 'none of them'}."
    )


def agreed_classes(given: int | None, found: int) -> int:
    """Return the number of classes that the scores have.

    Raises:
        ValueError: If the caller said otherwise.

    Example:
        >>> agreed_classes(None, 3)
        3
    """
    if given not in (None, found):
        raise ValueError(
            f"{_WHERE}: `n_classes` is {given}, but the scores are for {found} classes. Leave it out: it is only "
            "needed with predicted= and confidence=."
        )
    return found


def tolerance_of(probs: Any) -> float:
    """Return how far the sum of a row may be from one: more in half precision.

    Example:
        >>> tolerance_of(np.ones((1, 1), np.float16))
        0.01
    """
    kind = str(getattr(probs, "dtype", ""))
    return 1e-2 if kind.endswith(("float16", "bfloat16")) else 1e-3


def weights_of(weights: Any, labels: Array, keep: as_rows.Keep) -> Array | None:
    """Return one float64 weight per kept row, or None.

    Example:
        >>> weights_of([1, 2], np.array([0, 1]), lambda column: column)
        array([1., 2.])
    """
    if weights is None:
        return None
    column = as_floats(weights, where=_WHERE, name="weights").astype(np.float64, copy=False)
    return freeze(keep(as_rows.per_row(column, labels, name="weights")))


def groups_of(groups: Mapping[str, Any] | None, labels: Array, keep: as_rows.Keep) -> Mapping[str, Array]:
    """Return the group columns, one value per kept row, as numbers or text.

    Raises:
        TypeError: For a column of mixed objects.

    Example:
        >>> dict(groups_of({"site": ["a", "b"]}, np.array([0, 1]), lambda column: column))
        {'site': array(['a', 'b'], dtype='<U1')}
    """
    return frozen_map(
        {
            str(name): keep(as_rows.per_row(_plain(column, name), labels, name=f"groups[{name!r}]"))
            for name, column in (groups or {}).items()
        }
    )


def _plain(column: Any, name: str) -> Array:
    array = as_numpy(column)
    if array.dtype.kind == "O" and all(isinstance(value, str) for value in array.flat):
        return array.astype(np.str_)
    if array.dtype.kind not in "iubfU":
        raise TypeError(
            f"{_WHERE}: `groups[{name!r}]` must hold numbers or text, got dtype {array.dtype}. "
            "Missing values? Give them a name of their own; then pass .astype(str)."
        )
    return array


def frozen_map(columns: Mapping[str, Array]) -> Mapping[str, Array]:
    """Return a read-only mapping of read-only columns.

    Example:
        >>> frozen_map({"a": np.zeros(1)})["a"].flags.writeable
        False
    """
    return MappingProxyType({name: freeze(column) for name, column in columns.items()})


def class_names_of(names: Sequence[str] | None, n_classes: int | None) -> tuple[str, ...] | None:
    """Return the class names as text, one per class, or None.

    Raises:
        ValueError: If their number differs from the number of classes.

    Example:
        >>> class_names_of(["cat", "dog"], 2)
        ('cat', 'dog')
    """
    if names is None:
        return None
    result = tuple(str(name) for name in names)
    if n_classes is not None and len(result) != n_classes:
        raise ValueError(
            f"{_WHERE}: `class_names` must have {n_classes} names, one per class, got {len(result)}."
        )
    return result
