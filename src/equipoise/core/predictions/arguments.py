"""The arguments of Predictions: which form was given, weights, groups, class names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Literal, TypeAlias

import numpy as np

from equipoise.core.arrays import Array, as_floats, as_integers, as_numpy, freeze, has_bad_text
from equipoise.core.bins import Precision
from equipoise.core.errors import DataError
from equipoise.core.frames import as_columns
from equipoise.core.names import nearest
from equipoise.core.predictions import as_rows

__all__ = [
    "Kind",
    "agreed_classes",
    "as_scores",
    "check_no_classes",
    "check_several_classes",
    "class_names_of",
    "class_numbers_of",
    "frozen_map",
    "groups_of",
    "kind_of",
    "labels_of",
    "outcomes_of",
    "tolerance_of",
    "weights_of",
]

#: What the scores are. They are distinguished by the name of the argument, never by their values.
#: "top1" is the predicted class and its confidence, "confidence" a confidence and whether the prediction was right.
Kind: TypeAlias = Literal["logits", "probs", "top1", "confidence"]

_WHERE = "Predictions"

#: Fewer rows may all be wrong and confident by chance, in a small chunk of a file.
_A_FEW = 20


def kind_of(logits: Any, probs: Any, predicted: Any, confidence: Any, *, correct: Any, labels: Any) -> Kind:
    """Return which form was given.

    A confidence without its class is of the form "confidence"; outcomes that are not known may be missing.

    Raises:
        DataError: Unless it is exactly one.

    Example:
        >>> kind_of(None, [0.5], None, None, correct=None, labels=[1])
        'probs'
        >>> kind_of(None, None, None, [0.5], correct=[True], labels=None)
        'confidence'
    """
    named = {"logits": logits, "probs": probs, "predicted": predicted, "confidence": confidence}
    given = [name for name, value in named.items() if value is not None]
    if given == ["confidence"] and labels is None:
        return "confidence"
    if correct is not None:
        others = ", ".join([*given, *(["labels"] if labels is not None else [])])
        raise DataError(
            f"{{correct}} goes with {{confidence}} alone, which is the probability that a prediction is right, got "
            f"{others or 'neither'}.",
            where=_WHERE,
            arguments={"correct": "", "confidence": ""},
        )
    if given == ["logits"]:
        return "logits"
    if given == ["probs"]:
        return "probs"
    if given == ["predicted", "confidence"]:
        return "top1"
    raise DataError(
        "give exactly one of {logits}, {probs}, {predicted} with {confidence}, or {correct} with {confidence}, "
        f"got {' and '.join(given) or 'none of them'}.",
        where=_WHERE,
        arguments=dict.fromkeys((*named, "correct"), ""),
    )


def as_scores(
    kind: Kind, *, logits: Any, probs: Any, predicted: Any, confidence: Any
) -> tuple[Array, tuple[Array, Array] | None]:
    """Return an array whose shape tells that of the labels, and the columns of the top-1 form, if it is that.

    Without a predicted class, in the form "confidence", the first of these columns is empty.

    Example:
        >>> as_scores("logits", logits=[[1, 2]], probs=None, predicted=None, confidence=None)
        (array([[1., 2.]]), None)
    """
    if kind == "confidence":
        claimed = as_floats(confidence, where=_WHERE, name="confidence")
        return claimed, (np.empty(0, np.int64), claimed)
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


def outcomes_of(correct: Any, confidence: Array) -> Array:
    """Return whether each prediction was right: booleans, 0 and 1, or the texts "true" and "false" in any case.

    Raises:
        DataError: For another value, with its row.
        ValueError: Unless there is one value per confidence.

    Example:
        >>> outcomes_of(["True", "false"], np.array([0.9, 0.4]))
        array([ True, False])
        >>> outcomes_of([1, 2], np.array([0.9, 0.4]))
        Traceback (most recent call last):
        ...
        equipoise.core.errors.DataError: Predictions: `correct` must be true or false, or 1 or 0, got 2 in row 1. ...
    """
    given = as_numpy(correct)
    if given.shape != confidence.shape or given.ndim != 1:
        raise ValueError(
            f"{_WHERE}: `correct` must have shape {confidence.shape} like `confidence`, got {given.shape}. "
            "Give one value per row."
        )
    if given.dtype.kind == "b":
        return given
    if given.dtype.kind in "iuf":
        right, wrong = given == 1, given == 0
    else:
        texts = np.char.lower(
            np.char.strip(np.array([str(value) for value in given.tolist()], dtype=np.str_))
        )
        right, wrong = np.isin(texts, ("true", "1")), np.isin(texts, ("false", "0"))
    bad = ~(right | wrong)
    if bad.any():
        row = int(np.argmax(bad))
        raise DataError(
            f"`correct` must be true or false, or 1 or 0, got {str(given[row])[:40]} in {{row}}. "
            "Class numbers are {labels}, with {predicted}.",
            where=_WHERE,
            row=row,
            arguments={"labels": "", "predicted": ""},
        )
    return np.asarray(right)


def check_no_classes(kind: Kind, **given: Any) -> None:
    """Raise if classes are described in the form "confidence", which has none.

    Example:
        >>> check_no_classes("confidence", n_classes=None)
    """
    for name, value in given.items():
        if kind == "confidence" and value is not None:
            raise DataError(
                f"`{name}` is about classes, and with {{confidence}} alone or with {{correct}} there are none. "
                "Leave it out.",
                where=_WHERE,
                arguments={"confidence": "", "correct": ""},
            )


def agreed_classes(given: int | None, found: int) -> int:
    """Return the number of classes that the scores have.

    Raises:
        DataError: If the caller gave another.

    Example:
        >>> agreed_classes(None, 3)
        3
    """
    if given is not None and given != found:
        raise DataError(
            f"`n_classes` is {given}, but the scores are for {found} classes. Leave it out: it is only needed with "
            "{predicted} and {confidence}.",
            where=_WHERE,
            arguments={"predicted": "", "confidence": ""},
        )
    return found


def tolerance_of(precision: Precision) -> float:
    """Return how far the sum of a row may be from one: more in half precision.

    Example:
        >>> tolerance_of("float16")
        0.01
    """
    return 1e-2 if precision in ("float16", "bfloat16") else 1e-3


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


def class_numbers_of(values: Any, names: Sequence[str] | None, *, name: str) -> Any:
    """Return classes as numbers where they are given as texts among the class names; other values as they are.

    Raises:
        DataError: If there are texts and no class names, or a text is none of the names.

    Example:
        >>> class_numbers_of(["dog", "cat"], ["cat", "dog"], name="labels")
        array([1, 0])
    """
    texts = _texts_of(values)
    if texts is None:
        return values
    if names is None:
        raise DataError(
            f"`{name}` hold texts, such as {str(texts.reshape(-1)[0])[:40]!r}, and the order of the classes is not "
            "known. Pass {class_names}, or class numbers.",
            where=_WHERE,
            arguments={"class_names": "[...]"},
        )
    known = {str(one): number for number, one in enumerate(class_names_of(names, None) or ())}
    if len(known) < len(names):
        raise DataError("two classes have the same name. Use class numbers.", where=_WHERE)
    found, inverse = np.unique(texts, return_inverse=True)
    codes = np.array([known.get(str(text), -1) for text in found], dtype=np.int64)[inverse].reshape(
        texts.shape
    )
    if (codes < 0).any():
        row = int(np.argmax(codes.reshape(-1) < 0))
        text = str(texts.reshape(-1)[row])
        guess = nearest(text[:100], list(known)[:1000])
        remedy = f"Did you mean {guess!r}?" if guess else f"Known: {', '.join(map(repr, list(known)[:8]))}."
        raise DataError(
            f"`{name}` must be among the class names, got {text[:60]!r} in {{row}}. {remedy}",
            where=_WHERE,
            row=row,
        )
    return codes


def _texts_of(values: Any) -> Array | None:
    """Return values as an array of text, or None if they are something else."""
    if values is None or str(getattr(values, "dtype", "")).startswith(
        ("int", "uint", "torch", "float", "bool")
    ):
        return None
    try:
        array = as_numpy(values)
    except (TypeError, ValueError, RuntimeError):
        return None
    if array.dtype.kind == "O" and array.size and all(isinstance(value, str) for value in array.flat):
        array = array.astype(np.str_)
    return array if array.dtype.kind == "U" and array.size else None


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
            "`probs` has one column, which is 1 everywhere, and every label is 0. With a single class there is nothing "
            "to score; one column is the probability of class 1 of two.",
            where=_WHERE,
        )
