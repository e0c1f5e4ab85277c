"""How much a difference between two methods changes from seed to seed, known from a few of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.special import gammaincinv

__all__ = ["Scatter", "scatter_of", "usual_scatter"]

#: What the others of a family know of the scatter of one difference, as a multiple of what its own seeds know. Half of
#: it is the scatter of the method that all are compared with, which is small for all if it is small by luck. So a whole
#: family knows four times as much as one difference, however large it is.
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


def usual_scatter(family: Sequence[Sequence[float]]) -> Scatter | None:
    """Return what is usual among differences that are asked about together: the median of their variances.

    Args:
        family: The differences of each pair of methods, one per seed.

    Returns:
        The median, as that of a normal scatter; None if fewer than two pairs have two seeds.

    Example:
        >>> usual = usual_scatter([[0.1, 0.2, 0.3], [0.1, 0.1, 0.2], [0.0, 0.4, 0.2]])
        >>> round(usual.variance, 4), usual.freedom
        (0.0144, 6.0)
    """
    known = [np.asarray(values, dtype=float) for values in family if len(values) > 1]
    if len(known) < 2:
        return None
    freedoms = np.array([len(values) - 1 for values in known])
    variances = np.array([values.var(ddof=1) for values in known])
    # Half of all variances lie below this share of the true one.
    medians = gammaincinv(freedoms / 2, 0.5) / (freedoms / 2)
    return Scatter(float(np.median(variances / medians)), _BACKING * float(np.median(freedoms)))


def scatter_of(values: Sequence[float], usual: Scatter | None = None) -> Scatter:
    """Return the scatter of one difference over its seeds.

    Two or three seeds may lie close together by luck, and a test that trusts them calls chance a difference: of tables
    of forty equal methods with two seeds each and little error from rows, three of four showed one. So what is usual in
    the family is a floor. With it about one of ten does at most (Holm's correction in both), and real differences are
    seen more often, because the scatter is better known.

    Args:
        values: Differences, one per seed.
        usual: What is usual among those asked about together.

    Example:
        >>> scatter_of([0.1, 0.1], usual=Scatter(0.01, 3.0))
        Scatter(variance=0.01, freedom=4.0)
        >>> scatter_of([0.1])
        Scatter(variance=0.0, freedom=inf)
    """
    freedom = len(values) - 1
    variance = float(np.var(values, ddof=1)) if freedom else 0.0
    if usual is None:
        return Scatter(variance, float(freedom) if freedom else np.inf)
    return Scatter(max(variance, usual.variance), usual.freedom + freedom)
