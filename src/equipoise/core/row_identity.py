"""Which rows a sum holds, in bounded memory: enough to detect that two sums count the same rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, final

import numpy as np

from equipoise.core.arrays import Array
from equipoise.core.predictions import Predictions
from equipoise.core.rows import Rows

__all__ = ["RowIdentity", "RowSketch"]

#: Every hash is below this.
_END = 1 << 64
#: Different rows that a sketch keeps.
_MOST = 8192
#: Rows known by their values: coincidences up to this share of the smaller set are not taken for shared rows.
_COINCIDING = 0.01
_MIX = np.uint64(0x9E3779B97F4A7C15)


@final
@dataclass(frozen=True, eq=False)
class RowSketch:
    """The rows with the smallest hashes, the same for every set that holds them.

    Attributes:
        hashes: Different hashes, ascending, uint64.
        counts: How often each occurs.
        below: All hashes below this number are kept; ``2**64`` if none was left out.
    """

    hashes: Array = field(default_factory=lambda: np.zeros(0, np.uint64))
    counts: Array = field(default_factory=lambda: np.zeros(0, np.int64))
    below: int = _END

    def plus(self, hashes: Array) -> RowSketch:
        """Return the sketch with more rows.

        Example:
            >>> RowSketch().plus(np.array([7, 3, 7], np.uint64)).counts.tolist()
            [1, 2]
        """
        # Most rows of a long chunk cannot be among the smallest; sorting the likely ones is enough if they suffice.
        likely = min(self.below, _END * 4 * _MOST // max(len(hashes), 1))
        few = _distinct(hashes, likely)
        if len(few[0]) <= _MOST and likely < self.below:
            few = _distinct(hashes, self.below)
        return self._joined(*few, self.below)

    def union(self, other: RowSketch) -> RowSketch:
        """Return a sketch of the rows of both sets."""
        return self._joined(other.hashes, other.counts, min(self.below, other.below))

    def _joined(self, hashes: Array, counts: Array, below: int) -> RowSketch:
        both, where = np.unique(np.concatenate([self.hashes, hashes]), return_inverse=True)
        total = np.zeros(len(both), np.int64)
        np.add.at(total, where, np.concatenate([self.counts, counts]))
        return RowSketch(both, total, _END).cut(below)

    def cut(self, below: int) -> RowSketch:
        """Return the rows below a number, and of those no more than a sketch keeps."""
        hashes = self.hashes[: _position(self.hashes, below)]
        if len(hashes) > _MOST:
            below = int(hashes[_MOST])
            hashes = hashes[:_MOST]
        return RowSketch(hashes, self.counts[: len(hashes)], min(below, self.below))

    def n_shared_ids(self, other: RowSketch) -> int:
        """Count the ids that both sketches hold."""
        return len(np.intersect1d(self.hashes, other.hashes, assume_unique=True))

    def n_shared_values(self, other: RowSketch) -> int:
        """Count rows of equal values if they are more than coincidence explains, else return 0.

        Equal values are not always the same row: rounded confidences repeat. So only values that occur once in each
        set count. If the sets were independent, the expected number of such coincidences is at most
        ``2 * sqrt(a * b)``, by the Cauchy-Schwarz inequality, where ``a`` and ``b`` are the expected numbers of values
        that occur exactly twice in each set. Twice this bound, with 3 added to both counts for their chance
        variation, has to be exceeded.

        Example:
            >>> rng = np.random.default_rng(0)
            >>> one, two = (RowSketch().plus(rng.integers(0, 2**63, 100, np.uint64)) for _ in range(2))
            >>> one.n_shared_values(two), one.n_shared_values(one.union(two))
            (0, 100)
            >>> rounded = [RowSketch().plus(rng.integers(0, 500, 100, np.uint64)) for _ in range(2)]
            >>> rounded[0].n_shared_values(rounded[1])
            0
        """
        below = min(self.below, other.below)
        mine, theirs = (sketch.counts[: _position(sketch.hashes, below)] for sketch in (self, other))
        singles = [
            sketch.hashes[: len(counts)][counts == 1] for sketch, counts in ((self, mine), (other, theirs))
        ]
        shared = len(np.intersect1d(singles[0], singles[1], assume_unique=True))
        twice = [int(np.count_nonzero(counts == 2)) + 3 for counts in (mine, theirs)]
        smaller = min(int(mine.sum()), int(theirs.sum()))
        return shared if shared > max(4 * (twice[0] * twice[1]) ** 0.5, _COINCIDING * smaller) else 0


@final
class RowIdentity:
    """Which rows a sum holds: a digest of every source, and a sketch of single rows.

    A source is everything that was added before a merge. Its digest covers labels and scores as they were read, in any
    order, and not how they were summed, so a source is always recognized. Single rows are recognized by their ids, if
    all rows of both sums have some; otherwise by their values, and only if more coincide than chance explains.

    Example:
        >>> rows = Predictions(probs=[[0.9, 0.1], [0.3, 0.7]], labels=[0, 1])
        >>> one, two = RowIdentity(), RowIdentity()
        >>> one.update(rows); two.update(rows)
        >>> one.overlap(two)
        'its rows'
    """

    def __init__(self) -> None:
        self._merged: set[tuple[int, int, int]] = set()
        self._own = (0, 0, 0)
        self._values = RowSketch()
        self._ids: RowSketch | None = RowSketch()

    @property
    def sources(self) -> set[tuple[int, int, int]]:
        """Of every source: the number of rows, and two sums over their hashes."""
        return self._merged | ({self._own} if self._own[0] else set())

    def update(self, predictions: Predictions) -> None:
        """Add rows to the source that is being summed."""
        known = predictions.rows if predictions.has_kept_rows else Rows(np.zeros(0, np.uint64), named=False)
        hashes = known.hashes if len(known.hashes) and not known.named else _value_hashes(predictions)
        mixed = (hashes ^ (hashes >> np.uint64(31))) * _MIX
        sums = (len(hashes), int(hashes.sum(dtype=np.uint64)), int((mixed ^ (mixed >> np.uint64(29))).sum()))
        self._own = _added(self._own, sums)
        self._values = self._values.plus(hashes)
        self._ids = self._ids.plus(known.hashes) if known.named and self._ids is not None else None

    def merge(self, other: RowIdentity, *, same_source: bool = False) -> None:
        """Add the rows of another sum, as sources of their own or as a part of the source that is being summed."""
        if same_source:
            self._own = _added(self._own, *other.sources)
        else:
            self._merged |= other.sources
        self._values = self._values.union(other._values)
        self._ids = None if self._ids is None or other._ids is None else self._ids.union(other._ids)

    def overlap(self, other: RowIdentity) -> str:
        """Return what another sum holds of the rows of this one, as the subject of a sentence; empty if nothing."""
        if not self.sources or not other.sources:
            return ""
        if self._ids is not None and other._ids is not None:
            shared, what = self._ids.n_shared_ids(other._ids), "ids"
            sketches = (self._ids, other._ids)
        else:
            # Digests add up, so files that were summed as one source equal the same files summed one by one.
            mine, theirs = (one.sources | {_added(*one.sources)} for one in (self, other))
            if mine & theirs:
                return "its rows" if _added(*self.sources) in theirs else "some of its rows"
            shared, what = self._values.n_shared_values(other._values), "rows"
            sketches = (self._values, other._values)
        if not shared:
            return ""
        sampled = any(sketch.below < _END for sketch in sketches)
        return f"{shared:,} of its {what}{' in a sample' if sampled else ''}"

    def parts(self) -> tuple[dict[str, Any], dict[str, Array]]:
        """Return everything as plain values and arrays of integers, for a file; :meth:`fill` takes them back."""
        ids = self._ids
        plain = {"values_below": self._values.below, "ids_below": None if ids is None else ids.below}
        arrays = {
            "sources": np.array(sorted(self.sources), np.uint64).reshape(-1, 3),
            "values": self._values.hashes,
            "ids": np.zeros(0, np.uint64) if ids is None else ids.hashes,
        }
        signed = {name: array.view(np.int64) for name, array in arrays.items()}
        signed["value_counts"] = self._values.counts
        signed["id_counts"] = np.zeros(0, np.int64) if ids is None else ids.counts
        return plain, signed

    def fill(self, plain: Mapping[str, Any], arrays: Mapping[str, Array]) -> None:
        """Take over what :meth:`parts` gave.

        Raises:
            ValueError: If it is inconsistent.
        """
        sources = np.ascontiguousarray(arrays["sources"]).view(np.uint64)
        if sources.ndim != 2 or sources.shape[1] != 3:
            raise ValueError("`sources` must have three columns")
        self._own, self._merged = (0, 0, 0), {(n, a, b) for n, a, b in sources.tolist()}
        if len(self._merged) < len(sources) or 0 in sources[:, 0]:
            raise ValueError("a source occurs twice or has no rows")
        n_rows = sum(source[0] for source in self._merged)
        below = plain["ids_below"]
        self._values = _sketch(arrays["values"], arrays["value_counts"], plain["values_below"], n_rows)
        self._ids = None if below is None else _sketch(arrays["ids"], arrays["id_counts"], below, n_rows)

    @property
    def n_rows(self) -> int:
        """How many rows all sources have."""
        return sum(source[0] for source in self.sources)


def _added(*sources: tuple[int, int, int]) -> tuple[int, int, int]:
    n, first, second = map(sum, zip(*sources, strict=True))
    return n, first % _END, second % _END


def _sketch(hashes: Array, counts: Array, below: Any, n_rows: int) -> RowSketch:
    if type(below) is not int or not 0 <= below <= _END or hashes.ndim != 1 or hashes.shape != counts.shape:
        raise ValueError("a sketch of rows must have one count per hash, and an end")
    found = RowSketch(np.ascontiguousarray(hashes).view(np.uint64), counts.copy(), below)
    total = int(counts.sum())
    complete = total == n_rows if below == _END else total <= n_rows and len(hashes) == _MOST
    ascending = bool((found.hashes[1:] > found.hashes[:-1]).all())
    if not (complete and ascending and len(hashes) <= _MOST and (counts > 0).all()):
        raise ValueError("a sketch of rows does not fit the number of rows")
    if len(hashes) and int(found.hashes[-1]) >= below:
        raise ValueError("a sketch of rows holds hashes beyond its end")
    return found


def _value_hashes(predictions: Predictions) -> Array:
    scores = predictions.scores
    if predictions.kind == "confidence":
        return Rows.from_values(predictions.confidence, predictions.correct.astype(np.int64)).hashes
    if scores is None:
        scores = np.column_stack([predictions.confidence, predictions.predicted])
    return Rows.from_values(scores, predictions.labels).hashes


def _distinct(hashes: Array, below: int) -> tuple[Array, Array]:
    kept = hashes if below >= _END else hashes[hashes < np.uint64(below)]
    values, counts = np.unique(kept, return_counts=True)
    return values, counts.astype(np.int64)


def _position(hashes: Array, below: int) -> int:
    return len(hashes) if below >= _END else int(np.searchsorted(hashes, np.uint64(below)))
