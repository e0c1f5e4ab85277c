"""Further test sets of a run: predicted once, beside ``test``, whenever they are asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

import torch

from equipoise.core.predictions import Predictions
from equipoise.core.writing import write_predictions
from equipoise.data import Dataset, Shift, load_shift, read_shifts
from equipoise.experiments.folder import RunFolder
from equipoise.experiments.spec_parsing import plain

__all__ = ["predict_shifts", "set_name", "shifts_of"]


def set_name(name: str) -> str:
    """Return what the predictions on a further test set are called.

    Example:
        >>> set_name("svhn")
        'test-svhn'
    """
    return f"test-{name}"


def shifts_of(target: RunFolder) -> dict[str, Shift]:
    """Return the further test sets that a run has predictions on, by name."""
    known = (target.record("shifted") or {"sets": {}})["sets"]
    return {name: Shift(**{"options": {}, **table}) for name, table in known.items()}


def predict_shifts(
    target: RunFolder,
    entries: Iterable[Mapping[str, Any]],
    predict: Callable[[Dataset], Predictions],
    data: Callable[[], Dataset],
    **where: Any,
) -> None:
    """Predict the sets that a run has no predictions on yet, and write down which it has.

    Args:
        target: A run that is predicted.
        entries: As a spec gives them.
        predict: From a dataset to what the network says about its ``test`` rows.
        data: What the network was trained on; asked for if there is something to predict.
        **where: Data folder, seed and whether to download.
    """
    wanted = {shift.name: shift for shift in read_shifts(list(entries))}
    known = shifts_of(target) if target.is_over("shifted") else {}
    fresh = [shift for name, shift in wanted.items() if plain(known.get(name)) != plain(shift)]
    if not fresh:
        return
    for shift in fresh:
        clean = data()
        other = load_shift(shift, clean, **where)
        if shift.kind == "ood":  # its classes are not ours: a network is asked, and the labels are let go of
            other = replace(other, labels=torch.zeros_like(other.labels))
        found = _renamed(predict(other), shift, clean)
        write_predictions(found, target.path / _file(shift.name))
    sets = {name: plain(shift) for name, shift in {**known, **{one.name: one for one in fresh}}.items()}
    target.write_record("shifted", map(_file, sets), sets=sets)


def _file(name: str) -> str:
    return f"predictions/{set_name(name)}.npz"


def _renamed(found: Predictions, shift: Shift, clean: Dataset) -> Predictions:
    """Give rows identities that no clean row has but the one they were made of; foreign rows have no labels."""
    ids: Any = clean.rows("test").numpy()
    if not shift.corruption:
        ids = [f"{shift.name} {row}" for row in range(len(found))]
    labels = None if shift.kind == "ood" else found.labels
    return Predictions(logits=found.logits, labels=labels, ids=ids, split="test")
