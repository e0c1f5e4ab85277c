"""What holds for every objective and every loss that adapts."""

import copy
import inspect
from pathlib import Path

import pytest
import torch
from torch import nn

import equipoise.losses
import equipoise.objectives
from equipoise.catalogue import CATALOGUE
from equipoise.losses import Adaptive
from equipoise.objectives import Parts
from equipoise.training import Objective, fit
from helpers import toys
from helpers.daily import daily

OBJECTIVES = CATALOGUE["objectives"]

ALL = {**toys.OBJECTIVES, **toys.ADAPTIVE}
EPOCHS, BATCHES = 3, 3


def run(name, train=toys.TRAIN, *, seed=7, folder=None):
    objective = ALL[name](seed)
    history = fit(objective, train, epochs=EPOCHS, tune=toys.TUNE, hardware=toys.CPU, folder=folder)
    return objective, toys.without_clock(history)


@pytest.fixture(scope="module")
def straight():
    made = {}

    def get(name):
        if name not in made:
            made[name] = run(name)
        return made[name]

    return get


@pytest.mark.parametrize("after", daily([1, 3, 5], keep=[3]))
@pytest.mark.parametrize("name", ALL)
def test_interrupted_and_resumed_equals_straight(name, after, straight, tmp_path):
    interrupting = toys.Interrupting(toys.TRAIN, after=after, action=toys.send())
    with pytest.raises(KeyboardInterrupt):
        run(name, interrupting, folder=tmp_path)
    # Other initial weights and another random state: all of the run must come from the file.
    torch.manual_seed(after)
    resumed, history = run(name, seed=99, folder=tmp_path)
    expected, rows = straight(name)
    assert history == rows
    toys.assert_equal(resumed.state_dict(), expected.state_dict())


@pytest.mark.parametrize("name", ALL)
def test_a_crash_loses_only_the_current_epoch(name, straight, tmp_path):
    crashing = toys.Interrupting(toys.TRAIN, after=BATCHES + 2, action=toys.crash)
    with pytest.raises(RuntimeError, match="power cut"):
        run(name, crashing, folder=tmp_path)
    counting = toys.Interrupting(toys.TRAIN, after=10**9, action=toys.crash)
    resumed, history = run(name, counting, seed=99, folder=tmp_path)
    expected, rows = straight(name)
    assert counting.given <= (EPOCHS - 1) * BATCHES
    assert history == rows
    toys.assert_equal(resumed.state_dict(), expected.state_dict())


@pytest.mark.parametrize("name", daily(ALL, keep=["accumulating", "gamma_net", "pruned"]))
def test_the_loss_of_held_out_data_falls(name):
    objective = ALL[name](3)
    history = fit(objective, toys.TRAIN, epochs=15, tune=toys.TUNE, hardware=toys.CPU)
    assert history[-1]["tune_nll"] < 0.8 * history[0]["tune_nll"]
    assert history[-1]["tune_accuracy"] > 0.7


@pytest.mark.parametrize("name", ALL)
def test_train_mode_is_restored_and_buffers_are_left_alone_by_evaluation(name, straight):
    objective, _ = straight(name)
    assert all(module.training for module in objective.modules())


@pytest.mark.parametrize("name", ALL)
def test_state_dict_round_trip(name, straight):
    objective, _ = straight(name)
    state = copy.deepcopy(objective.state_dict())
    other = ALL[name](99)
    other.load_state_dict(state)
    toys.assert_equal(other.state_dict(), state)


@pytest.mark.parametrize("name", ALL)
def test_the_network_gives_logits_for_every_class(name, straight):
    objective, _ = straight(name)
    network = objective.network()
    assert isinstance(network, nn.Module)
    assert network(toys.TUNE.inputs).shape == (toys.N_TUNE, toys.N_CLASSES)


def test_every_adaptive_loss_is_under_the_law():
    tested = {type(m) for make in ALL.values() for m in make(0).modules() if isinstance(m, Adaptive)}
    public = (getattr(equipoise.losses, name) for name in equipoise.losses.__all__)
    adaptive = {
        c for c in public if inspect.isclass(c) and issubclass(c, Adaptive) and not inspect.isabstract(c)
    }
    assert adaptive <= tested


def parts(entry):
    bilevel = "held_out" in entry.needs
    return Parts(
        make_network=lambda: toys.make_network(0),
        make_loss=None if bilevel or entry.key == "sample_adaptive" else equipoise.losses.BrierLoss,
        recipe=toys.RECIPE,
        train=toys.TRAIN,
        epochs=6,
        held_out=toys.TUNE if bilevel else None,
        n_samples=toys.N_TRAIN,
        n_classes=toys.N_CLASSES,
    )


@pytest.mark.parametrize("key", OBJECTIVES)
def test_every_entry_builds_and_trains(key):
    entry = OBJECTIVES[key]
    assert entry.key == key
    assert entry.summary
    assert entry.use_when
    assert entry.avoid_when
    assert entry.formula
    objective = entry.make(parts=parts(entry))
    assert len(fit(objective, toys.TRAIN, epochs=1, hardware=toys.CPU)) == 1


def test_every_objective_has_an_entry_and_a_test_file():
    public = (getattr(equipoise.objectives, name) for name in equipoise.objectives.__all__)
    wanted = {c for c in public if inspect.isclass(c) and issubclass(c, Objective)}
    assert {type(entry.make(parts=parts(entry))) for entry in OBJECTIVES.values()} == wanted
    files = {path.stem for path in (Path(__file__).parents[1] / "objectives").glob("test_*.py")}
    assert {f"test_{key}" for key in OBJECTIVES} <= files


@pytest.mark.parametrize("key", ["gamma_net", "meta_label_smoothing"])
def test_what_brings_its_own_loss_refuses_another(key):
    with pytest.raises(ValueError, match="Leave the loss out"):
        OBJECTIVES[key].make(
            parts=Parts(make_network=lambda: toys.make_network(0), make_loss=nn.CrossEntropyLoss)
        )
    with pytest.raises(ValueError, match="Give a `tune` split"):
        OBJECTIVES[key].make(parts=Parts(make_network=lambda: toys.make_network(0)))
