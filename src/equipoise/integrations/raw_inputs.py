"""Inputs of a model in use: as the data's files hold them, scaled inside the model as they were in training."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, final

import torch
from torch import Tensor, nn

from equipoise.core.errors import DataError
from equipoise.data import Dataset
from equipoise.training.network_call import call_network

__all__ = ["RawInputs", "ScaledNetwork"]

RawKind = Literal["image", "features", "tokens"]
KINDS: tuple[RawKind, ...] = ("image", "features", "tokens")


@final
class RawInputs(nn.Module):
    """From raw inputs to what a network was trained on: ``(inputs - center) / spread``.

    Args:
        kind: ``"image"`` for uint8 images with values from 0 to 255, ``"features"`` for numbers in the units of the
            data's file, ``"tokens"`` for token numbers, which are not scaled.
        center: Subtracted, in the units of the raw inputs: one value per channel or column.
        spread: Divided by.

    Example:
        >>> white = torch.full((1, 1, 1, 1), 255, dtype=torch.uint8)
        >>> RawInputs("image", center=[127.5], spread=[63.75])(white)
        tensor([[[[2.]]]])
    """

    center: Tensor
    spread: Tensor

    def __init__(self, kind: RawKind, center: Any = 0.0, spread: Any = 1.0) -> None:
        super().__init__()
        self.kind = kind
        for name, values in (("center", center), ("spread", spread)):
            self.register_buffer(name, torch.as_tensor(values, dtype=torch.float32, device="cpu").clone())
        if self.center.ndim > 1 or self.center.shape != self.spread.shape:
            raise DataError(
                f"RawInputs: `center` and `spread` must be one value per channel or column, got shapes "
                f"{tuple(self.center.shape)} and {tuple(self.spread.shape)}."
            )
        if kind not in KINDS or not (self.center.isfinite().all() and (self.spread > 0).all()):
            raise DataError("RawInputs: expected a known kind, finite centers and spreads above zero.")

    @classmethod
    def of(cls, data: Dataset) -> RawInputs:
        """Return what batches of a dataset do to its inputs.

        Example:
            >>> from equipoise.data import load
            >>> RawInputs.of(load("digits")).kind
            'image'
        """
        if data.kind == "text":
            return cls("tokens")
        images = data.kind in ("image", "segmentation")
        unit = 255.0 if images else 1.0
        mean = torch.zeros(()) if data.mean is None else data.mean
        std = torch.ones(()) if data.std is None else data.std
        center, spread = mean.double() + torch.zeros_like(std), std.double() + torch.zeros_like(mean)
        return cls("image" if images else "features", (unit * center).float(), (unit * spread).float())

    def describe(self, shape: Sequence[int] | None = None) -> str:
        """Return in words what inputs a model with this scaling takes.

        Example:
            >>> RawInputs("tokens").describe()
            'token numbers (n, length), int64; the words behind the numbers are not in the file'
        """
        sizes = "" if shape is None else f" (n, {', '.join(map(str, shape))})"
        return {
            "image": f"uint8 images{sizes}, values 0 to 255; scaling and standardization are in the file",
            "features": f"numbers{sizes}, float32, in the units of the data; standardization is in the file",
            "tokens": "token numbers (n, length), int64; the words behind the numbers are not in the file",
        }[self.kind]

    def check(self, inputs: Tensor, *, where: str) -> Tensor:
        """Return inputs in the type that the model takes.

        Args:
            inputs: Raw inputs.
            where: Prefix of error messages.

        Raises:
            DataError: If images are not uint8, or token numbers are no integers: they were scaled already, or are
                something else.
        """
        if self.kind == "image" and inputs.dtype != torch.uint8:
            raise DataError(
                f"{where}: expected uint8 images with values 0 to 255, got {inputs.dtype}. The model scales them "
                "itself; pass images in [0, 1] as (255 * images).round().astype('uint8')."
            )
        if self.kind == "tokens" and inputs.is_floating_point():
            raise DataError(f"{where}: expected token numbers, integers, got {inputs.dtype}.")
        return inputs.long() if self.kind == "tokens" else inputs if self.kind == "image" else inputs.float()

    def forward(self, inputs: Tensor) -> Tensor:
        """Return the inputs as the network was trained on."""
        if self.kind == "tokens":
            return inputs
        center, spread = self.center, self.spread
        if self.kind == "image" and center.ndim:
            center, spread = center[:, None, None], spread[:, None, None]
        return (inputs.float() - center) / spread


@final
class ScaledNetwork(nn.Module):
    """A network that takes raw inputs.

    Args:
        raw_inputs: What is done to them.
        network: What takes the result.
    """

    def __init__(self, raw_inputs: RawInputs, network: nn.Module) -> None:
        super().__init__()
        self.raw_inputs, self.network = raw_inputs, network

    def forward(self, inputs: Tensor) -> Any:
        """Return what the network says of raw inputs."""
        return call_network(self.network, self.raw_inputs(inputs))
