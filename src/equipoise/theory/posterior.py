"""The class posterior behind a network trained with a focal or dual focal loss, in closed form."""

from __future__ import annotations

from math import isfinite
from typing import Any, Literal, TypeVar

import numpy as np

from equipoise.core.array_functions import AnyArray, double, softmax, sum_by_index, take_along
from equipoise.core.arrays import array_namespace, is_tensor
from equipoise.core.names import check_choice

__all__ = ["confidence_bias", "posterior_of_minimizer", "recover_posterior"]

#: A NumPy array or a torch tensor; answers are of the same kind.
Array = TypeVar("Array", bound=Any)

_TINY = 1e-300


def recover_posterior(
    probs: Array, *, loss: Literal["focal", "dual_focal"], gamma: float, coupled: bool = True
) -> Array:
    r"""Undo what a focal or dual focal loss does to the probabilities of a perfectly trained network.

    Neither loss is proper: the probabilities :math:`q` that minimize their risk are not the class posterior
    :math:`\eta`, but determine it. Use it on a network that fits its data well; on one that does not, a
    fitted calibrator is the better choice.

    .. math:: \eta_i \propto q_i / \varphi(q_i)

    For dual focal loss sort :math:`q_1 > q_2 > \dots`, with :math:`b_i = 1 - q_i + q_{i+1}`. Class *i* + 1
    enters the risk a second time, as the rival of class *i*. Equal derivatives for all classes give

    .. math::
        x_1 = \frac{q_1}{\varphi_1}, \qquad
        x_{i+1} = \frac{q_{i+1}}{\varphi_{i+1}} \left(1 - \gamma b_i^{\gamma-1} \log q_i \; x_i \right),
        \qquad \eta = x / \textstyle\sum x .

    Args:
        probs: Probabilities ``(..., k)`` of the network, not logits.
        loss: The loss it was trained with.
        gamma: The focusing parameter it was trained with, at least 0.
        coupled: For dual focal loss, count the gradient through the rival, as training does. False is the
            posterior behind a loss with a detached rival: :math:`\eta_i \propto q_i / \varphi(q_i, q_{i+1})`.

    Returns:
        Posterior probabilities, of the type, shape and precision of ``probs``.

    Raises:
        ValueError: If the rows are not probabilities, or gamma is negative, or the loss is not known.

    Example:
        >>> recover_posterior(np.array([[0.6, 0.3, 0.1]]), loss="focal", gamma=3.0).round(3)
        array([[0.871, 0.105, 0.024]])
        >>> recover_posterior(np.array([0.6, 0.3, 0.1]), loss="dual_focal", gamma=0.0)
        array([0.6, 0.3, 0.1])

    Reference:
        Charoenphakdee et al. (2021), On focal loss for class-posterior probability estimation. The form for
        dual focal loss is derived in ``docs/theory.md``.

    Differs from the authors' code:
        Computed in logarithms and float64, so that saturated rows stay finite. Exactly tied classes,
        where the dual focal risk jumps, share their mean.
    """
    check_choice(loss, ("focal", "dual_focal"), where="recover_posterior", name="loss")
    if not (isfinite(gamma) and gamma >= 0):
        raise ValueError(
            f"recover_posterior: `gamma` must be at least 0, got {gamma}. Pass the value used in training."
        )
    with np.errstate(divide="ignore", under="ignore"):
        posterior = posterior_of_minimizer(_as_probs(probs), loss=loss, gamma=gamma, coupled=coupled)
    converted: Array = posterior.to(probs.dtype) if is_tensor(probs) else posterior.astype(probs.dtype)
    return converted


def posterior_of_minimizer(
    q: AnyArray, *, loss: Literal["focal", "dual_focal"], gamma: AnyArray, coupled: bool = True
) -> AnyArray:
    """Return the posterior of float64 probabilities without looking at values, so that it can be exported.

    Args:
        q: Probabilities ``(..., k)``.
        loss: As in :func:`recover_posterior`.
        gamma: As in :func:`recover_posterior`; above 0 if it is an array.
        coupled: As in :func:`recover_posterior`.

    Example:
        >>> posterior_of_minimizer(np.array([0.5, 0.5]), loss="focal", gamma=3.0)
        array([0.5, 0.5])
    """
    if loss == "focal":
        log_x, _ = _log_terms(q, array_namespace(q).zeros_like(q), gamma)
    else:
        log_x = _dual_log_terms(q, gamma, coupled=coupled)
    return _softmax(log_x)


def confidence_bias(
    probs: Array, *, loss: Literal["focal", "dual_focal"], gamma: float, coupled: bool = True
) -> Array:
    """Say by how much the largest probability exceeds its class posterior.

    Args:
        probs: Probabilities ``(..., k)`` of a network that minimizes the loss.
        loss: The loss it was trained with.
        gamma: The focusing parameter it was trained with.
        coupled: As in :func:`recover_posterior`.

    Returns:
        One value per row: positive where the network is overconfident, negative where underconfident.

    Example:
        >>> confidence_bias(np.array([[0.9, 0.1], [0.5, 0.5]]), loss="focal", gamma=2.0).round(3)
        array([-0.097,  0.   ])

    Reference:
        Charoenphakdee et al. (2021), On focal loss for class-posterior probability estimation.

    Differs from the authors' code:
        Nothing known.
    """
    posterior = recover_posterior(probs, loss=loss, gamma=gamma, coupled=coupled)
    top = array_namespace(probs).argmax(probs, axis=-1)[..., None]
    bias: Array = take_along(probs - posterior, top)[..., 0]
    return bias


def _softmax(scores: AnyArray) -> AnyArray:
    return softmax(scores.reshape(-1, scores.shape[-1])).reshape(scores.shape)


def _as_probs(probs: AnyArray) -> AnyArray:
    q = double(probs)
    total = array_namespace(q).sum(q, axis=-1)
    if q.ndim == 0 or bool((q < 0).any()) or not bool((abs(total - 1) <= 1e-3).all()):
        raise ValueError(
            "recover_posterior: `probs` must be rows of non-negative numbers that sum to 1, "
            f"got rows that sum to between {float(total.min()):.4g} and {float(total.max()):.4g}. "
            "Logits? Pass softmax(logits, -1)."
        )
    return q


def _log_terms(q: AnyArray, rival: AnyArray, gamma: AnyArray) -> tuple[AnyArray, AnyArray]:
    """Give log(q / phi) and the log of the pull on the rival, -gamma b^(gamma-1) log q."""
    xp = array_namespace(q)
    base = xp.clip(1 - q + rival, _TINY, None)
    if isinstance(gamma, int | float) and gamma == 0:
        return xp.log(q), xp.full_like(q, -xp.inf)
    surprise = -xp.log(xp.clip(q, _TINY, None))
    log_phi = (gamma - 1) * xp.log(base) + xp.log(xp.clip(base + gamma * q * surprise, _TINY, None))
    return xp.log(q) - log_phi, xp.log(gamma * surprise) + (gamma - 1) * xp.log(base)


def _dual_log_terms(q: AnyArray, gamma: AnyArray, *, coupled: bool) -> AnyArray:
    xp = array_namespace(q)
    order = xp.argsort(-q, axis=-1)
    ordered = take_along(q, order)
    nothing = xp.zeros_like(ordered[..., :1])
    log_x, log_pull = _log_terms(ordered, xp.concat([ordered[..., 1:], nothing], axis=-1), gamma)
    if coupled:
        columns = [log_x[..., 0]]
        for i in range(1, q.shape[-1]):
            received = columns[-1] + log_pull[..., i - 1]
            columns.append(log_x[..., i] + xp.logaddexp(received, xp.zeros_like(received)))
        log_x = xp.stack(columns, axis=-1)
    changes = xp.where(ordered[..., 1:] != ordered[..., :-1], 1, 0)
    group = xp.concat([xp.zeros_like(order[..., :1]), changes], axis=-1).cumsum(-1)
    shared = xp.log(_mean_of_groups(_softmax(log_x), group))
    return take_along(shared, xp.argsort(order, axis=-1))


def _mean_of_groups(values: AnyArray, group: AnyArray) -> AnyArray:
    """Return for each value the mean of those in its group: exactly tied classes share theirs."""
    xp = array_namespace(values)
    total, size = sum_by_index(values, group), sum_by_index(xp.ones_like(values), group)
    return take_along(total / xp.clip(size, 1.0, None), group)
