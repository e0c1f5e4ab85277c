import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from equipoise.objectives import Pruned, Supervised
from equipoise.objectives.pruned import keep_most_confident, moving_average
from equipoise.training import Loader, fit
from helpers import toys


def make(n_samples=4, *, network=None, period=1, fraction=0.25, momentum=0.5):
    inner = Supervised(network or toys.make_network(0), nn.CrossEntropyLoss(), recipe=toys.RECIPE)
    return Pruned(inner, n_samples=n_samples, period=period, fraction=fraction, momentum=momentum)


def test_average_and_pruning_by_hand():
    # Confidences 0.5, 0.75, 0.9 and 0.6; the first of four samples is the least sure and goes.
    probs = torch.tensor([[0.5, 0.5], [0.75, 0.25], [0.9, 0.1], [0.6, 0.4]])
    objective = make(network=toys.Says(probs.log()))
    objective.step(toys.said(probs))
    assert objective.scores.tolist() == pytest.approx([0.5, 0.75, 0.9, 0.6])
    assert objective.plan_epoch(0) is None
    assert objective.plan_epoch(1).tolist() == [1, 2, 3]
    # 0.25 of three samples is less than one.
    assert objective.plan_epoch(2).tolist() == [1, 2, 3]


def test_moving_average_by_hand():
    scores, seen, fresh = torch.tensor([0.4, 0.0]), torch.tensor([True, False]), torch.tensor([0.8, 0.6])
    assert moving_average(scores, seen, fresh, momentum=0.25).tolist() == pytest.approx([0.5, 0.6])


def test_without_a_fraction_it_is_the_objective_itself():
    pruned, plain = make(toys.N_TRAIN, fraction=0.0), make(toys.N_TRAIN).objective
    for objective in (pruned, plain):
        fit(objective, toys.TRAIN, epochs=3, hardware=toys.CPU)
    toys.assert_equal(pruned.network().state_dict(), plain.network().state_dict())


def test_epochs_grow_shorter_only_when_it_is_time():
    objective = make(toys.N_TRAIN, period=2, fraction=0.5)
    history = fit(objective, toys.TRAIN, epochs=5, hardware=toys.CPU)
    assert history.column("samples") == [40, 40, 20, 20, 10]


@settings(deadline=None)
@given(st.lists(st.floats(0, 1), min_size=1, max_size=30), st.floats(0, 0.99), st.integers(0, 100))
def test_what_goes_is_less_sure_than_what_stays(scores, fraction, seed):
    kept = torch.rand(len(scores), generator=torch.Generator().manual_seed(seed)) < 0.8
    values = torch.tensor(scores)
    remaining = keep_most_confident(values, kept, fraction=fraction)
    gone = kept & ~remaining
    assert (remaining <= kept).all()
    assert int(gone.sum()) == int(fraction * int(kept.sum()) + 1e-9)
    if gone.any() and remaining.any():
        assert values[gone].max() <= values[remaining].min()


def test_the_epochs_of_a_wrapped_pruning_are_intersected():
    inner = make(fraction=0.25)
    outer = Pruned(inner, n_samples=4, period=1, fraction=0.25, momentum=0.5)
    inner.scores.copy_(torch.tensor([0.1, 0.9, 0.8, 0.7]))
    outer.scores.copy_(torch.tensor([0.9, 0.1, 0.8, 0.7]))
    inner.seen.fill_(True)
    outer.seen.fill_(True)
    assert outer.plan_epoch(1).tolist() == [2, 3]


def test_dense_outputs_count_by_their_mean():
    logits = torch.zeros(2, 2, 3)
    logits[0, 0] = 99.0
    network = toys.Says(logits)
    objective = make(2, network=network)
    objective.step(toys.Rows(torch.arange(2), torch.zeros(2, 3, dtype=torch.long), torch.arange(2)))
    assert objective.scores.tolist() == pytest.approx([1.0, 0.5])


def test_refusals():
    for options, words in (
        ({"period": 0}, "`period` must be at least 1"),
        ({"fraction": 1.0}, "0.1 drops a tenth"),
        ({"momentum": 0.0}, "1 forgets the past"),
    ):
        with pytest.raises(ValueError, match=words):
            make(**options)
    source = Loader([(torch.randn(4, 2), torch.tensor([0, 1, 2, 0]))])
    with pytest.raises(ValueError, match="Give the data as a Dataset"):
        fit(make(fraction=0.5), source, epochs=2, hardware=toys.CPU)


def test_samples_that_were_never_seen_are_kept():
    """Whole batches leave some samples over; those have no score, and must not count as pruned."""
    inner = Supervised(toys.make_network(0), nn.CrossEntropyLoss(), recipe=toys.RECIPE)
    # Of 50 samples in the dataset the first 40 are for training.
    pruned = Pruned(inner, n_samples=50, period=1, fraction=0.25, momentum=0.5, rows=torch.arange(40))
    assert pruned.plan_epoch(0) is None
    for batch in toys.TRAIN(**toys.WHERE)[:2]:  # 32 of the 40
        pruned.step(batch)
    left = pruned.plan_epoch(1)
    assert len(left) == 24 + 8
    assert int(left.max()) < 40
    assert set((~pruned.seen[:40]).nonzero().flatten().tolist()) <= set(left.tolist())
