"""Which epoch was best, and when to stop: judged on ``tune`` alone, read from the history alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, final

from equipoise.core.names import check_choice
from equipoise.metrics.facts import metric_facts
from equipoise.training.history import Row

__all__ = ["Selection"]

#: The columns that can decide, and the metric each is a value of.
_METRICS = {"tune_accuracy": "accuracy", "tune_nll": "nll", "tune_nll_scaled": "nll", "tune_ece": "ece"}


@final
@dataclass(frozen=True, kw_only=True)
class Selection:
    """How the best epoch is chosen.

    Attributes:
        metric: The column that decides. The papers' code takes accuracy; a proper score sees calibration too.
            ``"tune_nll_scaled"``, the NLL after the best temperature, is for networks that are calibrated
            afterwards: it does not stop early for a fault that a temperature mends.
        patience: Epochs without a new best after which the run stops; None never stops early.

    Example:
        >>> rows = [{"tune_nll": 1.0}, {"tune_nll": 0.5}, {"tune_nll": 0.75}]
        >>> Selection().best(rows), Selection(patience=1).is_done(rows)
        (1, True)
    """

    metric: Literal["tune_accuracy", "tune_nll", "tune_nll_scaled", "tune_ece"] = "tune_nll"
    patience: int | None = None

    def __post_init__(self) -> None:
        check_choice(self.metric, _METRICS, where="Selection", name="metric")
        if self.patience is not None and self.patience < 1:
            raise ValueError(
                f"Selection: `patience` must be at least 1, got {self.patience}. None never stops early."
            )

    def best(self, rows: Sequence[Row]) -> int | None:
        """Return the position of the best row, the first of equals; None if no row has the metric."""
        badness = metric_facts(_METRICS[self.metric]).badness
        scored = [
            (badness(row[self.metric]), position) for position, row in enumerate(rows) if self.metric in row
        ]
        return min(scored)[1] if scored else None

    def is_done(self, rows: Sequence[Row]) -> bool:
        """Return whether the patience is used up."""
        best = self.best(rows)
        return self.patience is not None and best is not None and len(rows) - 1 - best >= self.patience
