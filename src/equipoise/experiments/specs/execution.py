"""How runs are carried out: devices, processes, loaders. Nothing here is part of a run's identity."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, final

from equipoise.core.errors import SpecError
from equipoise.experiments.specs.parsing import record_from_table

__all__ = ["Execution"]


@final
@dataclass(frozen=True, kw_only=True)
class Execution:
    """How a run is carried out; None leaves a setting to the spec, and then to its default.

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

    Example:
        >>> Execution(devices=4).over(Execution(devices=2, compile=True))
        Execution(accelerator=None, devices=4, nodes=None, strategy=None, compile=True, loader_workers=None)
    """

    accelerator: str | None = None
    devices: int | None = None
    nodes: int | None = None
    strategy: str | None = None
    compile: bool | None = None
    loader_workers: int | None = None

    @classmethod
    def from_table(cls, table: Mapping[str, Any], *, where: str) -> Execution:
        """Return the settings of a spec's table ``execution``.

        Raises:
            SpecError: For an unknown key, or a value of another type or out of range.
        """
        if not isinstance(table, Mapping):
            raise SpecError(f"{where}: expected a table, got {table!r}. Write execution = {{ devices = 2 }}.")
        made = record_from_table(cls, table, where=where)
        for key, least in (("devices", 1), ("nodes", 1), ("loader_workers", 0)):
            value = getattr(made, key)
            if value is not None and value < least:
                raise SpecError(f"{where}.{key}: must be at least {least}, got {value}.")
        return made

    def over(self, other: Execution) -> Execution:
        """Return these settings, with those of another in place of the missing ones."""
        chosen = {one.name: getattr(self, one.name) for one in fields(self)}
        return Execution(
            **{name: getattr(other, name) if value is None else value for name, value in chosen.items()}
        )

    def to_table(self) -> dict[str, Any]:
        """Return the settings that are given."""
        given = {one.name: getattr(self, one.name) for one in fields(self)}
        return {name: value for name, value in given.items() if value is not None}
