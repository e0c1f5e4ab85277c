"""What a run has to tell a logger: settings, epochs, scores; the same for every logger."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, final

from equipoise.core.splits import HISTORIES
from equipoise.experiments import RunFolder
from equipoise.training.history import Row

__all__ = ["RunLog", "Settings", "epoch_values", "read_run"]

#: What a run was asked for, flat.
Settings: TypeAlias = Mapping[str, str | int | float | bool]


@final
@dataclass(frozen=True)
class RunLog:
    """What a run folder holds so far.

    Attributes:
        name: The run's identity, the same every time it is read.
        label: What people call it.
        settings: What was asked for.
        epochs: One row per epoch so far.
        scores: Numbers of a scored run, by split, calibrator and metric.
        is_over: Whether there is more to come.
    """

    name: str
    label: str
    settings: Settings
    epochs: Sequence[Row]
    scores: Mapping[str, float]
    is_over: bool

    @property
    def file_name(self) -> str:
        """A name for folders that people can read, and that no other run has."""
        return f"{re.sub(r'[^A-Za-z0-9.=+-]+', '_', self.label).strip('_')}-{self.name[:8]}"


def read_run(run: RunFolder) -> RunLog:
    """Return what a run folder holds so far, of a run that is finished or grows.

    Raises:
        DataError: If a file of it is damaged.
    """
    spec = run.spec()
    rows = run.rows() if run.is_done("scored") else []
    return RunLog(
        name=run.name,
        label=spec.label,
        settings=dict(_flat(spec.to_table())),
        epochs=[{key: value for key, value in row.items() if value is not None} for row in run.history()],
        scores={
            f"{row['split']}/{row['calibrator']}/{row['metric']}": row["value"]
            for row in rows
            if row["value"] is not None
        },
        is_over=run.is_finished(),
    )


def epoch_values(row: Row) -> tuple[int, dict[str, float]]:
    """Return the number of an epoch, and its values by where they come from.

    Example:
        >>> epoch_values({"epoch": 3, "loss": 0.5, "tune_ece": 0.02, "test_ece": 0.03})
        (3, {'train/loss': 0.5, 'tune/ece': 0.02, 'test/ece': 0.03})
    """
    values = {_by_split(name): float(value) for name, value in row.items() if name != "epoch"}
    return int(row["epoch"]), values


def _by_split(column: str) -> str:
    """Return the name of a history's column for a logger; columns without a split are of training."""
    split, _, name = column.partition("_")
    return f"{split}/{name}" if split in HISTORIES and name else f"train/{column}"


def _flat(table: Mapping[str, Any], stem: str = "") -> Iterator[tuple[str, str | int | float | bool]]:
    for key, value in table.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{stem}{key}.")
        else:
            yield f"{stem}{key}", value if isinstance(value, str | int | float) else str(value)
