"""What happened, one row per epoch."""

from __future__ import annotations

import csv
import io
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, final

import torch
from torch import Tensor

from equipoise.core.atomic_files import write_text
from equipoise.core.tables import Table
from equipoise.training.adapting import adaptive_losses
from equipoise.training.diagnosis import watch
from equipoise.training.epoch_scores import tune_scores
from equipoise.training.learner import Learner
from equipoise.training.objective import HeldOut, Objective

if TYPE_CHECKING:
    from lightning_fabric import Fabric

__all__ = ["EpochLog", "History", "Row", "epoch_row"]

#: One epoch: column names and numbers.
Row: TypeAlias = dict[str, float]

# Epochs that a notebook shows.
_SHOWN = 20

# Buffers of losses that are settings or book-keeping, and tell a reader nothing.
_NOT_LEARNT = {"weight", "edges", "previous"}


@final
class History(Sequence[Row]):
    """The rows of a run, one per epoch, oldest first.

    Columns: ``epoch`` (from 0), the step's scalars averaged over the epoch's samples (``loss`` first), ``lr``
    (numbered if several networks learn), ``samples``; where there is a ``tune`` split ``tune_accuracy``,
    ``tune_nll``, ``tune_ece``, and ``tune_nll_scaled`` at the best temperature ``tune_temperature``; if it was asked
    for the same of ``test`` (at the temperature of ``tune``), which nothing was chosen by;
    ``<buffer>_mean``, ``_min``, ``_max`` of what adaptive losses learned before the epoch; ``seconds`` by the clock;
    ``cpu_seconds`` of all threads of this process: the cost of a method on a machine that others use too.

    Args:
        rows: To start with.

    Example:
        >>> history = History([{"epoch": 0, "loss": 2.3}, {"epoch": 1, "loss": 1.9}])
        >>> history.column("loss")
        [2.3, 1.9]
        >>> history[-1]["loss"]
        1.9
    """

    def __init__(self, rows: Sequence[Mapping[str, float]] = ()) -> None:
        self._rows: list[Row] = [dict(row) for row in rows]

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[Row]:
        return iter(self._rows)

    def __getitem__(self, index: Any) -> Any:
        return self._rows[index]

    def __repr__(self) -> str:
        last = f", last: {self._rows[-1]}" if self._rows else ""
        return "\n".join([f"History({len(self)} epochs{last})", *(f"! {said}" for said in self.findings)])

    def _repr_html_(self) -> str:
        rows = [[_short(row.get(name)) for name in self.columns] for row in self._rows[-_SHOWN:]]
        which = f"the last {_SHOWN} of {len(self)}" if len(self) > _SHOWN else str(len(self))
        return Table.of(
            self.columns, rows, caption=f"History of {which} epochs", notes=self.findings
        ).to_html()

    @property
    def columns(self) -> list[str]:
        """All column names, in the order they first came."""
        return list(dict.fromkeys(name for row in self._rows for name in row))

    def column(self, name: str) -> list[float]:
        """Return one column; NaN where an epoch lacks it."""
        return [row.get(name, float("nan")) for row in self._rows]

    @property
    def findings(self) -> list[str]:
        """Signs that the method is failing, in words: gammas at an end, errors that diverge, a peer far behind ..."""
        return watch(self._rows)

    def add(self, row: Row) -> None:
        """Add an epoch."""
        self._rows.append(row)

    def write(self, path: str | os.PathLike[str]) -> None:
        r"""Write the rows as CSV, all or nothing.

        Example:
            >>> import tempfile
            >>> path = Path(tempfile.mkdtemp()) / "history.csv"
            >>> History([{"epoch": 0, "loss": 2.5}]).write(path)
            >>> path.read_text()
            'epoch,loss\n0,2.5\n'
        """
        text = io.StringIO()
        writer = csv.DictWriter(text, self.columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows(self._rows)
        write_text(Path(path), text.getvalue())


@final
class EpochLog:
    """The scalars of an epoch's steps, kept as tensors so that no step waits for the device.

    Args:
        columns: Numbers so far, one per batch; from a checkpoint.
        sizes: Samples of each batch.

    Example:
        >>> log = EpochLog()
        >>> log.add({"loss": torch.tensor(1.0)}, n_samples=3)
        >>> log.add({"loss": torch.tensor(5.0)}, n_samples=1)
        >>> log.means()
        {'loss': 2.0}
    """

    def __init__(
        self, columns: Mapping[str, Sequence[float]] | None = None, sizes: Sequence[int] = ()
    ) -> None:
        self._columns: dict[str, list[Tensor | float]] = {
            name: list(values) for name, values in (columns or {}).items()
        }
        self.sizes = list(sizes)
        self._checked = 0

    def add(self, scalars: Mapping[str, Tensor], *, n_samples: int) -> None:
        """Remember a step's scalars."""
        for name, value in scalars.items():
            self._columns.setdefault(name, []).append(value)
        self.sizes.append(n_samples)

    def columns(self) -> dict[str, list[float]]:
        """Return all scalars as numbers; this waits for the device."""
        return {name: [float(value) for value in values] for name, values in self._columns.items()}

    def means(self) -> Row:
        """Return each column's mean over the epoch's samples."""
        total = sum(self.sizes)
        return {
            name: math.fsum(value * size for value, size in zip(values, self.sizes, strict=True)) / total
            for name, values in self.columns().items()
        }

    def joined(self, fabric: Fabric) -> EpochLog:
        """Return the log of all processes: scalars averaged, samples added up; the same on every process."""
        if fabric.world_size == 1:
            return self
        columns = {
            name: fabric.all_reduce(torch.tensor(values, dtype=torch.float64, device=fabric.device)).tolist()
            for name, values in self.columns().items()
        }
        sizes = fabric.all_reduce(torch.tensor(self.sizes, device=fabric.device), reduce_op="sum")
        return EpochLog(columns, sizes.tolist())

    def first_bad_batch(self) -> int | None:
        """Return the number of the first batch whose loss is not finite; looks at each batch once."""
        losses = self._columns.get("loss", [])
        for number in range(self._checked, len(losses)):
            if not math.isfinite(losses[number]):
                return number
        self._checked = len(losses)
        return None


def _short(value: float | None) -> str:
    return "" if value is None else f"{value:.5g}"


def epoch_row(epoch: int, log: EpochLog, objective: Objective, held_out: HeldOut | None) -> Row:
    """Return the row of an epoch that has ended: averages, rates, scores on ``tune``, what losses adapted."""
    learners = [module for module in objective.modules() if isinstance(module, Learner)]
    rates = {f"lr_{number}" if number else "lr": learner.lr for number, learner in enumerate(learners)}
    scores = {} if held_out is None else tune_scores(held_out(objective.network()))
    return {
        "epoch": epoch,
        **log.means(),
        **rates,
        "samples": sum(log.sizes),
        **scores,
        **_adapted(objective),
    }


def _adapted(objective: Objective) -> Row:
    """Summarize the floating-point buffers of adaptive losses: gammas, multipliers, thresholds."""
    row: Row = {}
    for loss in adaptive_losses(objective):
        for path, buffer in loss.named_buffers():
            name = path.rsplit(".", 1)[-1]
            if name in _NOT_LEARNT or not buffer.is_floating_point() or not buffer.numel():
                continue
            if buffer.numel() == 1:
                row.setdefault(name, float(buffer))
                continue
            for summary in ("mean", "min", "max"):
                row.setdefault(f"{name}_{summary}", float(getattr(buffer.double(), summary)()))
    return row
