"""What a CalibrationState adds up, in one stretch of memory."""

from __future__ import annotations

from collections.abc import Mapping
from typing import final

import torch
from torch import Tensor

__all__ = ["Sums"]


@final
class Sums:
    """The additive content of a state: int64 counts and float64 sums, each in one tensor, and named views of them.

    Args:
        n_classes: Number of classes.
        n_bins: Bins of equal width.
        n_ranks: The largest k of top-k accuracy.
        n_fine: Cells of the confidence sketch.
        device: Where the numbers live.

    Memory is taken when it is first needed.

    Example:
        >>> Sums(n_classes=3, n_bins=15, n_ranks=5, n_fine=8).cells.shape
        torch.Size([15, 2, 7])
    """

    def __init__(
        self, *, n_classes: int, n_bins: int, n_ranks: int, n_fine: int, device: torch.device | str = "cpu"
    ) -> None:
        self.n_classes, self.n_bins, self.n_ranks, self.n_fine = n_classes, n_bins, n_ranks, n_fine
        self.device = device
        self.on_cpu = device == "cpu" or torch.device(device).type == "cpu"
        cells, classwise = 14 * n_bins, n_bins * (14 + 3 * n_classes)
        ranks = classwise + n_ranks + 1
        sketch = ranks + 3 * n_fine
        #: Where cells, classwise, ranks, sketch and squares end in ``floats``.
        self.ends = (cells, classwise, ranks, sketch, sketch + 1)
        self._numbers: tuple[Tensor, Tensor] | None = None

    def share(self, counts: Tensor, floats: Tensor) -> None:
        """Use other tensors as the counts and sums, in place of memory of its own.

        Raises:
            ValueError: If one has another shape or type.
        """
        lengths = {"counts": 2 * self.n_bins + 1, "floats": self.ends[-1]}
        for part, (name, length) in zip((counts, floats), lengths.items(), strict=True):
            dtype = torch.int64 if name == "counts" else torch.float64
            _check_part(name, part, (length,), dtype)
        self._numbers = (counts, floats)

    def check_values(self) -> None:
        """Raise for numbers that no rows add up to: NaN, negative counts, or sums further below zero than rounding.

        Raises:
            ValueError: With the part that holds one.
        """
        slack = 1e-5 * (1 + float(self.cells[..., 0].sum().abs()))
        for name, part, least in (("counts", self.counts, 0), ("floats", self.floats, -slack)):
            if not bool((part >= least).all()):
                raise ValueError(
                    f"CalibrationState: expected `{name}` without NaN and negative numbers, got "
                    f"{float(part.min())}. The state is damaged: save it again."
                )

    def _all(self) -> tuple[Tensor, Tensor]:
        if self._numbers is None:
            with torch.inference_mode(mode=False):
                self._numbers = (
                    torch.zeros(2 * self.n_bins + 1, dtype=torch.int64, device=self.device),
                    torch.zeros(self.ends[-1], dtype=torch.float64, device=self.device),
                )
        return self._numbers

    @property
    def counts(self) -> Tensor:
        """All counts: ``rows``, ``impossible``."""
        return self._all()[0]

    @property
    def floats(self) -> Tensor:
        """All sums: ``cells``, ``classwise``, ``ranks``, ``sketch``, ``squares``."""
        return self._all()[1]

    @property
    def rows(self) -> Tensor:
        """``(bins, 2)``: rows by confidence bin and correctness."""
        return self.counts[:-1].view(-1, 2)

    @property
    def cells(self) -> Tensor:
        """``(bins, 2, 7)``: weight, confidence, its square, nll, its square, Brier, its square."""
        return self.floats[: self.ends[0]].view(-1, 2, 7)

    @property
    def classwise(self) -> Tensor:
        """``(k, bins, 3)``: weight, probability, positives, by class and bin of its probability."""
        return self.floats[self.ends[0] : self.ends[1]].view(self.n_classes, self.n_bins, 3)

    @property
    def ranks(self) -> Tensor:
        """``(r + 1,)``: weight by rank of the true class, the last for all further ranks."""
        return self.floats[self.ends[1] : self.ends[2]]

    @property
    def sketch(self) -> Tensor:
        """``(m, 3)``: weight, confidence, correct on a fine grid of confidence."""
        return self.floats[self.ends[2] : self.ends[3]].view(-1, 3)

    @property
    def squares(self) -> Tensor:
        """``(1,)``: sum of squared weights."""
        return self.floats[self.ends[3] :]

    @property
    def impossible(self) -> Tensor:
        """``(1,)``: rows whose true class had probability zero."""
        return self.counts[-1:]

    def parts(self) -> dict[str, Tensor]:
        """Return the views by name, in a fixed order."""
        names = ("rows", "cells", "classwise", "ranks", "sketch", "squares", "impossible")
        return {name: getattr(self, name) for name in names}

    def fill(self, parts: Mapping[str, Tensor]) -> None:
        """Copy the numbers of named parts.

        Raises:
            ValueError: If one has another shape or type.
        """
        mine = self.parts()
        for name, part in mine.items():
            _check_part(name, parts[name], tuple(part.shape), part.dtype)
        for name, part in mine.items():
            part.copy_(parts[name])

    def like(self, device: torch.device | str = "cpu") -> Sums:
        """Return zeros of the same shapes, on the CPU unless said otherwise."""
        return Sums(
            n_classes=self.n_classes,
            n_bins=self.n_bins,
            n_ranks=self.n_ranks,
            n_fine=self.n_fine,
            device=device,
        )

    def add(self, other: Sums) -> None:
        """Add other sums to these, in place."""
        self.counts.add_(other.counts.to(self.counts.device))
        self.floats.add_(other.floats.to(self.floats.device))


def _check_part(name: str, part: Tensor, shape: tuple[int, ...], dtype: torch.dtype) -> None:
    if tuple(part.shape) != shape or part.dtype != dtype or not part.is_contiguous():
        raise ValueError(
            f"CalibrationState: expected `{name}` of shape {shape} and type {dtype}, got {tuple(part.shape)} and "
            f"{part.dtype}; load a state of the same classes and bins, in the precision it was saved in."
        )
