"""Predictions from files: whole, or chunk by chunk in bounded memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Unpack

from equipoise.core.errors import DataError
from equipoise.core.predictions import Predictions
from equipoise.core.predictions.combine import check_alike, concatenate
from equipoise.core.reading.columns import Columns, check_columns, takes_columns
from equipoise.core.reading.files import FileSource, SourceLike, find_sources
from equipoise.core.reading.to_predictions import PredictionReader

__all__ = ["columns_of_stream", "iter_file", "iter_predictions", "read_predictions"]


@takes_columns
def read_predictions(
    path: SourceLike,
    **columns: Unpack[Columns],
) -> Predictions:
    r"""Read predictions from a file; no pickle is ever loaded.

    Columns are found by their names, never by their values: ``logits``, ``probs``, ``labels``, ``y_true``,
    ``true_label``, ``pred_label``, ``confidence`` and others; columns of single classes by ``logit_0`` or ``p_cat``.
    A name that could mean two things raises. :data:`equipoise.core.reading.columns.KNOWN_NAMES` lists them all.

    Args:
        path: A ``.npz``, ``.csv``, ``.tsv``, ``.jsonl``, ``.parquet`` or ``.safetensors`` file, a pair of ``.npy``
            files, or one with scores alone, named as columns are (``val_logits.npy``), a mapping such as
            ``{"logits": "a.npy", "labels": "b.npy"}``, several files, a pattern such as ``"part-*.parquet"``, a folder
            of Parquet files, whose folders ``name=value`` are columns, or an address such as ``"s3://bucket/rows"``.
        **columns: The names of columns and what the rows are, as in :class:`equipoise.core.reading.Columns`:
            ``logits``, ``probs``, ``labels``, ``predicted``, ``confidence``, ``correct``, ``weights``, ``groups``,
            ``ids``, ``class_names``, ``n_classes``, ``split``, ``ignore_index``, ``first_label``, ``drop_missing``,
            ``normalize``, ``percent``, ``max_bytes``.

    Returns:
        The predictions.

    Raises:
        DataError: If the file is missing, damaged, malicious or holds something that cannot be scored.
        MissingExtraError: If the format needs a package that is not installed.

    Example:
        >>> import pathlib, tempfile
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "top1.csv"
        >>> _ = path.write_text("true_label,pred_label,confidence\n3,3,0.9\n2,8,0.6\n")
        >>> read_predictions(path, split="test")
        Predictions(top1, n=2, split=test)
    """
    options = check_columns(columns, where="read_predictions")
    try:
        parts = list(_chunks(find_sources(path), options, None))
        return parts[0] if len(parts) == 1 else concatenate(parts)
    except MemoryError:
        raise DataError(
            "read_predictions: the file does not fit into memory. Read it in chunks, with iter_predictions."
        ) from None


@takes_columns
def iter_predictions(
    path: SourceLike,
    *,
    chunk_rows: int | None = None,
    **columns: Unpack[Columns],
) -> Iterator[Predictions]:
    r"""Read predictions chunk by chunk, in memory that does not grow with the file.

    Several files are one stream; they must agree in form, classes and split. Class names that only labels tell are
    gathered in a first pass over the label columns, so that every chunk numbers them alike. Arrays stored column by
    column (``fortran_order``) inside an ``.npz`` are the exception: they are held whole. With ``ids=``, eight bytes per
    row are held, to find ids that occur twice.

    Args:
        path: As in :func:`read_predictions`.
        chunk_rows: The most rows of a chunk; by default about four million numbers make a chunk.
        **columns: As in :func:`read_predictions`; a chunk in which every row is ignored is left out.

    Returns:
        An iterator over the chunks. Names and missing files are checked at once, the rest when it is reached.

    Example:
        >>> import pathlib, tempfile
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "top1.csv"
        >>> _ = path.write_text("true_label,pred_label,confidence\n3,3,0.9\n2,8,0.6\n")
        >>> [len(chunk) for chunk in iter_predictions(path, chunk_rows=1)]
        [1, 1]
    """
    if chunk_rows is not None and chunk_rows < 1:
        raise ValueError(f"iter_predictions: `chunk_rows` must be 1 or more, got {chunk_rows}.")
    options = check_columns(columns, where="iter_predictions")
    return _chunks(find_sources(path), options, chunk_rows or 0)


def iter_file(source: FileSource, columns: Columns) -> Iterator[Predictions]:
    """Read one file of a stream chunk by chunk; that all files are alike and some row counts is the caller's to check.

    Args:
        source: One of what :func:`find_sources` gives.
        columns: What :func:`columns_of_stream` gives.

    Returns:
        An iterator over the chunks; none if every row is ignored.
    """
    return (chunk for _, chunk in PredictionReader([source], columns).chunks(source, 0))


def columns_of_stream(sources: list[FileSource], columns: Columns) -> Columns:
    """Return the description of the columns, with class names that only all files together show.

    Args:
        sources: The files of one stream.
        columns: Arguments of the caller.

    Returns:
        Columns with which every file by itself numbers the classes as the whole stream does.
    """
    reader = PredictionReader(sources, columns)
    names, start = reader.seen_class_names(), reader.first_label()
    columns = columns if names is None else columns | Columns(class_names=names)
    return columns if not start else columns | Columns(first_label=start)


def _chunks(sources: list[FileSource], columns: Columns, n_rows: int | None) -> Iterator[Predictions]:
    """Yield chunks of ``n_rows``; 0 for a moderate size, None for whole files."""
    reader = PredictionReader(sources, columns)
    first: tuple[str, Predictions] | None = None
    weighty = False
    for source in sources:
        for where, chunk in reader.chunks(source, n_rows):
            first = first or (where, chunk.take(slice(0, 1)))
            check_alike(where, chunk, *first)
            weighty = weighty or chunk.weights is None or bool(chunk.weights.any())
            yield chunk
    if first is None:
        raise DataError(f"{reader.where}: no rows to score: every label is ignored or missing.")
    if not weighty:
        raise DataError(f"{reader.where}: no rows to score: every weight is zero. Give some row a weight.")
