import random

import numpy as np
import pytest
import torch
from torch import nn

from equipoise.core.errors import DataError, FileError
from equipoise.training import evaluating, fit, read_checkpoint, write_checkpoint
from equipoise.training.randomness import random_state, restore_random_state
from helpers import toys


def test_a_whole_run_loads_without_running_code(tmp_path):
    fit(toys.OBJECTIVES["gamma_net"](0), toys.TRAIN, epochs=1, folder=tmp_path, hardware=toys.CPU)
    content = torch.load(tmp_path / "last.pt", weights_only=True)
    wanted = {
        "objective",
        "epoch",
        "batch",
        "indices",
        "log",
        "history",
        "random",
        "seed",
        "kind",
        "precision",
    }
    assert wanted <= set(content)
    assert {"torch", "cuda", "numpy", "python"} == set(content["random"][0])
    assert "learner._extra_state" in content["objective"]


def test_a_write_that_dies_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "last.pt"
    write_checkpoint(path, {"epoch": 1})

    def half(content, where):
        where.write_bytes(b"half a file")
        raise OSError("disk full")

    monkeypatch.setattr(torch, "save", half)
    with pytest.raises(OSError, match="disk full"):
        write_checkpoint(path, {"epoch": 2})
    assert read_checkpoint(path)["epoch"] == 1
    assert [file.name for file in tmp_path.iterdir()] == ["last.pt"]


def test_a_full_disk_is_told_with_the_path(tmp_path, monkeypatch):
    def full(content, where):
        raise RuntimeError("[enforce fail at inline_container.cc:672] . unexpected pos 576 vs 534\nframe #0")

    monkeypatch.setattr(torch, "save", full)
    with pytest.raises(FileError, match=r"last\.pt: cannot be written \(.*534\)\. Is the disk full\?$"):
        write_checkpoint(tmp_path / "last.pt", {"epoch": 2})
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("content", [b"", b"no checkpoint", b"PK\x03\x04 half a zip"])
def test_a_damaged_file_is_refused_with_a_remedy(content, tmp_path):
    path = tmp_path / "last.pt"
    path.write_bytes(content)
    with pytest.raises(DataError, match="Delete it to start over") as caught:
        read_checkpoint(path)
    assert len(str(caught.value).splitlines()) == 1


def test_a_file_of_another_program_is_refused(tmp_path):
    torch.save({"state_dict": {}}, tmp_path / "theirs.pt")
    with pytest.raises(DataError, match="another program or version"):
        read_checkpoint(tmp_path / "theirs.pt")


def test_every_random_state_comes_back(tmp_path):
    np.random.normal()  # noqa: NPY002 - leaves half a pair of Gaussian draws in the state
    write_checkpoint(tmp_path / "state.pt", {"random": random_state()})

    def draws():
        return [
            torch.rand(1).item(),
            np.random.normal(),  # noqa: NPY002
            np.random.rand(),  # noqa: NPY002
            random.random(),
            random.gauss(0, 1),
        ]

    first = draws()
    restore_random_state(read_checkpoint(tmp_path / "state.pt")["random"])
    assert draws() == first


def test_evaluation_gives_every_module_its_mode_back_even_after_an_error():
    network = nn.Sequential(nn.Dropout(), nn.Sequential(nn.BatchNorm1d(2), nn.Dropout()))
    network[1][0].eval()

    def use():
        with evaluating(network):
            assert not any(module.training for module in network.modules())
            assert not torch.is_grad_enabled()
            raise RuntimeError("in the middle")

    with pytest.raises(RuntimeError, match="in the middle"):
        use()
    assert [module.training for module in network.modules()] == [True, True, True, False, True]


def test_a_flipped_bit_is_noticed_or_changes_nothing(tmp_path):
    path = tmp_path / "last.pt"
    content = {
        "network": {"weight": torch.arange(12.0).reshape(3, 4)},
        "epoch": 3,
        "history": [{"loss": 0.5}],
    }
    write_checkpoint(path, content)
    whole, noticed = path.read_bytes(), 0
    for place in range(0, 8 * len(whole), 37):
        damaged = bytearray(whole)
        damaged[place // 8] ^= 1 << place % 8
        path.write_bytes(damaged)
        try:
            found = read_checkpoint(path)
        except DataError:
            noticed += 1
            continue
        assert found["network"]["weight"].tolist() == content["network"]["weight"].tolist()
        assert (found["epoch"], found["history"]) == (content["epoch"], content["history"])
    assert noticed > 10
