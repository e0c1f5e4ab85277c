"""The bin of one number in compiled loops; the rule is that of `core.bins`."""

from __future__ import annotations

from typing import Any

from equipoise.compiled.jit import jit

__all__ = ["bin_place"]


@jit()
def bin_place(x: float, edges: Any) -> Any:
    """Return the bin of a number from 0 to 1 among bins of equal width.

    Args:
        x: The number.
        edges: From :func:`equipoise.core.bins.lower_edges`: the ends are below 0 and above 1.
    """
    n_bins = edges.shape[0] - 1
    # The product is at most one bin off, at an edge; the comparisons put it right.
    b = min(int(x * n_bins), n_bins - 1)
    b -= int(x <= edges[b])
    b += int(x > edges[b + 1])
    return b
