"""Your own data: a function that returns a Dataset, (inputs, labels), or map-style datasets by split."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import torch
from torch import Tensor


def bars(seed: int = 0, n: int = 900, noise: float = 1.2) -> tuple[Tensor, Tensor]:
    """Return images of a bright bar in one of three places, with strong noise; the splits are drawn from these rows."""
    generator = torch.Generator().manual_seed(3)
    labels = torch.randint(0, 3, (n,), generator=generator)
    images = noise * torch.randn(n, 1, 8, 8, generator=generator)
    columns = 2 * labels[:, None] + torch.arange(2)
    images[torch.arange(n)[:, None], 0, :, columns] += 1.0
    return images, labels


def noise(n: int = 300) -> Tensor:
    """Return images without a bar, out-of-distribution for a network trained on bars. No labels are needed."""
    return torch.randn(n, 1, 8, 8, generator=torch.Generator().manual_seed(4))


def from_file(path: str, root: str | None = None, n: int = 4000) -> tuple[Tensor, Tensor]:
    """Return the first images of an ``.npz`` file with ``x_train`` and ``y_train``, for example Fashion-MNIST."""
    folder = Path(root or os.environ.get("EQUIPOISE_DATA", "."))
    with np.load(folder / path) as arrays:
        images, labels = arrays["x_train"][:n], arrays["y_train"][:n]
    return torch.from_numpy(images)[:, None], torch.from_numpy(labels).long()
