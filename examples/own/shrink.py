"""Your own calibrator: parameters fitted on held-out rows, by name, and the calibrated logits that they give."""

from collections.abc import Mapping

import torch
from torch import Tensor, nn


class Shrunk:
    """Logits times a factor, chosen from a grid."""

    def __init__(self, steps: int = 50) -> None:
        self.steps = steps

    def learn(self, logits: Tensor, labels: Tensor) -> dict[str, float]:
        """Return the factor with the lowest log-loss."""
        factors = torch.logspace(-1, 1, self.steps, dtype=torch.float64)
        losses = torch.stack([nn.functional.cross_entropy(factor * logits, labels) for factor in factors])
        return {"factor": float(factors[losses.argmin()])}

    def map(self, logits: Tensor, parameters: Mapping[str, Tensor]) -> Tensor:
        """Return calibrated logits."""
        return parameters["factor"] * logits
