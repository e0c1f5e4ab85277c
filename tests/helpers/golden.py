"""The worked values of ``golden/golden.json``, and the batches they are about."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from helpers.numbers import softmax

if TYPE_CHECKING:
    from torch import Tensor

_FILE = json.loads((Path(__file__).parents[1] / "golden" / "golden.json").read_text())
_BATCHES: dict[str, dict[str, Any]] = _FILE["batches"]
#: Parameters and results, by name.
CASES: dict[str, dict[str, Any]] = {case["id"]: case for case in _FILE["cases"]}
#: The first two rows of the second set that golden values named ``S_...`` are about, as those values imply them.
SECOND = np.array([[0.228, 2.728, -4.867], [-3.466, -5.741, 6.025]])


def expected(case: str) -> dict[str, Any]:
    return CASES[case]["expected"]


def double(values: Any) -> "Tensor":
    import torch

    return torch.tensor(values, dtype=torch.float64)


def tensors(name: str) -> "tuple[Tensor, Tensor]":
    """Return logits of a batch that want a gradient, and labels."""
    import torch

    return double(_BATCHES[name]["logits"]).requires_grad_(), torch.tensor(_BATCHES[name]["labels"])


def arrays(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return logits and labels of a batch."""
    return np.array(_BATCHES[name]["logits"]), np.array(_BATCHES[name]["labels"])


def probabilities(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return probabilities and labels of a batch, which holds these or logits."""
    given = _BATCHES[name]
    probs = np.array(given["probs"]) if "probs" in given else softmax(np.array(given["logits"]))
    return probs, np.array(given["labels"])
