"""Who is who among rows: fingerprints that show whether two sets of predictions share samples."""

from __future__ import annotations

import base64
import hashlib
from dataclasses import dataclass
from functools import cached_property
from typing import Any, final

import numpy as np

from equipoise.core.arrays import Array, as_numpy
from equipoise.core.errors import SplitError

__all__ = ["Rows", "check_disjoint", "unchecked_rows"]

_CHUNK = 1 << 20

#: Every hash is below this.
_END = 1 << 64

#: Equal values are taken for the same rows if chance explains them with less than this probability. It is small because
#: monitors check new rows every day.
_UNLIKELY = 1e-6
#: With more than this share of repeated values, shared rows cannot be found by their values.
_REPEATED = 0.1


@final
@dataclass(frozen=True, eq=False)
class Rows:
    """A set of samples, known by one 64-bit hash each.

    Attributes:
        hashes: One number per row, in order.
        named: True if the hashes stem from ids that the user gave, False if from the rows' own values. Values
            may coincide by chance (two rows with probability one), so only named rows are compared strictly.
        below: Of a sketch, only hashes below this are kept: a sample that is the same for every set, so that two sets
            can still be compared. Other sets keep all.
    """

    hashes: Array
    named: bool
    below: int = _END

    @classmethod
    def from_ids(cls, ids: Any) -> Rows:
        """Hash the ids of the rows: integers or text; the integer 7 and the text "7" are the same id.

        Args:
            ids: One id per row. Files without types, such as CSV, give text where others give integers.

        Returns:
            Named rows.

        Raises:
            TypeError: For floats, objects, or more than one id per row.

        Example:
            >>> Rows.from_ids(["a", "b"]).shared(Rows.from_ids(["b", "c"]))
            1
        """
        array = as_numpy(ids)
        if array.dtype.kind not in "iuU" or array.ndim != 1:
            raise TypeError(
                f"Rows.from_ids: `ids` must be a list of integers or text, got {array.dtype} {array.shape}."
            )
        hashes = np.empty(len(array), np.uint64)
        step = max(1, _CHUNK * 4 // max(1, array.dtype.itemsize))
        for start in range(0, len(array), step):
            text = np.ascontiguousarray(array[start : start + step].astype(np.str_, copy=False))
            words = text.astype(text.dtype.newbyteorder("="), copy=False).view(np.uint32)
            hashes[start : start + step] = _hash_rows(words.reshape(len(text), -1))
        return cls(hashes, named=True)

    @classmethod
    def from_values(cls, scores: Array, labels: Array | None) -> Rows:
        """Hash the rows' own values, in single precision.

        A file may hold the same numbers in double precision or as text; they stay the same rows. Rows without labels
        are other rows than those with.

        Example:
            >>> one = Rows.from_values(np.array([[0.25, 0.75]]), np.array([1]))
            >>> one.fingerprint == Rows.from_values(np.array([[0.25, 0.75]]), np.array([1])).fingerprint
            True
        """
        flat = scores.reshape(len(scores), int(np.prod(scores.shape[1:])))
        hashes = np.empty(len(scores), np.uint64)
        labels = np.broadcast_to(np.int64(-1), len(scores)) if labels is None else labels
        step = max(1, _CHUNK // max(1, flat.shape[1]))
        for start in range(0, len(scores), step):
            with np.errstate(over="ignore"):
                words = np.ascontiguousarray(flat[start : start + step], dtype=np.float32).view(np.uint32)
            tail = labels[start : start + step, None].astype(np.uint32)
            hashes[start : start + step] = _hash_rows(np.concatenate([words, tail], axis=1))
        return cls(hashes, named=False)

    @cached_property
    def fingerprint(self) -> str:
        """A short text that is the same for the same set of rows, whatever their order."""
        content = np.sort(self.hashes).astype("<u8").tobytes()
        return hashlib.blake2b(content, digest_size=12).hexdigest()

    def shared(self, other: Rows) -> int:
        """Count the rows that two sets have in common; if one is a sketch, those in the part that it keeps.

        Rows known by their values count only if they occur once in each set: saturated predictions repeat and
        are no evidence. An id counts however often it occurs.
        """
        if self is other:
            return len(self.hashes)
        mine, theirs = (rows.kept_below(min(self.below, other.below)).hashes for rows in (self, other))
        if np.array_equal(mine, theirs):
            return len(mine)
        if self.named and other.named:
            return int(np.isin(mine, theirs).sum())
        return len(np.intersect1d(_singles(mine), _singles(theirs), assume_unique=True))

    @property
    def is_sketch(self) -> bool:
        """Whether only a part of the rows is kept."""
        return self.below < _END

    def kept_below(self, below: int) -> Rows:
        """Return the part of the rows whose hashes are below a number.

        Example:
            >>> len(Rows.from_ids(range(1000)).kept_below(2**63).hashes)
            484
        """
        if below >= self.below:
            return self
        return Rows(self.hashes[self.hashes < np.uint64(below)], self.named, below)

    def sketch(self, most: int) -> Rows:
        """Return about so many of the rows, by their hashes: all of them if there are no more.

        A shared row is found in a sketch as often as the sketch keeps rows: of ten thousand kept out of a million, one
        in a hundred.

        Example:
            >>> rows = Rows.from_ids(range(1000))
            >>> rows.sketch(100).shared(Rows.from_ids(range(500, 2000)))
            54
        """
        if len(self.hashes) <= most:
            return self
        return self.kept_below(int(np.partition(self.hashes, most)[most]))

    def packed(self) -> dict[str, Any]:
        """Return the rows as text and numbers, for JSON.

        Example:
            >>> Rows.unpacked(Rows.from_ids(["a", "b"]).packed()).shared(Rows.from_ids(["b"]))
            1
        """
        text = base64.b64encode(self.hashes.astype("<u8").tobytes()).decode()
        return {"named": self.named, "hashes": text} | ({"below": self.below} if self.is_sketch else {})

    @classmethod
    def unpacked(cls, content: Any) -> Rows:
        """Read what :meth:`packed` gave.

        Raises:
            ValueError: If it is damaged.

        Example:
            >>> Rows.unpacked({"named": True, "hashes": "?"})
            Traceback (most recent call last):
            ...
            ValueError: rows must be hashes in base64, whether they are named, and below which number they are kept
        """
        try:
            named, below = content["named"], content.get("below", _END)
            raw = base64.b64decode(content["hashes"], validate=True)
            if not isinstance(named, bool) or type(below) is not int or not 0 < below <= _END or len(raw) % 8:
                raise ValueError(named)
        except (ValueError, TypeError, KeyError, AttributeError):
            raise ValueError(
                "rows must be hashes in base64, whether they are named, and below which number they are kept"
            ) from None
        return cls(np.frombuffer(raw, "<u8").astype(np.uint64), named, below)

    def union(self, other: Rows | None) -> Rows:
        """Return the rows of both sets, once; rows known in another way cannot be compared and are left out.

        Example:
            >>> len(Rows.from_ids([1]).union(Rows.from_ids([2])).hashes)
            2
        """
        if other is None or other is self or not len(other.hashes):
            return self
        if not len(self.hashes):
            return other
        if other.named != self.named:
            return self
        below = min(self.below, other.below)
        mine, theirs = (rows.kept_below(below).hashes for rows in (self, other))
        return Rows(np.concatenate([mine, theirs[~np.isin(theirs, mine)]]), self.named, below)


#: What is wrong with shared rows, unless a caller words it.
_FITTED = "rows were used to fit the calibrator, so they cannot judge it. Fit on 'calib', score on 'test'."


def check_disjoint(judged: Rows, fitted: Rows, *, where: str, problem: str = _FITTED) -> None:
    """Raise if rows to be judged were used to fit.

    Rows known by ids must not share one. Rows known by their values may coincide in up to one in a hundred, and in as
    many as chance explains: rounded or discrete scores repeat, so that different samples have equal values.

    Args:
        judged: Rows to be judged.
        fitted: Rows that were used to fit.
        where: Who checks; the message begins with it.
        problem: What follows the number of shared rows in the message, with a remedy.

    Raises:
        SplitError: With the number of shared rows.

    Example:
        >>> rows = Rows.from_ids([1, 2, 3])
        >>> check_disjoint(rows, Rows.from_ids([4]), where="score")
        >>> check_disjoint(rows, Rows.from_ids([3]), where="score")
        Traceback (most recent call last):
        ...
        equipoise.core.errors.SplitError: score: 1 of 3 rows were used to fit the calibrator...
    """
    if judged.named != fitted.named:
        return
    looked_at, known = judged.kept_below(fitted.below), fitted.kept_below(judged.below)
    shared = looked_at.shared(known)
    if shared and (judged.named or _is_leak(looked_at.hashes, known.hashes, shared)):
        remedy = "" if judged.named else " If equal rows are different samples, identify them: {ids}."
        raise SplitError(
            f"{shared} of {len(looked_at.hashes)} {problem}{remedy}",
            where=where,
            arguments={"ids": ""},
        )


def unchecked_rows(judged: Rows, fitted: Rows, *, purpose: str = "fit the calibrator") -> str:
    """Return why :func:`check_disjoint` cannot find shared rows, as a sentence; empty if it can.

    Args:
        judged: Rows to be judged.
        fitted: Rows that were used before.
        purpose: What for.

    Example:
        >>> unchecked_rows(Rows.from_ids([1, 2]), Rows.from_ids([3]))
        ''
        >>> coarse = Rows.from_values(np.array([0.5, 0.5, 0.9]), np.array([1, 1, 0]))
        >>> unchecked_rows(coarse, coarse)
        'Whether rows were used to fit the calibrator was not checked: 2 of 3 rows have the values of another row. ...'
    """
    if not len(judged.hashes) or not len(fitted.hashes):
        return ""
    start = f"Whether rows were used to {purpose} was not checked:"
    if judged.named != fitted.named:
        one, other = ("these rows", "those of the fit") if judged.named else ("the rows of the fit", "these")
        return f"{start} {one} have ids and {other} have none. Give ids to both."
    if judged.named:
        return ""
    for rows, which in ((judged, "rows"), (fitted, "rows of the fit")):
        repeated = len(rows.hashes) - len(_singles(rows.hashes))
        if repeated > _REPEATED * len(rows.hashes):
            return (
                f"{start} {repeated:,} of {len(rows.hashes):,} {which} have the values of another row. To check it, "
                f"give ids to the rows of both files."
            )
    return ""


def _is_leak(judged: Array, fitted: Array, shared: int) -> bool:
    """Return whether more rows have equal values in both sets than chance explains.

    If the sets were independent, and two rows are equal with a small probability q, then values that occur twice
    within the sets number about ``(n² + m²) q / 2``, and values shared between them about ``n m q``. Given their sum,
    the second number is binomial, which needs no q. Without any repeated value, equality is taken for identity, but
    for up to three rows.
    """
    if np.array_equal(np.sort(judged), np.sort(fitted)):
        return True
    n, m = len(judged), len(fitted)
    if shared <= n // 100:
        return False
    twice = sum(
        int(np.count_nonzero(np.unique(part, return_counts=True)[1] == 2)) for part in (judged, fitted)
    )
    if twice == 0:
        return shared >= min(4, n)
    from scipy.special import bdtrc  # slow to import, and rarely needed

    chance = float(bdtrc(shared - 1, shared + twice, 2 * n * m / (n + m) ** 2))
    return chance < _UNLIKELY


def _singles(hashes: Array) -> Array:
    values, counts = np.unique(hashes, return_counts=True)
    singles: Array = values[counts == 1]
    return singles


def _hash_rows(words: Array) -> Array:
    """Hash rows of 32-bit words; trailing zero words do not change the result."""
    factors = np.random.default_rng(0x5EED).integers(1, 2**63, words.shape[1], dtype=np.uint64) * 2 + 1
    mixed = words.astype(np.uint64) @ factors
    mixed ^= mixed >> np.uint64(32)
    mixed *= np.uint64(0x9E3779B97F4A7C15)
    result: Array = mixed ^ (mixed >> np.uint64(29))
    return result
