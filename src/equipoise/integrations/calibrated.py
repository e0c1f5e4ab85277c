"""A network and its calibrator as one module."""

from __future__ import annotations

from typing import final

from torch import Tensor, nn

from equipoise.calibrators.base import Calibrator
from equipoise.calibrators.identity import Identity
from equipoise.training.batch_source import Inputs
from equipoise.training.network_call import as_logits, call_network

__all__ = ["CalibratedNetwork"]


@final
class CalibratedNetwork(nn.Module):
    """A network with a map behind it: inputs to calibrated probabilities.

    Args:
        network: Gives logits ``(n, k)``, or dense ``(n, k, d1, ...)``; or an object or mapping with ``logits``, as
            models of transformers do. One column holds log-odds of class 1.
        calibrator: A fitted calibrator; None leaves the logits alone.

    Raises:
        NotFittedError: If the calibrator has not been fitted.

    Example:
        >>> import torch
        >>> from equipoise.calibrators import TemperatureScaling
        >>> halved = TemperatureScaling().fit([[3.0, 0.0]] * 4, [0, 0, 0, 1])
        >>> CalibratedNetwork(nn.Identity(), halved)(torch.tensor([[3.0, 0.0]]))
        tensor([[0.7500, 0.2500]])
    """

    def __init__(self, network: nn.Module, calibrator: Calibrator | None = None) -> None:
        super().__init__()
        self.network = network
        self.calibrator = (Identity() if calibrator is None else calibrator).as_module()

    def forward(self, inputs: Inputs | None = None, **named: Tensor) -> Tensor:
        """Return probabilities, classes on axis 1, for a tensor, a mapping of named tensors, or tensors by keyword."""
        given = named if inputs is None else inputs
        logits = as_logits(call_network(self.network, given), where="CalibratedNetwork")
        mapped: Tensor = self.calibrator(logits)
        return mapped.softmax(1) if self.calibrator.gives == "logits" else mapped
