import numpy as np
import pytest
import torch

from equipoise.core.errors import DataError
from equipoise.data import load
from helpers.official import set_counts

VOTES = (
    np.random.default_rng(0).integers(0, 9, (20, 10)) + np.eye(10, dtype=np.int64)[np.arange(20) % 10] * 40
)


@pytest.fixture(autouse=True)
def _small(monkeypatch):
    set_counts(monkeypatch, cifar10=(50, 20), cifar10h=(0, 20))


def write(root, votes=VOTES, kind="counts"):
    np.savez(
        root / "cifar10.npz",
        x_train=np.zeros((50, 32, 32, 3), np.uint8),
        y_train=np.arange(50) % 10,
        x_test=np.zeros((20, 32, 32, 3), np.uint8),
        y_test=np.arange(20) % 10,
    )
    (root / "cifar10h").mkdir()
    np.save(root / "cifar10h" / f"cifar10h-{kind}.npy", votes)


def read(root):
    return load("cifar10h", root=root, options={"tune": 10, "calib": 10})


@pytest.mark.parametrize("kind", ["counts", "probs"])
def test_votes_become_shares_in_test_rows_only(tmp_path, kind):
    write(tmp_path, VOTES if kind == "counts" else VOTES / VOTES.sum(1, keepdims=True), kind)
    data = read(tmp_path)
    shares = data.soft_labels[data.rows("test")]
    torch.testing.assert_close(shares.sum(1), torch.ones(20))
    assert shares[3, 3].item() == pytest.approx(VOTES[3, 3] / VOTES[3].sum(), rel=1e-6)
    assert bool(data.soft_labels[data.rows("train")].isnan().all())
    assert data.provenance[-1].path == f"cifar10h/cifar10h-{kind}.npy"


@pytest.mark.parametrize("votes", [VOTES[:19], VOTES[:, :9], VOTES * 0, VOTES - 100, VOTES.astype(str)])
def test_wrong_votes_are_named(tmp_path, votes):
    write(tmp_path, votes)
    with pytest.raises(DataError, match=r"cifar10h-counts\.npy"):
        read(tmp_path)


def test_missing_votes_are_asked_for(tmp_path):
    with pytest.raises(DataError, match=r"cifar10h-counts\.npy"):
        read(tmp_path)
