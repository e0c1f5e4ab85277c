"""Data for the tests of calibrators: the golden batch and samples whose true probabilities are known."""

from __future__ import annotations

from typing import Any

import numpy as np

from equipoise.calibrators import TemperatureScaling
from helpers.golden import BATCHES, CASES
from helpers.numbers import softmax as probs

__all__ = ["SECOND", "batch", "expected", "nll", "probs", "sample", "tempered"]


def expected(case: str) -> dict[str, Any]:
    return CASES[case]["expected"]


def batch(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return logits and labels of a golden batch."""
    entry = BATCHES[name]
    return np.array(entry["logits"]), np.array(entry["labels"])


def nll(logits: np.ndarray, labels: np.ndarray) -> float:
    return float(-np.log(probs(logits)[np.arange(len(labels)), labels]).mean())


def sample(n: int, k: int, *, seed: int = 0, size: float = 1.5) -> tuple[np.ndarray, np.ndarray]:
    """Draw logits, and labels from their softmax: perfectly calibrated."""
    rng = np.random.default_rng(seed)
    logits = size * rng.normal(size=(n, k))
    return logits, (logits + rng.gumbel(size=(n, k))).argmax(1)


#: The first two rows of the second set that golden values named ``S_...`` are about, as those values imply them.
SECOND = np.array([[0.228, 2.728, -4.867], [-3.466, -5.741, 6.025]])


def tempered(logits: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Mix tempered probabilities with the uniform distribution at weight 1 / (n + 1), and take the logarithm."""
    n, k = logits.shape
    temperature = TemperatureScaling().fit(logits, labels).temperature
    return np.log(n / (n + 1) * probs(logits / temperature) + 1 / (n + 1) / k)
