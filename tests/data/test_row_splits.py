import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from equipoise.data.row_splits import focal_split, official_splits, stratified_split


def test_sizes_are_exact_and_classes_keep_their_share():
    labels = torch.arange(1000) % 10
    parts = stratified_split(labels, {"tune": 50, "calib": 50, "test": 200})
    assert {name: len(rows) for name, rows in parts.items()} == {
        "train": 700,
        "tune": 50,
        "calib": 50,
        "test": 200,
    }
    for rows in parts.values():
        assert torch.bincount(labels[rows]).unique().numel() == 1


def test_remainders_go_to_the_largest_then_to_the_lower_class():
    # 3 of 10 rows, classes of 5, 3 and 2: shares 1.5, 0.9, 0.6; floors 1, 0, 0; two more for remainders .9
    # and .6.
    labels = torch.tensor([0] * 5 + [1] * 3 + [2] * 2)
    rows = stratified_split(labels, {"test": 3})["test"]
    assert torch.bincount(labels[rows], minlength=3).tolist() == [1, 1, 1]


def test_a_split_is_written_down():
    parts = stratified_split(torch.arange(12) % 2, {"test": 4}, seed=5)
    assert parts["test"].tolist() == WRITTEN_DOWN


WRITTEN_DOWN = [0, 5, 8, 9]


@given(
    st.lists(st.integers(0, 4), min_size=10, max_size=80),
    st.integers(0, 3),
    st.integers(0, 3),
    st.integers(0, 99),
)
@settings(deadline=None, max_examples=60)
def test_parts_are_disjoint_whole_and_proportional(labels, tune, test, seed):
    labels = torch.tensor(labels)
    parts = stratified_split(labels, {"tune": tune, "test": test}, seed=seed)
    joined = torch.cat(list(parts.values()))
    assert sorted(joined.tolist()) == list(range(len(labels)))
    counts = torch.bincount(labels, minlength=5).double()
    share = counts * tune / len(labels)
    assert (torch.bincount(labels[parts["tune"]], minlength=5) - share).abs().max() < 1


def test_only_given_rows_are_split():
    parts = stratified_split(torch.zeros(20, dtype=torch.int64), {"test": 3}, rows=torch.arange(10, 20))
    assert sorted(torch.cat(list(parts.values())).tolist()) == list(range(10, 20))


def test_another_seed_gives_other_rows():
    labels = torch.zeros(100, dtype=torch.int64)
    one, two = (stratified_split(labels, {"test": 50}, seed=seed)["test"].tolist() for seed in (0, 1))
    assert one != two


@pytest.mark.parametrize("sizes", [{"test": 10}, {"test": -1}, {"test": 1.0}, {"train": 1}])
def test_sizes_that_leave_nothing_are_refused(sizes):
    with pytest.raises(ValueError, match="Make the parts smaller"):
        stratified_split(torch.zeros(10, dtype=torch.int64), sizes)


def test_focal_split_is_the_shuffled_list_of_the_authors():
    # Their code shuffles a Python list with the global generator.
    expected = list(range(100))
    np.random.RandomState(1).shuffle(expected)
    train, held_out = focal_split(100, held_out=10)
    assert held_out.tolist() == expected[:10]
    assert train.tolist() == expected[10:]


def test_focal_split_of_cifar_is_written_down():
    _, held_out = focal_split(50_000, held_out=5_000)
    assert held_out[:5].tolist() == FOCAL


FOCAL = [26247, 35067, 34590, 16668, 12196]


def test_focal_recipe_halves_the_held_out_rows():
    parts = official_splits(torch.arange(110) % 10, 100, tune=5, calib=5, seed=0, recipe="focal")
    _, held_out = focal_split(100, held_out=10)
    assert sorted(parts["tune"].tolist()) == sorted(held_out[:5].tolist())
    assert sorted(parts["calib"].tolist()) == sorted(held_out[5:].tolist())
    assert parts["test"].tolist() == list(range(100, 110))


def test_an_unknown_recipe_is_named():
    with pytest.raises(ValueError, match="Did you mean 'focal'"):
        official_splits(torch.arange(10) % 2, 8, tune=1, calib=1, seed=0, recipe="focl")
