"""The class posterior behind a network trained with a focal or dual focal loss, in closed form."""

from __future__ import annotations

from math import isfinite
from typing import Literal, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from equipoise.core.names import check_choice

__all__ = ["confidence_bias", "recover_posterior"]

Array = TypeVar("Array", Tensor, NDArray[np.floating])

_TINY = 1e-300


def recover_posterior(
    probs: Array, *, loss: Literal["focal", "dual_focal"], gamma: float, coupled: bool = True
) -> Array:
    r"""Undo what a focal or dual focal loss does to the probabilities of a perfectly trained network.

    Neither loss is proper: the probabilities :math:`q` that minimise their risk are not the class posterior
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
        >>> recover_posterior(torch.tensor([0.6, 0.3, 0.1]), loss="dual_focal", gamma=0.0)
        tensor([0.6000, 0.3000, 0.1000])

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
    q = _as_probs(probs)
    if loss == "focal":
        log_x, _ = _log_terms(q, torch.zeros_like(q), gamma)
    else:
        log_x = _dual_log_terms(q, gamma, coupled=coupled)
    posterior = log_x.softmax(-1)
    if isinstance(probs, Tensor):
        return posterior.to(probs.dtype)
    return posterior.numpy().astype(probs.dtype)


def confidence_bias(
    probs: Array, *, loss: Literal["focal", "dual_focal"], gamma: float, coupled: bool = True
) -> Array:
    """Say by how much the largest probability exceeds its class posterior.

    Args:
        probs: Probabilities ``(..., k)`` of a network that minimises the loss.
        loss: The loss it was trained with.
        gamma: The focusing parameter it was trained with.
        coupled: As in :func:`recover_posterior`.

    Returns:
        One value per row: positive where the network is over-confident, negative where under-confident.

    Example:
        >>> confidence_bias(np.array([[0.9, 0.1], [0.5, 0.5]]), loss="focal", gamma=2.0).round(3)
        array([-0.097,  0.   ])

    Reference:
        Charoenphakdee et al. (2021), On focal loss for class-posterior probability estimation.

    Differs from the authors' code:
        Nothing known.
    """
    posterior = recover_posterior(probs, loss=loss, gamma=gamma, coupled=coupled)
    if isinstance(probs, Tensor):
        top = probs.argmax(-1, keepdim=True)
        return (probs - torch.as_tensor(posterior)).gather(-1, top).squeeze(-1)
    index = probs.argmax(-1)[..., None]
    return np.take_along_axis(probs - posterior, index, axis=-1)[..., 0]


def _as_probs(probs: Tensor | NDArray[np.floating]) -> Tensor:
    # A copy in C order: torch cannot view read-only or reversed arrays.
    q = (
        probs.double()
        if isinstance(probs, Tensor)
        else torch.from_numpy(np.array(probs, np.float64, order="C"))
    )
    total = q.sum(-1)
    if q.ndim == 0 or bool((q < 0).any()) or not torch.allclose(total, torch.ones_like(total), atol=1e-3):
        raise ValueError(
            "recover_posterior: `probs` must be rows of non-negative numbers that sum to 1, "
            f"got rows that sum to between {float(total.min()):.4g} and {float(total.max()):.4g}. "
            "Logits? Pass softmax(logits, -1)."
        )
    return q


def _log_terms(q: Tensor, rival: Tensor, gamma: float) -> tuple[Tensor, Tensor]:
    """Give log(q / phi) and the log of the pull on the rival, -gamma b^(gamma-1) log q."""
    base = (1 - q + rival).clamp(min=_TINY)
    if gamma == 0:
        return q.log(), torch.full_like(q, -torch.inf)
    surprise = -q.clamp(min=_TINY).log()
    log_phi = (gamma - 1) * base.log() + (base + gamma * q * surprise).clamp(min=_TINY).log()
    return q.log() - log_phi, torch.log(gamma * surprise) + (gamma - 1) * base.log()


def _dual_log_terms(q: Tensor, gamma: float, *, coupled: bool) -> Tensor:
    ordered, order = q.sort(-1, descending=True)
    rival = torch.nn.functional.pad(ordered[..., 1:], (0, 1))
    log_x, log_pull = _log_terms(ordered, rival, gamma)
    if coupled:
        columns = [log_x[..., 0]]
        for i in range(1, q.shape[-1]):
            received = columns[-1] + log_pull[..., i - 1]
            columns.append(log_x[..., i] + torch.logaddexp(received, torch.zeros_like(received)))
        log_x = torch.stack(columns, -1)
    shared = _share_ties(ordered, log_x.softmax(-1)).log()
    return torch.empty_like(shared).scatter_(-1, order, shared)


def _share_ties(ordered: Tensor, values: Tensor) -> Tensor:
    changes = ordered[..., 1:] != ordered[..., :-1]
    group = torch.nn.functional.pad(changes, (1, 0)).long().cumsum(-1)
    total = torch.zeros_like(values).scatter_add_(-1, group, values)
    size = torch.zeros_like(values).scatter_add_(-1, group, torch.ones_like(values))
    return (total / size.clamp(min=1)).gather(-1, group)
