"""Where a focal- or dual-focal-trained network must be over- or underconfident."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import isfinite, log

from scipy.optimize import brentq

from equipoise.theory.phi import dual_focal_phi, focal_phi

__all__ = [
    "ConfidenceRegions",
    "dual_focal_regions",
    "dual_focal_under_confident_from",
    "focal_regions",
]

_SMALLEST = 1e-300


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfidenceRegions:
    """Three marks on the confidence axis, under the names of the dual focal loss paper (eq. 13).

    Attributes:
        v_m: Where phi peaks.
        v_prime: Where phi falls through its value at 0, which is (1 + C)^gamma for a rival C.
        v_uc: Where phi falls through 1; for focal loss the same as ``v_prime``.

    Example:
        >>> marks = dual_focal_regions(gamma=1.0, rival=0.3)
        >>> round(marks.v_m, 3), round(marks.v_prime, 3), round(marks.v_uc, 3)
        (0.135, 0.368, 0.604)
    """

    v_m: float
    v_prime: float
    v_uc: float


def focal_regions(*, gamma: float) -> ConfidenceRegions:
    r"""Find the over- and underconfident regions of focal training.

    At the minimizer of the risk the largest probability :math:`v` exceeds its class posterior if
    :math:`v \le v^m`, and falls short of it if :math:`v \ge v' = v^{uc}`. Between the two marks
    it depends on the other classes; with two classes it always falls short.

    Args:
        gamma: Focusing parameter, above 0.

    Returns:
        The marks.

    Raises:
        ValueError: If gamma is not positive: cross-entropy has no such regions.

    Example:
        >>> marks = focal_regions(gamma=5.0)
        >>> round(marks.v_m, 3), round(marks.v_prime, 3)
        (0.064, 0.197)

    Reference:
        Charoenphakdee et al. (2021), On focal loss for class-posterior probability estimation.

    Differs from the authors' code:
        Nothing known.
    """
    _check_gamma(gamma, where="focal_regions")
    peak = _peak(gamma, 0.0)
    unit = _root(lambda v: float(focal_phi(v, gamma=gamma)) - 1, peak, 1.0)
    return ConfidenceRegions(v_m=peak, v_prime=unit, v_uc=unit)


def dual_focal_regions(*, gamma: float, rival: float = 0.0) -> ConfidenceRegions:
    r"""Find the paper's marks of dual focal training, for one rival C that all classes share.

    At the minimizer of that risk the largest probability :math:`v` exceeds its class posterior if
    :math:`v \le v^m`, and falls short of it if :math:`v \ge v'`. The mark :math:`v^{uc}` of eq. 13 lies
    higher: from there on underconfidence is certain as well, but it begins earlier.

    The loss itself takes another rival for every class; :func:`dual_focal_under_confident_from` holds for all.

    Args:
        gamma: Focusing parameter, above 0.
        rival: The probability C that stands for every class's rival, in [0, 1/2].

    Returns:
        The marks.

    Raises:
        ValueError: If gamma is not positive, or the rival cannot be a second largest probability.

    Example:
        >>> focal, dual = focal_regions(gamma=5.0), dual_focal_regions(gamma=5.0, rival=0.2)
        >>> dual.v_uc > focal.v_uc
        True

    Reference:
        Tao et al. (2023), Dual focal loss for calibration, eq. (13).

    Differs from the authors' code:
        It contains the loss only. The paper contradicts itself: Lemma 1 and eq. (14) begin the
        underconfident region at different marks, which agree for a rival of 0 only; see ``docs/theory.md``.
    """
    _check_gamma(gamma, where="dual_focal_regions")
    if not 0 <= rival <= 0.5:
        raise ValueError(
            f"dual_focal_regions: `rival` must be in [0, 0.5], got {rival}. "
            "Pass the second largest probability."
        )
    peak = _peak(gamma, rival)

    def falls_through(level: float) -> float:
        return _root(lambda v: float(dual_focal_phi(v, rival, gamma=gamma)) - level, peak, 1.0)

    return ConfidenceRegions(v_m=peak, v_prime=falls_through((1 + rival) ** gamma), v_uc=falls_through(1.0))


def dual_focal_under_confident_from(*, gamma: float) -> float:
    r"""Find the confidence from which dual focal training is underconfident, whatever the other classes are.

    It is the smallest :math:`v` with :math:`\varphi(v, 1-v) \le \min(1, \varphi(1-v, 0))`, every class with
    its own rival, which is held fixed. The gradient through the rival can only add overconfidence.

    Args:
        gamma: Focusing parameter, above 0.

    Returns:
        The confidence, between 1/2 and 1.

    Raises:
        ValueError: If gamma is not positive.

    Example:
        >>> round(dual_focal_under_confident_from(gamma=1.0), 3)
        0.642

    Reference:
        Derived here, after Tao et al. (2023), Dual focal loss for calibration; see ``docs/theory.md``.

    Differs from the authors' code:
        It contains no such bound, and the paper states none.
    """
    _check_gamma(gamma, where="dual_focal_under_confident_from")

    def excess(v: float) -> float:
        lowest_other = min(1.0, float(focal_phi(1 - v, gamma=gamma)))
        return float(dual_focal_phi(v, 1 - v, gamma=gamma)) - lowest_other

    return _root(excess, 0.5, 1.0)


def _check_gamma(gamma: float, *, where: str) -> None:
    if not (isfinite(gamma) and gamma > 0):
        raise ValueError(
            f"{where}: `gamma` must be above 0, got {gamma}. With 0 it is cross-entropy, without regions."
        )


def _peak(gamma: float, rival: float) -> float:
    """Solve phi' = 0: the sign of phi' is that of a convex function, infinite at 0 and negative at 1/2."""
    return _root(lambda v: log(v) * (gamma * v - 1 - rival) - 2 * (1 - v + rival), _SMALLEST, 0.5)


def _root(function: Callable[[float], float], low: float, high: float) -> float:
    if function(low) <= 0:  # phi starts at its threshold already
        return low
    return float(brentq(function, low, high, xtol=1e-14, rtol=1e-14))
