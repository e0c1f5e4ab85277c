"""Long tails, additional test sets, and a part of tune to learn from, as a spec names them."""

import numpy as np
import pytest
import torch

from equipoise.core.errors import DataError, SpecError, SplitError
from equipoise.data import Dataset, few, from_arrays, load, load_shift, meta_part, read_shifts


def test_a_long_tail_is_an_option_of_every_dataset():
    plain, thinned = load("digits"), load("digits", options={"long_tail": 10, "test": 0.3})
    counts = thinned.class_counts("train")
    assert counts[0] == pytest.approx(10 * counts[-1], abs=10)
    assert len(thinned.rows("test")) == round(0.3 * len(plain))
    with pytest.raises(ValueError, match="at least 1"):
        load("digits", options={"long_tail": 0.5})


def test_few_training_rows_are_an_option_of_every_dataset():
    whole, part = load("digits"), load("digits", options={"n_train": 100})
    assert part.class_counts("train").tolist() == pytest.approx([10] * 10, abs=1)
    assert len(part.rows("train")) == 100
    assert set(part.rows("train").tolist()) < set(whole.rows("train").tolist())
    assert torch.equal(part.rows("test"), whole.rows("test"))
    assert not torch.equal(few(whole, 100, seed=1).rows("train"), few(whole, 100).rows("train"))
    assert few(whole, len(whole.rows("train"))) is whole
    assert load("digits", options={"n_train": 200, "long_tail": 10}).name == "digits_200_lt10"


@pytest.mark.parametrize("wrong", [0, -1, 10**6, 0.5, True])
def test_no_other_number_of_training_rows_is_taken(wrong):
    with pytest.raises(ValueError, match="number of rows from 1 to"):
        load("digits", options={"n_train": wrong})


def test_corruptions_by_severity_keep_rows_and_normalization():
    digits = load("digits")
    distance = []
    for shift in read_shifts([{"corruption": "gaussian_noise", "severity": [1, 3, 5]}]):
        data = load_shift(shift, digits)
        assert torch.equal(data.labels, digits.labels[digits.rows("test")])
        assert list(data.splits) == ["test"]
        clean = digits.inputs[digits.rows("test")]
        distance.append(float((data.inputs.float() - clean.float()).abs().mean()))
    assert distance == sorted(distance)
    assert len(read_shifts([{"corruption": "contrast"}])) == 5


def test_foreign_data_are_seen_as_the_network_would_see_its_own(tmp_path):
    inside = load("mixture", options={"n": 200})
    other = np.random.default_rng(0).normal(size=(50, inside.inputs.shape[1])).astype(np.float32)
    np.savez(tmp_path / "other.npz", x=other, y=np.arange(50) % 2)
    [shift] = read_shifts(
        [{"data": "npz", "name": "other", "options": {"path": str(tmp_path / "other.npz"), "test": 0.5}}]
    )
    assert (shift.name, shift.kind) == ("other", "ood")
    data = load_shift(shift, inside)
    assert list(data.splits) == ["test"]
    assert (data.mean, data.std) == (inside.mean, inside.std)
    with pytest.raises(DataError, match="one shape"):
        load_shift(shift, load("digits"))


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"corruption": "gausian_noise"}, r"shift\[0\]\.corruption: .* did you mean 'gaussian_noise'"),
        ({"corruption": "contrast", "severity": 6}, "1 to 5"),
        ({"corruption": "contrast", "severity": True}, "1 to 5"),
        ({"corruption": "contrast", "severities": 1}, "did you mean 'severity'"),
        ({"data": "svhnn"}, r"shift\[0\]\.data: .* did you mean 'svhn'"),
        ({"data": "svhn", "kind": "odd"}, "kind"),
        ({"data": "svhn", "corruption": "contrast"}, "either"),
        ({"data": "svhn", "name": "../../x"}, "`name` must be letters"),
        ({"corruption": "contrast", "kind": "ood"}, "`kind` has no effect in an entry with `corruption`"),
        ({"corruption": "contrast", "options": {}}, "`options` has no effect"),
        ({"data": "svhn", "severity": 3}, "`severity` has no effect in an entry with `data`"),
        ({}, "either"),
    ],
)
def test_wrong_entries_get_one_sentence(entry, message):
    with pytest.raises((SpecError, ValueError), match=message):
        read_shifts([entry])


def test_one_test_set_named_twice_is_refused():
    with pytest.raises(SpecError, match=r"'contrast_1' is named twice"):
        read_shifts(
            [{"corruption": "contrast", "severity": [1, 2]}, {"corruption": "contrast", "severity": 1}]
        )


def test_the_part_to_learn_from_is_disjoint_and_keeps_its_numbers():
    data = load("digits")
    chosen, meta = meta_part(data, share=0.4, seed=3)
    one, two = set(chosen.rows("tune").tolist()), set(meta.rows("tune").tolist())
    assert not one & two
    assert one | two == set(data.rows("tune").tolist())
    assert len(two) == round(0.4 * len(data.rows("tune")))
    assert list(meta.splits) == ["tune"]
    assert torch.equal(chosen.rows("train"), data.rows("train"))
    for share in (0.0, 1.0):
        with pytest.raises(ValueError, match="must leave some"):
            meta_part(data, share=share)
    with pytest.raises(SplitError, match="tune"):
        meta_part(Dataset(**bare(data)))


def bare(data):
    fields = {name: getattr(data, name) for name in ("name", "kind", "inputs", "labels", "class_names")}
    return {**fields, "splits": {"train": data.rows("train")}}


@pytest.mark.parametrize("make", [lambda: load("digits", options={"tune": 0, "calib": 0}), None])
def test_all_rows_may_be_for_training(make):
    rows = np.arange(40)
    data = make() if make else from_arrays(np.zeros((40, 3)), rows % 4, name="mine", tune=0, calib=0)
    assert len(data.rows("tune")) == len(data.rows("calib")) == 0
    assert len(data.rows("train")) + len(data.rows("test")) == len(data)
