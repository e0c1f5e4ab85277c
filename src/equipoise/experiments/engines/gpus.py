"""Which graphics cards each worker of this machine may use."""

from __future__ import annotations

import os
from collections.abc import Mapping

import torch

__all__ = ["VISIBLE", "share_gpus", "visible_gpus"]

#: The variable by which CUDA programs learn which cards are theirs.
VISIBLE = "CUDA_VISIBLE_DEVICES"


def visible_gpus(accelerator: str, environment: Mapping[str, str] | None = None) -> list[str]:
    """Return the names of the cards that runs may use; none if they use another accelerator.

    Args:
        accelerator: In the words of Lightning Fabric.
        environment: Variables; by default those of this process.

    Example:
        >>> visible_gpus("cuda", {"CUDA_VISIBLE_DEVICES": "2,5"}), visible_gpus("cpu")
        (['2', '5'], [])
    """
    if accelerator not in ("cuda", "gpu") and not (accelerator == "auto" and torch.cuda.is_available()):
        return []
    given = (os.environ if environment is None else environment).get(VISIBLE)
    if given is None:
        return [str(number) for number in range(torch.cuda.device_count())]
    names = [name.strip() for name in given.split(",")]
    # CUDA stops reading at the first name that is no card.
    last = next((place for place, name in enumerate(names) if name in ("", "-1")), len(names))
    return names[:last]


def share_gpus(gpus: list[str], n_workers: int, *, devices: int = 1) -> list[str | None]:
    """Return what each worker's ``CUDA_VISIBLE_DEVICES`` shall be; None leaves it as it is.

    Workers get cards of their own as long as there are enough; then the next ones begin at the first card again.

    Args:
        gpus: All cards.
        n_workers: How many workers share them.
        devices: Cards of one worker.

    Example:
        >>> share_gpus(["2", "5", "6"], 4)
        ['2', '5', '6', '2']
        >>> share_gpus(["0", "1", "2", "3"], 2, devices=2)
        ['0,1', '2,3']
    """
    groups = [gpus[first : first + devices] for first in range(0, len(gpus) - devices + 1, devices)]
    if not groups:
        return [None] * n_workers
    return [",".join(groups[worker % len(groups)]) for worker in range(n_workers)]
