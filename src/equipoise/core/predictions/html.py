"""Predictions as notebooks show them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from equipoise.core.tables import Table

if TYPE_CHECKING:
    from equipoise.core.predictions import Predictions

__all__ = ["html_of_predictions"]

_SHOWN = 5


def html_of_predictions(predictions: Predictions) -> str:
    """Return what the predictions are, and their first rows, as a notebook shows them.

    Example:
        >>> from equipoise.core import Predictions
        >>> html_of_predictions(Predictions(probs=[0.9, 0.2], labels=[1, 0])).count("<tr>")
        3
    """
    head = predictions.take(slice(0, _SHOWN))
    names = predictions.class_names
    columns = {"row": [str(number) for number in range(len(head))]}
    classes = {} if head.kind == "confidence" else {"predicted": head.predicted}
    if head.has_labels and head.kind != "confidence":
        classes["label"] = head.labels
    for name, column in classes.items():
        columns[name] = [names[number] if names else str(number) for number in column.tolist()]
    columns["confidence"] = [f"{100 * value:.1f}%" for value in head.confidence.tolist()]
    if head.has_labels and head.kind == "confidence":
        columns["correct"] = [str(value).lower() for value in head.correct.tolist()]
    if head.weights is not None:
        columns["weight"] = [f"{value:.4g}" for value in head.weights.tolist()]
    for name, column in head.groups.items():
        columns[name] = [str(value) for value in column.tolist()]
    more = len(predictions) - len(head)
    return Table.of(
        list(columns),
        zip(*columns.values(), strict=True),
        caption=repr(predictions),
        notes=(f"and {more:,} more rows",) if more else (),
    ).to_html()
