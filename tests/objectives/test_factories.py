"""What a spec can say about an objective, and what it may not."""

import inspect

import pytest
import torch
from torch import nn

from equipoise.core.errors import SpecError
from equipoise.models import mlp
from equipoise.objectives import (
    DeepEnsemble,
    DifferentiatedMutualLearning,
    GammaNet,
    MetaLabelSmoothing,
    MutualLearning,
    Parts,
    Supervised,
)
from equipoise.training import fit
from helpers import toys


def parts(**changes):
    given = {"make_network": lambda: mlp(3, 2, hidden=(4,)), "held_out": toys.TUNE, "n_samples": 40}
    return Parts(**{**given, **changes})


def test_every_knob_of_gamma_net_can_be_reached():
    objective = GammaNet.from_parts(
        parts(), bandwidth=0.3, order="gammas_first", inner="all", inner_reduction="sum", ce_weight=0.5
    )
    assert objective.outer_loss.bandwidth == 0.3
    assert (objective.order, objective.inner, objective.inner_reduction) == ("gammas_first", "all", "sum")
    built_in = {"self", "network", "held_out", "outer_loss", "recipe", "gamma_recipe"}
    missing = set(inspect.signature(GammaNet.__init__).parameters) - built_in
    assert missing <= set(inspect.signature(GammaNet.from_parts).parameters)


def test_meta_label_smoothing_takes_its_reduction():
    assert MetaLabelSmoothing.from_parts(parts(), inner_reduction="sum").inner_reduction == "sum"


def test_mutual_learning_of_two_kinds():
    objective = MutualLearning.from_parts(parts(make_auxiliary=lambda: mlp(3, 2, hidden=(7,))), n_networks=3)
    assert [learner.network.n_features for learner in objective.learners] == [4, 7, 7]


@pytest.mark.parametrize(
    "make",
    [Supervised.from_parts, GammaNet.from_parts, MetaLabelSmoothing.from_parts, DeepEnsemble.from_parts],
)
def test_an_auxiliary_that_would_be_ignored_is_refused(make):
    with pytest.raises(ValueError, match="no auxiliary network"):
        make(parts(make_auxiliary=lambda: nn.Linear(2, 3)))


def test_auxiliaries_may_be_shown_another_view():
    torch.manual_seed(0)
    objective = DifferentiatedMutualLearning.from_parts(parts(), augment="noise")
    seen = []
    objective.auxiliaries[0].network.register_forward_pre_hook(lambda module, given: seen.append(given[0]))
    fit(objective, [(toys.TRAIN.inputs, toys.TRAIN.labels)], epochs=1, hardware=toys.CPU)
    moved = (seen[0] - toys.TRAIN.inputs).abs()
    assert 0 < moved.mean() < 0.2
    with pytest.raises(SpecError, match="did you mean 'noise'"):
        DifferentiatedMutualLearning.from_parts(parts(), augment="noises")
