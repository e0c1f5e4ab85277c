"""Swin Transformer V2, tiny: windows of attention that shift from block to block."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

from equipoise.models.network import Network, make_head

__all__ = ["swinv2_t"]

_PATCH = 4
_DEPTHS = (2, 2, 6, 2)
_WIDTHS = (96, 192, 384, 768)
_HEADS = (3, 6, 12, 24)
#: No head multiplies a cosine by more than this.
_MAX_SCALE = math.log(100.0)
#: Added to the score of two pixels that only the cyclic shift brought together.
_APART = -100.0

Size = tuple[int, int]


def _pairs(size: Size, device: torch.device) -> tuple[Tensor, Tensor]:
    """Return the vertical and horizontal offsets between any two pixels of a window, each ``(t, t)``."""
    rows = torch.arange(size[0], device=device).repeat_interleave(size[1])
    columns = torch.arange(size[1], device=device).repeat(size[0])
    return rows[:, None] - rows[None, :], columns[:, None] - columns[None, :]


def _log_spaced(offsets: Tensor, side: int) -> Tensor:
    """Return offsets on the paper's logarithmic scale, on which the farthest pixel is near 1."""
    scaled = offsets * (8.0 / max(side - 1, 1))
    return scaled.sign() * torch.log2(scaled.abs() + 1.0) / 3.0


def _to_windows(image: Tensor, size: Size) -> Tensor:
    """Cut ``(n, h, w, c)`` into windows ``(n * windows, t, c)``."""
    n, height, width, channels = image.shape
    cut = image.view(n, height // size[0], size[0], width // size[1], size[1], channels)
    return cut.transpose(2, 3).reshape(-1, size[0] * size[1], channels)


def _from_windows(windows: Tensor, size: Size, shape: torch.Size) -> Tensor:
    """Undo :func:`_to_windows`."""
    n, height, width, channels = shape
    cut = windows.view(n, height // size[0], width // size[1], size[0], size[1], channels)
    return cut.transpose(2, 3).reshape(n, height, width, channels)


def _mask(height: int, width: int, size: Size, shift: Size, device: torch.device) -> Tensor:
    """Return what keeps apart the pixels that a cyclic shift made neighbors: ``(windows, 1, t, t)``."""
    bands = []
    for length, side, moved in zip((height, width), size, shift, strict=True):
        place = torch.arange(length, device=device)
        bands.append((place >= length - side).long() + ((place >= length - moved) & (moved > 0)).long())
    region = (3 * bands[0][:, None] + bands[1][None, :]).view(1, height, width, 1)
    windows = _to_windows(region, size).squeeze(-1)
    return _APART * (windows[:, None, :, None] != windows[:, None, None, :]).float()


class WindowAttention(nn.Module):
    """Cosine attention within a window, with a bias that a small network reads from the offsets."""

    def __init__(self, width: int, n_heads: int) -> None:
        super().__init__()
        self.n_heads = n_heads
        self.logit_scale = nn.Parameter(torch.full((n_heads, 1, 1), math.log(10.0)))
        self.cpb_mlp = nn.Sequential(nn.Linear(2, 512), nn.ReLU(), nn.Linear(512, n_heads, bias=False))
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.q_bias = nn.Parameter(torch.zeros(width))
        self.v_bias = nn.Parameter(torch.zeros(width))
        self.proj = nn.Linear(width, width)

    def position_bias(self, size: Size) -> Tensor:
        """Return the bias of every pair of pixels in a window, ``(heads, t, t)``."""
        device, dtype = self.logit_scale.device, self.logit_scale.dtype
        tall, wide = (torch.arange(1 - side, side, device=device, dtype=dtype) for side in size)
        spaced = (_log_spaced(tall, size[0]), _log_spaced(wide, size[1]))
        grid = torch.stack(torch.meshgrid(*spaced, indexing="ij"), dim=-1)
        table = 16.0 * torch.sigmoid(self.cpb_mlp(grid.flatten(0, 1)))
        down, right = _pairs(size, device)
        index = (down + size[0] - 1) * (2 * size[1] - 1) + right + size[1] - 1
        return table[index].permute(2, 0, 1)

    def forward(self, windows: Tensor, size: Size, mask: Tensor | None) -> Tensor:
        """Let the pixels of each window ``(n, t, c)`` look at each other."""
        n, tokens, width = windows.shape
        bias = torch.cat([self.q_bias, torch.zeros_like(self.v_bias), self.v_bias])
        mixed = functional.linear(windows, self.qkv.weight, bias).view(n, tokens, 3, self.n_heads, -1)
        query, key, value = mixed.permute(2, 0, 3, 1, 4)
        scale = self.logit_scale.clamp(max=_MAX_SCALE).exp()
        added = self.position_bias(size).unsqueeze(0)
        if mask is not None:
            added = (added + mask.to(added.dtype)).repeat(n // mask.shape[0], 1, 1, 1)
        # The cosines carry their own scale, so the usual division by the root of the width is switched off.
        seen = functional.scaled_dot_product_attention(
            functional.normalize(query, dim=-1) * scale,
            functional.normalize(key, dim=-1),
            value,
            added,
            scale=1.0,
        )
        out: Tensor = self.proj(seen.transpose(1, 2).reshape(n, tokens, width))
        return out


class SwinBlock(nn.Module):
    """Attention and a two-layer perceptron, each normalized *before* it is added."""

    def __init__(self, width: int, n_heads: int, *, window: int, shifted: bool, drop: float) -> None:
        super().__init__()
        self.window = window
        self.shifted = shifted
        self.drop = drop
        self.attn = WindowAttention(width, n_heads)
        self.norm1 = nn.LayerNorm(width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))
        self.norm2 = nn.LayerNorm(width)

    def _sizes(self, height: int, width: int) -> tuple[Size, Size]:
        size = (min(self.window, height), min(self.window, width))
        if height % size[0] or width % size[1]:
            raise ValueError(
                f"swinv2_t: the image must divide into windows of {self.window}, "
                f"got a stage of {height}x{width}. Take a side of {32 * self.window} pixels, half of it, "
                "or a multiple, or another `window` (7 for 224 pixels)."
            )
        half = self.window // 2 if self.shifted else 0
        return size, (half if height > size[0] else 0, half if width > size[1] else 0)

    def _attend(self, image: Tensor) -> Tensor:
        _, height, width, _ = image.shape
        size, shift = self._sizes(height, width)
        mask = None
        if any(shift):
            image = image.roll((-shift[0], -shift[1]), dims=(1, 2))
            mask = _mask(height, width, size, shift, image.device)
        seen = _from_windows(self.attn(_to_windows(image, size), size, mask), size, image.shape)
        return seen.roll(shift, dims=(1, 2)) if any(shift) else seen

    def _maybe(self, residual: Tensor) -> Tensor:
        """Zero the residual of some samples while training, and enlarge the others to make up for it."""
        if not self.training or self.drop == 0.0:
            return residual
        keep = 1.0 - self.drop
        kept = torch.empty(len(residual), 1, 1, 1, dtype=residual.dtype, device=residual.device).bernoulli_(
            keep
        )
        return residual * kept / keep

    def forward(self, image: Tensor) -> Tensor:
        """Map ``(n, h, w, c)`` to the same shape."""
        image = image + self._maybe(self.norm1(self._attend(image)))
        return image + self._maybe(self.norm2(self.mlp(image)))


class PatchMerging(nn.Module):
    """Four neighbors become one pixel, twice as wide."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.reduction = nn.Linear(4 * width, 2 * width, bias=False)
        self.norm = nn.LayerNorm(2 * width)

    def forward(self, image: Tensor) -> Tensor:
        """Map ``(n, h, w, c)`` to ``(n, h/2, w/2, 2c)``."""
        corners = [image[:, row::2, column::2] for column in (0, 1) for row in (0, 1)]
        merged: Tensor = self.norm(self.reduction(torch.cat(corners, dim=-1)))
        return merged


class SwinBody(nn.Module):
    """Patches, four stages with merging between them, last norm, average pool."""

    def __init__(self, in_channels: int, *, window: int, drop_path: float) -> None:
        super().__init__()
        self.patch_embed = nn.Conv2d(in_channels, _WIDTHS[0], _PATCH, stride=_PATCH)
        self.patch_norm = nn.LayerNorm(_WIDTHS[0])
        drops = torch.linspace(0.0, drop_path, sum(_DEPTHS), device="cpu").tolist()
        layers: list[nn.Module] = []
        for stage, (depth, width, n_heads) in enumerate(zip(_DEPTHS, _WIDTHS, _HEADS, strict=True)):
            for place in range(depth):
                drop = drops[sum(_DEPTHS[:stage]) + place]
                layers.append(SwinBlock(width, n_heads, window=window, shifted=place % 2 == 1, drop=drop))
            if stage + 1 < len(_DEPTHS):
                layers.append(PatchMerging(width))
        self.layers = nn.Sequential(*layers)
        self.norm = nn.LayerNorm(_WIDTHS[-1])

    def forward(self, inputs: Tensor) -> Tensor:
        """Return features ``(n, 768)``."""
        height, width = inputs.shape[-2:]
        if height % 32 or width % 32:
            raise ValueError(
                f"swinv2_t: the sides of an image must be multiples of 32, "
                f"got {height}x{width}. Resize or pad it."
            )
        image = self.patch_norm(self.patch_embed(inputs).permute(0, 2, 3, 1))
        features: Tensor = self.norm(self.layers(image)).mean(dim=(1, 2))
        return features


def _init(module: nn.Module) -> None:
    for part in module.modules():
        if isinstance(part, nn.Linear):
            nn.init.trunc_normal_(part.weight, std=0.02)
            if part.bias is not None:
                nn.init.zeros_(part.bias)
        elif isinstance(part, SwinBlock):
            # Every block starts as the identity.
            for norm in (part.norm1, part.norm2):
                nn.init.zeros_(norm.weight)


def swinv2_t(
    n_classes: int = 1000, in_channels: int = 3, *, window: int = 8, drop_path: float = 0.1
) -> Network:
    """Return SwinV2-T for 256x256 images: 28,347,154 parameters at 1000 classes.

    Attention by cosine, a position bias that a small network reads from log-spaced offsets (hence
    parameters do not depend on window or image), and norms after the layers.

    Args:
        n_classes: Number of classes.
        in_channels: 3 for color, 1 for gray.
        window: Side of an attention window, in patches. Where a stage is smaller, it is one window.
        drop_path: Stochastic depth per sample: rises linearly from 0 to this.

    Returns:
        The network, with features of 768 numbers.

    Example:
        >>> from equipoise.models import count_parameters
        >>> with torch.device("meta"):
        ...     count_parameters(swinv2_t())
        28347154

    Reference:
        Liu et al. (2022), Swin Transformer V2: scaling up capacity and resolution; the setting of Liu et al.
        (2023), CALS.

    Differs from the authors' code:
        Windows and masks follow the image instead of being fixed when the network is made. Torchvision's
        form carries 4,416 key biases that it keeps at zero, and counts 28,351,570. Logits equal those of
        the forms in timm and transformers.
    """
    if window < 2:
        raise ValueError(f"swinv2_t: `window` must be at least 2, got {window}. The paper uses 8.")
    head = make_head(_WIDTHS[-1], n_classes, where="swinv2_t")
    body = SwinBody(in_channels, window=window, drop_path=drop_path)
    _init(body)
    _init(head)
    return Network(body, head, channels_last=True)
