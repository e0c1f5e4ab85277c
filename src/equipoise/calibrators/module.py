"""A fitted calibrator as a torch module."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import final

import torch
from torch import Tensor, nn

from equipoise.core.arrays import Array

__all__ = ["CalibratorModule"]


@final
class CalibratorModule(nn.Module):
    """A fitted calibrator to put behind a network: buffers, no parameters, exports through ``torch.export``.

    It computes in the precision of its buffers (float64 unless moved, for example by ``.float()``) and answers
    in the precision of its input. Made by :meth:`Calibrator.as_module`.

    Args:
        function: Pure map of logits ``(m, k)`` and named parameters.
        parameters: The parameters, kept as buffers.
        gives: ``"logits"`` or ``"probs"``.
        name: What to print: the calibrator it was made from.
        n_classes: Number of classes the calibrator was fitted for, if any.

    Example:
        >>> import numpy as np
        >>> module = CalibratorModule(lambda z, p: z / p["t"], {"t": np.array(2.0)}, gives="logits", n_classes=2)
        >>> module(torch.tensor([[2.0, 0.0]]))
        tensor([[1., 0.]])
    """

    def __init__(
        self,
        function: Callable[[Tensor, Mapping[str, Tensor]], Tensor],
        parameters: Mapping[str, Array],
        *,
        gives: str,
        n_classes: int | None,
        name: str = "",
    ) -> None:
        super().__init__()
        self.name = name
        self.gives = gives
        self.n_classes = n_classes
        self._function = function
        self._names = tuple(parameters)
        for parameter, value in parameters.items():
            self.register_buffer(parameter, torch.tensor(value, device="cpu"))

    def forward(self, logits: Tensor) -> Tensor:
        """Map logits ``(n, k)``, one column ``(n,)`` or ``(n, 1)``, or dense ``(n, k, d1, ...)``."""
        parameters = {name: self.get_buffer(name) for name in self._names}
        work = parameters[self._names[0]].dtype if self._names else torch.float64
        if logits.ndim == 1 or logits.shape[1] == 1:
            column = logits.to(work).movedim(1, -1) if logits.ndim > 1 else logits.to(work)[:, None]
            pair = torch.cat([torch.zeros_like(column), column], -1)
            mapped = self._rows(pair, parameters)
            positive = mapped[..., 1] - mapped[..., 0] if self.gives == "logits" else mapped[..., 1]
            return positive.reshape(logits.shape).to(logits.dtype)
        rows = self._rows(logits.to(work).movedim(1, -1), parameters)
        return rows.movedim(-1, 1).to(logits.dtype)

    def extra_repr(self) -> str:
        """Show where it comes from and what it holds when printed."""
        buffers = (f"{name}={_shown(self.get_buffer(name))}" for name in self._names)
        names = [self.name] if self.name else []
        return ", ".join([*names, f"gives={self.gives!r}", f"n_classes={self.n_classes}", *buffers])

    def _rows(self, logits: Tensor, parameters: Mapping[str, Tensor]) -> Tensor:
        flat = logits.reshape(-1, logits.shape[-1])
        return self._function(flat, parameters).reshape(logits.shape)


def _shown(value: Tensor) -> str:
    return f"{value.item():.4g}" if value.ndim == 0 and not value.is_meta else f"<{tuple(value.shape)}>"
