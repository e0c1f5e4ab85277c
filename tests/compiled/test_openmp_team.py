"""Work shared out to torch's threads is done once, whoever does it."""

import multiprocessing
import sys
import threading

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

njit = pytest.importorskip("numba").njit

from equipoise.compiled.openmp_team import over_pieces  # noqa: E402
from equipoise.compiled.threads import find_team  # noqa: E402

NOBODY = (0, 0, 0)


@njit(nogil=True)
def count(piece, n_pieces, numbers, counts):
    first, last = len(numbers) * piece // n_pieces, len(numbers) * (piece + 1) // n_pieces
    for place in range(first, last):
        counts[place] += numbers[place]
    if piece == 7 and len(numbers) == 77:
        raise ValueError


@njit(nogil=True)
def count_all(team, n_pieces, numbers, counts):
    over_pieces(team, n_pieces, count, (n_pieces, numbers, counts))


def counts_of(team, n_pieces, size=100):
    numbers, counts = np.arange(size), np.zeros(size, np.int64)
    count_all(team, n_pieces, numbers, counts)
    return counts


@given(st.integers(1, 300), st.booleans())
def test_every_piece_is_done_once(n_pieces, with_team):
    team = find_team()[0] if with_team else NOBODY
    np.testing.assert_array_equal(counts_of(team, n_pieces), np.arange(100))


@pytest.mark.skipif(sys.platform not in {"linux", "darwin"}, reason="torch has other threads here")
def test_the_team_is_torchs():
    before = torch.get_num_threads()
    try:
        for wanted in (1, 2):
            torch.set_num_threads(wanted)
            team, n_threads = find_team()
            assert all(team)
            assert n_threads == wanted
    finally:
        torch.set_num_threads(before)


def test_other_threads_have_teams_of_their_own():
    team, found = find_team()[0], []
    callers = [threading.Thread(target=lambda: found.append(counts_of(team, 4))) for _ in range(3)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert len(found) == 3
    for counts in found:
        np.testing.assert_array_equal(counts, np.arange(100))


@pytest.mark.parametrize("n_pieces", [1, 8])
@pytest.mark.parametrize("with_team", [True, False])
def test_a_failed_piece_is_not_swallowed(n_pieces, with_team):
    team = find_team()[0] if with_team else NOBODY
    if n_pieces == 8:
        with pytest.raises(MemoryError, match="piece of compiled work failed"):
            counts_of(team, n_pieces, size=77)
    else:
        counts_of(team, n_pieces, size=77)


def ask(connection):
    connection.send(find_team())


@pytest.mark.skipif(sys.platform != "linux", reason="needs fork")
def test_a_forked_process_has_no_team():
    context = multiprocessing.get_context("fork")
    mine, other = context.Pipe()
    child = context.Process(target=ask, args=(other,))
    child.start()
    child.join(60)
    assert mine.poll(0)
    assert mine.recv() == (NOBODY, 1)
