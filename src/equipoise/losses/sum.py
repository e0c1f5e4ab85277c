"""Terms that add up: ``FocalLoss(gamma=1) + 1.0 * MDCA()``, and what it takes to re-tune them."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from typing import Any, final

from torch import Tensor, nn

from equipoise.losses.adaptive import adapts, is_adaptive
from equipoise.losses.buffers import FullPrecisionBuffers

__all__ = ["Adaptive", "Scaled", "Sum", "Term", "shown_parameters"]


class Adaptive(ABC):
    """Something that re-tunes itself from held-out predictions.

    Whoever owns the loop calls :meth:`update` once per epoch, with *all* held-out predictions in one call,
    so that the averages inside are exact. All state lives in buffers, so ``state_dict`` carries it. Under
    data parallelism every process must be given the same held-out predictions; then every process holds
    the same state.

    No loss has to inherit from this: any torch module with a method ``update(logits, labels)`` is updated.

    Example:
        >>> from equipoise.losses import BrierLoss, FocalLoss
        >>> isinstance(FocalLoss(), Adaptive), isinstance(BrierLoss(), Adaptive)
        (True, False)
    """

    @property
    def adapts(self) -> bool:
        """Whether :meth:`update` changes anything, under the settings of this loss."""
        return True

    @abstractmethod
    def update(self, logits: Tensor, labels: Tensor) -> None:
        """Re-tune from held-out predictions; once per epoch, all of them at once."""


class Term(FullPrecisionBuffers, ABC):
    """A module of (logits, labels) that can be scaled by a number and added to others.

    Its buffers stay in float32 or float64 when the module is cast to half precision.

    Example:
        >>> from equipoise.losses import BrierLoss, FocalLoss
        >>> loss = FocalLoss(gamma=1.0) + 0.5 * BrierLoss()
        >>> type(loss).__name__, len(loss.terms)
        ('Sum', 2)
    """

    @abstractmethod
    def forward(self, logits: Tensor, labels: Tensor) -> Tensor:
        """Return the value of this term."""

    def extra_repr(self) -> str:
        """Show the parameters when printed."""
        return shown_parameters(self)

    def __mul__(self, factor: float) -> Scaled:
        return Scaled(self, factor=factor) if isinstance(factor, int | float) else NotImplemented

    __rmul__ = __mul__

    def __add__(self, other: nn.Module) -> Sum:
        return Sum(self, other) if isinstance(other, nn.Module) else NotImplemented

    def __radd__(self, other: nn.Module) -> Sum:
        return Sum(other, self) if isinstance(other, nn.Module) else NotImplemented


@final
class Scaled(Term, Adaptive):
    """A term times a constant; what ``0.5 * term`` makes.

    Args:
        term: Any module of (logits, labels).
        factor: What its value is multiplied with.

    Example:
        >>> import torch
        >>> from equipoise.losses import BrierLoss
        >>> logits, labels = torch.zeros(1, 2), torch.tensor([0])
        >>> (0.5 * BrierLoss())(logits, labels)
        tensor(0.2500)
    """

    def __init__(self, term: nn.Module, *, factor: float) -> None:
        super().__init__()
        self.term = term
        self.factor = float(factor)

    @property
    def reduction(self) -> str | None:
        """The reduction of the term inside."""
        return getattr(self.term, "reduction", None)

    @property
    def adapts(self) -> bool:
        """Whether the term inside does."""
        return adapts(self.term)

    def forward(self, logits: Tensor, labels: Tensor) -> Tensor:
        """Return the scaled value."""
        value: Tensor = self.term(logits, labels)
        return self.factor * value

    def update(self, logits: Tensor, labels: Tensor) -> None:
        """Re-tune the term inside, if it adapts."""
        _update([self.term], logits, labels)


@final
class Sum(Term, Adaptive):
    """The sum of several terms; what ``loss + 1.0 * penalty`` makes.

    Args:
        terms: Modules of (logits, labels): losses, penalties, torch's own. Sums among them are opened up.

    Raises:
        ValueError: If there is no term, or two reduce the batch in different ways, which would silently
            change the weights between them.

    Example:
        >>> import torch
        >>> from equipoise.losses import BrierLoss
        >>> logits, labels = torch.zeros(1, 2), torch.tensor([0])
        >>> Sum(nn.CrossEntropyLoss(), 2.0 * BrierLoss())(logits, labels)
        tensor(1.6931)
    """

    def __init__(self, *terms: nn.Module) -> None:
        super().__init__()
        self.terms = nn.ModuleList(part for term in terms for part in _parts(term))
        self.reduction = _common_reduction(self.terms)

    @property
    def adapts(self) -> bool:
        """Whether any term does."""
        return any(map(adapts, self.terms))

    def forward(self, logits: Tensor, labels: Tensor) -> Tensor:
        """Return the sum of all terms."""
        values: list[Tensor] = [term(logits, labels) for term in self.terms]
        return sum(values[1:], values[0])

    def update(self, logits: Tensor, labels: Tensor) -> None:
        """Re-tune the terms that adapt."""
        _update(self.terms, logits, labels)


def shown_parameters(module: nn.Module) -> str:
    """Spell the constructor's parameters as the module holds them, without the shared ones left as they were.

    Example:
        >>> from equipoise.losses import DualFocalLoss
        >>> DualFocalLoss(gamma=5, reduction="sum")
        DualFocalLoss(gamma=5, rival='next', detach_weight=False, reduction='sum')
    """
    return ", ".join(_spelled(module))


_SHARED = ("weight", "ignore_index", "reduction", "gather")


def _spelled(module: nn.Module) -> Iterator[str]:
    for name, parameter in inspect.signature(type(module).__init__).parameters.items():
        value: Any = getattr(module, name, inspect.Parameter.empty)
        if value is inspect.Parameter.empty or isinstance(value, nn.Module) or name == "self":
            continue
        if isinstance(value, Tensor):
            readable = value.ndim == 0 and not value.is_meta
            yield f"{name}={value.item():g}" if readable else f"{name}=<{tuple(value.shape)}>"
        elif name not in _SHARED or value != parameter.default:
            yield f"{name}={value:g}" if isinstance(value, float) else f"{name}={value!r}"


def _parts(term: nn.Module) -> Iterable[nn.Module]:
    return term.terms if isinstance(term, Sum) else [term]


def _update(terms: Iterable[nn.Module], logits: Tensor, labels: Tensor) -> None:
    for term in terms:
        if is_adaptive(term):
            term.update(logits, labels)  # type: ignore[operator]


def _common_reduction(terms: nn.ModuleList) -> str | None:
    if not len(terms):
        raise ValueError("Sum: it must have at least one term, got none. Pass Sum(loss, weight * penalty).")
    reductions = {getattr(term, "reduction", None) for term in terms} - {None}
    if len(reductions) > 1:
        raise ValueError(
            f"Sum: all terms must have one `reduction`, got {' and '.join(sorted(map(repr, reductions)))}. "
            "Give every term the same; 'mean' is the default everywhere."
        )
    return reductions.pop() if reductions else None
