"""Further test sets of a run: predicted once, beside ``test``, whenever they are asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

import torch

from equipoise.core.errors import DataError
from equipoise.core.predictions import Predictions
from equipoise.core.writing import write_predictions
from equipoise.data import Dataset, Shift, load_shift, read_shifts
from equipoise.experiments.build.data import content_digest, load_data
from equipoise.experiments.code.adapters import Code
from equipoise.experiments.code.names import is_code
from equipoise.experiments.code.source import code_digest
from equipoise.experiments.runs.folder import RunFolder
from equipoise.experiments.specs.parsing import plain
from equipoise.experiments.specs.run import DataSpec

__all__ = ["foreign_data", "further_set", "predict_shifts", "set_name", "shifts_of"]


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
    try:
        return {name: Shift(**{"options": {}, **table}) for name, table in known.items()}
    except TypeError as error:
        raise DataError(
            f"{target.path / 'manifest.json'}: damaged: `stages.shifted.sets` holds no test set: {error}."
        ) from error


def predict_shifts(
    target: RunFolder,
    entries: Iterable[Mapping[str, Any]],
    predict: Callable[[Dataset], Predictions],
    data: Callable[[], Dataset],
    *,
    home: str | None = None,
    **where: Any,
) -> None:
    """Predict the sets that a run has no predictions on yet, and write down which it has.

    Args:
        target: A run that is predicted.
        entries: As a spec gives them.
        predict: From a dataset to what the network says about its ``test`` rows.
        data: What the network was trained on; asked for if there is something to predict.
        home: The folder that files of code are relative to.
        **where: Data folder, seed and whether to download.
    """
    wanted = {shift.name: shift for shift in read_shifts(list(entries))}
    known, digests = _known(target)
    others = {name: foreign_data(shift, home, **where) for name, shift in wanted.items() if shift.data}
    now = {name: content_digest(other) for name, other in others.items()}
    fresh = [
        shift
        for name, shift in wanted.items()
        if plain(known.get(name)) != plain(shift) or digests.get(name, now.get(name)) != now.get(name)
    ]
    if not fresh:
        return
    for shift in fresh:
        clean = data()
        other = further_set(shift, clean, others.get(shift.name), **where)
        if shift.kind == "ood":  # its classes are not ours: a network is asked, and the labels are let go of
            other = replace(other, labels=torch.zeros_like(other.labels))
        found = _renamed(predict(other), shift, clean)
        write_predictions(found, target.path / _file(shift.name))
        digests = {**digests, shift.name: now.get(shift.name, "")}
    sets = {name: plain(shift) for name, shift in {**known, **{one.name: one for one in fresh}}.items()}
    kept = {name: digest for name, digest in digests.items() if digest}
    target.write_record("shifted", map(_file, sets), sets=sets, digests=kept)


def further_set(shift: Shift, clean: Dataset, other: Dataset | None, **where: Any) -> Dataset:
    """Return the rows of a further test set, for networks that were trained on a dataset.

    Args:
        shift: Which.
        clean: The dataset.
        other: What the set is of, if it names data.
        **where: Data folder, seed and whether to download.
    """
    if other is not None and is_code(shift.data) and shift.kind == "shifted":
        missing = clean.n_classes - other.n_classes  # arrays may have no row of the last classes
        other = replace(other, class_names=clean.class_names) if missing > 0 else other
    return load_shift(shift, clean, other=other, **where)


def _known(target: RunFolder) -> tuple[dict[str, Shift], dict[str, str]]:
    """Return the sets that a run has, and what is known of the content of their data."""
    if not target.is_done("shifted"):
        return {}, {}
    return shifts_of(target), dict((target.record("shifted") or {"digests": {}})["digests"])


def foreign_data(
    shift: Shift, home: str | None, *, root: str | None = None, seed: int = 0, download: bool = False
) -> Dataset:
    """Return the other dataset that a further test set is of; sets of one process share it.

    Args:
        shift: One that names data.
        home: The folder that files of code are relative to.
        root: The data folder.
        seed: Of its splits.
        download: Bring what is not there.

    Example:
        >>> foreign_data(Shift(name="a", kind="ood", data="digits"), None).name
        'digits'
    """
    code = Code(shift.data, home, code_digest(shift.data, home)) if is_code(shift.data) else None
    data = DataSpec(name=shift.data, seed=seed, options=shift.options)
    return load_data(data, root=root, download=download, code=code, only_judges=True)


def _file(name: str) -> str:
    return f"predictions/{set_name(name)}.npz"


def _renamed(found: Predictions, shift: Shift, clean: Dataset) -> Predictions:
    """Give rows identities that no clean row has but the one they were made of; foreign rows have no labels."""
    ids: Any = clean.rows("test").numpy()
    if not shift.corruption:
        ids = [f"{shift.name} {row}" for row in range(len(found))]
    labels = None if shift.kind == "ood" else found.labels
    return Predictions(logits=found.logits, labels=labels, ids=ids, split="test")
