"""Where a run happens: device, precision and processes are arguments, not code."""

from __future__ import annotations

import atexit
import ctypes
import os
import platform
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

import torch
import torch.distributed as dist

from equipoise.core.errors import require
from equipoise.training.bfloat16 import why_no_bfloat16

if TYPE_CHECKING:
    from lightning_fabric import Fabric

__all__ = ["Hardware"]

# From glibc's malloc.h.
_TRIM_THRESHOLD, _MMAP_THRESHOLD, _MMAP_MAX = -1, -3, -4


@final
@dataclass(frozen=True, kw_only=True)
class Hardware:
    """What a run is given, in the words of Lightning Fabric.

    Attributes:
        accelerator: ``"auto"``, ``"cpu"``, ``"cuda"``, ``"mps"`` ...
        devices: Number of devices, and so of processes, per machine. By default the number that torchrun
            started, or one without torchrun.
        nodes: Number of machines. By default the number that torchrun started, or one.
        strategy: ``"auto"``, ``"ddp"`` ...
        precision: ``"32-true"``, ``"bf16-mixed"``, ``"16-mixed"``, ``"64-true"`` ...
        compile: Train networks through ``torch.compile``. Every shape of a batch is compiled apart, so that a run
            and its resumption go through the same code; networks are evaluated and saved as they are.
        keep_memory: On a CPU under Linux, keep all memory that a step has freed for the next one. Otherwise what
            is free beyond 64 MB is given back to the system, which clears it anew in every step. It changes the
            allocator of the whole process, which then keeps its peak of memory.
        sync_batchnorm: With several processes, let batch norms take their statistics over all of them, so that the
            run gives what one process would give; False lets each process use its own part of a batch.

    Example:
        >>> Hardware(accelerator="cpu").make_fabric().world_size
        1
    """

    accelerator: str = "auto"
    devices: int | None = None
    nodes: int | None = None
    strategy: str = "auto"
    precision: str = "32-true"
    compile: bool = False
    keep_memory: bool = False
    sync_batchnorm: bool = True

    @property
    def processes(self) -> tuple[int, int]:
        """Number of processes per machine, and of machines.

        Raises:
            ValueError: If torchrun started another number of processes than this asks for.
        """
        # torchrun sets both variables. A process that Fabric started has WORLD_SIZE only, which is then no sign of
        # several machines.
        local = int(os.environ.get("LOCAL_WORLD_SIZE", "0"))
        started = int(os.environ.get("WORLD_SIZE", "1")) if local else 1
        devices, nodes = self.devices or local or 1, self.nodes or (started // local if local else 1)
        if local and devices * nodes not in (1, started):
            raise ValueError(
                f"Hardware: expected {devices} x {nodes} processes (`devices` x `nodes`), but torchrun started "
                f"{started}. Leave both out; torchrun's --nproc-per-node and --nnodes say how many there are."
            )
        return devices, nodes

    def make_fabric(self) -> Fabric:
        """Return a Fabric that was launched: from here on there are as many processes as asked for.

        Raises:
            MissingExtraError: If Lightning Fabric is not installed.
            RuntimeError: If compiling, or bfloat16 on a CPU, is asked for and does not work here.
        """
        with _quiet_import():
            fabric = require("lightning_fabric", extra="train", purpose="train networks")
        devices, nodes = self.processes
        made: Any = fabric.Fabric(
            accelerator=self.accelerator,
            devices=devices,
            num_nodes=nodes,
            strategy=self.strategy,
            precision=self.precision,
        )
        made.launch()
        if made.world_size > 1:
            # gloo's threads abort a process that exits while they run; Fabric destroys groups of NCCL only.
            atexit.unregister(_destroy_process_group)
            atexit.register(_destroy_process_group)
        if self.compile:
            _try_to_compile(made.device)
        if made.device.type == "cpu":
            if str(self.precision).startswith("bf16"):
                _check_bfloat16(self.precision)
            _show_large_block()
            if self.keep_memory:
                _keep_memory()
        return made


def _destroy_process_group() -> None:
    """Destroy the group of all processes, unless the user's script has done so."""
    if dist.is_initialized():
        dist.destroy_process_group()


def _try_to_compile(device: torch.device) -> None:
    """Compile one operation now: without a compiler, the first batch would fail with pages of torch's own words."""
    try:
        torch.compile(torch.sin)(torch.zeros(2, device=device))
    except Exception as error:
        reason = str(error).strip().partition("\n")[0]
        raise RuntimeError(
            f"Hardware: `compile` needs a compiler that torch.compile can use on {device.type}, and trying it failed "
            f"({type(error).__name__}: {reason}). Install one (g++ or clang for a CPU), or leave compile off."
        ) from error


def _check_bfloat16(precision: str) -> None:
    reason = why_no_bfloat16()
    if reason:
        raise RuntimeError(f"Hardware: `precision` {precision!r} cannot be had: {reason}, or use '32-true'.")


def _show_large_block() -> None:
    """Free a block of nearly 32 MB, from which glibc learns that such blocks come and go.

    It learns by itself, up to that size (mallopt(3), on the dynamic threshold): blocks as large as the largest freed
    come from its heap, where twice as much stays when freed. A small network's step then finds the memory of the
    last one, at the price of 64 MB. No setting is changed, and one that was made from outside switches this off.
    """
    torch.empty(2**25 - 2**16, dtype=torch.uint8)


def _keep_memory() -> None:
    """Tell glibc never to trim its heap, and to take even large blocks from it."""
    if platform.libc_ver()[0] == "glibc":
        libc = ctypes.CDLL(None)
        libc.mallopt(_TRIM_THRESHOLD, 2**31 - 1)
        # An older glibc refuses so high a threshold, and would then map every block above 128 kB anew: it maps none.
        if not libc.mallopt(_MMAP_THRESHOLD, 2**30):
            libc.mallopt(_MMAP_MAX, 0)


@contextmanager
def _quiet_import() -> Iterator[None]:
    """Keep the deprecations of other packages' modules out of the user's sight."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        yield
