"""Snapshots of one training, averaged."""

import pytest
import torch
from torch import nn

from equipoise.experiments import Execution, ScoringOptions, Spec, run
from equipoise.objectives import SnapshotEnsemble, SnapshotNetwork, Supervised
from equipoise.training import Cyclic, Recipe, fit
from helpers import toys
from helpers.tiny_runs import TABLE


def vector(network):
    return nn.utils.parameters_to_vector(network.parameters()).detach().clone()


def test_mean_of_snapshots_by_hand():
    network = toys.Says(torch.tensor([[0.0, 0.0]]))
    snapshots = SnapshotNetwork(network, 3)
    for index, logit in enumerate((0.0, 50.0)):
        network.logits.data[0, 0] = logit
        snapshots.store(network, index=index)
    torch.testing.assert_close(snapshots(torch.tensor([0])).exp(), torch.tensor([[0.75, 0.25]]))


def test_the_end_of_every_cycle_is_kept():
    network = toys.make_network(0)
    recipe = Recipe(optimizer=toys.RECIPE.optimizer, schedule=Cyclic(3))
    objective = SnapshotEnsemble(
        Supervised(network, nn.CrossEntropyLoss(), recipe=recipe), epochs=6, n_snapshots=3
    )
    ends, counts = [], []

    def record(row):
        ends.append(vector(network))
        counts.append(objective.network().count)

    history = fit(objective, toys.TRAIN, epochs=6, tune=toys.TUNE, hardware=toys.CPU, on_epoch=record)
    assert counts == [1, 1, 2, 2, 3, 3]
    for snapshot, epoch in zip(objective.network().networks, (1, 3, 5), strict=True):
        assert torch.equal(vector(snapshot), ends[epoch])
    rates = history.column("lr")
    assert rates[0] == pytest.approx(rates[2])
    assert rates[1] < rates[0]


def test_one_epoch_per_cycle_is_the_least():
    inner = Supervised(nn.Linear(2, 3), nn.CrossEntropyLoss())
    with pytest.raises(ValueError, match="at least one per snapshot, got 2 for 3"):
        SnapshotEnsemble(inner, epochs=2, n_snapshots=3)
    with pytest.raises(ValueError, match="at least 2"):
        SnapshotEnsemble(inner, epochs=2, n_snapshots=1)


@pytest.mark.parametrize("keep", ["last", "best"])
def test_a_spec_ships_all_snapshots(keep, tmp_path):
    method = {"name": "snapshot_ensemble", "options": {"n_snapshots": 2}}
    spec = Spec.from_table(
        {**TABLE, "method": method, "recipe": {"name": "quick", "epochs": 2, "keep": keep}}
    )
    folder = run(spec, tmp_path, scoring=ScoringOptions(n_resamples=20), execution=Execution(quiet=True))
    probs = torch.tensor(folder.predictions("test").logits).exp()
    torch.testing.assert_close(probs.sum(1), torch.ones(len(probs)))  # logarithms of mean probabilities
