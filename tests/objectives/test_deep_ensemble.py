import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from equipoise.losses import AdaFocalLoss
from equipoise.objectives import DeepEnsemble, MeanNetwork, Pruned, Supervised, WeightAverage
from equipoise.objectives.deep_ensemble import mean_log_probs
from equipoise.training import Optimizer, Recipe, fit
from helpers import toys
from helpers.golden import CASES, double


def member(seed):
    return Supervised(toys.make_network(seed, plain=True), nn.CrossEntropyLoss(), recipe=toys.RECIPE)


def test_golden_probabilities():
    case = CASES["ensemble.A"]
    logits, batch = toys.batch_a()
    combined = mean_log_probs([logits, double(case["params"]["member2_logits"])])
    assert torch.allclose(combined.exp(), double(case["expected"]["probs"]), atol=1e-9)
    nll = nn.functional.cross_entropy(combined, batch.targets)
    assert float(nll) == pytest.approx(case["expected"]["nll"], rel=1e-6)


def test_mean_by_hand():
    # Probabilities (1, 0) and (1/2, 1/2) average to (3/4, 1/4).
    network = MeanNetwork([toys.Says(torch.tensor([[99.0, 0.0]])), toys.Says(torch.zeros(1, 2))])
    assert network(torch.tensor([0])).exp()[0].tolist() == pytest.approx([0.75, 0.25])


def test_members_train_as_if_alone():
    ensemble = DeepEnsemble([member(0), member(1)])
    alone = member(1)
    for objective in (ensemble, alone):
        fit(objective, toys.TRAIN, epochs=2, hardware=toys.CPU)
    toys.assert_equal(ensemble.members[1].network().state_dict(), alone.network().state_dict())


def test_equal_members_say_what_one_says():
    logits = torch.randn(4, 3, dtype=torch.float64)
    assert torch.allclose(mean_log_probs([logits, logits]), torch.log_softmax(logits, 1))


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 10**6), st.integers(2, 5))
def test_it_is_the_mean_of_probabilities(seed, n):
    generator = torch.Generator().manual_seed(seed)
    logits = [5 * torch.randn(3, 4, generator=generator, dtype=torch.float64) for _ in range(n)]
    expected = sum(part.softmax(1) for part in logits) / n
    assert torch.allclose(mean_log_probs(logits).exp(), expected, atol=1e-12)


def test_extreme_logits_stay_finite():
    combined = mean_log_probs([torch.tensor([[1e4, 0.0]]), torch.tensor([[0.0, 1e4]])])
    assert combined[0].tolist() == pytest.approx([-0.6931472, -0.6931472])


def test_each_member_adapts_to_its_own_predictions():
    ensemble = DeepEnsemble([Supervised(toys.make_network(k), AdaFocalLoss(n_bins=3)) for k in range(2)])
    fit(ensemble, toys.TRAIN, epochs=1, tune=toys.TUNE, hardware=toys.CPU)
    one, two = ([*m.loss.buffers()] for m in ensemble.members)
    assert any(not torch.equal(a, b) for a, b in zip(one, two, strict=True))


def test_members_see_subsets_of_the_same_size_that_cover_all_samples():
    rows = torch.arange(3, 40)
    ensemble = DeepEnsemble([member(k) for k in range(3)], subset=0.5, n_samples=50, rows=rows)
    seen = ensemble.subsets
    assert seen.sum(1).tolist() == [round(0.5 * len(rows))] * 3
    assert seen.any(0).nonzero().flatten().tolist() == rows.tolist()
    assert not torch.equal(seen[0], seen[1])


def test_a_member_of_subsets_trains_as_if_alone_on_its_samples():
    ensemble = DeepEnsemble([member(0), member(1)], subset=0.6, n_samples=toys.N_TRAIN)
    alone, own = member(1), ensemble.subsets[1]
    fit(ensemble, toys.TRAIN, epochs=2, hardware=toys.CPU)

    def only_own(**where):
        parts = [(batch, own[batch.index]) for batch in toys.TRAIN(**where)]
        return [toys.Rows(b.inputs[kept], b.targets[kept], b.index[kept]) for b, kept in parts]

    fit(alone, only_own, epochs=2, hardware=toys.CPU)
    toys.assert_equal(ensemble.members[1].network().state_dict(), alone.network().state_dict())


def test_logits_of_a_sample_are_the_mean_of_the_members_that_see_it():
    networks = [toys.Says(9 * torch.rand(4, 3)) for _ in range(2)]
    still = Recipe(optimizer=Optimizer("SGD", lr=1e-30, options={"momentum": 0.9}))
    members = [Supervised(network, nn.CrossEntropyLoss(), recipe=still) for network in networks]
    ensemble = DeepEnsemble(members, subset=0.75, n_samples=4)
    ensemble.subsets.copy_(torch.tensor([[True, True, True, False], [False, True, True, True]]))
    index = torch.arange(4)
    found = ensemble.step(toys.Rows(index, torch.zeros(4, dtype=torch.int64), index)).logits
    one, two = (network(index).log_softmax(1).detach() for network in networks)
    both = mean_log_probs([one, two])
    torch.testing.assert_close(found, torch.stack([one[0], both[1], both[2], two[3]]))


def test_refusals_of_subsets():
    with pytest.raises(ValueError, match=r"share from 1 / 2.*got 0\.4"):
        DeepEnsemble([member(0), member(1)], subset=0.4, n_samples=10)
    with pytest.raises(ValueError, match="needs the length of the dataset"):
        DeepEnsemble([member(0), member(1)], subset=0.8)
    few = DeepEnsemble([member(0), member(1)], subset=0.5, n_samples=toys.N_TRAIN)
    with pytest.raises(ValueError, match="no member sees two samples"):
        few.step(toys.Rows(torch.zeros(1, 2), torch.tensor([0]), torch.tensor([0])))


def test_refusals():
    with pytest.raises(ValueError, match="at least two"):
        DeepEnsemble([member(0)])
    pruning = [Pruned(member(k), n_samples=40, period=1, fraction=0.5, momentum=0.5) for k in range(2)]
    with pytest.raises(ValueError, match="Prune the ensemble instead"):
        fit(DeepEnsemble(pruning), toys.TRAIN, epochs=2, hardware=toys.CPU)


def test_members_of_any_method_from_a_recipe():
    from equipoise.experiments import Spec
    from equipoise.experiments.build.run_parts import build
    from helpers.tiny_runs import TABLE

    recipe = {"name": "quick", "epochs": 1, "members": 3, "average": "ema"}
    made = build(Spec.from_table({**TABLE, "method": "mutual_learning", "recipe": recipe})).objective
    assert type(made.objective).__name__ == "DeepEnsemble"
    members = made.objective.members
    assert [type(member).__name__ for member in members] == ["MutualLearning"] * 3
    first, second, _ = (nn.utils.parameters_to_vector(one.network().parameters()) for one in members)
    assert not torch.equal(first, second)


@pytest.mark.parametrize("calibrate", ["before", "spread"])
def test_members_are_calibrated_on_tune_before_they_are_averaged(calibrate, tmp_path):
    ensemble = DeepEnsemble([member(0), member(1)], calibrate=calibrate)
    fit(ensemble, toys.TRAIN, epochs=2, tune=toys.TUNE, hardware=toys.CPU, folder=tmp_path)
    calibration, network = ensemble.calibration, ensemble.network()
    cpu = torch.device("cpu")
    batches = toys.TUNE(epoch=0, indices=None, start=0, rank=0, world_size=1, device=cpu)
    inputs = next(iter(batches)).inputs
    with torch.no_grad():
        network.eval()
        parts = [torch.log_softmax(one(inputs), 1) for one in network.networks]
        scaled = torch.stack([scale * part for scale, part in zip(calibration.scales, parts, strict=True)])
        spread = scaled.mean(0) + calibration.spread * (scaled - scaled.mean(0))
        expected = spread.softmax(2).mean(0)
        assert torch.allclose(network(inputs).exp(), expected, atol=1e-6)
    assert not torch.equal(calibration.scales, torch.ones(2))
    assert (calibration.spread == 1) == (calibrate == "before")
    again = DeepEnsemble([member(2), member(3)], calibrate=calibrate)
    again.load_state_dict(ensemble.state_dict())
    toys.assert_equal(again.network().state_dict(), network.state_dict())


def test_members_train_alike_whenever_they_are_calibrated():
    found = []
    for calibrate in ("after", "spread"):
        ensemble = DeepEnsemble([member(0), member(1)], calibrate=calibrate)
        fit(ensemble, toys.TRAIN, epochs=2, tune=toys.TUNE, hardware=toys.CPU)
        found.append([one.state_dict() for one in ensemble.network().networks])
    for one, other in zip(*found, strict=True):
        toys.assert_equal(one, other)


def test_calibration_of_members_needs_held_out_rows_and_no_averaged_weights():
    ensemble = DeepEnsemble([member(0), member(1)], calibrate="spread")
    with pytest.raises(ValueError, match="fitted on a 'tune' split, and there is none"):
        ensemble.end_epoch(None)
    with pytest.raises(ValueError, match="cannot be calibrated before averaging"):
        WeightAverage(ensemble)
    with pytest.raises(ValueError, match="`calibrate` must be"):
        DeepEnsemble([member(0), member(1)], calibrate="first")
