"""How runs are executed: devices, processes, loaders, data folder. Nothing here is part of a run's identity."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, final

from equipoise.core.errors import SpecError
from equipoise.experiments.specs.parsing import check_keys, record_from_table

__all__ = ["Execution"]

#: Settings that a spec may have.
_IN_SPECS = ("accelerator", "devices", "nodes", "strategy", "compile", "loader_workers")


@final
@dataclass(frozen=True, kw_only=True)
class Execution:
    """How runs are executed; None leaves a setting to the spec, and then to its default.

    The same run on other devices is the same run: results agree up to rounding, and differ otherwise only by the random
    numbers that each process draws inside its network, as dropout does. What changes results is part of the recipe:
    ``precision`` and ``sync_batchnorm``.

    Attributes:
        accelerator: ``"auto"``, ``"cpu"``, ``"cuda"``, ``"mps"`` ...
        devices: Devices, and so processes, of one run on each machine; one by default, or what torchrun started.
        nodes: Machines of one run; one by default, or what torchrun started.
        strategy: ``"auto"``, ``"ddp"`` ..., a strategy of Lightning Fabric.
        compile: Whether networks are trained through ``torch.compile``.
        loader_workers: Processes that read images from disk for each process of a run.
        root: The data folder.
        download: Download official files that are missing.
        threads: Threads of this process; 0 leaves torch's own number.
        keep_memory: Let the process keep memory between steps (:class:`~equipoise.training.Hardware` explains what that
            changes). Commands, whose processes are their own, do; Python does not by default.
        verify: Hash every file of a run that is there already, not only those whose size or time differ.
        quiet: Draw no progress bar.

    Example:
        >>> Execution(devices=4).over(Execution(devices=2, compile=True)).compile
        True
    """

    accelerator: str | None = None
    devices: int | None = None
    nodes: int | None = None
    strategy: str | None = None
    compile: bool | None = None
    loader_workers: int | None = None
    root: str | None = None
    download: bool = False
    threads: int = 0
    keep_memory: bool = False
    verify: bool = False
    quiet: bool = False

    @classmethod
    def from_table(cls, table: Any, *, where: str) -> Execution:
        """Return the settings of a spec's table ``execution``.

        Raises:
            SpecError: For an unknown key, or a value of another type or out of range.
        """
        if not isinstance(table, Mapping):
            raise SpecError(f"{where}: expected a table, got {table!r}. Write execution = {{ devices = 2 }}.")
        check_keys(table, _IN_SPECS, where=where)
        made = record_from_table(cls, table, where=where)
        for key, least in (("devices", 1), ("nodes", 1), ("loader_workers", 0)):
            value = getattr(made, key)
            if value is not None and value < least:
                raise SpecError(f"{where}.{key}: must be at least {least}, got {value}.")
        return made

    def over(self, other: Execution) -> Execution:
        """Return these settings, with those of another in place of the missing ones."""
        missing = {
            one.name: getattr(other, one.name) for one in fields(self) if getattr(self, one.name) is None
        }
        return replace(self, **missing)
