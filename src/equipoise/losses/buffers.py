"""Buffers that stay in full precision when the module around them is cast to half precision."""

from __future__ import annotations

from collections.abc import Callable
from typing import Self

from torch import Tensor, nn

__all__ = ["FullPrecisionBuffers"]

_FULL = 4  # bytes of a float32


class FullPrecisionBuffers(nn.Module):
    """A module whose own buffers are never cast to less than float32; devices and float64 are followed.

    Statistics that are accumulated over epochs overflow or stand still in float16 and bfloat16. Parameters and the
    modules inside are cast as usual.

    Example:
        >>> import torch
        >>> class Counter(FullPrecisionBuffers):
        ...     def __init__(self):
        ...         super().__init__()
        ...         self.register_buffer("total", torch.tensor(70_000.5))
        >>> nn.Sequential(Counter()).half()[0].total
        tensor(70000.5000)
    """

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        before = dict(self.named_buffers(recurse=False))
        super()._apply(fn, recurse)  # type: ignore[no-untyped-call]
        for name, buffer in before.items():
            cast = self._buffers[name]
            if cast is not None and cast.is_floating_point() and cast.dtype.itemsize < _FULL:
                self._buffers[name] = buffer.to(cast.device)
        return self
