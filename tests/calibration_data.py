"""Data for the tests of calibrators: the golden batch and samples whose true probabilities are known."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

GOLDEN = Path(__file__).parent / "golden" / "golden.json"


@cache
def _golden() -> dict[str, Any]:
    return json.loads(GOLDEN.read_text())


def expected(case: str) -> dict[str, Any]:
    return next(entry["expected"] for entry in _golden()["cases"] if entry["id"] == case)


def batch(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return logits and labels of a golden batch."""
    entry = _golden()["batches"][name]
    return np.array(entry["logits"]), np.array(entry["labels"])


def probs(logits: np.ndarray) -> np.ndarray:
    shifted = np.exp(logits - logits.max(-1, keepdims=True))
    return shifted / shifted.sum(-1, keepdims=True)


def nll(logits: np.ndarray, labels: np.ndarray) -> float:
    return float(-np.log(probs(logits)[np.arange(len(labels)), labels]).mean())


def sample(n: int, k: int, *, seed: int = 0, size: float = 1.5) -> tuple[np.ndarray, np.ndarray]:
    """Draw logits, and labels from their softmax: perfectly calibrated."""
    rng = np.random.default_rng(seed)
    logits = size * rng.normal(size=(n, k))
    return logits, (logits + rng.gumbel(size=(n, k))).argmax(1)
