"""What each of several processes does in ``test_distributed``; run by torchrun, or in one process to compare."""

import json
import sys
from pathlib import Path

import torch
from torch import nn

from equipoise import losses
from equipoise.losses.mdca import MDCA
from equipoise.losses.mmce import MMCE
from equipoise.objectives import (
    DeepEnsemble,
    DifferentiatedMutualLearning,
    GammaNet,
    MetaLabelSmoothing,
    MutualLearning,
    Pruned,
    Supervised,
)
from equipoise.training import Hardware, Recipe, fit
from helpers import toys

# 41 samples in batches of 16: the last batch of 9 makes parts of 5 and 4.
TRAIN, TUNE = toys.Blobs(41), toys.Blobs(23, seed=1, shuffle=False)
EPOCHS = 3


def network(seed):
    # Batch statistics and dropout would be each process's own.
    return toys.make_network(seed, plain=True)


def supervised(loss, **recipe):
    return Supervised(network(0), loss, recipe=Recipe(optimizer=toys.RECIPE.optimizer, **recipe))


def meta():
    return toys.Blobs(10, batch_size=5, seed=2)


CASES = {
    "cross_entropy": lambda: supervised(nn.CrossEntropyLoss()),
    "summed_and_clipped": lambda: supervised(nn.CrossEntropyLoss(), reduction="sum", clip_norm=1.0),
    "accumulating": lambda: supervised(nn.CrossEntropyLoss(), accumulate=2),
    "adafocal": lambda: supervised(losses.AdaFocalLoss(n_bins=4)),
    "cals_alm": lambda: supervised(losses.ClassAdaptiveLoss(n_classes=3, margin=1.0)),
    "focal_mdca": lambda: supervised(losses.FocalLoss(gamma=1.0) + 1.0 * MDCA()),
    "ce_mmce": lambda: supervised(losses.FocalLoss(gamma=0.0) + 2.0 * MMCE()),
    "mutual_learning": lambda: MutualLearning([network(0), network(1)], recipe=toys.RECIPE),
    "differentiated": lambda: DifferentiatedMutualLearning(network(0), [network(1)], recipe=toys.RECIPE),
    "deep_ensemble": lambda: DeepEnsemble(
        [supervised(nn.CrossEntropyLoss()), supervised(losses.BrierLoss())]
    ),
    "gamma_net": lambda: GammaNet(network(0), meta(), recipe=toys.RECIPE),
    "meta_label_smoothing": lambda: MetaLabelSmoothing(network(0), meta(), recipe=toys.RECIPE),
    "pruned": lambda: Pruned(
        supervised(nn.CrossEntropyLoss()), n_samples=41, period=1, fraction=0.2, momentum=0.5
    ),
}


def histories(folder=None):
    """Train every case, the first one interrupted and resumed if there is a folder."""
    hardware = Hardware(accelerator="cpu", strategy="auto" if folder is None else "ddp")
    rows = {}
    for name, make in CASES.items():
        home = None if folder is None or name != "adafocal" else Path(folder) / name
        if home is not None:
            fit(make(), TRAIN, epochs=1, tune=TUNE, hardware=hardware, folder=home)
        history = fit(make(), TRAIN, epochs=EPOCHS, tune=TUNE, hardware=hardware, folder=home)
        rows[name] = toys.without_clock(history)
    return rows


if __name__ == "__main__":
    torch.set_num_threads(1)
    rows = histories(sys.argv[1])
    rank = torch.distributed.get_rank()
    Path(sys.argv[1], f"rank{rank}.json").write_text(json.dumps(rows))
    torch.distributed.destroy_process_group()
