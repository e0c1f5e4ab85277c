"""Laws that a loss should keep, for tests of losses that are not ours: ``check_loss(MyLoss)``."""

from __future__ import annotations

import copy
import inspect
import pickle
from collections.abc import Callable
from typing import Any

from equipoise.core.errors import needs as _needs
from equipoise.core.lazy import listed_names as _listed_names

with _needs("torch", extra="torch", purpose="check losses"):
    import torch
    from torch import Tensor, nn

__all__ = ["LAWS", "check_loss"]

__dir__ = _listed_names(__name__)

Loss = Callable[[Tensor, Tensor], Tensor]


def check_loss(make: Callable[..., Any], *, n_classes: int = 4, **parameters: Any) -> list[str]:
    """Check that a loss of (logits, labels) keeps the laws that training and comparisons rely on.

    Args:
        make: A class, or a function that gives a loss; called anew for each law.
        n_classes: Of the logits it is tried with; the loss gets it too, if it asks.
        parameters: What it is called with.

    Returns:
        The laws that it keeps, all of :data:`LAWS`.

    Raises:
        AssertionError: For the first property that it violates, with what was expected and what came.

    Example:
        >>> from equipoise.losses import FocalLoss
        >>> check_loss(FocalLoss, gamma=2.0)[:2]
        ['gives one number', 'keeps its inputs']
        >>> check_loss(lambda: lambda logits, labels: logits.detach().mean())
        Traceback (most recent call last):
        ...
        AssertionError: <lambda> breaks the law 'has a gradient': ...
    """
    name = getattr(make, "__name__", repr(make))
    if "n_classes" in inspect.signature(make).parameters:
        parameters["n_classes"] = n_classes
    for law, check in LAWS.items():
        found = make(**parameters)
        try:
            check(found, n_classes)
        except Exception as error:
            raise AssertionError(f"{name} breaks the law {law!r}: {error}") from error
    return list(LAWS)


def _batch(n_classes: int, *, n: int = 12, dtype: torch.dtype = torch.float64) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    logits = 3 * torch.randn(n, n_classes, generator=generator, dtype=torch.float64)
    return logits.to(dtype), torch.randint(0, n_classes, (n,), generator=generator)


def _require(holds: object, sentence: str) -> None:
    if not holds:
        raise ValueError(sentence)


def _one_number(loss: Loss, k: int) -> None:
    value = loss(*_batch(k))
    _require(isinstance(value, Tensor), f"expected a tensor, got {type(value).__name__}.")
    _require(
        value.shape == (), f"expected one number, got shape {tuple(value.shape)}. Average over the batch."
    )
    _require(value.isfinite(), f"expected a finite number, got {value}.")


def _inputs_kept(loss: Loss, k: int) -> None:
    logits, labels = _batch(k)
    before = logits.clone(), labels.clone()
    loss(logits, labels)
    _require(
        torch.equal(before[0], logits) and torch.equal(before[1], labels),
        "it changed logits or labels in place.",
    )


def _repeatable(loss: Loss, k: int) -> None:
    first, second = loss(*_batch(k)), loss(*_batch(k))
    _require(
        torch.equal(first, second),
        f"two calls gave {first} and {second}. A step must not depend on the last.",
    )


def _order_free(loss: Loss, k: int) -> None:
    logits, labels = _batch(k)
    straight, turned = loss(logits, labels), loss(logits.flip(0), labels.flip(0))
    close = torch.allclose(straight, turned, rtol=1e-6, atol=1e-9)
    _require(close, f"rows in another order gave {turned} and not {straight}.")


def _gradient(loss: Loss, k: int) -> None:
    logits, labels = _batch(k)
    value = loss(logits.requires_grad_(), labels)
    _require(
        value.requires_grad,
        "no gradient reaches the logits. Compute with torch, and detach nothing that counts.",
    )
    [gradient] = torch.autograd.grad(value, logits)
    _require(gradient.isfinite().all(), "the gradient is not finite.")
    _require(gradient.any(), "the gradient is zero everywhere.")


def _extremes(loss: Loss, k: int) -> None:
    logits, labels = _batch(k, dtype=torch.float32)
    for scaled in (300 * logits, 0 * logits):
        scaled.requires_grad_()
        value = loss(scaled, labels)
        _require(
            value.isfinite(),
            "sure or equal logits gave a value that is not finite. Use log_softmax, not log(softmax).",
        )
        [gradient] = torch.autograd.grad(value, scaled, allow_unused=True)
        _require(
            gradient is None or gradient.isfinite().all(),
            "sure or equal logits gave a gradient that is not finite.",
        )


def _type_follows(loss: Loss, k: int) -> None:
    for dtype in (torch.float32, torch.float64):
        found = loss(*_batch(k, dtype=dtype)).dtype
        _require(found == dtype, f"logits of {dtype} gave {found}.")


def _copies(loss: Loss, k: int) -> None:
    if not isinstance(loss, nn.Module):
        return
    wanted = loss(*_batch(k))
    for again in (copy.deepcopy(loss), pickle.loads(pickle.dumps(loss))):  # noqa: S301 - it was pickled here
        _require(torch.equal(again(*_batch(k)), wanted), "a copy gives another value.")
    again = copy.deepcopy(loss)
    again.load_state_dict(loss.state_dict())
    _require(torch.equal(again(*_batch(k)), wanted), "its saved state gives another value.")


def _void_rows(loss: Loss, k: int) -> None:
    void = getattr(loss, "ignore_index", None)
    if not isinstance(void, int):
        return
    logits, labels = _batch(k)
    short = loss(logits[:-3], labels[:-3])
    labels[-3:] = void
    _require(torch.allclose(loss(logits, labels), short), f"rows of the label {void} (`ignore_index`) count.")


#: What is checked, by name, in order.
LAWS: dict[str, Callable[[Loss, int], None]] = {
    "gives one number": _one_number,
    "keeps its inputs": _inputs_kept,
    "gives the same for the same": _repeatable,
    "does not see the order of rows": _order_free,
    "has a gradient": _gradient,
    "stays finite": _extremes,
    "follows the type of the logits": _type_follows,
    "can be copied and saved": _copies,
    "leaves void rows out": _void_rows,
}
