"""The worked values of ``golden/golden.json``, as tensors in double precision."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from helpers.golden import BATCHES, CASES

__all__ = ["CASES", "batch", "double"]


def double(values: Any) -> Tensor:
    return torch.tensor(values, dtype=torch.float64)


def batch(name: str) -> tuple[Tensor, Tensor]:
    """Logits that want a gradient, and labels."""
    stored = BATCHES[name]
    return double(stored["logits"]).requires_grad_(), torch.tensor(stored["labels"])
