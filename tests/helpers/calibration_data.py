"""Data for the tests of calibrators: samples whose true probabilities are known."""

from __future__ import annotations

import numpy as np

from equipoise.calibrators import TemperatureScaling
from helpers.numbers import softmax as probs

__all__ = ["nll", "probs", "sample", "tempered"]


def nll(logits: np.ndarray, labels: np.ndarray) -> float:
    return float(-np.log(probs(logits)[np.arange(len(labels)), labels]).mean())


def sample(n: int, k: int, *, seed: int = 0, size: float = 1.5) -> tuple[np.ndarray, np.ndarray]:
    """Draw logits, and labels from their softmax: perfectly calibrated."""
    rng = np.random.default_rng(seed)
    logits = size * rng.normal(size=(n, k))
    return logits, (logits + rng.gumbel(size=(n, k))).argmax(1)


def tempered(logits: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Mix tempered probabilities with the uniform distribution at weight 1 / (n + 1), and take the logarithm."""
    n, k = logits.shape
    temperature = TemperatureScaling().fit(logits, labels).temperature
    return np.log(n / (n + 1) * probs(logits / temperature) + 1 / (n + 1) / k)
