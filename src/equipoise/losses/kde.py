"""Calibration error by kernel density estimates on the simplex."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, final

import torch
from torch import Tensor

from equipoise.core.names import check_choice
from equipoise.losses.base import Penalty, Reduction
from equipoise.losses.neighbors import Power, check_kernel, neighbor_errors
from equipoise.losses.statistics import one_hot, shares

if TYPE_CHECKING:
    from jaxtyping import Float, Int

__all__ = ["KernelECE", "kde_penalty"]

Kind = Literal["canonical", "top_label", "marginal"]


def kde_penalty(
    logits: Float[Tensor, "n k"],
    labels: Int[Tensor, " n"],
    *,
    bandwidth: float = 0.001,
    kind: Kind = "canonical",
    power: Power = 1,
    least_density: float | None = None,
    weights: Float[Tensor, " n"] | None = None,
) -> Float[Tensor, ""]:
    r"""Difference between each prediction and the labels of samples predicted similarly.

    The only term here for *canonical* calibration, that of the whole probability vector. Its kernel is the
    Dirichlet density, which respects the borders of the simplex. It costs all pairs of samples, and says
    little when there are many classes and few samples.

    .. math::
        \pi_i = \frac{\sum_{j \ne i} \omega_j K(p_i; p_j) e_{y_j}}{\sum_{j \ne i} \omega_j K(p_i; p_j)},
        \qquad \sum_i \omega_i \sum_k |\pi_{ik} - p_{ik}|^p, \qquad
        K(x; x') = \mathrm{Dir} \bigl( x; \tfrac{x'}{h} + 1 \bigr)

    Args:
        logits: Unnormalized scores; never probabilities.
        labels: Class numbers in ``[0, k)``.
        bandwidth: Width of the kernel (*h*).
        kind: ``"canonical"``; ``"top_label"`` for confidence and correctness alone, by the Beta kernel;
            ``"marginal"`` for the sum of such terms over all classes.
        power: Of the difference (*p*), 1 or 2; no root is taken.
        least_density: Lower bound of the kernel sum. The authors' code has 1e-10, so that isolated samples
            are compared with 0; by default they are compared with their nearest.
        weights: Weight of each sample; shares :math:`\omega` are 1/n by default.

    Returns:
        One value for the batch. A sample without neighbors adds nothing.

    Example:
        >>> kde_penalty(torch.zeros(3, 2), torch.tensor([0, 0, 0]))
        tensor(1.)

    Reference:
        Popordanoska, Sayer and Blaschko (2022), A consistent and differentiable Lp canonical calibration
        error estimator.

    Differs from the authors' code:
        The clamp (an option). Their path for more than 60 classes has no finite gradient if a class occurs
        once; ours has. For binary problems given as one column they return twice the Beta-kernel estimate;
        two columns here give the same, since both are summed.
    """
    log_probs = logits.log_softmax(-1)
    share = shares(weights, logits)
    hits = one_hot(labels, logits)
    if kind == "canonical":
        views = [(log_probs, hits, log_probs.exp())]
    elif kind == "top_label":
        top, predicted = log_probs.max(-1)
        correct = (predicted == labels).to(logits)
        views = [(_with_rest(top), correct[:, None], top.exp()[:, None])]
    else:
        columns = zip(log_probs.unbind(-1), hits.unbind(-1), strict=True)
        views = [(_with_rest(column), hit[:, None], column.exp()[:, None]) for column, hit in columns]
    errors = [
        neighbor_errors(
            _DirichletKernel(points, bandwidth),
            targets,
            probs,
            share,
            power=power,
            least_density=least_density,
        )
        for points, targets, probs in views
    ]
    return torch.stack([(share * error).sum() for error in errors]).sum()


class _DirichletKernel:
    """Log density at some rows under Dirichlet distributions peaked at all rows."""

    def __init__(self, log_points: Tensor, bandwidth: float) -> None:
        self.log_points = log_points
        self.pulls = log_points.exp() / bandwidth
        concentration = self.pulls + 1
        self.log_norm = concentration.lgamma().sum(-1) - concentration.sum(-1).lgamma()

    def __call__(self, rows: slice) -> Tensor:
        return self.log_points[rows] @ self.pulls.T - self.log_norm


def _with_rest(log_prob: Tensor) -> Tensor:
    """Return the pair (log p, log(1 - p)), the latter bounded where p is 1."""
    rest = (-torch.expm1(log_prob)).clamp(min=torch.finfo(log_prob.dtype).tiny).log()
    return torch.stack([log_prob, rest], -1)


@final
class KernelECE(Penalty):
    """Calibration error of a batch by kernel density estimates; formula in :func:`kde_penalty`.

    Args:
        bandwidth: Width of the kernel, above 0.
        kind: ``"canonical"``, ``"top_label"`` or ``"marginal"``.
        power: Of the difference, 1 or 2.
        least_density: Lower bound of the kernel sum; the authors' code has 1e-10.
        weight, ignore_index, reduction, gather: As in :class:`~equipoise.losses.Penalty`.

    Example:
        >>> KernelECE()(torch.zeros(3, 2), torch.tensor([0, 0, 0]))
        tensor(1.)
    """

    def __init__(
        self,
        *,
        bandwidth: float = 0.001,
        kind: Kind = "canonical",
        power: Power = 1,
        least_density: float | None = None,
        weight: Tensor | None = None,
        ignore_index: int = -100,
        reduction: Reduction = "mean",
        gather: bool = False,
    ) -> None:
        super().__init__(weight=weight, ignore_index=ignore_index, reduction=reduction, gather=gather)
        check_choice(kind, ("canonical", "top_label", "marginal"), where="KernelECE", name="kind")
        check_kernel(bandwidth, power, where="KernelECE")
        self.bandwidth = bandwidth
        self.kind: Kind = kind
        self.power: Power = power
        self.least_density = least_density

    def term(self, logits: Tensor, labels: Tensor, weights: Tensor) -> Tensor:
        """Return :func:`kde_penalty`."""
        return kde_penalty(
            logits,
            labels,
            bandwidth=self.bandwidth,
            kind=self.kind,
            power=self.power,
            least_density=self.least_density,
            weights=weights,
        )
