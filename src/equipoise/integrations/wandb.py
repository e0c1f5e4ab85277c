"""Weights & Biases: epochs as they happen, or run folders afterwards; offline unless asked otherwise."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import Any, Literal, Self, final

from equipoise.core.errors import needs
from equipoise.integrations.run_log import RunLog, Settings, epoch_values
from equipoise.training.history import Row

with needs("wandb", extra="wandb", purpose="log runs to Weights & Biases"):
    import wandb

__all__ = ["WandbLog", "export_run"]


@final
class WandbLog:
    """Logs epochs to Weights & Biases; ``fit(..., on_epoch=log)`` calls it.

    Args:
        folder: Where its files go, below ``wandb``.
        name: What people call the run.
        key: Identifies the run, for logs that are sent up later; None makes a new one.
        project: Its name for runs that belong together.
        mode: ``"offline"`` sends nothing anywhere; ``wandb sync`` does so later.
        settings: What was asked for.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        *,
        name: str,
        key: str | None = None,
        project: str = "equipoise",
        mode: Literal["offline", "online"] = "offline",
        settings: Settings = MappingProxyType({}),
    ) -> None:
        Path(folder).mkdir(parents=True, exist_ok=True)
        self._run: Any = wandb.init(
            project=project,
            id=key,
            name=name,
            config=dict(settings),
            mode=mode,
            dir=os.fspath(folder),
            reinit="create_new",
            settings=wandb.Settings(silent=True, console="off", disable_git=True, x_disable_stats=True),
        )
        #: Where this run's files are.
        self.folder = Path(self._run.dir).parent

    def __call__(self, row: Row) -> None:
        """Log an epoch."""
        epoch, values = epoch_values(row)
        self._run.log(values, step=epoch)

    def scores(self, values: Mapping[str, float]) -> None:
        """Log what came out in the end."""
        self._run.summary.update(dict(values))

    def close(self, *, failed: bool = False) -> None:
        """Write what is left, and end the run."""
        self._run.finish(exit_code=int(failed))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close(failed=kind is not None)


def export_run(run: RunLog, target: Path) -> str:
    """Log a run offline, in place of what was logged of it before.

    Args:
        run: What it holds so far.
        target: The folder; its files go below ``wandb``.

    Returns:
        The command that sends it up.
    """
    before = list(target.glob(f"wandb/offline-run-*-{run.name}"))
    with WandbLog(target, name=run.label, key=run.name, settings=run.settings) as log:
        for row in run.epochs:
            log(row)
        log.scores(run.scores)
    for folder in before:
        if folder != log.folder:  # two exports within a second share one
            shutil.rmtree(folder)
    return f"wandb sync {target / 'wandb'}/offline-run-*"
