"""What the papers printed, to stand beside our numbers."""

from __future__ import annotations

import csv
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

__all__ = ["Published", "find_published", "published_rows"]

_UNITS = {"percent": 0.01, "1e-3": 0.001, "fraction": 1.0}
#: Our keys for what the tables call otherwise.
_METHODS = {
    "mutual_learning": ("dml",),
    "differentiated_mutual_learning": ("diff_dml",),
    "deep_ensemble": ("ensemble_3",),
    "ce+dca": ("dca",),
    "ce+mmce": ("mmce",),
    "ce+mmce_weighted": ("mmce",),
    "ce+kde": ("kde_xe",),
    "focal+huber_ca": ("focal+dtdp",),
}


class Published(NamedTuple):
    """One printed number.

    Attributes:
        paper: Key of the paper.
        table: Its number as printed.
        dataset: As people say it.
        model: As people say it.
        method: Key of the method.
        metric: Key of the metric.
        stage: ``"raw"``, ``"temperature"`` or empty.
        value: The number, as a fraction.
        temperature: Printed in brackets, if any.
        note: Doubts and details.
    """

    paper: str
    table: str
    dataset: str
    model: str
    method: str
    metric: str
    stage: str
    value: float
    temperature: float | None
    note: str


@cache
def published_rows() -> tuple[Published, ...]:
    """Return every printed number that is shipped.

    Example:
        >>> len(published_rows()) > 1000
        True
    """
    found = []
    for file in sorted(
        files("equipoise.experiments").joinpath("published").iterdir(), key=lambda file: file.name
    ):
        if file.name.endswith(".csv"):
            found += [_row(row) for row in csv.DictReader(file.read_text(encoding="utf-8").splitlines())]
    return tuple(found)


def _row(row: dict[str, Any]) -> Published:
    value = float(row["value"]) * _UNITS[row["unit"]]
    metric, method = row["metric"], row["method"]
    if metric == "error":
        metric, value = "accuracy", 1 - value
    return Published(
        paper=row["paper"],
        table=row["table"],
        dataset=row["dataset"],
        model=row["model"],
        method=method,
        metric=metric,
        stage=row["stage"],
        value=value,
        temperature=float(row["temperature"]) if row["temperature"] else None,
        note=row["note"],
    )


def find_published(
    *, method: str, dataset: str | None = None, model: str | None = None, metric: str | None = None
) -> list[Published]:
    """Return the printed numbers of a method, on one dataset and network if wanted.

    Args:
        method: Key of the catalogue.
        dataset: Title of the dataset.
        model: Title of the network.
        metric: Key of the metric.

    Returns:
        Rows as printed; papers differ in splits and recipes, so they are not comparable with each other.

    Example:
        >>> row = find_published(method="dual_focal", dataset="CIFAR-10", model="ResNet-50", metric="ece")[0]
        >>> row.value
        0.0046
    """
    names = {method, *_METHODS.get(method, ())}
    return [
        row
        for row in published_rows()
        if row.method in names
        and dataset in (None, row.dataset)
        and model in (None, row.model)
        and metric in (None, row.metric)
    ]
