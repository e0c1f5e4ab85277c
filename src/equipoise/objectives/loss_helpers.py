"""What objectives share about losses: their terms by name, and their re-tuning at the end of an epoch."""

from __future__ import annotations

import re
from typing import Any

import torch
from torch import Tensor, nn

from equipoise.core.arrays import as_tensor
from equipoise.losses.adaptive import adapts, is_adaptive
from equipoise.losses.sum import Scaled, Sum
from equipoise.training import HeldOut

__all__ = ["adapt", "check_mean", "loss_terms"]


def check_mean(loss: Any, *, where: str) -> None:
    """Raise unless a loss is a mean over the batch, which is what recipes reckon with.

    Raises:
        ValueError: With the reduction found, or if it is of other inputs.

    Example:
        >>> check_mean(nn.CrossEntropyLoss(), where="doc")
    """
    if not isinstance(loss, nn.Module) and is_adaptive(loss):
        raise TypeError(
            f"{where}: {type(loss).__name__} has `update` but is not a torch module, so that checkpoints do not hold "
            "what it learns. Let it be a subclass of torch.nn.Module that keeps its state in buffers."
        )
    if isinstance(loss, nn.BCEWithLogitsLoss | nn.BCELoss):
        raise ValueError(
            f"{where}: `loss` must be of logits (n, k) and class numbers (n,), got {type(loss).__name__}. Pass "
            "nn.CrossEntropyLoss(), which is the same for a network of one logit: its log-odds become two columns."
        )
    reduction = getattr(loss, "reduction", "mean")
    if reduction not in ("mean", None):
        raise ValueError(
            f"{where}: `loss` must have reduction='mean', got {reduction!r}. To descend on sums, as some published "
            "recipes do, pass recipe=Recipe(reduction='sum', ...)."
        )


def loss_terms(loss: nn.Module, logits: Tensor, targets: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
    """Return a loss and its terms, detached and by name, for the history; a plain loss has none beside itself.

    Example:
        >>> from equipoise.losses import BrierLoss, FocalLoss
        >>> total, terms = loss_terms(FocalLoss() + 2 * BrierLoss(), torch.zeros(1, 2), torch.tensor([0]))
        >>> total, sorted(terms)
        (tensor(1.0866), ['loss', 'loss_brier', 'loss_focal'])
    """
    if not isinstance(loss, Sum):
        total: Tensor = loss(logits, targets)
        return total, {"loss": total.detach()}
    values = [term(logits, targets) for term in loss.terms]
    total = torch.stack(values).sum(0)
    terms = {"loss": total.detach()}
    for term, value in zip(loss.terms, values, strict=True):
        name = _name(term)
        terms[name] = terms[name] + value.detach() if name in terms else value.detach()
    return total, terms


def _name(term: nn.Module) -> str:
    inner = term.term if isinstance(term, Scaled) else term
    words = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", type(inner).__name__).lower()
    return f"loss_{words.removesuffix('_loss').removesuffix('_penalty')}"


def adapt(loss: nn.Module, network: nn.Module, held_out: HeldOut | None, *, where: str) -> None:
    """Re-tune a loss that adapts, ours or any with ``update(logits, labels)``, from held-out predictions.

    Raises:
        ValueError: If the loss has something to re-tune and there are no held-out predictions.

    Example:
        >>> adapt(nn.CrossEntropyLoss(), nn.Linear(2, 2), None, where="doc")
    """
    if not adapts(loss):
        return
    if held_out is None:
        raise ValueError(
            f"{where}: {type(loss).__name__} re-tunes itself at the end of every epoch from held-out predictions, and "
            "there are none. Pass tune= to fit."
        )
    device = next((one.device for one in (*loss.buffers(), *loss.parameters())), torch.device("cpu"))
    if hasattr(loss, "update_from") and hasattr(held_out, "chunks"):
        loss.update_from(
            (logits.to(device), labels.to(device)) for logits, labels in held_out.chunks(network)
        )  # type: ignore[operator]
        return
    predictions = held_out(network)
    loss.update(as_tensor(predictions.logits).to(device), as_tensor(predictions.labels).to(device))  # type: ignore[operator]
