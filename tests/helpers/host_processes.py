"""What runs inside the processes of distributed tests of the adapters; here so that they can import it."""

from __future__ import annotations

from pathlib import Path

import torch
import torch.distributed as dist
from torch import Tensor

PARTS = (slice(0, 130), slice(130, 200))  # unequal on purpose


def batch() -> tuple[Tensor, Tensor]:
    """Logits and labels of 200 rows."""
    generator = torch.Generator().manual_seed(0)
    return torch.randn(200, 5, generator=generator) * 2, torch.randint(0, 5, (200,), generator=generator)


def measure(rank: int, folder: str) -> None:
    """Measure a part of the batch in this process; the metrics add up what the processes have."""
    from torchmetrics import MetricCollection

    from equipoise.integrations.torchmetrics import ECE, NLL, SmECE

    dist.init_process_group("gloo", init_method=f"file://{folder}/meet", rank=rank, world_size=len(PARTS))
    metrics = MetricCollection([one(5, inputs="logits") for one in (ECE, NLL, SmECE)])
    logits, labels = batch()
    metrics.update(logits[PARTS[rank]], labels[PARTS[rank]])
    torch.save(metrics.compute(), Path(folder) / f"{rank}.pt")
    dist.destroy_process_group()
