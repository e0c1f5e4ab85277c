"""The processes of one run: the first one leads and writes, the others take part in training."""

from __future__ import annotations

import os
from datetime import timedelta
from typing import Any, final

import torch.distributed as dist

from equipoise.training.hardware import Hardware

__all__ = ["Processes", "is_first_process"]

#: The others wait this long for the first one, which may score or download in between.
_PATIENCE = timedelta(days=7)


def is_first_process() -> bool:
    """Whether this process is the one that prints and writes: any process that nobody started beside others.

    Example:
        >>> is_first_process()
        True
    """
    if dist.is_available() and dist.is_initialized():
        return dist.get_rank() == 0
    # torchrun sets RANK; Fabric sets LOCAL_RANK, and NODE_RANK on several machines.
    return not any(int(os.environ.get(name) or 0) for name in ("RANK", "LOCAL_RANK", "NODE_RANK"))


@final
class Processes:
    """Start the processes that hardware asks for, and let the first one share decisions with the others.

    Args:
        hardware: What the run is given; one process is started for each device.

    Example:
        >>> processes = Processes(Hardware(accelerator="cpu", devices=1))
        >>> processes.is_first, processes.share("train")
        (True, 'train')
    """

    def __init__(self, hardware: Hardware) -> None:
        devices, nodes = hardware.processes
        self.count = devices * nodes
        self.is_first, self._group = True, None
        if self.count > 1:
            self.is_first = hardware.make_fabric().is_global_zero
            # A group of its own, since others give up after ten to thirty minutes of waiting.
            self._group = dist.new_group(backend="gloo", timeout=_PATIENCE)

    def share(self, value: Any = None) -> Any:
        """Return the value of the first process, in all of them."""
        if self._group is None:
            return value
        values = [value]
        dist.broadcast_object_list(values, src=0, group=self._group)
        return values[0]

    def close(self) -> None:
        """Forget the group; the processes stay."""
        if self._group is not None:
            dist.destroy_process_group(self._group)
            self._group = None
