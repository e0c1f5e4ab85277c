"""TensorBoard: epochs as they happen, or run folders afterwards."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import Any, Self, final

from equipoise.core.errors import needs
from equipoise.integrations.run_log import RunLog, Settings, epoch_values
from equipoise.training.history import Row

with needs("tensorboard", extra="tensorboard", purpose="write logs for TensorBoard"):
    from torch.utils.tensorboard import SummaryWriter

__all__ = ["TensorBoardLog", "export_run"]


@final
class TensorBoardLog:
    """Writes epochs for TensorBoard; ``fit(..., on_epoch=log)`` calls it.

    Args:
        folder: Where the events of this run go.
        settings: What was asked for, to be shown beside the scores.

    Example:
        >>> import tempfile
        >>> folder = tempfile.mkdtemp()
        >>> with TensorBoardLog(folder, settings={"gamma": 3.0}) as log:
        ...     log({"epoch": 0, "loss": 2.3, "tune_ece": 0.1})
        ...     log.scores({"test/ece": 0.02})
        >>> all("tfevents" in name for name in os.listdir(folder))
        True
    """

    def __init__(self, folder: str | os.PathLike[str], *, settings: Settings = MappingProxyType({})) -> None:
        self._settings = dict(settings)
        self._writer: Any = SummaryWriter(os.fspath(folder))

    def __call__(self, row: Row) -> None:
        """Write an epoch."""
        epoch, values = epoch_values(row)
        for name, value in values.items():
            self._writer.add_scalar(name, value, epoch)
        self._writer.flush()

    def scores(self, values: Mapping[str, float]) -> None:
        """Write what came out in the end, beside the settings."""
        self._writer.add_hparams(self._settings, dict(values), run_name=".", global_step=0)

    def close(self) -> None:
        """Write what is left, and let go of the file."""
        self._writer.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def export_run(run: RunLog, target: Path) -> str:
    """Write a run for TensorBoard, in place of what was written of it before.

    Args:
        run: What it holds so far.
        target: The folder of all runs; ``tensorboard --logdir`` wants it.

    Returns:
        The command that shows it.
    """
    folder, fresh = target / run.file_name, target / f".{run.file_name}"
    shutil.rmtree(fresh, ignore_errors=True)
    try:
        with TensorBoardLog(fresh, settings=run.settings) as log:
            for row in run.epochs:
                log(row)
            if run.scores:
                log.scores(run.scores)
        shutil.rmtree(folder, ignore_errors=True)
        fresh.rename(folder)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
    return f"tensorboard --logdir {target}"
