"""A random sample of pixels whose size is known before they are."""

from __future__ import annotations

from typing import final

import torch
from torch import Tensor

from equipoise.core.seeds import derive_seed

__all__ = ["PixelSample"]


@final
class PixelSample:
    """A uniform sample of all rows ever added, of fixed size: each row draws a number, the smallest are kept.

    Args:
        size: Rows to keep.
        seed: Of the numbers.

    Example:
        >>> sample = PixelSample(2)
        >>> for start in (0, 3):
        ...     sample.add(torch.zeros(3, 2), torch.zeros(3, dtype=torch.int64))
        >>> sample.seen, len(sample.labels)
        (6, 2)
    """

    def __init__(self, size: int, *, seed: int = 0) -> None:
        if size < 1:
            raise ValueError(f"PixelSample: `size` must be at least 1, got {size}. 100000 is usual.")
        self._size, self._random = size, torch.Generator().manual_seed(derive_seed(seed, "pixels"))
        self._drawn = torch.empty(0, dtype=torch.float64)
        self.logits, self.labels = torch.empty(0, 0), torch.empty(0, dtype=torch.int64)
        self.places = torch.empty(0, dtype=torch.int64)
        self.seen = 0

    def add(self, logits: Tensor, labels: Tensor) -> None:
        """Add rows ``(n, k)`` and their labels; what is not kept is let go of."""
        drawn = torch.rand(len(labels), dtype=torch.float64, generator=self._random)
        places = torch.arange(self.seen, self.seen + len(labels))
        self.seen += len(labels)
        limit = self._drawn.max() if len(self._drawn) == self._size else 1.0
        fresh = (drawn < limit).nonzero().flatten()
        drawn = torch.cat([self._drawn, drawn[fresh]])
        kept = drawn.argsort(stable=True)[: self._size]
        old = self.logits if len(self.logits) else logits.new_empty(0, logits.shape[1])
        self._drawn = drawn[kept]
        self.logits = torch.cat([old, logits[fresh]])[kept]
        self.labels = torch.cat([self.labels, labels[fresh]])[kept]
        self.places = torch.cat([self.places, places[fresh]])[kept]
