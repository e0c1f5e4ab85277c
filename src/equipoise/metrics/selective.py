"""Risk and coverage: how few mistakes remain if the least confident predictions are withheld."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.special import digamma

from equipoise.core.arrays import Array
from equipoise.metrics.inputs import TopLabel, top_label

__all__ = ["RiskCoverage", "area_under_risk_coverage", "risk_coverage"]

# From here on, the first three terms of the series of a harmonic number are exact to 1e-12.
_SMALL = 16.0
# Cells in a block, whose arrays stay in the processor's cache.
_BLOCK = 1 << 13


class RiskCoverage(NamedTuple):
    """Error rate among the most confident rows, by how many are kept.

    Attributes:
        coverage: Share of rows kept, ascending; one point per distinct confidence.
        risk: Error rate among them.
        threshold: The lowest confidence kept.
    """

    coverage: Array
    risk: Array
    threshold: Array

    def thinned(self, most: int = 200) -> RiskCoverage:
        """Return at most so many points of the curve, the first and the last among them.

        Example:
            >>> risk_coverage([[0.9, 0.1], [0.8, 0.2], [0.6, 0.4]], [0, 0, 1]).thinned(2).threshold
            array([0.9, 0.6])
        """
        n = len(self.coverage)
        place = np.unique(np.linspace(0, n - 1, min(most, n)).round().astype(np.int64))
        return RiskCoverage(*(column[place] for column in self))


def area_under_risk_coverage(probs: Any, labels: Any = None, *, sample_weight: Any = None) -> float:
    r"""Return the mean error rate over all shares of most confident rows that may be kept.

    .. math:: \frac1n \sum_{i=1}^n \frac1i \sum_{j \le i} [\hat y_{(j)} \ne y_{(j)}],\; c_{(1)} \ge c_{(2)} \ge \dots

    Args:
        probs: Probabilities ``(n, k)`` or ``(n,)``; or Predictions alone.
        labels: True classes ``(n,)``.
        sample_weight: One weight per row.

    Returns:
        A number from 0 to 1; lower is better. Rows of equal confidence share their mistakes evenly.

    Example:
        >>> area_under_risk_coverage([[0.9, 0.1], [0.6, 0.4]], [0, 1])
        0.25

    Reference:
        Geifman and El-Yaniv (2017), Selective classification for deep neural networks.
    """
    mass, wrong, _ = _descending(top_label(probs, labels, sample_weight, where="area_under_risk_coverage"))
    return float(aurc_of_cells(mass, wrong))


def aurc_of_cells(mass: Array, wrong: Array, *, sums: tuple[Array, Array] | None = None) -> Array:
    """Return the area from weights and mistakes in descending order of confidence, ``(..., m)``.

    The running sums of both are computed unless they are given. Within a cell mistakes come evenly, so the risk after
    i rows is a + b / i, and the sum over i is a difference of harmonic numbers.

    Example:
        >>> float(aurc_of_cells(np.array([1.0, 1.0]), np.array([0.0, 1.0])))
        0.25
    """
    end, missed = sums or (np.cumsum(mass, axis=-1), np.cumsum(wrong, axis=-1))
    area = missed[..., -1].copy()
    # The first cell starts at no rows, where its factor is zero whatever the harmonic number. Every block begins with
    # the last cell of the block before.
    for start in range(0, max(1, mass.shape[-1] - 1), _BLOCK):
        cells, later = slice(start, start + _BLOCK + 1), slice(start + 1, start + _BLOCK + 1)
        harmonic, size, missing = _harmonic(end[..., cells]), mass[..., later], wrong[..., later]
        rate = np.divide(missing, size, out=np.zeros_like(size), where=size > 0)
        factor = missed[..., later] - missing - (end[..., later] - size) * rate
        area += np.einsum("...i,...i->...", factor, harmonic[..., 1:] - harmonic[..., :-1])
    result: Array = area / end[..., -1]
    return result


def _harmonic(n: Array) -> Array:
    """Return the harmonic number of n up to a constant, ``digamma(n + 1)``: its series, except where n is small."""
    middle = n + 0.5
    inverse = 1 / (middle * middle)
    result: Array = np.log(middle) + inverse * (1 / 24 - inverse * (7 / 960 - inverse * (31 / 8064)))
    few = n < _SMALL
    if few.any():
        result[few] = digamma(n[few] + 1)
    return result


def risk_coverage(probs: Any, labels: Any = None, *, sample_weight: Any = None) -> RiskCoverage:
    """Return the curve behind the area: the error rate at every threshold on confidence.

    Args:
        probs: Probabilities ``(n, k)`` or ``(n,)``; or Predictions alone.
        labels: True classes ``(n,)``.
        sample_weight: One weight per row.

    Returns:
        Coverage, risk and threshold, one point per distinct confidence.

    Example:
        >>> risk_coverage([[0.9, 0.1], [0.6, 0.4]], [0, 1]).risk
        array([0. , 0.5])
    """
    return risk_curve(top_label(probs, labels, sample_weight, where="risk_coverage"))


def risk_curve(top: TopLabel) -> RiskCoverage:
    """Return the error rate at every threshold on confidence."""
    return risk_of_cells(*_descending(top))


def risk_of_cells(mass: Array, wrong: Array, threshold: Array) -> RiskCoverage:
    """Return the curve from weights and mistakes in descending order of confidence, ``(m,)``.

    Example:
        >>> risk_of_cells(np.array([1.0, 1.0]), np.array([0.0, 1.0]), np.array([0.9, 0.6])).risk
        array([0. , 0.5])
    """
    kept = np.cumsum(mass)
    return RiskCoverage(kept / kept[-1], np.cumsum(wrong) / kept, threshold)


def _descending(top: TopLabel) -> tuple[Array, Array, Array]:
    """Return weight, mistakes and confidence of each distinct confidence, highest first."""
    cells = top.cells
    return cells.mass[::-1], cells.wrong[::-1], cells.confidence[::-1]


def excess_area_under_risk_coverage(probs: Any, labels: Any = None, *, sample_weight: Any = None) -> float:
    """Return the area minus the least one that so many mistakes allow (E-AURC).

    The least area has every mistake after every correct prediction, so the excess is due to the order alone.

    Args:
        probs: Probabilities ``(n, k)`` or ``(n,)``; or Predictions alone.
        labels: True classes ``(n,)``.
        sample_weight: One weight per row.

    Returns:
        A number from 0 to 1; 0 if all mistakes are less confident than all correct predictions.

    Example:
        >>> excess_area_under_risk_coverage([[0.9, 0.1], [0.6, 0.4]], [0, 1])
        0.0

    Reference:
        Geifman, Uziel and El-Yaniv (2019), Bias-reduced uncertainty estimation for deep neural classifiers.

    Differs from the authors' code:
        The least area is computed for the given number of rows; the paper approximates it by an integral.
    """
    top = top_label(probs, labels, sample_weight, where="excess_area_under_risk_coverage")
    mass, wrong, _ = _descending(top)
    right, mistakes = mass.sum() - wrong.sum(), wrong.sum()
    least = aurc_of_cells(np.array([right, mistakes]), np.array([0.0, mistakes]))
    return max(0.0, float(aurc_of_cells(mass, wrong) - least))


def area_under_generalized_risk_coverage(
    probs: Any, labels: Any = None, *, sample_weight: Any = None
) -> float:
    r"""Return the mean over all prefixes of the share of all rows that are accepted and wrong (AUGRC).

    .. math:: \frac1n \sum_{i=1}^n \frac1n \sum_{j \le i} [\hat y_{(j)} \ne y_{(j)}],\; c_{(1)} \ge c_{(2)} \ge \dots

    Mistakes among few rows do not dominate it as they do in AURC.

    Args:
        probs: Probabilities ``(n, k)`` or ``(n,)``; or Predictions alone.
        labels: True classes ``(n,)``.
        sample_weight: One weight per row.

    Returns:
        A number from 0 to 1; lower is better. Rows of equal confidence share their mistakes evenly.

    Example:
        >>> area_under_generalized_risk_coverage([[0.9, 0.1], [0.6, 0.4]], [0, 1])
        0.25

    Reference:
        Traub et al. (2024), Overcoming common flaws in the evaluation of selective classification systems.
    """
    top = top_label(probs, labels, sample_weight, where="area_under_generalized_risk_coverage")
    mass, wrong, _ = _descending(top)
    return float(augrc_of_cells(mass, wrong))


def augrc_of_cells(mass: Array, wrong: Array, *, missed: Array | None = None) -> Array:
    """Return AUGRC from weights and mistakes in descending order of confidence, ``(..., m)``.

    The running sums of the mistakes are computed unless they are given.

    Example:
        >>> float(augrc_of_cells(np.array([1.0, 1.0]), np.array([0.0, 1.0])))
        0.25
    """
    missed = np.cumsum(wrong, axis=-1) if missed is None else missed
    pairs = np.einsum("...i,...i->...", mass, missed)
    within = np.einsum("...i,...i->...", mass, wrong) - wrong.sum(axis=-1)
    result: Array = (pairs - within / 2) / mass.sum(axis=-1) ** 2
    return result


def risk_at_coverage(probs: Any, labels: Any = None, *, coverage: float, sample_weight: Any = None) -> float:
    """Return the error rate among the most confident share of the rows.

    Args:
        probs: Probabilities ``(n, k)`` or ``(n,)``; or Predictions alone.
        labels: True classes ``(n,)``.
        coverage: Share of rows that are accepted, above 0 and at most 1.
        sample_weight: One weight per row.

    Returns:
        A number from 0 to 1. If the share ends within rows of equal confidence, these share their mistakes evenly.

    Example:
        >>> risk_at_coverage([[0.9, 0.1], [0.6, 0.4]], [0, 1], coverage=0.5)
        0.0
    """
    if not 0 < coverage <= 1:
        raise ValueError(f"risk_at_coverage: `coverage` must be above 0 and at most 1, got {coverage}.")
    mass, wrong, _ = _descending(top_label(probs, labels, sample_weight, where="risk_at_coverage"))
    accepted = coverage * mass.sum()
    return float(np.interp(accepted, _from_zero(mass), _from_zero(wrong)) / accepted)


def coverage_at_risk(probs: Any, labels: Any = None, *, risk: float, sample_weight: Any = None) -> float:
    """Return the largest share of the rows that a threshold accepts with at most this error rate.

    It describes these rows and guarantees nothing for others; see :func:`equipoise.decisions.certify_threshold`.

    Args:
        probs: Probabilities ``(n, k)`` or ``(n,)``; or Predictions alone.
        labels: True classes ``(n,)``.
        risk: Error rate that is allowed, at least 0 and below 1.
        sample_weight: One weight per row.

    Returns:
        A number from 0 to 1; 0 if no threshold has so low an error rate.

    Example:
        >>> coverage_at_risk([[0.9, 0.1], [0.6, 0.4]], [0, 1], risk=0.1)
        0.5
    """
    if not 0 <= risk < 1:
        raise ValueError(f"coverage_at_risk: `risk` must be at least 0 and below 1, got {risk}.")
    curve = risk_of_cells(*_descending(top_label(probs, labels, sample_weight, where="coverage_at_risk")))
    return float(curve.coverage[curve.risk <= risk + 1e-12].max(initial=0.0))


def _from_zero(column: Array) -> Array:
    return np.concatenate([[0.0], np.cumsum(column)])
