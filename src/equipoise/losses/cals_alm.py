"""CALS: a margin penalty per class, its multipliers learned from held-out predictions."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, ClassVar, Literal, final

import torch
from torch import Tensor, nn

from equipoise.core.names import check_choice
from equipoise.losses.base import Loss, Reduction
from equipoise.losses.hinge import hinge
from equipoise.losses.options import (
    OverClasses,
    check_margin,
    check_n_classes,
    check_over_classes,
)
from equipoise.losses.sum import Adaptive

if TYPE_CHECKING:
    from jaxtyping import Float, Int

__all__ = ["ClassAdaptiveLoss", "class_adaptive_loss", "constraints", "p2", "p3", "phr"]

PenaltyName = Literal["phr", "p2", "p3"]

#: The multipliers stay within these.
_LEAST, _MOST = 1e-6, 1e6


def phr(h: Tensor, multipliers: Tensor, rho: Tensor) -> Tensor:
    r"""Powell-Hestenes-Rockafellar penalty of a constraint :math:`h \le 0`.

    .. math::
        \lambda h + \tfrac{\rho}{2} h^2 \text{ if } \lambda + \rho h \ge 0, \text{ else }
        -\tfrac{\lambda^2}{2 \rho}

    Example:
        >>> phr(torch.tensor([-0.1, 0.2]), torch.tensor(0.3), torch.tensor(2.0))
        tensor([-0.0200,  0.1000])
    """
    # Completing the square turns the two branches into one relu.
    return (torch.relu(multipliers + rho * h).square() - multipliers.square()) / (2 * rho)


def p2(h: Tensor, multipliers: Tensor, rho: Tensor) -> Tensor:
    r"""Penalty that is :func:`p3` plus :math:`\rho^2 h^3 / 6` where the constraint is broken.

    Example:
        >>> p2(torch.tensor([-0.1, 0.2]), torch.tensor(0.3), torch.tensor(2.0))
        tensor([-0.0250,  0.0893])
    """
    return p3(h, multipliers, rho) + rho.square() * torch.relu(h).pow(3) / 6


def p3(h: Tensor, multipliers: Tensor, rho: Tensor) -> Tensor:
    r"""Penalty of a constraint :math:`h \le 0` that is smooth everywhere.

    .. math:: \lambda h + \lambda \rho h^2 \text{ if } h \ge 0, \text{ else } \frac{\lambda h}{1 - \rho h}

    Example:
        >>> p3(torch.tensor([-0.1, 0.2]), torch.tensor(0.3), torch.tensor(2.0))
        tensor([-0.0250,  0.0840])
    """
    broken, kept = torch.relu(h), h.clamp(max=0)
    return multipliers * (broken + rho * broken.square() + kept / (1 - rho * kept))


def _phr_slope(h: Tensor, multipliers: Tensor, rho: Tensor) -> Tensor:
    return torch.relu(multipliers + rho * h)


def _p2_slope(h: Tensor, multipliers: Tensor, rho: Tensor) -> Tensor:
    return _p3_slope(h, multipliers, rho) + (rho * torch.relu(h)).square() / 2


def _p3_slope(h: Tensor, multipliers: Tensor, rho: Tensor) -> Tensor:
    return multipliers * (1 + 2 * rho * torch.relu(h)) / (1 - rho * h.clamp(max=0)).square()


_Function = Callable[[Tensor, Tensor, Tensor], Tensor]
PENALTIES: dict[str, _Function] = {"phr": phr, "p2": p2, "p3": p3}
#: Their derivatives in *h*, which the multipliers move to. Written out, because held-out predictions may
#: come from inference mode, where nothing can be differentiated.
SLOPES: dict[str, _Function] = {"phr": _phr_slope, "p2": _p2_slope, "p3": _p3_slope}


def constraints(logits: Float[Tensor, "n k"], *, margin: float) -> Float[Tensor, "n k"]:
    r"""Return how far each logit lies below the largest, in margins beyond the first.

    .. math:: h_j = (\max_i z_i - z_j) / m - 1

    Example:
        >>> constraints(torch.tensor([[12.0, 0.0, 7.0]]), margin=10.0)
        tensor([[-1.0000,  0.2000, -0.5000]])
    """
    return (logits.amax(-1, keepdim=True) - logits) / margin - 1


def class_adaptive_loss(
    logits: Float[Tensor, "n k"],
    labels: Int[Tensor, " n"] | Float[Tensor, "n k"],
    *,
    multipliers: Float[Tensor, " k"],
    rho: Float[Tensor, " k"],
    margin: float = 10.0,
    penalty: PenaltyName = "phr",
    over_classes: OverClasses = "mean",
) -> Float[Tensor, " n"]:
    r"""Cross-entropy plus an augmented Lagrangian penalty, per class, on logits too far below the largest.

    MbLS with one strength per class, which nobody has to choose. It needs held-out predictions each
    epoch (:class:`ClassAdaptiveLoss` keeps the multipliers).

    .. math::
        -\log p_y + \frac{1}{k} \sum_j P(h_j, \rho_j, \lambda_j), \qquad h_j = (\max_i z_i - z_j) / m - 1

    Args:
        logits: Unnormalized scores; never probabilities.
        labels: Class numbers in ``[0, k)``, or soft targets.
        multipliers: *λ*, one per class.
        rho: Strength of the penalty's curvature, one per class.
        margin: Gap between logits that costs nothing (*m*). The paper uses 10 for images and 6 for text.
        penalty: *P*: ``"phr"`` (:func:`phr`), ``"p2"`` or ``"p3"``.
        over_classes: ``"mean"`` or ``"sum"``.

    Returns:
        One value per sample. Multipliers and rho are constants in the backward pass.

    Example:
        >>> ones = torch.ones(2)
        >>> class_adaptive_loss(torch.tensor([[12.0, 0.0]]), torch.tensor([0]), multipliers=ones, rho=ones)
        tensor([-0.1400])

    Reference:
        Liu et al. (2023), Class adaptive network calibration, eqs. (8) to (12).

    Differs from the authors' code:
        They clip each held-out slope at 1e-6 before averaging, which is how the published results were made and
        our default; the paper projects the mean only, and ``clip_each=False`` does so. Their upper limit 10 of
        rho, which the paper does not name, is kept. They share the gradient of the largest logit among ties; here
        the first has it. Their multipliers are lost on resume; ours are buffers.
    """
    cross_entropy = nn.functional.cross_entropy(logits, labels, reduction="none")
    multipliers, rho = multipliers.to(logits), rho.to(logits)
    if penalty == "phr":
        cost = _phr_of_logits(logits, multipliers, rho, margin)
    else:
        cost = PENALTIES[penalty](constraints(logits, margin=margin), multipliers, rho).sum(-1)
    return cross_entropy + (cost if over_classes == "sum" else cost / logits.shape[-1])


def _phr_of_logits(logits: Tensor, multipliers: Tensor, rho: Tensor, margin: float) -> Tensor:
    """Return the sum over classes of :func:`phr`, which is the square of a hinge whose margin has shrunk."""
    margins = margin * (1 - multipliers / rho)
    squares = hinge(logits, margins=margins, weights=rho / (2 * margin**2), power=2)
    return squares - (multipliers.square() / (2 * rho)).sum()


@final
class ClassAdaptiveLoss(Loss, Adaptive):
    """CALS-ALM with the signature of ``nn.CrossEntropyLoss``; formula in :func:`class_adaptive_loss`.

    Call ``loss.update(logits, labels)`` once per epoch with all held-out predictions, or
    ``loss.update_from(chunks)`` if they do not fit into memory.

    Args:
        n_classes: Number of classes.
        margin: Gap between logits that costs nothing (*m*).
        penalty: ``"phr"``, ``"p2"`` or ``"p3"``.
        over_classes: ``"mean"`` or ``"sum"``.
        growth: What rho is multiplied with where a constraint does not improve (*γ*).
        patience: A constraint has improved if it fell below this share of the epoch before (*τ*).
        rho_period: Rho is looked at in every so many epochs.
        rho_max: Rho stays below.
        start: Multiplier of every class before the first epoch, from 1e-6 to 1e6.
        rho_start: Rho of every class before the first epoch, from 1 to ``rho_max``.
        clip_each: Clip the slope of each held-out sample, as the authors' code does; False clips their mean only.
        weight, ignore_index, reduction: As in :class:`~equipoise.losses.Loss`.

    Example:
        >>> loss = ClassAdaptiveLoss(n_classes=2)
        >>> loss.update(torch.tensor([[12.0, 0.0]]), torch.tensor([0]))
        >>> loss.multipliers
        tensor([1.0000e-06, 2.0000e-01])
    """

    soft_targets: ClassVar[bool] = True
    multipliers: Tensor
    rho: Tensor
    previous: Tensor
    epoch: Tensor

    def __init__(
        self,
        *,
        n_classes: int,
        margin: float = 10.0,
        penalty: PenaltyName = "phr",
        over_classes: OverClasses = "mean",
        growth: float = 1.2,
        patience: float = 0.9,
        rho_period: int = 10,
        rho_max: float = 10.0,
        start: float = _LEAST,
        rho_start: float = 1.0,
        clip_each: bool = True,
        weight: Tensor | None = None,
        ignore_index: int = -100,
        reduction: Reduction = "mean",
    ) -> None:
        super().__init__(weight=weight, ignore_index=ignore_index, reduction=reduction)
        check_n_classes(n_classes, where="ClassAdaptiveLoss")
        check_margin(margin, where="ClassAdaptiveLoss")
        check_choice(penalty, PENALTIES, where="ClassAdaptiveLoss", name="penalty")
        check_over_classes(over_classes, where="ClassAdaptiveLoss")
        self.margin = margin
        self.penalty: PenaltyName = penalty
        self.over_classes: OverClasses = over_classes
        self.growth = growth
        self.patience = patience
        self.rho_period = rho_period
        self.rho_max = rho_max
        _check_starts(start, rho_start, rho_max)
        self.n_classes = n_classes
        self.start = start
        self.rho_start = rho_start
        self.clip_each = clip_each
        self.register_buffer("multipliers", torch.full((n_classes,), start, dtype=torch.float32))
        self.register_buffer("rho", torch.full((n_classes,), rho_start, dtype=torch.float32))
        self.register_buffer("previous", torch.zeros(n_classes, dtype=torch.float32))
        self.register_buffer("epoch", torch.tensor(0))

    def per_sample(self, logits: Tensor, labels: Tensor) -> Tensor:
        """Return :func:`class_adaptive_loss` with the current multipliers."""
        return class_adaptive_loss(
            logits,
            labels,
            multipliers=self.multipliers,
            rho=self.rho,
            margin=self.margin,
            penalty=self.penalty,
            over_classes=self.over_classes,
        )

    def update(self, logits: Tensor, labels: Tensor) -> None:
        """Move the multipliers to the penalty's mean slope, then grow rho where a constraint stays broken."""
        self.update_from([(logits, labels)])

    @torch.no_grad()
    def update_from(self, chunks: Iterable[tuple[Tensor, Tensor]]) -> None:
        """Update from held-out predictions that come in chunks, such as all pixels of a segmentation task."""

        def slopes_and_constraints(logits: Tensor) -> Tensor:
            h = constraints(logits, margin=self.margin)
            slopes = SLOPES[self.penalty](h, self.multipliers.to(h), self.rho.to(h))
            return torch.stack([slopes.clamp(_LEAST, _MOST) if self.clip_each else slopes, h], dim=1)

        slopes, mean = self.held_out_mean(chunks, slopes_and_constraints)
        self.multipliers.copy_(slopes.clamp(_LEAST, _MOST))
        self.epoch += 1
        if int(self.epoch) > 1 and int(self.epoch) % self.rho_period == 0:
            broken = mean > self.patience * self.previous.to(mean).clamp(min=0)
            grown = torch.where(broken, self.growth * self.rho, self.rho)
            self.rho.copy_(grown.clamp(1.0, self.rho_max))
        self.previous.copy_(mean)


def _check_starts(start: float, rho_start: float, rho_max: float) -> None:
    if not _LEAST <= start <= _MOST:
        raise ValueError(
            f"ClassAdaptiveLoss: `start` must be from {_LEAST:g} to {_MOST:g}, got {start}. "
            "The authors start at 1e-6."
        )
    if not 1 <= rho_start <= rho_max:
        raise ValueError(
            f"ClassAdaptiveLoss: `rho_start` must be from 1 to `rho_max`, {rho_max:g}, got {rho_start}. "
            "The authors start at 1."
        )
