"""The record every reader returns and every consumer takes."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

import torch
from torch import Tensor

from equipoise.core.arrays import label_remedy
from equipoise.core.errors import DataError, SplitError
from equipoise.core.read_only import ReadOnly
from equipoise.core.splits import check_split
from equipoise.data.streaming import ImageFiles

__all__ = ["Dataset", "FileRecord", "Kind"]

#: What the inputs are.
Kind = Literal["image", "features", "text", "segmentation"]


@dataclass(frozen=True, slots=True, kw_only=True)
class FileRecord:
    """A file that a dataset was read from.

    Attributes:
        path: Relative to the data folder.
        size: In bytes.
        sha256: Of the content; for a folder of many files, of their names and sizes.

    Example:
        >>> FileRecord(path="a.npz", size=3, sha256="00").size
        3
    """

    path: str
    size: int
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Dataset:
    """Inputs, labels, and who may see which rows.

    Attributes:
        name: Its name in the catalogue, or the user's.
        kind: What the inputs are.
        inputs: Images as uint8 ``(n, c, h, w)``, stored channels-last; features as float32 ``(n, d)``;
            token numbers as int32 ``(n, length)``, padded in front; or files to stream from.
        labels: Class numbers ``(n,)``; for segmentation the masks are streamed, and this is zeros.
        class_names: One word per class.
        splits: Row numbers of each split that exists; no row is in two.
        mean: Per channel or column, subtracted in every batch; images are scaled to [0, 1] before.
        std: Per channel or column, divided by in every batch.
        soft_labels: ``(n, k)`` probabilities where more than a label is known (human votes, a known
            posterior); NaN in rows where it is not.
        lengths: Tokens of each document, for text.
        embedding: One vector per token number, for text.
        ignore_index: The label that is no class, for segmentation.
        provenance: The files it was read from.
        fingerprints: One digest per split, of content and labels in order; equal only for equal rows.

    Example:
        >>> from equipoise.data import from_arrays
        >>> data = from_arrays(torch.zeros(20, 3), torch.arange(20) % 2, name="mine")
        >>> len(data), data.n_classes, sorted(data.splits)
        (20, 2, ['calib', 'test', 'train', 'tune'])
        >>> data
        Dataset('mine', features (20, 3), 2 classes, train 12, tune 2, calib 2, test 4)
    """

    name: str
    kind: Kind
    inputs: Tensor | ImageFiles
    labels: Tensor
    class_names: tuple[str, ...]
    splits: Mapping[str, Tensor]
    mean: Tensor | None = None
    std: Tensor | None = None
    soft_labels: Tensor | None = None
    lengths: Tensor | None = None
    embedding: Tensor | None = None
    ignore_index: int | None = None
    provenance: tuple[FileRecord, ...] = ()
    fingerprints: Mapping[str, str] = field(init=False)

    def __post_init__(self) -> None:
        _check_labels(self)
        _check_splits(self)
        object.__setattr__(self, "splits", ReadOnly(self.splits))
        prints = {name: _fingerprint(self, rows) for name, rows in self.splits.items()}
        object.__setattr__(self, "fingerprints", ReadOnly(prints))

    def __len__(self) -> int:
        return len(self.inputs)

    def __repr__(self) -> str:
        shape = f"({len(self):,} files)" if isinstance(self.inputs, ImageFiles) else tuple(self.inputs.shape)
        parts = ", ".join(f"{split} {len(rows):,}" for split, rows in self.splits.items())
        return f"Dataset({self.name!r}, {self.kind} {shape}, {self.n_classes} classes, {parts})"

    @property
    def n_classes(self) -> int:
        """How many classes there are."""
        return len(self.class_names)

    def rows(self, split: str) -> Tensor:
        """Return the row numbers of a split.

        Raises:
            SplitError: If the dataset has no such split.
        """
        check_split(split, where=self.name)
        if split not in self.splits:
            raise SplitError(
                f"{self.name}: `split` must be one of {', '.join(self.splits)}, got {split!r}. "
                "This dataset has no such rows."
            )
        return self.splits[split]

    def class_counts(self, split: str) -> Tensor:
        """Return how many rows of a split each class has."""
        return torch.bincount(self.labels[self.rows(split)], minlength=self.n_classes)


def _check_labels(data: Dataset) -> None:
    shape = tuple(data.labels.shape)
    if shape != (len(data.inputs),) or data.labels.dtype != torch.int64:
        raise DataError(
            f"{data.name}: `labels` must be int64 of shape ({len(data.inputs)},), one per input, "
            f"got {data.labels.dtype} of shape {shape}. {label_remedy(data.labels)}"
        )
    if not len(data.labels):
        raise DataError(f"{data.name}: `inputs` must hold at least one row, got none. Check the file.")
    low, high = int(data.labels.min()), int(data.labels.max())
    if low < 0 or high >= len(data.class_names):
        raise DataError(
            f"{data.name}: `labels` must lie in [0, {len(data.class_names)}), got {low} to {high}. "
            "Give class_names for all classes, and number them from zero."
        )


def _check_splits(data: Dataset) -> None:
    seen = torch.zeros(len(data.inputs), dtype=torch.bool)
    for name, rows in data.splits.items():
        check_split(name, where=data.name)
        if rows.dtype != torch.int64 or rows.ndim != 1:
            raise DataError(
                f"{data.name}: rows of {name!r} must be a vector of int64, got {rows.dtype} of shape "
                f"{tuple(rows.shape)}. Convert a mask with mask.nonzero().flatten()."
            )
        if len(rows) and (int(rows.min()) < 0 or int(rows.max()) >= len(seen)):
            raise DataError(f"{data.name}: rows of {name!r} must lie in [0, {len(seen)}). Check the numbers.")
        if bool(seen[rows].any()) or int(torch.bincount(rows, minlength=1).max()) > 1:
            raise SplitError(
                f"{data.name}: each row must be in one split once, but rows of {name!r} are elsewhere too. "
                "Make the splits disjoint."
            )
        seen[rows] = True


def _fingerprint(data: Dataset, rows: Tensor) -> str:
    digest = hashlib.blake2b(digest_size=16)
    if isinstance(data.inputs, ImageFiles):
        for row in rows.tolist():
            digest.update(data.inputs.paths[row].encode() + b"\0")
    else:
        digest.update(repr((str(data.inputs.dtype), tuple(data.inputs.shape[1:]))).encode())
        for chunk in torch.split(rows, 4096):
            digest.update(_bytes(data.inputs[chunk]))
    digest.update(_bytes(data.labels[rows]))
    return digest.hexdigest()


def _bytes(values: Tensor) -> memoryview:
    return values.contiguous().numpy().data.cast("B") if values.numel() else memoryview(b"")
