"""Where a run happens: device, precision and processes are arguments, not code."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

from equipoise.core.errors import require

if TYPE_CHECKING:
    from lightning_fabric import Fabric

__all__ = ["Hardware"]


@final
@dataclass(frozen=True, kw_only=True)
class Hardware:
    """What a run is given, in the words of Lightning Fabric.

    Attributes:
        accelerator: ``"auto"``, ``"cpu"``, ``"cuda"``, ``"mps"`` ...
        devices: How many per machine; None takes the number torchrun says, or one without torchrun.
        nodes: How many machines; None takes the number torchrun says, or one.
        strategy: ``"auto"``, ``"ddp"`` ...
        precision: ``"32-true"``, ``"bf16-mixed"``, ``"16-mixed"``, ``"64-true"`` ...

    Example:
        >>> Hardware(accelerator="cpu").make_fabric().world_size
        1
    """

    accelerator: str = "auto"
    devices: int | None = None
    nodes: int | None = None
    strategy: str = "auto"
    precision: str = "32-true"

    def make_fabric(self) -> Fabric:
        """Return a Fabric that was launched: from here on there are as many processes as asked for.

        Raises:
            MissingExtraError: If Lightning Fabric is not installed.
        """
        with _quiet_import():
            fabric = require("lightning_fabric", extra="train", purpose="train networks")
        local = int(os.environ.get("LOCAL_WORLD_SIZE", "1"))
        machines = int(os.environ.get("WORLD_SIZE", "1")) // local
        made: Any = fabric.Fabric(
            accelerator=self.accelerator,
            devices=self.devices or local,
            num_nodes=self.nodes or machines,
            strategy=self.strategy,
            precision=self.precision,
        )
        made.launch()
        return made


@contextmanager
def _quiet_import() -> Iterator[None]:
    """Keep the deprecations of other packages' modules out of the user's sight."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        yield
