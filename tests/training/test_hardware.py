"""What a run is given: compiled networks, and an allocator that is left alone."""

import os
import platform
import shutil
import subprocess
import sys

import pytest
import torch
from torch import nn

from equipoise.objectives import Supervised
from equipoise.training import Hardware, fit, hardware
from helpers import toys

COMPILED = Hardware(accelerator="cpu", devices=1, compile=True)
needs_a_compiler = pytest.mark.skipif(
    not any(map(shutil.which, ("g++", "clang++", "cl"))), reason="torch.compile needs a C++ compiler"
)


WHOLE_BATCHES = toys.Blobs(32)  # of one shape, which is compiled once


@needs_a_compiler
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_compiled_run_learns_the_same_and_resumes_bit_for_bit(tmp_path):
    def run(folder, train, hardware=COMPILED):
        objective = Supervised(
            toys.make_network(0, plain=True), nn.CrossEntropyLoss(), recipe=toys.PLAIN_STEP
        )
        fit(objective, train, epochs=2, hardware=hardware, folder=tmp_path / folder)
        return objective.state_dict()

    straight = run("straight", WHOLE_BATCHES)
    with pytest.raises(KeyboardInterrupt):
        run("resumed", toys.Interrupting(WHOLE_BATCHES, after=3, action=toys.send()))
    toys.assert_equal(straight, run("resumed", WHOLE_BATCHES))
    plain = run("plain", WHOLE_BATCHES, hardware=toys.CPU)
    assert straight.keys() == plain.keys()
    torch.testing.assert_close(straight["learner.network.head.weight"], plain["learner.network.head.weight"])


def test_without_a_compiler_one_sentence_says_what_to_do(monkeypatch):
    def fail(function):
        raise RuntimeError("InvalidCxxCompiler: No working C++ compiler found\npages of more")

    monkeypatch.setattr(torch, "compile", fail)
    with pytest.raises(RuntimeError, match=r"No working C\+\+ compiler found\)\. Install one .* or leave"):
        COMPILED.make_fabric()


def test_the_allocator_is_changed_only_if_asked_for(monkeypatch):
    asked = []
    monkeypatch.setattr(hardware, "_keep_memory", lambda: asked.append(True))
    Hardware(accelerator="cpu", devices=1).make_fabric()
    assert not asked
    Hardware(accelerator="cpu", devices=1, keep_memory=True).make_fabric()
    assert asked


# In a process of its own, because what a heap keeps depends on all that was freed there before.
HEAP_BY_DEFAULT = """
import ctypes
import torch
from equipoise.training import Hardware

class Heap(ctypes.Structure):
    _fields_ = [(name, ctypes.c_size_t) for name in
                "arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks keepcost".split()]

look = ctypes.CDLL(None).mallinfo2
look.restype = Heap

Hardware(accelerator="cpu", devices=1).make_fabric()
mapped = look().hblks
blocks = [torch.empty(20 * 2**20, dtype=torch.uint8) for _ in range(10)]
print(look().hblks - mapped)
del blocks
print(look().keepcost)
"""


@pytest.mark.skipif(
    not ("glibc", "2.33") <= platform.libc_ver() < ("glibc", "3"), reason="needs glibc 2.33 or later"
)
def test_by_default_large_blocks_come_from_a_heap_that_keeps_little():
    # Settings from outside switch the rule off.
    environment = {
        key: value for key, value in os.environ.items() if not key.startswith(("MALLOC_", "LD_", "GLIBC_"))
    }
    found = subprocess.run(
        [sys.executable, "-c", HEAP_BY_DEFAULT], env=environment, check=True, capture_output=True, text=True
    )
    n_mapped, kept = map(int, found.stdout.split())
    assert n_mapped == 0
    assert kept <= 2**26


@pytest.mark.parametrize(("refused", "last"), [(False, (-3, 2**30)), (True, (-4, 0))])
def test_a_glibc_that_refuses_the_threshold_maps_no_blocks(monkeypatch, refused, last):
    asked = []

    class Libc:
        def mallopt(self, what, value):
            asked.append((what, value))
            return 0 if refused and what == -3 else 1

    monkeypatch.setattr(hardware.platform, "libc_ver", lambda: ("glibc", "2.31"))
    monkeypatch.setattr(hardware.ctypes, "CDLL", lambda name: Libc())
    hardware._keep_memory()
    assert asked[0] == (-1, 2**31 - 1)
    assert asked[-1] == last
