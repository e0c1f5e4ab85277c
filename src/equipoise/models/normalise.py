"""Batch norm, a shortcut and a rectifier as one step, which takes half the time of three."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast, final

import torch
from torch import Tensor, nn
from torch.autograd import Function
from torch.nn import functional

from equipoise.compiled.threads import find_team

__all__ = ["Layers", "normalise", "normalise_and_rectify"]

# Smaller images are not worth the calls around the compiled code.
_WORTH_IT = 1 << 15
_LANES = 16  # those of the kernel, which is not loaded just to look


def normalise_and_rectify(norm: nn.Module, inputs: Tensor, shortcut: Tensor | None = None) -> Tensor:
    """Return ``relu(norm(inputs) + shortcut)``.

    Batch norm in training, on a CPU, of float32 images in the channels-last layout, goes through compiled code;
    all else, hooks on the norm included, through torch's own operations. Values agree up to rounding.

    Args:
        norm: The layer, as a rule ``nn.BatchNorm2d``.
        inputs: ``(n, channels, height, width)``.
        shortcut: Added before rectifying.

    Returns:
        Like ``inputs``.

    Example:
        >>> normalise_and_rectify(nn.BatchNorm2d(1).eval(), torch.tensor([[[[-1.0, 1.0]]]])).flatten()
        tensor([0.0000, 1.0000], grad_fn=<ViewBackward0>)
    """
    if isinstance(norm, nn.BatchNorm2d) and _is_for_us(norm, inputs, shortcut):
        return _fused(inputs, norm.weight, norm.bias, shortcut, norm, True)[0]
    hidden: Tensor = norm(inputs)
    return functional.relu_(hidden if shortcut is None else hidden + shortcut)


def normalise(norm: nn.Module, inputs: Tensor) -> Tensor:
    """Return ``norm(inputs)``, through compiled code where :func:`normalise_and_rectify` would use it.

    Example:
        >>> normalise(nn.BatchNorm2d(1).eval(), torch.ones(1, 1, 1, 1)).shape
        torch.Size([1, 1, 1, 1])
    """
    if isinstance(norm, nn.BatchNorm2d) and _is_for_us(norm, inputs, None):
        return _fused(inputs, norm.weight, norm.bias, None, norm, False)[0]
    out: Tensor = norm(inputs)
    return out


@final
class Layers(nn.Sequential):
    """``nn.Sequential``, with every batch norm and the rectifier behind it as one step.

    Example:
        >>> layers = Layers(nn.Conv2d(3, 16, 3), nn.BatchNorm2d(16), nn.ReLU())
        >>> layers(torch.zeros(2, 3, 8, 8)).shape, list(layers.state_dict())[:2]
        (torch.Size([2, 16, 6, 6]), ['0.weight', '0.bias'])
    """

    def forward(self, inputs: Tensor) -> Tensor:
        """Run one layer after the other."""
        hidden, layers = inputs, iter(self)
        for layer in layers:
            following = next(layers, None) if isinstance(layer, nn.BatchNorm2d) else None
            if type(following) is nn.ReLU and not (following._forward_hooks or following._forward_pre_hooks):
                hidden = normalise_and_rectify(layer, hidden)
            else:
                hidden = normalise(layer, hidden) if isinstance(layer, nn.BatchNorm2d) else layer(hidden)
                hidden = hidden if following is None else following(hidden)
        return hidden


def _is_for_us(norm: nn.BatchNorm2d, inputs: Tensor, shortcut: Tensor | None) -> bool:
    return (
        type(norm) is nn.BatchNorm2d
        and norm.training
        and norm.affine
        and norm.track_running_stats
        and norm.momentum is not None
        and all(_is_vector(part) for part in (norm.weight, norm.bias, norm.running_mean, norm.running_var))
        and not (norm._forward_hooks or norm._forward_pre_hooks or norm._backward_hooks)
        and find_team()[1] == torch.get_num_threads()
        and not torch.compiler.is_compiling()
        and not torch.jit.is_tracing()  # type: ignore[attr-defined, no-untyped-call]
        and _is_plain(inputs)
        and inputs.numel() >= max(_WORTH_IT, 2 * inputs.shape[1])  # torch refuses one number per channel
        and inputs.shape[1] % _LANES == 0
        and (shortcut is None or (_is_plain(shortcut) and shortcut.shape == inputs.shape))
    )


def _is_vector(numbers: Tensor | None) -> bool:
    return numbers is not None and numbers.dtype == torch.float32 and numbers.is_contiguous()


def _is_plain(images: Tensor) -> bool:
    return (
        type(images) is Tensor
        and images.device.type == "cpu"
        and images.dtype == torch.float32
        and images.dim() == 4
        and images.is_contiguous(memory_format=torch.channels_last)
    )


class _Fused(Function):
    """Results: the images, and what the way back needs of each channel."""

    @staticmethod
    def forward(
        inputs: Tensor,
        weight: Tensor,
        bias: Tensor,
        shortcut: Tensor | None,
        norm: nn.BatchNorm2d,
        rectify: bool,
    ) -> tuple[Tensor, Tensor]:
        from equipoise.models import normalise_kernel  # numba is loaded when first needed, not on import

        assert norm.running_mean is not None
        assert norm.running_var is not None
        assert norm.num_batches_tracked is not None
        k, out = inputs.shape[1], torch.empty_like(inputs)
        kept = torch.empty((4, k), dtype=torch.float64)
        normalise_kernel.forward(
            inputs.data_ptr(),
            _address(shortcut),
            rectify,
            inputs.numel() // k,
            k,
            tuple(part.data_ptr() for part in (weight, bias, norm.running_mean, norm.running_var)),
            norm.eps,
            norm.momentum,
            out.data_ptr(),
            kept.data_ptr(),
            find_team(),
        )
        norm.num_batches_tracked.add_(1)
        return out, kept

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        images, weight, bias, shortcut, norm, rectify = inputs
        out, kept = output
        ctx.mark_non_differentiable(kept)
        ctx.set_materialize_grads(False)
        # Without a shortcut the inputs alone tell where the rectifier lets pass.
        ctx.save_for_backward(images, weight, bias, shortcut, None if shortcut is None else out, kept)
        ctx.eps, ctx.rectify = norm.eps, rectify

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> tuple[Tensor | None, ...]:
        images, weight, _, shortcut, out, kept = ctx.saved_tensors
        gradient = gradients[0]
        if gradient is None:
            return (None,) * 6
        if torch.is_grad_enabled():
            return (*_differentiable(ctx, gradient), None, None)
        from equipoise.models import normalise_kernel

        k, arranged = images.shape[1], gradient.contiguous(memory_format=torch.channels_last)
        slopes, slope = torch.empty(2, k), torch.empty_like(images)
        # Without a shortcut nobody else wants the gradient that passes, and its memory is used again.
        passed = torch.empty_like(images) if shortcut is not None else slope if ctx.rectify else arranged
        normalise_kernel.backward(
            arranged.data_ptr(),
            _address(out),
            ctx.rectify,
            images.data_ptr(),
            images.numel() // k,
            k,
            weight.data_ptr(),
            kept.data_ptr(),
            passed.data_ptr(),
            slope.data_ptr(),
            slopes.data_ptr(),
            find_team(),
        )
        return slope, slopes[0], slopes[1], None if shortcut is None else passed, None, None


_fused = cast(Callable[..., tuple[Tensor, Tensor]], _Fused.apply)


def _differentiable(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
    """Return the gradients as torch's own operations make them, for those who differentiate them again."""
    images, weight, bias, shortcut, *_ = ctx.saved_tensors
    wanted = [part for part in (images, weight, bias, shortcut) if part is not None and part.requires_grad]
    out = functional.batch_norm(images, None, None, weight, bias, training=True, eps=ctx.eps)
    out = out if shortcut is None else out + shortcut
    out = functional.relu(out) if ctx.rectify else out
    found = iter(torch.autograd.grad(out, wanted, gradient, create_graph=True))
    return tuple(
        next(found) if part is not None and part.requires_grad else None
        for part in (images, weight, bias, shortcut)
    )


def _address(images: Tensor | None) -> int:
    return 0 if images is None else images.data_ptr()
