"""Predictions to files: whole or not at all, and nothing lost."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from equipoise.core.arrays import Array, has_bad_text
from equipoise.core.atomic_files import atomic_path
from equipoise.core.errors import DataError
from equipoise.core.predictions import Predictions
from equipoise.core.reading.files import AnyPath, ending_of
from equipoise.core.reading.formats import WITHOUT_METADATA, WRITERS
from equipoise.core.reading.formats.base import LONGEST_TEXT
from equipoise.core.reading.formats.notes import Notes, side_file
from equipoise.core.reading.formats.npy import write_npy

__all__ = ["write_predictions"]


def write_predictions(predictions: Predictions, path: AnyPath | tuple[AnyPath, AnyPath]) -> None:
    """Write predictions to a file that :func:`equipoise.read_predictions` gives back as they were.

    The ending says how: ``.npz``, ``.csv``, ``.tsv``, ``.jsonl``, ``.parquet`` or ``.safetensors``; or a
    pair of ``.npy`` files.
    Kind, weights, groups, class names, split, the identity of the rows and what a calibrator was fitted on are kept.
    The file appears when it is complete; an older one of that name stays until then.

    Args:
        predictions: What to write.
        path: Where to; a pair of ``.npy`` paths takes scores and labels and refuses anything more.

    Raises:
        DataError: If the ending is not known, the folder is missing, or the format cannot keep everything.

    Example:
        >>> import tempfile
        >>> from equipoise.core.reading import read_predictions
        >>> path = Path(tempfile.mkdtemp()) / "test.npz"
        >>> write_predictions(Predictions(probs=[[0.9, 0.1]], labels=[0], split="test"), path)
        >>> read_predictions(path)
        Predictions(probs, n=1, k=2, split=test)
    """
    columns, notes = _columns(predictions), _notes(predictions)
    if isinstance(path, tuple):
        _write_pair(columns, notes, (Path(path[0]), Path(path[1])))
        return
    target = Path(path)
    ending = ending_of(target)
    if ending == ".npy":
        raise DataError(f"{target.name}: a .npy file holds one array. Pass a pair of paths, or write .npz.")
    _check_folder(target)
    _check_names(columns, target)
    with atomic_path(target) as temporary:
        try:
            WRITERS[ending](temporary, columns, notes)
        except DataError as error:  # writers name the file they write to
            raise DataError(str(error).replace(temporary.name, target.name)) from None
    if ending in WITHOUT_METADATA:
        side_file(target).unlink(missing_ok=True)  # notes on an older file of that name


def _columns(predictions: Predictions) -> dict[str, Array]:
    columns: dict[str, Array] = {}
    if predictions.kind == "confidence":
        columns["confidence"] = predictions.confidence
        if predictions.has_labels:
            columns["correct"] = predictions.correct
        labels = {}
    else:
        labels = {"labels": predictions.labels} if predictions.has_labels else {}
    if predictions.kind == "top1":
        columns |= labels | {"predicted": predictions.predicted, "confidence": predictions.confidence}
    elif predictions.scores is not None:
        columns |= {predictions.kind: predictions.scores} | labels
    if predictions.weights is not None:
        columns["weights"] = predictions.weights
    columns |= {f"group_{name}": column for name, column in predictions.groups.items()}
    if predictions.has_kept_rows:
        columns["id_hash" if predictions.rows.named else "row_hash"] = predictions.rows.hashes
    return columns


def _notes(predictions: Predictions) -> Notes:
    return Notes(
        class_names=predictions.class_names,
        split=predictions.split,
        n_classes=predictions.n_classes if predictions.scores is None else None,
        fitted_on=predictions.fitted_on,
    )


def _write_pair(columns: dict[str, Array], notes: Notes, paths: tuple[Path, Path]) -> None:
    for path in paths:
        if ending_of(path) != ".npy":
            raise DataError(f"{path.name}: only .npy files are written in pairs. Pass a single path.")
        _check_folder(path)
    kind = next(iter(columns))
    if "labels" not in columns:
        raise DataError(f"{paths[1].name}: these predictions have no labels to write. Write a single .npz.")
    if list(columns) != [kind, "labels"] or notes != Notes():
        raise DataError(
            f"{paths[0].name}: a pair of .npy files holds scores and labels, and these predictions have more "
            "(split, class names, weights, groups or ids). Write .npz."
        )
    write_npy({kind: paths[0], "labels": paths[1]}, columns)


def _check_folder(path: Path) -> None:
    if not path.parent.is_dir():
        raise DataError(f"{path}: the folder {str(path.parent)!r} does not exist. Make it first.")
    if path.is_dir():
        raise DataError(f"{path}: is a directory. Name a file in it.")


def _check_names(columns: dict[str, Array], path: Path) -> None:
    seen: set[str] = set()
    for name, column in columns.items():
        if not name.isprintable() or "/" in name or "\\" in name or ".." in name or name == "group_":
            raise DataError(
                f"{path.name}: the group {name[6:]!r} has a name that files cannot keep. Rename it."
            )
        if name.strip().lower() in seen:
            raise DataError(f"{path.name}: two groups are named {name[6:]!r} but for upper case. Rename one.")
        seen.add(name.strip().lower())
        if has_bad_text(column):
            raise DataError(
                f"{path.name}: `{name}` holds text that is no Unicode, so files cannot keep it. Repair it."
            )
        if column.dtype.kind == "U" and path.suffix.lower() != ".npz":
            longest = int(np.char.str_len(column).max(initial=0))
            if longest > LONGEST_TEXT:
                raise DataError(
                    f"{path.name}: `{name}` holds a text of {longest} characters, files other than .npz keep at most "
                    f"{LONGEST_TEXT}. Write .npz, or shorten it."
                )
