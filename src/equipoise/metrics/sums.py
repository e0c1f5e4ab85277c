"""What a CalibrationState adds up, in one stretch of memory."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, final

import numpy as np

from equipoise.core.array_functions import AnyArray, asarray_like
from equipoise.core.arrays import Array, as_numpy, is_tensor

if TYPE_CHECKING:
    import torch

__all__ = ["Sums", "add_at", "running_sums"]


@final
class Sums:
    """The additive content of a state: int64 counts and float64 sums, each in one array, and named views of them.

    On the CPU these are NumPy arrays, on another device tensors. Memory is taken when it is first needed.

    Args:
        n_classes: Number of classes.
        n_bins: Bins of equal width.
        n_ranks: The largest k of top-k accuracy.
        n_fine: Cells of the confidence sketch.
        device: Where the numbers live: ``"cpu"``, or a device of torch.

    Example:
        >>> Sums(n_classes=3, n_bins=15, n_ranks=5, n_fine=8).cells.shape
        (15, 2, 7)
    """

    def __init__(
        self, *, n_classes: int, n_bins: int, n_ranks: int, n_fine: int, device: torch.device | str = "cpu"
    ) -> None:
        self.n_classes, self.n_bins, self.n_ranks, self.n_fine = n_classes, n_bins, n_ranks, n_fine
        self.device = device
        self.on_cpu = str(device).partition(":")[0] == "cpu"
        cells, classwise = 14 * n_bins, n_bins * (14 + 3 * n_classes)
        ranks = classwise + n_ranks + 1
        sketch = ranks + 3 * n_fine
        #: Where cells, classwise, ranks, sketch and squares end in ``floats``.
        self.ends = (cells, classwise, ranks, sketch, sketch + 1)
        self._numbers: tuple[AnyArray, AnyArray] | None = None

    def share(self, counts: AnyArray, floats: AnyArray) -> None:
        """Use other arrays as the counts and sums, in place of memory of its own; tensors on the CPU included.

        Raises:
            ValueError: If one has another shape or type.
        """
        if self.on_cpu:
            counts, floats = as_numpy(counts), as_numpy(floats)
        _check_part("counts", counts, (2 * self.n_bins + 1,), "int64")
        _check_part("floats", floats, (self.ends[-1],), "float64")
        self._numbers = (counts, floats)

    def check_values(self) -> None:
        """Raise for numbers that no rows add up to: NaN, negative counts, or sums further below zero than rounding.

        Raises:
            ValueError: With the part that holds one.
        """
        slack = 1e-5 * (1 + abs(float(self.cells[..., 0].sum())))
        for name, part, least in (("counts", self.counts, 0), ("floats", self.floats, -slack)):
            if not bool((part >= least).all()):
                raise ValueError(
                    f"CalibrationState: expected `{name}` without NaN and negative numbers, got "
                    f"{float(part.min())}. The state is damaged: save it again."
                )

    def _all(self) -> tuple[AnyArray, AnyArray]:
        if self._numbers is None:
            sizes = (2 * self.n_bins + 1, self.ends[-1])
            if self.on_cpu:
                self._numbers = np.zeros(sizes[0], np.int64), np.zeros(sizes[1])
            else:
                import torch

                with torch.inference_mode(mode=False):
                    self._numbers = (
                        torch.zeros(sizes[0], dtype=torch.int64, device=self.device),
                        torch.zeros(sizes[1], dtype=torch.float64, device=self.device),
                    )
        return self._numbers

    @property
    def counts(self) -> AnyArray:
        """All counts: ``rows``, ``impossible``."""
        return self._all()[0]

    @property
    def floats(self) -> AnyArray:
        """All sums: ``cells``, ``classwise``, ``ranks``, ``sketch``, ``squares``."""
        return self._all()[1]

    @property
    def rows(self) -> AnyArray:
        """``(bins, 2)``: rows by confidence bin and correctness."""
        return self.counts[:-1].reshape(-1, 2)

    @property
    def cells(self) -> AnyArray:
        """``(bins, 2, 7)``: weight, confidence, its square, nll, its square, Brier, its square."""
        return self.floats[: self.ends[0]].reshape(-1, 2, 7)

    @property
    def classwise(self) -> AnyArray:
        """``(k, bins, 3)``: weight, probability, positives, by class and bin of its probability."""
        return self.floats[self.ends[0] : self.ends[1]].reshape(self.n_classes, self.n_bins, 3)

    @property
    def ranks(self) -> AnyArray:
        """``(r + 1,)``: weight by rank of the true class, the last for all further ranks."""
        return self.floats[self.ends[1] : self.ends[2]]

    @property
    def sketch(self) -> AnyArray:
        """``(m, 3)``: weight, confidence, correct on a fine grid of confidence."""
        return self.floats[self.ends[2] : self.ends[3]].reshape(-1, 3)

    @property
    def squares(self) -> AnyArray:
        """``(1,)``: sum of squared weights."""
        return self.floats[self.ends[3] :]

    @property
    def impossible(self) -> AnyArray:
        """``(1,)``: rows whose true class had probability zero."""
        return self.counts[-1:]

    def parts(self) -> dict[str, AnyArray]:
        """Return the views by name, in a fixed order."""
        names = ("rows", "cells", "classwise", "ranks", "sketch", "squares", "impossible")
        return {name: getattr(self, name) for name in names}

    def fill(self, parts: Mapping[str, AnyArray]) -> None:
        """Copy the numbers of named parts.

        Raises:
            ValueError: If one has another shape or type.
        """
        mine = self.parts()
        for name, part in mine.items():
            _check_part(name, parts[name], tuple(part.shape), _dtype(part))
        for name, part in mine.items():
            part[...] = asarray_like(parts[name], part)

    def like(self, device: torch.device | str = "cpu") -> Sums:
        """Return zeros of the same shapes, on the CPU unless another device is named."""
        return Sums(
            n_classes=self.n_classes,
            n_bins=self.n_bins,
            n_ranks=self.n_ranks,
            n_fine=self.n_fine,
            device=device,
        )

    def to_cpu(self) -> Sums:
        """Return the same numbers as NumPy arrays: these sums themselves, or a copy from another device."""
        if self.on_cpu:
            return self
        copied = self.like()
        copied.add(self)
        return copied

    def add(self, other: Sums) -> None:
        """Add other sums to these, in place."""
        for mine, theirs in ((self.counts, other.counts), (self.floats, other.floats)):
            mine[...] += asarray_like(theirs, mine)


def add_at(target: AnyArray, index: AnyArray, values: AnyArray) -> None:
    """Add values to the rows of an array that an index names; rows that are named twice get both.

    Args:
        target: ``(m,)`` or ``(m, c)``, added to in place.
        index: ``(n,)``.
        values: ``(n,)`` or ``(n, c)``.

    Example:
        >>> target = np.zeros(2)
        >>> add_at(target, np.array([1, 1]), np.array([0.5, 2.0])); target
        array([0. , 2.5])
    """
    if is_tensor(target):
        target.index_add_(0, index, values)
        return
    if values.ndim == 1:
        target += np.bincount(index, values, len(target)).astype(target.dtype, copy=False)
        return
    for column in range(values.shape[1]):
        target[:, column] += np.bincount(index, values[:, column], len(target))


def running_sums(values: Array, most: float) -> Array:
    """Return the running sums of numbers along the last axis, rounded to parts of the largest.

    Whole numbers add up in a tenth of the time of others, and their rounding does not add up. So values are counted in
    parts: 2^-29 of the largest sum in single precision, 2^-62 in double precision.

    Args:
        values: ``(..., m)`` float32 or float64.
        most: What no sum is further from zero than. In single precision, twice as much is possible.

    Example:
        >>> running_sums(np.array([0.5, 0.25, -1.0]), 1.0)
        array([ 0.5 ,  0.75, -0.25])
    """
    whole, bits = (np.int32, 29) if values.dtype == np.float32 else (np.int64, 62)
    parts = values.dtype.type(2.0 ** (bits - math.ceil(math.log2(most))))
    counts = np.rint(values * parts).astype(whole)
    sums: Array = np.cumsum(counts, axis=-1, dtype=whole).astype(values.dtype)
    sums /= parts
    return sums


def _dtype(part: AnyArray) -> str:
    return str(getattr(part, "dtype", type(part).__name__)).removeprefix("torch.")


def _check_part(name: str, part: AnyArray, shape: tuple[int, ...], dtype: str) -> None:
    found = tuple(np.shape(part))
    contiguous = part.is_contiguous() if is_tensor(part) else np.asarray(part).flags.c_contiguous
    if found != shape or _dtype(part) != dtype or not contiguous:
        raise ValueError(
            f"CalibrationState: expected `{name}` of shape {shape} and type {dtype}, got {found} and "
            f"{_dtype(part)}; load a state of the same classes and bins, in the precision it was saved in."
        )
