"""Small trainings in loops of other libraries, for tests of adapters; distributed processes import them too."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn


def rows(n_rows: int = 90, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Inputs and labels of three classes that overlap."""
    generator = torch.Generator().manual_seed(seed)
    labels = torch.randint(0, 3, (n_rows,), generator=generator)
    return torch.randn(n_rows, 4, generator=generator) + nn.functional.one_hot(labels, 4) * 1.5, labels


def loader(inputs: Tensor, labels: Tensor) -> Any:
    """Batches of 30 in order."""
    return torch.utils.data.DataLoader(torch.utils.data.TensorDataset(inputs, labels), batch_size=30)


def make_module(loss: nn.Module) -> Any:
    """Return a LightningModule that trains a linear network with a loss."""
    import lightning.pytorch as pl

    class Module(pl.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            torch.manual_seed(0)
            self.network, self.loss = nn.Linear(4, 3), loss

        def training_step(self, batch: Any, number: int) -> Tensor:
            return self.loss(self.network(batch[0]), batch[1])

        def validation_step(self, batch: Any, number: int) -> dict[str, Tensor]:
            return {"logits": self.network(batch[0]), "labels": batch[1]}

        def configure_optimizers(self) -> Any:
            return torch.optim.SGD(self.parameters(), lr=0.5)

    return Module()


def train_in_two(rank: int, folder: str) -> None:
    """Train two processes with Lightning; the loss adapts to the validation rows of both."""
    import os
    import warnings

    import lightning.pytorch as pl

    from equipoise.integrations.lightning import AdaptLoss, CalibrationLogger
    from equipoise.losses import AdaFocalLoss

    warnings.simplefilter("ignore")
    os.environ.update(
        MASTER_ADDR="127.0.0.1", MASTER_PORT=Path(folder, "port").read_text(), LOCAL_RANK=str(rank),
        NODE_RANK="0", WORLD_SIZE="2", RANK=str(rank), LOCAL_WORLD_SIZE="2", GROUP_RANK="0",
    )  # fmt: skip
    module, log = make_module(AdaFocalLoss(n_bins=3)), CalibrationLogger()
    trainer = pl.Trainer(
        accelerator="cpu", devices=2, strategy="ddp", max_epochs=1, logger=False, enable_checkpointing=False,
        enable_progress_bar=False, enable_model_summary=False, callbacks=[AdaptLoss(), log],
    )  # fmt: skip
    trainer.fit(module, loader(*rows()), loader(*rows(60, seed=1)))
    logits = module.network(rows(60, seed=1)[0])
    content = {
        "gammas": module.loss.bins.gammas,
        "ece": trainer.callback_metrics["val_ece"],
        "logits": logits.detach(),
    }
    torch.save(content, Path(folder) / f"{rank}.pt")
