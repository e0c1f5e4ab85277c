"""Additional test sets of a run: predicted once, beside ``test``, whenever they are asked for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch

from equipoise.core.predictions import Predictions
from equipoise.core.writing import write_predictions
from equipoise.data import Dataset, Shift
from equipoise.experiments.build.data import content_digest
from equipoise.experiments.build.test_sets import load_other_data, make_test_set
from equipoise.experiments.code.component import plain
from equipoise.experiments.runs.folder import RunFolder
from equipoise.experiments.runs.scores import set_name
from equipoise.experiments.specs.execution import Execution
from equipoise.experiments.specs.run import Spec

__all__ = ["predict_shifts"]


def predict_shifts(
    target: RunFolder,
    spec: Spec,
    shifts: tuple[Shift, ...],
    execution: Execution,
    *,
    predict: Callable[[Dataset], Predictions],
    data: Callable[[], Dataset],
) -> None:
    """Predict the test sets that a run has no predictions on yet, and record which it has.

    Args:
        target: A run that is predicted.
        spec: Its spec.
        shifts: Additional test sets.
        execution: The data folder, and whether to download.
        predict: From a dataset to the network's predictions on its ``test`` rows.
        data: Returns what the network was trained on; called if there is something to predict.
    """
    known = target.shifts() if target.is_done("shifted") else {}
    digests: dict[str, str] = dict((target.record("shifted") or {"digests": {}})["digests"]) if known else {}
    others = {one.name: load_other_data(one, spec, execution) for one in shifts if one.data}
    current = {name: content_digest(other) for name, other in others.items()}
    fresh = [
        one
        for one in shifts
        if plain(known.get(one.name)) != plain(one) or digests.get(one.name) != current.get(one.name)
    ]
    if not fresh:
        return
    for one in fresh:
        clean = data()
        other = make_test_set(one, clean, others.get(one.name), spec, execution)
        if one.kind == "ood":  # its classes are not ours, so that its labels are not used
            other = replace(other, labels=torch.zeros_like(other.labels))
        write_predictions(_with_ids(predict(other), one, clean), target.path / _file(one.name))
        known[one.name] = one
        digests[one.name] = current.get(one.name) or ""
    target.write_record(
        "shifted",
        map(_file, known),
        sets={name: plain(one) for name, one in known.items()},
        digests={name: digest for name, digest in digests.items() if digest},
    )


def _file(name: str) -> str:
    return f"predictions/{set_name(name)}.npz"


def _with_ids(found: Predictions, shift: Shift, clean: Dataset) -> Predictions:
    """Give rows ids that no clean row has but the one they were made of; out-of-distribution rows have no labels."""
    ids: Any = clean.rows("test").numpy()
    if not shift.corruption:
        ids = [f"{shift.name} {row}" for row in range(len(found))]
    labels = None if shift.kind == "ood" else found.labels
    return Predictions(logits=found.logits, labels=labels, ids=ids, split="test")
