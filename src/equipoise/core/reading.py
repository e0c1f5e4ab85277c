"""Predictions from files: whole, or chunk by chunk in bounded memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from equipoise.core.assembly import Assembly, Options
from equipoise.core.columns import Wanted
from equipoise.core.errors import DataError
from equipoise.core.joining import check_alike, concatenate
from equipoise.core.predictions import Predictions
from equipoise.core.sources import Source, SourceLike, find_sources
from equipoise.core.splits import check_split

__all__ = ["iter_predictions", "read_predictions"]


def read_predictions(
    path: SourceLike,
    *,
    logits: str | Sequence[str] | None = None,
    probs: str | Sequence[str] | None = None,
    labels: str | None = None,
    predicted: str | None = None,
    confidence: str | None = None,
    weights: str | None = None,
    groups: Sequence[str] = (),
    ids: str | None = None,
    class_names: Sequence[str] | None = None,
    n_classes: int | None = None,
    split: str | None = None,
    ignore_index: int | None = None,
) -> Predictions:
    r"""Read predictions from a file; no pickle is ever loaded.

    Columns are found by their names, never by their values: ``logits``, ``probs``, ``labels``, ``y_true``,
    ``true_label``, ``pred_label``, ``confidence`` and others; columns of single classes by ``logit_0`` or ``p_cat``.
    A name that could mean two things raises. All known names are in :data:`equipoise.core.columns.KNOWN_NAMES`.

    Args:
        path: A ``.npz``, ``.csv``, ``.tsv``, ``.parquet`` or ``.safetensors`` file, a pair of ``.npy`` files, a
            mapping such as ``{"logits": "a.npy", "labels": "b.npy"}``, several files, or a pattern such as
            ``"part-*.parquet"``.
        logits: The column that holds logits; or columns, one per class; or a pattern such as ``"score_*"``.
        probs: The same for probabilities.
        labels: The column of true classes: numbers, or names if the classes have names.
        predicted: The column of predicted classes, in the top-1 form.
        confidence: The column of their probabilities, in the top-1 form.
        weights: The column of sample weights.
        groups: Columns to slice by; by default those whose names begin with ``group_``.
        ids: The column that identifies the samples across files. Never assumed: many files number their rows.
        class_names: One name per class; by default what the file tells.
        n_classes: The number of classes, in the top-1 form.
        split: ``train``, ``tune``, ``calib`` or ``test``; by default what the file tells.
        ignore_index: Rows with this label are left out.

    Returns:
        The predictions.

    Raises:
        DataError: If the file is missing, damaged, hostile or holds something that cannot be scored.
        MissingExtraError: If the format needs a package that is not installed.

    Example:
        >>> import pathlib, tempfile
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "top1.csv"
        >>> _ = path.write_text("true_label,pred_label,confidence\n3,3,0.9\n2,8,0.6\n")
        >>> read_predictions(path, split="test")
        Predictions(top1, n=2, split=test)
    """
    wanted = Wanted(logits, probs, labels, predicted, confidence, weights, groups, ids)
    options = Options(class_names, n_classes, check_split(split, where="read_predictions"), ignore_index)
    try:
        parts = list(_Stream(find_sources(path), wanted, options).chunks(None))
        return parts[0] if len(parts) == 1 else concatenate(parts)
    except MemoryError:
        raise DataError(
            "read_predictions: the file does not fit into memory. Read it in chunks, with iter_predictions."
        ) from None


def iter_predictions(
    path: SourceLike,
    *,
    chunk_rows: int | None = None,
    logits: str | Sequence[str] | None = None,
    probs: str | Sequence[str] | None = None,
    labels: str | None = None,
    predicted: str | None = None,
    confidence: str | None = None,
    weights: str | None = None,
    groups: Sequence[str] = (),
    ids: str | None = None,
    class_names: Sequence[str] | None = None,
    n_classes: int | None = None,
    split: str | None = None,
    ignore_index: int | None = None,
) -> Iterator[Predictions]:
    r"""Read predictions chunk by chunk, in memory that does not grow with the file.

    Several files are one stream; they must agree in form, classes and split. Class names that only labels tell are
    gathered in a first pass over the label columns, so that every chunk numbers them alike. Arrays stored column by
    column (``fortran_order``) inside an ``.npz`` are the exception: they are held whole.

    Args:
        path: As in :func:`read_predictions`.
        chunk_rows: The most rows of a chunk; by default about four million numbers make a chunk.
        logits: As in :func:`read_predictions`, and so are all others.
        probs: See there.
        labels: See there.
        predicted: See there.
        confidence: See there.
        weights: See there.
        groups: See there.
        ids: See there.
        class_names: See there.
        n_classes: See there.
        split: See there.
        ignore_index: See there; a chunk in which every row is ignored is left out.

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
    wanted = Wanted(logits, probs, labels, predicted, confidence, weights, groups, ids)
    options = Options(class_names, n_classes, check_split(split, where="iter_predictions"), ignore_index)
    return _Stream(find_sources(path), wanted, options).chunks(chunk_rows or 0)


@dataclass(frozen=True)
class _Stream:
    sources: list[Source]
    wanted: Wanted
    options: Options

    def chunks(self, n_rows: int | None) -> Iterator[Predictions]:
        """Yield chunks of ``n_rows``; 0 for a moderate size, None for whole files."""
        assembly = Assembly(self.sources, self.wanted, self.options)
        first: tuple[str, Predictions] | None = None
        weighty = False
        for source in self.sources:
            for where, chunk in assembly.chunks(source, n_rows):
                first = first or (where, chunk.take(slice(0, 1)))
                check_alike(where, chunk, *first)
                weighty = weighty or chunk.weights is None or bool(chunk.weights.any())
                yield chunk
        if first is None:
            raise DataError(f"{assembly.where}: no rows to score: every label is ignored.")
        if not weighty:
            raise DataError(
                f"{assembly.where}: no rows to score: every weight is zero. Give some row a weight."
            )
