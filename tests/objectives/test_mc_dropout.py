"""Predictions averaged over dropout masks."""

import pytest
import torch
from torch import nn

from equipoise.experiments import Execution, ScoringOptions, Spec, run
from equipoise.models import mlp
from equipoise.objectives import MCDropout, MonteCarloNetwork, Parts, Supervised
from equipoise.training import predict
from helpers import toys
from helpers.tiny_runs import TABLE


def test_mean_by_hand():
    """A dropout of 1/2 on one input: it is 0 or doubled in each pass, and either way the answer is known."""
    head = nn.Linear(1, 2)
    head.weight.data = torch.tensor([[1.0], [0.0]])
    head.bias.data.zero_()
    network = nn.Sequential(nn.Dropout(0.5), head).eval()
    inputs = torch.full((1, 1), 3.0)
    found = float(MonteCarloNetwork(network, n_passes=40)(inputs).detach().exp()[0, 0])
    kept = (found - 0.5) / (torch.tensor([6.0, 0.0]).softmax(0)[0] - 0.5) * 40
    assert float(kept) == pytest.approx(round(float(kept)), abs=1e-3)
    assert 10 < float(kept) < 30  # of 40 passes


def test_predictions_can_be_repeated_and_leave_no_trace():
    network = MonteCarloNetwork(mlp(3, 2, hidden=(8,), dropout=0.5), n_passes=5).eval()
    before = torch.get_rng_state()
    one, two = (predict(network, toys.TUNE(**toys.WHERE)).logits for _ in range(2))
    assert (one == two).all()
    assert torch.equal(torch.get_rng_state(), before)
    assert not any(part.training for part in network.modules())
    other = MonteCarloNetwork(network.network, n_passes=5, seed=1)
    assert (predict(other, toys.TUNE(**toys.WHERE)).logits != one).any()


def test_many_passes_lower_the_confidence_of_a_confident_network():
    torch.manual_seed(0)
    network = mlp(3, 2, hidden=(32,), dropout=0.5).eval()
    network.head.weight.data *= 30
    plain = network(toys.TUNE.inputs).softmax(1).amax(1).mean()
    averaged = MonteCarloNetwork(network, n_passes=50)(toys.TUNE.inputs).exp().amax(1).mean()
    assert averaged < plain


def test_a_row_does_not_depend_on_its_batch():
    network = MonteCarloNetwork(mlp(3, 2, hidden=(8,), dropout=0.5), n_passes=5).eval()
    whole = network(toys.TUNE.inputs)
    parts = torch.cat([network(part) for part in toys.TUNE.inputs.split(5)])
    torch.testing.assert_close(whole, parts)


def test_dropout_of_channels_drops_whole_channels():
    network = nn.Sequential(nn.Conv2d(1, 8, 1), nn.Dropout2d(0.5), nn.Flatten(), nn.Linear(32, 3)).eval()
    averaged = MonteCarloNetwork(network, n_passes=2)
    averaged(torch.ones(3, 1, 2, 2))
    assert {tuple(mask.shape) for mask in averaged._masks.values()} == {(1, 8, 1, 1)}


def test_in_training_mode_there_is_one_dropout_and_not_two():
    network = MonteCarloNetwork(nn.Sequential(nn.Dropout(0.5), nn.Linear(2, 3)), n_passes=3)
    inputs = torch.randn(4, 2)
    answers = []
    for mode in (True, False):
        answers.append(network.train(mode)(inputs))
        assert network.network[0].training is mode
    assert torch.equal(*answers)


def test_batch_norms_stay_in_evaluation_mode():
    network = nn.Sequential(nn.BatchNorm1d(2), nn.Dropout(0.5), nn.Linear(2, 3)).eval()
    MonteCarloNetwork(network, n_passes=3)(torch.randn(4, 2))
    assert int(network[0].num_batches_tracked) == 0


def test_a_network_without_dropout_gets_one_from_parts_only():
    with pytest.raises(ValueError, match=r"mlp\(dropout=0\.1\)"):
        MonteCarloNetwork(mlp(3, 2))
    assert (
        MCDropout.from_parts(Parts(make_network=lambda: mlp(3, 2)), dropout=0.2).network().network.body[-1].p
        == 0.2
    )
    own = Parts(make_network=lambda: mlp(3, 2, dropout=0.4))
    assert MCDropout.from_parts(own).network().network.body[-1].p == 0.4
    with pytest.raises(ValueError, match="has no dropout"):
        MCDropout.from_parts(Parts(make_network=lambda: nn.Linear(2, 3)))


def test_mistakes():
    with pytest.raises(ValueError, match="probability 1 leaves nothing"):
        MonteCarloNetwork(nn.Sequential(nn.Dropout(1.0), nn.Linear(2, 3)))
    with pytest.raises(ValueError, match="at least 1"):
        MCDropout(Supervised(mlp(3, 2, dropout=0.1), nn.CrossEntropyLoss()), n_passes=0)


@pytest.mark.parametrize("keep", ["last", "best"])
def test_a_spec_trains_with_it(keep, tmp_path):
    spec = Spec.from_table(
        {**TABLE, "method": "mc_dropout", "recipe": {"name": "quick", "epochs": 1, "keep": keep}}
    )
    folder = run(spec, tmp_path, scoring=ScoringOptions(n_resamples=20), execution=Execution(quiet=True))
    probs = torch.tensor(folder.predictions("test").logits).exp()
    torch.testing.assert_close(probs.sum(1), torch.ones(len(probs)))
