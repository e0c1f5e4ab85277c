"""Predictions, or arrays of probabilities with labels, as Predictions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from equipoise.core.predictions import Predictions

__all__ = ["as_predictions", "read_calibrator"]


def as_predictions(values: Any, labels: Any = None, *, where: str) -> Predictions:
    """Return Predictions, made from probabilities and labels or passed through.

    Args:
        values: Predictions; or probabilities ``(n, k)`` or ``(n,)``, NumPy or torch.
        labels: True classes ``(n,)``, with probabilities only.
        where: The caller, for messages.

    Raises:
        TypeError: If labels are given twice.

    Example:
        >>> as_predictions([0.9, 0.2], [1, 0], where="doc")
        Predictions(probs, n=2, k=2)
    """
    if not isinstance(values, Predictions):
        return Predictions(probs=values, labels=labels)
    if labels is not None:
        raise TypeError(
            f"{where}: Predictions contain their labels, got `labels` too. Pass Predictions alone."
        )
    return values


def read_calibrator(saved: Mapping[str, Any] | None) -> Any:
    """Return the calibrator of a saved decision, or None."""
    if saved is None:
        return None
    from equipoise.calibrators import from_artifact  # loads calibrators only if there is one

    return from_artifact(saved)
