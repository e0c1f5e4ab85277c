"""Random orders and numbers that are the same on every machine and with every NumPy."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from equipoise.core.seeds import derive_seed

__all__ = ["permutation", "uniform"]


def permutation(n: int, *, seed: int, stream: tuple[object, ...] = ()) -> NDArray[np.int64]:
    """Return the numbers ``0 .. n - 1`` in a random order.

    NumPy promises that the raw bits of a bit generator never change; it does not promise so for
    ``Generator.permutation``. The order is therefore that of sorted raw bits.

    Args:
        n: How many numbers.
        seed: The run's seed.
        stream: What the order is for, for example ``("epoch", 3)``.

    Returns:
        An array of ``n`` int64 numbers.

    Example:
        >>> permutation(6, seed=0)
        array([1, 3, 5, 2, 4, 0])
    """
    return np.argsort(_raw(n, seed, stream), kind="stable").astype(np.int64, copy=False)


def uniform(n: int, *, seed: int, stream: tuple[object, ...] = ()) -> NDArray[np.float64]:
    """Return ``n`` numbers in ``[0, 1)``, each a multiple of 2**-53.

    Args:
        n: How many numbers.
        seed: The run's seed.
        stream: What the numbers are for.

    Returns:
        An array of ``n`` float64 numbers.

    Example:
        >>> numbers = uniform(3, seed=0)
        >>> bool(((0 <= numbers) & (numbers < 1)).all())
        True
    """
    bits = _raw(n, seed, stream) >> np.uint64(11)
    return bits.astype(np.float64) * 2.0**-53


def _raw(n: int, seed: int, stream: tuple[object, ...]) -> NDArray[np.uint64]:
    raw = np.random.PCG64(derive_seed(seed, *stream)).random_raw(n)
    return np.asarray(raw, dtype=np.uint64)
