"""The grid of probabilities: the least step that rounding, counting or a number format leaves between them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from equipoise.core.arrays import Array
from equipoise.core.bins import Precision

__all__ = ["ProbabilityGrid", "grid_of"]

_MOST_DECIMALS = 6
# The relative error of a number that was rounded to a format; text is often written from single precision.
_RELATIVE_ERROR = {"bfloat16": 2.0**-8, "float16": 2.0**-11}
_SINGLE = 2.0**-23
# A step may not be larger, so that zeros and ones as the only values do not count as one half.
_LARGEST_STEP = 0.2
# Steps below twice this number are not distinguished from zero in single precision.
_TINY = float(np.finfo(np.float32).tiny)
# Below it, multiples of the least probability are no longer distinguished from other numbers.
_LEAST_SHARE = 1e-4
_GLANCE = 1000


@final
@dataclass(frozen=True, slots=True)
class ProbabilityGrid:
    """The least step between probabilities, next to 0.

    Attributes:
        steps: One step for every column; or, where one column is given, the step of the probability of the other
            class and that of the given one.
        words: How the grid was recognized, as in "rounded to 4 decimals".
    """

    steps: tuple[float, ...]
    words: str

    @property
    def half_steps(self) -> tuple[float, ...]:
        """The largest probabilities that may stand as an exact zero; never below the smallest normal float32."""
        return tuple(max(_TINY, min(step, _LARGEST_STEP) / 2) for step in self.steps)


def grid_of(probs: Array, precision: Precision = "float64") -> ProbabilityGrid:
    """Return the grid on which probabilities lie.

    Decimals are tried first, one to six: numbers rounded to 4 decimals are multiples of 0.0001, and the shares of 25
    trees are multiples of 0.04. Otherwise the least probability above zero is the step: of a forest of 30 trees it is
    1/30, and in float16 it is that of the number format.

    Args:
        probs: Probabilities as they were given: ``(n, k)``, or one column ``(n,)`` of a class or a confidence.
        precision: The number format in which they were given.

    Example:
        >>> grid_of(np.array([[0.9313, 0.0687], [1.0, 0.0]]))
        ProbabilityGrid(steps=(0.0001,), words='rounded to 4 decimals')
        >>> grid_of(np.array([0.0, 0.04, 0.96, 0.92])).words
        'multiples of 0.04'
        >>> [f"{step:.1e}" for step in grid_of(np.array([0.0, 0.1234567, 1 - 1e-9])).steps]
        ['1.0e-09', '1.2e-01']
    """
    values = np.asarray(probs, np.float64)
    sides = 2 if values.ndim == 1 else 1
    error = _RELATIVE_ERROR.get(precision, _SINGLE)
    for decimals in range(1, _MOST_DECIMALS + 1):
        step = 10.0**-decimals
        if error / 2 > step / 10:
            break
        if _is_multiple(values.reshape(-1)[:_GLANCE], step, error) and _is_multiple(values, step, error):
            counts = np.unique(np.rint(values / step).astype(np.int64))
            unit = int(np.gcd.reduce(counts))
            words = f"rounded to {decimals} decimal{'s' * (decimals > 1)}"
            return ProbabilityGrid(
                (unit * step,) * sides, words if unit == 1 else f"multiples of {unit * step:.{decimals}f}"
            )
    least = _least_positive(values)
    if least > _LEAST_SHARE and _is_multiple(values, least, 1e-6):
        return ProbabilityGrid((least,) * sides, f"multiples of {least:.3g}")
    if sides == 1:
        return ProbabilityGrid((least,), f"at least {least:.3g} where they are not 0")
    other = _least_positive(1 - values)
    return ProbabilityGrid((other, least), f"at least {least:.3g} and at most {other:.3g} below 1 otherwise")


def _is_multiple(values: Array, step: float, error: float) -> bool:
    counts = np.rint(values / step)
    return bool((np.abs(values - counts * step) <= error * values).all())


def _least_positive(values: Array) -> float:
    return float(values.min(where=values > 0, initial=1.0))
