"""Checks of options that several losses have."""

from __future__ import annotations

from typing import Literal

from torch import Tensor

from equipoise.core.names import check_choice

__all__ = [
    "OverClasses",
    "check_gamma",
    "check_margin",
    "check_n_classes",
    "check_over_classes",
    "check_strength",
]

#: How a per-class cost becomes one per sample.
OverClasses = Literal["sum", "mean"]


def check_over_classes(over_classes: str, *, where: str) -> None:
    """Raise unless it is ``"sum"`` or ``"mean"``."""
    check_choice(over_classes, ("sum", "mean"), where=where, name="over_classes")


def check_gamma(gamma: float | Tensor, *, where: str) -> None:
    """Raise for a number below 0; a tensor's values are not looked at, which would wait for the device."""
    if not isinstance(gamma, Tensor) and not gamma >= 0:
        raise ValueError(f"{where}: `gamma` must be at least 0, got {gamma}. 0 is plain cross-entropy.")


def check_strength(strength: float, *, where: str) -> None:
    """Raise for a negative strength."""
    if not strength >= 0:
        raise ValueError(f"{where}: `strength` must be at least 0, got {strength}. 0 is plain cross-entropy.")


def check_margin(margin: float, *, where: str) -> None:
    """Raise for a margin that is not positive."""
    if not margin > 0:
        raise ValueError(
            f"{where}: `margin` must be above 0, got {margin}. The papers use 10 for images and 6 for text."
        )


def check_n_classes(n_classes: int, *, where: str) -> None:
    """Raise for fewer than two classes."""
    if n_classes < 2:
        raise ValueError(f"{where}: `n_classes` must be at least 2, got {n_classes}. Pass logits.shape[1].")
