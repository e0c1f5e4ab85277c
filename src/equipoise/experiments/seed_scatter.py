"""How much a difference between two methods changes from seed to seed, known from a few of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from scipy.special import gammaincinv, stdtrit

__all__ = ["Scatter", "half_width", "joint_scatter", "scatter_of", "usual_scatter"]

#: What is usual in a family counts as much as so many more seeds. It is not known for certain, however large the family
#: is: half of the scatter of a difference is that of the method that all are compared with, small for all if by luck.
_BACKING = 3


class Scatter(NamedTuple):
    """A variance over seeds, and how well it is known.

    Attributes:
        variance: Of the number of one seed.
        freedom: Degrees of freedom; infinite if nothing is known of seeds, and they are left out.

    Example:
        >>> Scatter(0.01, 2.0).freedom
        2.0
    """

    variance: float
    freedom: float


def usual_scatter(family: Sequence[Sequence[float]]) -> float | None:
    """Return what is usual among numbers that are asked about together: the median of their variances over seeds.

    Args:
        family: The numbers of each method or pair of methods, one per seed.

    Returns:
        The median, as that of a normal scatter; None if fewer than two have two seeds.

    Example:
        >>> round(usual_scatter([[0.1, 0.2, 0.3], [0.1, 0.1, 0.2], [0.0, 0.4, 0.2]]), 4)
        0.0144
    """
    known = [np.asarray(values, dtype=float) for values in family if len(values) > 1]
    if len(known) < 2:
        return None
    freedoms = np.array([len(values) - 1 for values in known])
    variances = np.array([values.var(ddof=1) for values in known])
    # Half of all variances lie below this share of the true one.
    medians = gammaincinv(freedoms / 2, 0.5) / (freedoms / 2)
    return float(np.median(variances / medians))


def scatter_of(values: Sequence[float], usual: float | None = None) -> Scatter:
    """Return the scatter of a number over its seeds.

    Two or three seeds may lie close together by luck, and a test that trusts them calls chance a difference: of tables
    of forty equal methods with two seeds each and little error from rows, three of four showed one. So what is usual in
    the family counts as three more seeds where the scatter is smaller. Then about one of ten shows one at most (Holm's
    correction in both), and real differences are seen more often, because the scatter is better known.

    Args:
        values: Numbers, one per seed.
        usual: The variance that is usual among those asked about together.

    Example:
        >>> scatter_of([0.1, 0.1], usual=0.01)
        Scatter(variance=0.0075, freedom=4.0)
        >>> scatter_of([0.1])
        Scatter(variance=0.0, freedom=inf)
    """
    freedom = len(values) - 1
    variance = float(np.var(values, ddof=1)) if freedom else 0.0
    if usual is None:
        return Scatter(variance, float(freedom) if freedom else np.inf)
    backed = (_BACKING * usual + freedom * variance) / (_BACKING + freedom)
    return Scatter(max(variance, backed), float(_BACKING + freedom))


def joint_scatter(rows: float, scatters: Iterable[Scatter]) -> Scatter:
    """Join the error from rows, of many degrees of freedom, with scatters over few seeds (Welch and Satterthwaite).

    Args:
        rows: Standard error from the rows.
        scatters: Of means over seeds.

    Example:
        >>> joint_scatter(0.0, [Scatter(0.01, 2.0)])
        Scatter(variance=0.01, freedom=2.0)
    """
    known = list(scatters)
    variance = rows**2 + sum(scatter.variance for scatter in known)
    loose = sum(scatter.variance**2 / scatter.freedom for scatter in known)
    return Scatter(variance, variance**2 / loose if loose > 0 else np.inf)


def half_width(scatter: Scatter, *, alpha: float = 0.05) -> float:
    """Return half of the interval around a mean that has this scatter (Student's).

    Example:
        >>> round(half_width(Scatter(1.0, 1.0)), 2), round(half_width(Scatter(1.0, np.inf)), 2)
        (12.71, 1.96)
    """
    return float(np.sqrt(scatter.variance) * stdtrit(scatter.freedom, 1 - alpha / 2))
