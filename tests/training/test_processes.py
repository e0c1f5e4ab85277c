"""Several processes from plain Python: they run, and give what one process gives."""

import json

import pytest
import torch
from torch import nn

from equipoise.training import Hardware
from equipoise.training.batch_norm import synchronize_batch_norm
from equipoise.training.processes import is_first_process
from helpers.limited import run_limited
from training import plain_script


def test_two_processes_from_plain_python_give_what_one_gives(tmp_path):
    run_limited([plain_script.__file__, str(tmp_path)], folder=tmp_path)
    found = json.loads((tmp_path / "histories.json").read_text())
    for mine, theirs in zip(found["straight"], plain_script.history(1), strict=True):
        assert mine == pytest.approx(theirs, rel=1e-4, abs=1e-6)
    assert found["resumed"] == found["straight"]


@pytest.mark.parametrize(
    ("variables", "given", "wanted"),
    [
        ({}, {}, (1, 1)),
        ({"WORLD_SIZE": "2", "LOCAL_RANK": "1", "NODE_RANK": "0"}, {"devices": 2}, (2, 1)),
        ({"WORLD_SIZE": "4", "LOCAL_WORLD_SIZE": "2"}, {}, (2, 2)),
        ({"WORLD_SIZE": "4", "LOCAL_WORLD_SIZE": "2"}, {"devices": 1, "nodes": 1}, (1, 1)),
    ],
)
def test_processes_and_machines_by_what_started_them(variables, given, wanted, monkeypatch):
    for name in ("WORLD_SIZE", "LOCAL_WORLD_SIZE"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert Hardware(**given).processes == wanted


def test_another_number_than_torchrun_started_is_an_error(monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "4")
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "4")
    with pytest.raises(ValueError, match=r"2 x 1 processes .* torchrun started 4"):
        Hardware(devices=2).make_fabric()


@pytest.mark.parametrize(
    ("variables", "wanted"),
    [
        ({}, True),
        ({"RANK": "0", "LOCAL_RANK": "0"}, True),
        ({"RANK": "2"}, False),
        ({"LOCAL_RANK": "1"}, False),
    ],
)
def test_one_process_prints(variables, wanted, monkeypatch):
    for name in ("RANK", "LOCAL_RANK", "NODE_RANK"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert is_first_process() == wanted


def test_synchronized_batch_norms_keep_names_parameters_and_values():
    torch.manual_seed(0)
    network = nn.Sequential(nn.Conv2d(2, 3, 1), nn.Sequential(nn.BatchNorm2d(3)))
    before, inputs = network.state_dict(), torch.randn(4, 2, 5, 5)
    parameters = list(network.parameters())
    expected = network(inputs)
    changed = synchronize_batch_norm(network, device=torch.device("cpu"))
    assert all(one is other for one, other in zip(changed.parameters(), parameters, strict=True))
    assert changed.state_dict().keys() == before.keys()
    torch.testing.assert_close(changed(inputs), expected)
