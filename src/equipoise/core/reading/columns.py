"""Arguments that describe a file: the names of its columns, known or given, and what its rows are."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Literal, TypedDict, TypeVar, cast

from equipoise.core.names import nearest
from equipoise.core.splits import check_split

__all__ = [
    "AMBIGUOUS_NAMES",
    "CLASS_PREFIXES",
    "KNOWN_NAMES",
    "Columns",
    "check_columns",
    "takes_columns",
]


#: Names that are recognized, in lower case, by what they mean.
KNOWN_NAMES: Mapping[str, tuple[str, ...]] = {
    "logits": ("logits", "logit"),
    "probs": (
        "probs", "probabilities", "prob", "proba", "probas", "probability", "predictions", "y_prob", "y_proba",
        "softmax",
    ),
    "labels": (
        "labels", "label", "targets", "target", "ground_truth", "y_true", "y", "true_label", "true_labels",
        "true_class",
    ),
    "predicted": (
        "predicted", "pred_label", "pred_labels", "predicted_label", "predicted_labels", "predicted_class",
        "pred_class", "prediction", "y_pred",
    ),
    "confidence": (
        "confidence", "confidences", "conf", "top_prob", "top_probability", "top1_prob", "max_prob",
        "max_probability",
    ),
    "correct": ("correct", "is_correct"),
    "weights": ("weights", "weight", "sample_weight", "sample_weights"),
}  # fmt: skip

#: Names that could mean logits or probabilities.
AMBIGUOUS_NAMES = (
    "scores",
    "score",
    "y_score",
    "y_scores",
    "output",
    "outputs",
    "preds",
    "pred",
    "decision_function",
)

#: What the columns of single classes begin with.
CLASS_PREFIXES: Mapping[str, Literal["logits", "probs"]] = {
    "logit": "logits",
    "logits": "logits",
    "prob": "probs",
    "probs": "probs",
    "proba": "probs",
    "probability": "probs",
    "p": "probs",
    "softmax": "probs",
}


F = TypeVar("F", bound=Callable[..., Any])


class Columns(TypedDict, total=False):
    """The arguments that every reader of files takes; what is left out, or None, is recognized.

    Attributes:
        logits: The column that holds logits; or columns, one per class; or a pattern such as ``"score_*"``.
        probs: The same for probabilities.
        labels: The column of true classes: numbers, or names if the classes have names.
        predicted: The column of predicted classes, in the top-1 form.
        confidence: The column of their probabilities, in the top-1 form; or of the probabilities of being right.
        correct: The column that says whether a prediction was right: true or false, 1 or 0. It goes with ``confidence``
            and needs no classes.
        weights: The column of sample weights.
        groups: Columns to slice by; by default those whose names begin with ``group_``.
        ids: The column that identifies the samples across files, each at most once. Never assumed: many files number
            their rows.
        class_names: One name per class; by default what the file tells.
        n_classes: The number of classes, in the top-1 form.
        split: ``train``, ``tune``, ``calib`` or ``test``; by default what the file tells.
        ignore_index: Rows with this label are left out.
        first_label: The number of the first class among labels that are numbers: 0, or 1 if they run from 1 to k; -1
            for two classes numbered -1 and 1. By default what is certain: 1 where columns are numbered from 1, or
            where classes are named and labels run from 1 to k; -1 where labels are -1 and 1; otherwise 0.
        drop_missing: Whether rows with a missing value in a column that is read are left out and counted.
        normalize: Whether rows of probabilities whose sum is off by their rounding are divided by it.
        percent: Whether probabilities or confidences are percentages.
        max_bytes: How large a file may become in memory; by default 256 MiB, or 200 times its size if that is more.

    Example:
        >>> Columns(probs="softmax", labels="truth")
        {'probs': 'softmax', 'labels': 'truth'}
    """

    logits: str | Sequence[str] | None
    probs: str | Sequence[str] | None
    labels: str | None
    predicted: str | None
    confidence: str | None
    correct: str | None
    weights: str | None
    groups: Sequence[str] | None
    ids: str | None
    class_names: Sequence[str] | None
    n_classes: int | None
    split: str | None
    ignore_index: int | None
    first_label: int | None
    drop_missing: bool | None
    normalize: bool | None
    percent: bool | None
    max_bytes: int | None


_SEVERAL = ("logits", "probs", "groups", "class_names")
_NUMBERS = {"n_classes": 1, "ignore_index": None, "max_bytes": 1, "first_label": -1}
_FLAGS = ("drop_missing", "normalize", "percent")


def check_columns(columns: Mapping[str, Any], *, where: str) -> Columns:
    """Return the arguments that a caller gave.

    Raises:
        TypeError: For an argument that does not exist, or arrays where the name of a column is expected.
        ValueError: For a number out of range.

    Example:
        >>> check_columns({"labels": "truth", "ids": None}, where="doc")
        {'labels': 'truth'}
    """
    for name, value in columns.items():
        if name not in Columns.__annotations__:
            guess = nearest(name, Columns.__annotations__)
            remedy = f"Did you mean {guess}=?" if guess else f"Known: {', '.join(Columns.__annotations__)}."
            raise TypeError(f"{where}: there is no argument {name}=. {remedy}")
        if value is None or name == "split":
            check_split(value, where=where)
        elif name in _NUMBERS:
            from equipoise.core.checks import check_integer  # loads numpy, which --help does not need

            check_integer(value, where=where, name=name, least=_NUMBERS[name])
            if name == "first_label" and value > 1:
                raise ValueError(f"{where}: `first_label` must be -1, 0 or 1, got {value}.")
        elif name in _FLAGS:
            if not isinstance(value, bool):
                raise TypeError(f"{where}: `{name}` must be True or False, got {value!r}.")
        elif not _is_name(name, value):
            raise TypeError(
                f"{where}: `{name}` must {'hold names' if name in _SEVERAL else 'name a column'}, got "
                f"{type(value).__name__}. For arrays instead of files there is Predictions({name}=...)."
            )
    return cast("Columns", {name: value for name, value in columns.items() if value is not None})


def _is_name(argument: str, value: Any) -> bool:
    if isinstance(value, str):
        return argument != "class_names"
    several = argument in _SEVERAL and isinstance(value, Collection)
    return (
        several and all(isinstance(name, str) for name in value) and (len(value) > 0 or argument == "groups")
    )


def takes_columns(function: F) -> F:
    """Show the fields of :class:`Columns` in the signature of a function that takes them as ``**columns``.

    Example:
        >>> @takes_columns
        ... def read(path, **columns): ...
        >>> list(inspect.signature(read).parameters)[:3]
        ['path', 'logits', 'probs']
    """
    signature = inspect.signature(function)
    own = [part for part in signature.parameters.values() if part.kind is not part.VAR_KEYWORD]
    named = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=kind)
        for name, kind in Columns.__annotations__.items()
    ]
    function.__signature__ = signature.replace(parameters=[*own, *named])  # type: ignore[attr-defined]
    return function
