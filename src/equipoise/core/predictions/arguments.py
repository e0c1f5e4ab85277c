"""The arguments of Predictions: which form was given, weights, groups, class names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Literal, TypeAlias

import numpy as np

from equipoise.core.argument_names import argument
from equipoise.core.arrays import Array, as_floats, as_integers, as_numpy, freeze, has_bad_text
from equipoise.core.errors import DataError
from equipoise.core.frames import as_columns
from equipoise.core.predictions import as_rows

__all__ = [
    "Kind",
    "agreed_classes",
    "as_scores",
    "check_several_classes",
    "class_names_of",
    "frozen_map",
    "groups_of",
    "kind_of",
    "labels_of",
    "tolerance_of",
    "weights_of",
]

#: What the scores are. They are told apart by the name of the argument, never by their values.
Kind: TypeAlias = Literal["logits", "probs", "top1"]

_WHERE = "Predictions"

#: Fewer rows may all be wrong and sure by chance, in a small chunk of a file.
_A_FEW = 20


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
        f"{_WHERE}: give exactly one of {argument('logits')}, {argument('probs')}, or {argument('predicted')} with "
        f"{argument('confidence')}, "
        f"got {' and '.join(given) or 'none of them'}."
    )


def as_scores(
    kind: Kind, *, logits: Any, probs: Any, predicted: Any, confidence: Any
) -> tuple[Array, tuple[Array, Array] | None]:
    """Return an array whose shape tells that of the labels, and the columns of the top-1 form, if it is that.

    Example:
        >>> as_scores("logits", logits=[[1, 2]], probs=None, predicted=None, confidence=None)
        (array([[1., 2.]]), None)
    """
    if kind != "top1":
        return as_floats(logits if kind == "logits" else probs, where=_WHERE, name=kind), None
    named = as_integers(predicted, where=_WHERE, name="predicted")
    return named, (named, as_floats(confidence, where=_WHERE, name="confidence"))


def labels_of(labels: Any, given: Array, ignore_index: int | None) -> Array:
    """Return the true classes; if they are not known, an array of their shape that takes no memory.

    Raises:
        ValueError: If rows are to be left out by labels that are not there.

    Example:
        >>> labels_of(None, np.zeros((2, 3, 4, 4)), None).shape
        (2, 4, 4)
    """
    if labels is not None:
        return as_integers(labels, where=_WHERE, name="labels")
    if ignore_index is not None:
        raise ValueError(
            f"{_WHERE}: `ignore_index` leaves rows out by their labels, and there are none. Leave it out."
        )
    return np.broadcast_to(np.int64(0), given.shape[:1] + given.shape[2:])


def agreed_classes(given: int | None, found: int) -> int:
    """Return the number of classes that the scores have.

    Raises:
        ValueError: If the caller said otherwise.

    Example:
        >>> agreed_classes(None, 3)
        3
    """
    if given is not None and given != found:
        raise ValueError(
            f"{_WHERE}: `n_classes` is {given}, but the scores are for {found} classes. Leave it out: it is only "
            f"needed with {argument('predicted')} and {argument('confidence')}."
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


def groups_of(groups: Any, labels: Array, keep: as_rows.Keep) -> Mapping[str, Array]:
    """Return the group columns, one value per kept row, as numbers or text.

    Raises:
        TypeError: For a column of mixed objects.

    Example:
        >>> dict(groups_of({"site": ["a", "b"]}, np.array([0, 1]), lambda column: column))
        {'site': array(['a', 'b'], dtype='<U1')}
    """
    groups = as_columns(groups)
    if not isinstance(groups, Mapping | None):
        raise TypeError(
            f"{_WHERE}: `groups` must be a dictionary of named columns, got {type(groups).__name__}."
        )
    check_text(groups or {}, name="groups")
    return frozen_map(
        {
            str(name): keep(as_rows.per_row(_plain(column, name), labels, name=f"groups[{name!r}]"))
            for name, column in (groups or {}).items()
        }
    )


def _plain(column: Any, name: str) -> Array:
    array = as_numpy(column)
    if array.dtype.kind == "O" and all(isinstance(value, str) for value in array.flat):
        array = array.astype(np.str_)
    if has_bad_text(array):
        raise ValueError(f"{_WHERE}: `groups[{name!r}]` holds text that is no Unicode. Repair it.")
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
    if isinstance(names, str) or not isinstance(names, Iterable):
        raise TypeError(f"{_WHERE}: `class_names` must be a list of names, got {names!r}.")
    result = tuple(str(name) for name in names)
    if n_classes is not None and len(result) != n_classes:
        raise ValueError(
            f"{_WHERE}: `class_names` must have {n_classes} names, one per class, got {len(result)}."
        )
    check_text(result, name="class_names")
    return result


def check_text(names: Iterable[Any], *, name: str) -> None:
    """Raise if a name holds half of a pair of surrogates: it could be neither printed nor written.

    Raises:
        ValueError: With the name.

    Example:
        >>> check_text(["cat"], name="class_names")
    """
    for number, text in enumerate(names):
        if any("\ud800" <= letter < "\ue000" for letter in str(text)):
            raise ValueError(f"{_WHERE}: `{name}` must be text, number {number} is no Unicode: {text!r}.")


def check_several_classes(scores: Array, labels: Array, kind: Kind) -> None:
    """Raise for the softmax of a single class, which would be taken for a binary column that is always wrong.

    Raises:
        DataError: If every row of one column is 1 and every label 0.

    Example:
        >>> check_several_classes(np.ones((1, 1)), np.zeros(1, int), "probs")
    """
    one_column = kind == "probs" and scores.ndim == 2 and scores.shape[1] == 1
    if one_column and len(scores) >= _A_FEW and (scores == 1).all() and not labels.any():
        raise DataError(
            f"{_WHERE}: `probs` has one column, which is 1 everywhere, and every label is 0. With a single class "
            "there is nothing to score; one column is the probability of class 1 of two."
        )
