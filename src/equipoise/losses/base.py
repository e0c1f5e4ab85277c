"""What every loss shares: cross-entropy's signature, flattening, masking, weighting, reduction.

A method writes one formula over flat samples; the classes here make it a drop-in for
``torch.nn.CrossEntropyLoss``. The rules, which hold for every member:

* logits are ``(n, k)``, ``(n, k, d1, ...)`` or ``(k,)``; labels are class numbers of the shape without ``k``,
  or, where the formula allows, soft targets of the shape of the logits;
* one column of logits, ``(n, 1)`` or ``(n,)`` with labels ``(n,)``, holds log-odds of class 1 and stands for the
  two columns ``(0, z)``;
* float16 and bfloat16 are computed in float32, also under autocast; float64 stays;
* a sample whose label is ``ignore_index`` does not exist; any other label that is no class is refused, on the
  device itself, so that no step waits for it;
* class ``weight`` becomes one weight per sample: that of its label, or its expectation under a soft target
  (so a one-hot soft target gives exactly what its class number gives);
* ``mean`` is the weighted mean, ``sum`` the weighted sum, ``none`` the weighted values;
* with nothing to count (all ignored, or all of weight 0) the result is 0 with gradient 0, where
  torch's cross-entropy gives NaN: a batch without labels teaches nothing.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, ClassVar, Literal, NamedTuple

import torch
from torch import Tensor

from equipoise.core.arrays import label_remedy
from equipoise.core.names import check_choice
from equipoise.losses.gather import gather_rows
from equipoise.losses.sum import Term

if TYPE_CHECKING:
    from jaxtyping import Float

__all__ = ["Loss", "Penalty", "Reduction", "Samples", "flatten", "log_odds_as_logits", "weighted_mean"]

Reduction = Literal["mean", "sum", "none"]


class Samples(NamedTuple):
    """A batch seen flat: every row one sample.

    Attributes:
        logits: ``(m, k)``, float32 or float64.
        labels: ``(m,)`` class numbers, valid also where ignored; or soft targets ``(m, k)``.
        weights: ``(m,)`` weight of each sample; 0 for the ignored.
        counted: ``(m,)`` False for the ignored.
        shape: The batch's own shape without the class axis, to restore for ``reduction="none"``.

    Example:
        >>> flatten(torch.zeros(2, 3, 5), torch.zeros(2, 5, dtype=torch.long)).shape
        torch.Size([2, 5])
    """

    logits: Tensor
    labels: Tensor
    weights: Tensor
    counted: Tensor
    shape: torch.Size


def log_odds_as_logits(logits: Tensor) -> Tensor:
    """Return two columns ``(0, z)`` for one column ``z`` of log-odds of class 1; other logits as they are.

    Args:
        logits: ``(n, k)`` or ``(n, k, ...)``; a network with one output gives ``k = 1``.

    Example:
        >>> log_odds_as_logits(torch.tensor([[2.0]]))
        tensor([[0., 2.]])
    """
    return torch.cat([torch.zeros_like(logits), logits], 1) if logits.shape[1] == 1 else logits


def flatten(
    logits: Tensor,
    labels: Tensor,
    *,
    class_weight: Tensor | None = None,
    ignore_index: int = -100,
    soft_targets: bool = True,
    where: str = "flatten",
) -> Samples:
    """Check a batch by shape and dtype, and turn it into flat samples with one weight each.

    Labels are looked at by an assertion that runs where they are, so nothing waits for the device and shapes
    stay static under compilation.

    Args:
        logits: ``(n, k)``, ``(n, k, d1, ...)`` or ``(k,)``.
        labels: Class numbers, or soft targets shaped as the logits.
        class_weight: ``(k,)``.
        ignore_index: Label of samples that do not exist.
        soft_targets: Whether soft targets are allowed.
        where: Who asks, for messages.

    Returns:
        The flat samples.

    Raises:
        TypeError: For logits that are not floating point.
        ValueError: For labels of the wrong shape or kind or that are no class, and weights of the wrong length.
            On a GPU a label that is no class fails the device's assertion instead.

    Example:
        >>> flat = flatten(torch.zeros(2, 2), torch.tensor([1, -100]), class_weight=torch.tensor([1.0, 5.0]))
        >>> flat.labels, flat.weights
        (tensor([1, 0]), tensor([5., 0.]))
    """
    logits = _two_columns(logits, labels)
    soft = _check(logits, labels, soft_targets=soft_targets, where=where)
    axis = min(1, logits.ndim - 1)
    n_classes, shape = logits.shape[axis], logits.shape[:axis] + logits.shape[axis + 1 :]
    if class_weight is not None and class_weight.shape != (n_classes,):
        raise ValueError(
            f"{where}: `weight` must have one number per class, shape ({n_classes},), got "
            f"{tuple(class_weight.shape)}. To weigh samples, multiply what reduction='none' gives."
        )
    flat = _rows(logits, axis)
    weight = None if class_weight is None else class_weight.to(flat)
    if soft:
        targets = _rows(labels, axis).to(flat)
        weights = flat.new_ones(len(flat)) if weight is None else targets @ weight
        return Samples(flat, targets, weights, torch.ones_like(weights, dtype=torch.bool), shape)
    numbers = labels.reshape(-1).long()
    counted = numbers != ignore_index
    numbers = numbers.where(counted, 0)
    _check_range(numbers, n_classes, ignore_index=ignore_index, where=where)
    weights = counted.to(flat) if weight is None else weight[numbers].where(counted, 0.0)
    return Samples(flat, numbers, weights, counted, shape)


def _two_columns(logits: Tensor, labels: Tensor) -> Tensor:
    """Return logits whose one column ``z`` has become ``(0, z)``; others as they are."""
    if logits.ndim == 1 and labels.shape == logits.shape and not labels.is_floating_point():
        return log_odds_as_logits(logits[:, None])
    return log_odds_as_logits(logits) if logits.ndim > 1 and logits.shape[1] == 1 else logits


def _check_range(numbers: Tensor, n_classes: int, *, ignore_index: int, where: str) -> None:
    """Raise for a label that is no class, without reading a value: the assertion runs on the labels' device."""
    if numbers.device.type not in ("cpu", "cuda", "meta"):
        return  # other devices have no assertion, and reading the answer would wait for them at every step
    if not torch.compiler.is_compiling():
        while torch._C._functorch.is_functorch_wrapped_tensor(numbers):  # vmap knows no assertion either
            numbers = torch._C._functorch.get_unwrapped(numbers)
    wanted = f"{where}: `labels` must be classes from 0 to {n_classes - 1}, or {ignore_index} to be ignored"
    try:
        torch._assert_async((numbers.clamp(0, n_classes - 1) == numbers).all(), f"{wanted}.")
    except RuntimeError as error:
        raise ValueError(
            f"{wanted}, got labels from {int(numbers.min())} to {int(numbers.max())}. "
            "Number the classes from 0, or give the label of void samples as ignore_index."
        ) from error


def _rows(tensor: Tensor, axis: int) -> Tensor:
    """Move classes last, flatten the rest, and widen half precision."""
    flat = tensor.movedim(axis, -1).reshape(-1, tensor.shape[axis])
    return flat.float() if flat.dtype in (torch.float16, torch.bfloat16) else flat


def _check(logits: Tensor, labels: Tensor, *, soft_targets: bool, where: str) -> bool:
    """Raise for what cannot be meant; return whether the labels are soft targets."""
    if not logits.is_floating_point() or logits.ndim == 0:
        raise TypeError(
            f"{where}: `logits` must be floating point with a class axis, got {logits.dtype} of shape "
            f"{tuple(logits.shape)}. Pass (logits, labels), in this order."
        )
    axis = min(1, logits.ndim - 1)
    wanted = logits.shape[:axis] + logits.shape[axis + 1 :]
    if labels.is_floating_point() and labels.shape == logits.shape:
        if not soft_targets:
            raise ValueError(
                f"{where}: `labels` must be class numbers, got soft targets of shape {tuple(labels.shape)}. "
                f"Its formula has one true class. {label_remedy(labels)}"
            )
        return True
    if labels.shape != wanted:
        remedy = label_remedy(labels) if labels.shape == logits.shape else _SHAPES
        raise ValueError(
            f"{where}: `labels` must have shape {tuple(wanted)} to match `logits` {tuple(logits.shape)}, "
            f"got {tuple(labels.shape)}. {remedy}"
        )
    if labels.is_floating_point() or labels.is_complex() or labels.dtype == torch.bool:
        raise ValueError(f"{where}: `labels` must be integers, got {labels.dtype}. Pass labels.long().")
    return False


_SHAPES = "Classes are on axis 1: logits (n, k, d1, ...) with labels (n, d1, ...)."


def weighted_mean(values: Float[Tensor, " n"], weights: Float[Tensor, " n"]) -> Float[Tensor, ""]:
    """Return the weighted mean of per-sample values; 0 if the weights sum to 0.

    Example:
        >>> weighted_mean(torch.tensor([1.0, 4.0]), torch.tensor([2.0, 1.0]))
        tensor(2.)
    """
    total = weights.sum()
    return (values * weights).sum() / total.where(total != 0, 1.0)


@contextmanager
def _full_precision(device: torch.device) -> Iterator[None]:
    """Switch autocast off, which would take matrix products back to half precision."""
    if torch.amp.is_autocast_available(device.type) and torch.is_autocast_enabled(device.type):
        with torch.autocast(device.type, enabled=False):
            yield
    else:
        yield


class _Weighted(Term):
    """What losses and penalties have in common: the parameters of ``nn.CrossEntropyLoss``."""

    soft_targets: ClassVar[bool] = False
    weight: Tensor | None

    def __init__(self, *, weight: Tensor | None, ignore_index: int, reduction: Reduction) -> None:
        super().__init__()
        check_choice(reduction, ("mean", "sum", "none"), where=type(self).__name__, name="reduction")
        self.register_buffer("weight", weight)
        self.ignore_index = ignore_index
        self.reduction = reduction

    def flatten(self, logits: Tensor, labels: Tensor) -> Samples:
        """Return the batch as flat samples under this module's parameters."""
        return flatten(
            logits,
            labels,
            class_weight=self.weight,
            ignore_index=self.ignore_index,
            soft_targets=self.soft_targets,
            where=type(self).__name__,
        )

    def held_out(self, logits: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
        """Return held-out predictions for ``update``: flat, without the ignored, detached, in float64.

        Raises:
            ValueError: If nothing is left.
        """
        kept = self._counted(logits, labels)
        self._check_some(len(kept[0]))
        return kept

    def held_out_mean(
        self, chunks: Iterable[tuple[Tensor, Tensor]], values: Callable[[Tensor], Tensor]
    ) -> Tensor:
        """Return the mean over all held-out samples of ``values(logits)``; memory is needed for one chunk.

        Raises:
            ValueError: If no chunk holds a sample that is not ignored.
        """
        total: Tensor | None = None
        n_samples = 0
        for logits, labels in chunks:
            kept, _ = self._counted(logits, labels)
            if len(kept):
                part = values(kept).sum(0)
                total = part if total is None else total + part
                n_samples += len(kept)
        self._check_some(n_samples)
        assert total is not None
        return total / n_samples

    def _counted(self, logits: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
        flat = self.flatten(logits.detach(), labels)
        wide = torch.float32 if logits.device.type == "mps" else torch.float64  # mps has no float64
        return flat.logits[flat.counted].to(wide), flat.labels[flat.counted]

    def _check_some(self, n_samples: int) -> None:
        if not n_samples:
            raise ValueError(
                f"{type(self).__name__}.update: `labels` must hold a sample that is not ignored, got none. "
                "Pass all held-out predictions of the epoch in one call."
            )


class Loss(_Weighted):
    """A loss with one value per sample; subclasses write :meth:`per_sample` only.

    A drop-in for ``nn.CrossEntropyLoss``; the rules are in the docstring of this file. Class attribute
    ``soft_targets`` says whether the formula is defined for them.

    Args:
        weight: Weight of each class, ``(k,)``.
        ignore_index: Label of samples that do not count.
        reduction: ``"mean"`` (over weights, as cross-entropy does), ``"sum"`` or ``"none"``.

    Example:
        >>> class Margin(Loss):
        ...     def per_sample(self, logits, labels):
        ...         return logits.amax(-1) - logits.gather(-1, labels[:, None])[:, 0]
        >>> Margin(ignore_index=9)(torch.tensor([[3.0, 1.0], [0.0, 5.0]]), torch.tensor([1, 9]))
        tensor(2.)
    """

    def __init__(
        self, *, weight: Tensor | None = None, ignore_index: int = -100, reduction: Reduction = "mean"
    ) -> None:
        super().__init__(weight=weight, ignore_index=ignore_index, reduction=reduction)

    @abstractmethod
    def per_sample(self, logits: Tensor, labels: Tensor) -> Tensor:
        """Return one value per row of flat logits ``(m, k)``, unweighted."""

    def forward(self, logits: Tensor, labels: Tensor) -> Tensor:
        """Return the loss of a batch, reduced as asked."""
        flat = self.flatten(logits, labels)
        with _full_precision(logits.device):
            values = self.per_sample(flat.logits, flat.labels).where(flat.counted, 0.0)
            if self.reduction == "mean":
                return weighted_mean(values, flat.weights)
            values = values * flat.weights
        return values.sum() if self.reduction == "sum" else values.reshape(flat.shape)


class Penalty(_Weighted):
    """A term computed from the statistics of a whole batch; subclasses write :meth:`term` only.

    Its value depends on the composition and size of the batch, so there is none per sample. Combine it with
    a loss: ``FocalLoss(gamma=1) + 1.0 * MDCA()``. Class weights are the samples' weights in every statistic.

    Under data parallelism each process sees its own part of the batch, and the mean of the parts' terms is
    not the term of the whole. ``gather=True`` collects the batch of all processes first, with gradient, so
    that value and (averaged) gradient are those of the whole; it costs one exchange of the logits.

    Args:
        weight: Weight of each class, ``(k,)``.
        ignore_index: Label of samples that do not count.
        reduction: ``"mean"`` gives the term itself; ``"sum"`` the term times the total weight of this
            process's samples (their number, if there is no class weight), to stand beside a summed loss.
        gather: Compute the term over the batch of all processes of ``torch.distributed``.

    Raises:
        ValueError: For ``reduction="none"``.

    Example:
        >>> class MeanConfidence(Penalty):
        ...     def term(self, logits, labels, weights):
        ...         return weighted_mean(logits.softmax(-1).amax(-1), weights)
        >>> MeanConfidence(reduction="sum")(torch.zeros(4, 2), torch.tensor([0, 1, 1, -100]))
        tensor(1.5000)
    """

    def __init__(
        self,
        *,
        weight: Tensor | None = None,
        ignore_index: int = -100,
        reduction: Reduction = "mean",
        gather: bool = False,
    ) -> None:
        super().__init__(weight=weight, ignore_index=ignore_index, reduction=reduction)
        if reduction == "none":
            raise ValueError(
                f"{type(self).__name__}: `reduction` must be 'mean' or 'sum', got 'none'. It comes from "
                "the statistics of the whole batch and has no value per sample."
            )
        self.gather = gather

    @abstractmethod
    def term(self, logits: Tensor, labels: Tensor, weights: Tensor) -> Tensor:
        """Return the term, a scalar, of flat logits ``(m, k)`` with sample weights (0 for the ignored)."""

    def forward(self, logits: Tensor, labels: Tensor) -> Tensor:
        """Return the term of a batch."""
        flat = self.flatten(logits, labels)
        rows = flat.logits, flat.labels, flat.weights
        with _full_precision(logits.device):
            value = self.term(*(gather_rows(*rows) if self.gather else rows))
            return value * flat.weights.sum() if self.reduction == "sum" else value
