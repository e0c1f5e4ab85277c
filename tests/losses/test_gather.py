import pytest
import torch
import torch.multiprocessing as mp

from equipoise.catalogue import CATALOGUE
from helpers.processes import PARTS, value_and_gradient, work

PENALTIES = CATALOGUE["penalties"]

WHOLE = slice(None)


@pytest.fixture(scope="module")
def gathered(tmp_path_factory):
    """What each process found, having seen its own part of the batch only."""
    folder = tmp_path_factory.mktemp("processes")
    mp.spawn(work, (str(folder),), nprocs=len(PARTS))
    return [torch.load(folder / f"{rank}.pt") for rank in range(len(PARTS))]


@pytest.mark.parametrize("key", PENALTIES)
def test_gathered_value_and_gradient_are_those_of_the_whole_batch(key, gathered):
    wanted = value_and_gradient(key, WHOLE, gather=False)
    for results in gathered:
        for got, want in zip(results[key], wanted, strict=True):
            torch.testing.assert_close(got, want)


@pytest.mark.parametrize("key", PENALTIES)
def test_the_mean_of_the_parts_is_something_else(key):
    parts = [value_and_gradient(key, part, gather=False)[0] for part in PARTS]
    assert not torch.isclose(torch.stack(parts).mean(), value_and_gradient(key, WHOLE, gather=False)[0])


@pytest.mark.parametrize("key", PENALTIES)
def test_without_processes_gathering_changes_nothing(key):
    for got, want in zip(
        *(value_and_gradient(key, WHOLE, gather=gather) for gather in (True, False)), strict=True
    ):
        assert torch.equal(got, want)
