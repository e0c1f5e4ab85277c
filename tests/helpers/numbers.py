"""Formulas that oracles share."""

import numpy as np


def softmax(logits: np.ndarray) -> np.ndarray:
    """Return probabilities of the last axis."""
    shifted = np.exp(logits - logits.max(-1, keepdims=True))
    return shifted / shifted.sum(-1, keepdims=True)
