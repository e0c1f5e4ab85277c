"""Buffers of losses and objectives in modules that are cast to half precision."""

import pytest
import torch
from torch import nn

from equipoise import losses
from equipoise.objectives import Pruned, Supervised

LOGITS = 4 * torch.randn(200, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
LABELS = torch.arange(200) % 3
LOSSES = {
    "adafocal": losses.AdaFocalLoss,
    "ada_dual_focal": losses.AdaDualFocalLoss,
    "avuc": losses.AvUC,
    "cals_alm": lambda: losses.ClassAdaptiveLoss(n_classes=3),
    "cals_hr": lambda: losses.ClassAdaptiveHeuristicLoss(n_classes=3),
    "focal": lambda: losses.FocalLoss(gamma=2.1),
    "sum": lambda: losses.FocalLoss(gamma=2.1) + 0.3 * losses.AdaFocalLoss(),
    "weighted": lambda: losses.FocalLoss(weight=torch.tensor([1e-9, 1.0, 1e6])),
}
CASTS = {
    "half": lambda module: module.half(),
    "bfloat16": lambda module: module.bfloat16(),
    "to": lambda module: module.to(torch.float16),
    "type": lambda module: module.type(torch.bfloat16),
    "float": lambda module: module.float(),
}


@pytest.mark.parametrize("cast", CASTS)
@pytest.mark.parametrize("name", LOSSES)
def test_a_cast_of_the_module_around_a_loss_changes_no_number(name, cast):
    expected, parent = LOSSES[name](), nn.ModuleDict({"head": nn.Linear(2, 2), "loss": LOSSES[name]()})
    for epoch in range(1, 4):
        found = CASTS[cast](parent)["loss"]
        for loss in (expected, found):
            loss.update(LOGITS / epoch, LABELS)
        assert torch.equal(found(LOGITS, LABELS), expected(LOGITS, LABELS))
    for key, value in expected.state_dict().items():
        assert torch.equal(found.state_dict()[key], value)
    assert parent["head"].weight.dtype == CASTS[cast](nn.Linear(1, 1)).weight.dtype


def test_float64_and_devices_are_followed():
    loss = losses.AdaFocalLoss().double()
    assert loss.bins.edges.dtype == torch.float64
    assert loss.float().bins.edges.dtype == torch.float32
    moved = losses.AdaFocalLoss().to("meta", torch.float16)
    assert (moved.bins.edges.device.type, moved.bins.edges.dtype) == ("meta", torch.float32)


def test_scores_of_pruning_stay_in_full_precision():
    objective = Pruned(
        Supervised(nn.Linear(2, 2), nn.CrossEntropyLoss()), n_samples=2, period=1, fraction=0.5, momentum=0.5
    )
    objective.scores[:] = torch.tensor([0.70001, 0.70002])
    objective.half()
    assert objective.scores[1] > objective.scores[0]
    assert objective.network().weight.dtype == torch.float16
