"""The worked values of ``golden/golden.json``, as tensors in double precision."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

_FILE = json.loads((Path(__file__).parent / "golden" / "golden.json").read_text())
CASES: dict[str, dict[str, Any]] = {case["id"]: case for case in _FILE["cases"]}


def double(values: Any) -> Tensor:
    return torch.tensor(values, dtype=torch.float64)


def batch(name: str) -> tuple[Tensor, Tensor]:
    """Logits that want a gradient, and labels."""
    stored = _FILE["batches"][name]
    return double(stored["logits"]).requires_grad_(), torch.tensor(stored["labels"])
