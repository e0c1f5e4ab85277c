"""Averages of weights: what is evaluated, selected and shipped."""

import copy

import pytest
import torch
from torch import nn

from equipoise.experiments import Execution, ScoringOptions, Spec, run
from equipoise.experiments.build.run_parts import build
from equipoise.experiments.runs.stages import load_network
from equipoise.metrics import negative_log_likelihood
from equipoise.objectives import Supervised, WeightAverage
from equipoise.training import HoldFrom, Learner, Optimizer, Recipe, fit, predict
from helpers import toys
from helpers.tiny_runs import TABLE


def trained(average, *, epochs=3, network=None, **options):
    """The averaged objective after some epochs, and all weights along the way: after each step, and each epoch."""
    network = toys.make_network(0, plain=True) if network is None else network
    inner = Supervised(network, nn.CrossEntropyLoss(), recipe=toys.RECIPE)
    objective = WeightAverage(inner, kind=average, train=toys.TRAIN, **options)
    steps, ends = [], []

    class Recording(WeightAverage.__mro__[1]):
        def __init__(self):
            super().__init__()
            self.inner = objective

        def step(self, batch):
            step = self.inner.step(batch)
            steps.append(nn.utils.parameters_to_vector(network.parameters()).detach().clone())
            return step

        def plan_epoch(self, epoch):
            return self.inner.plan_epoch(epoch)

        def prepare_evaluation(self):
            ends.append(steps[-1])
            self.inner.prepare_evaluation()

        def network(self):
            return self.inner.network()

    history = fit(Recording(), toys.TRAIN, epochs=epochs, tune=toys.TUNE, hardware=toys.CPU)
    return objective, steps, ends, history


def weights(objective):
    return nn.utils.parameters_to_vector(objective.network().parameters())


def test_ema_by_hand():
    objective, steps, _, _ = trained("ema", decay=0.9, warm_up=False)
    wanted = steps[0]
    for weight in steps[1:]:
        wanted = 0.9 * wanted + 0.1 * weight
    torch.testing.assert_close(weights(objective), wanted)


def test_the_decay_warms_up():
    objective, steps, _, _ = trained("ema", decay=0.5)
    wanted = steps[0]
    for count, weight in enumerate(steps[1:], start=1):
        decay = min(0.5, (1 + count) / (10 + count))
        wanted = decay * wanted + (1 - decay) * weight
    torch.testing.assert_close(weights(objective), wanted)


def test_swa_is_the_mean_of_epoch_ends():
    objective, _, ends, _ = trained("swa", epochs=5, start=2)
    torch.testing.assert_close(weights(objective), torch.stack(ends[2:]).mean(0))


def test_no_decay_is_the_network_itself():
    objective, steps, _, _ = trained("ema", decay=0.0)
    assert torch.equal(weights(objective), steps[-1])


def test_before_its_start_swa_is_the_network_itself():
    objective, steps, _, history = trained("swa", epochs=2, start=2)
    assert objective.network() is objective.objective.network()
    assert torch.equal(weights(objective), steps[-1])
    assert len(history) == 2


def test_the_oracle_of_torch():
    network = toys.make_network(0, plain=True)
    theirs = torch.optim.swa_utils.AveragedModel(
        copy.deepcopy(network), multi_avg_fn=torch.optim.swa_utils.get_ema_multi_avg_fn(0.9)
    )
    objective, steps, _, _ = trained("ema", decay=0.9, warm_up=False, network=network)
    moving = copy.deepcopy(network)
    for step in steps:
        nn.utils.vector_to_parameters(step, moving.parameters())
        theirs.update_parameters(moving)
    torch.testing.assert_close(weights(objective), nn.utils.parameters_to_vector(theirs.module.parameters()))


def test_batch_norms_have_the_statistics_of_the_averaged_network():
    objective, *_ = trained("ema", decay=0.9, network=toys.make_network(0))
    again = copy.deepcopy(objective.network())
    dropout = [part for part in again.modules() if isinstance(part, nn.Dropout)]
    for part in dropout:
        part.p = 0.0
    loader = [batch.inputs for batch in toys.TRAIN(**{**toys.WHERE, "epoch": 2})]
    torch.optim.swa_utils.update_bn(loader, again)
    for (name, ours), theirs in zip(objective.network().named_buffers(), again.buffers(), strict=True):
        torch.testing.assert_close(ours, theirs, msg=name)
    assert all(part.momentum == 0.1 for part in again.modules() if isinstance(part, nn.BatchNorm1d))


def test_a_network_with_batch_norms_needs_training_batches():
    inner = Supervised(toys.make_network(0), nn.CrossEntropyLoss())
    with pytest.raises(ValueError, match="Give the training batches as `train`"):
        WeightAverage(inner)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"kind": "emma"}, "Did you mean 'ema'"),
        ({"decay": 1.0}, r"`decay` must lie in \[0, 1\)"),
        ({"start": -1}, "`start` must be at least 0"),
    ],
)
def test_mistakes(options, sentence):
    with pytest.raises(ValueError, match=sentence):
        WeightAverage(Supervised(nn.Linear(2, 3), nn.CrossEntropyLoss()), **options)


def test_gradients_that_wait_for_a_step_are_not_averaged():
    recipe = Recipe(optimizer=Optimizer("SGD", lr=0.1), accumulate=2)
    inner = Supervised(toys.make_network(0, plain=True), nn.CrossEntropyLoss(), recipe=recipe)
    objective = WeightAverage(inner)
    for batch in toys.TRAIN(**toys.WHERE):
        objective.step(batch)
    assert objective.average.count == 1  # of three batches


def test_the_average_is_what_every_epoch_is_scored_by():
    objective, _, _, history = trained("ema", decay=0.9, network=toys.make_network(0))
    found = predict(objective.network(), toys.TUNE(**toys.WHERE))
    assert history[-1]["tune_nll"] == pytest.approx(negative_log_likelihood(found), rel=1e-5)


def test_the_learning_rate_is_held_for_swa():
    made = build(
        Spec.from_table(
            {**TABLE, "recipe": {"epochs": 4, "schedule": "cosine", "average": "swa", "swa_lr": 0.02}}
        )
    )
    [learner] = [part for part in made.objective.modules() if isinstance(part, Learner)]
    assert isinstance(learner.recipe.schedule, HoldFrom)
    rates = []
    for epoch in (0.0, 2.9, 3.0, 3.9):
        learner.set_lr(epoch, epochs=4)
        rates.append(round(learner.lr, 4))
    assert (rates[0], rates[2:]) == (0.1, [0.02, 0.02])
    assert 0 < rates[1] < 0.02
    assert made.objective.start == 3


@pytest.mark.parametrize("keep", ["last", "best"])
@pytest.mark.parametrize("average", ["ema", "swa"])
def test_a_run_ships_the_average(average, keep, tmp_path):
    table = {
        **TABLE,
        "model": "resnet8",
        "recipe": {"name": "quick", "epochs": 2, "average": average, "keep": keep},
    }
    spec = Spec.from_table({**table, "data": {"name": "digits"}})
    folder = run(spec, tmp_path, scoring=ScoringOptions(n_resamples=20), execution=Execution(quiet=True))
    row = folder.history()[-1]
    found = negative_log_likelihood(folder.predictions("tune"))
    wanted = row["tune_nll"] if keep == "last" else min(one["tune_nll"] for one in folder.history())
    assert found == pytest.approx(wanted, rel=1e-4)
    network = load_network(folder, build(spec), spec)
    assert not any(weight.requires_grad for weight in network.parameters()) or keep == "best"


@pytest.mark.parametrize(
    ("recipe", "sentence"),
    [
        ({"average": "emma"}, "Did you mean 'ema'"),
        ({"average_decay": 1.0}, r"average_decay: must lie in \[0, 1\)"),
        ({"swa_lr": -1.0}, "swa_lr: must be at least 0"),
    ],
)
def test_mistakes_in_specs(recipe, sentence):
    with pytest.raises(ValueError, match=sentence):
        Spec.from_table({**TABLE, "recipe": recipe})
