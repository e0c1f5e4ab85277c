"""The function phi whose shape decides what focal and dual focal training do to confidence."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["dual_focal_phi", "focal_phi"]


def focal_phi(prob: ArrayLike, *, gamma: float) -> NDArray[np.float64]:
    r"""Weigh a class's probability as the minimizer of the focal risk does.

    At the minimizer :math:`q` of the focal risk under the class posterior :math:`\eta`, every class has
    the same :math:`\eta_i \varphi(q_i) / q_i`, so phi is how many times too large or too small :math:`q_i`
    stands. It starts at 1, rises to one peak below 1/2, and falls to 0.

    .. math:: \varphi(q) = (1-q)^\gamma - \gamma q (1-q)^{\gamma-1} \log q

    Args:
        prob: Probabilities in [0, 1].
        gamma: Focusing parameter, at least 0; 0 is cross-entropy and gives 1 everywhere.

    Returns:
        Phi of each probability.

    Example:
        >>> focal_phi([0.0, 0.5, 1.0], gamma=1.0).round(4).tolist()
        [1.0, 0.8466, 0.0]

    Reference:
        Charoenphakdee et al. (2021), On focal loss for class-posterior probability estimation.

    Differs from the authors' code:
        Nothing known.
    """
    return dual_focal_phi(prob, 0.0, gamma=gamma)


def dual_focal_phi(prob: ArrayLike, rival: ArrayLike, *, gamma: float) -> NDArray[np.float64]:
    r"""Weigh a class's probability as the minimizer of the dual focal risk does, its rival held fixed.

    Never below :func:`focal_phi` and growing with the rival: this is why dual focal training
    is underconfident on a smaller region.

    .. math:: \varphi(q, u) = (1-q+u)^\gamma - \gamma q (1-q+u)^{\gamma-1} \log q

    Args:
        prob: Probabilities in [0, 1].
        rival: The next lower probability in the same row (*u*), at most ``prob``.
        gamma: Focusing parameter, at least 0.

    Returns:
        Phi of each probability.

    Example:
        >>> dual_focal_phi([0.5, 0.5], [0.0, 0.25], gamma=1.0).round(4).tolist()
        [0.8466, 1.0966]

    Reference:
        Tao et al. (2023), Dual focal loss for calibration.

    Differs from the authors' code:
        It holds the loss only. The loss sends its gradient through the rival too;
        :func:`equipoise.theory.recover_posterior` accounts for that.
    """
    q = np.asarray(prob, dtype=np.float64)
    base = 1 - q + np.asarray(rival, dtype=np.float64)
    if gamma == 0:
        return np.ones_like(base)
    # q log q tends to 0 at both ends, base^(gamma-1) may be infinite at q = 1 for gamma < 1: keep them apart
    log_q = np.log(np.where(q > 0, q, 1.0))
    slope = np.divide(-q * log_q, base, out=np.ones_like(base), where=base > 0)
    return np.asarray(base**gamma * (1 + gamma * slope), dtype=np.float64)
