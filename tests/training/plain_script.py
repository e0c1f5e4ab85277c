"""What a user's script does in ``test_processes``: the documented call on two processes, from plain Python."""

import json
import sys
from pathlib import Path

import torch
from torch import nn

from equipoise.objectives import Supervised
from equipoise.training import Hardware, Recipe, fit
from equipoise.training.processes import is_first_process
from helpers import toys

# 41 samples in batches of 16: the last batch of 9 makes parts of 5 and 4.
TRAIN, TUNE = toys.Blobs(41), toys.Blobs(23, seed=1, shuffle=False)


def history(devices, folder=None, epochs=2):
    """Train a network with batch norm, whose statistics are those of the whole batch."""
    torch.manual_seed(0)
    network = nn.Sequential(nn.Linear(2, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 3))
    objective = Supervised(network, nn.CrossEntropyLoss(), recipe=Recipe(optimizer=toys.RECIPE.optimizer))
    hardware = Hardware(accelerator="cpu", devices=devices, strategy="ddp" if devices > 1 else "auto")
    rows = fit(objective, TRAIN, epochs=epochs, tune=TUNE, hardware=hardware, folder=folder, quiet=True)
    return toys.without_clock(rows)


if __name__ == "__main__":
    torch.set_num_threads(1)
    out = Path(sys.argv[1])
    rows = {"straight": history(2)}
    history(2, out / "run", epochs=1)
    rows["resumed"] = history(2, out / "run")
    if is_first_process():
        (out / "histories.json").write_text(json.dumps(rows))
