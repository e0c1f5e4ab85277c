"""How runs are scored. Nothing here is part of a run's identity."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, final

from equipoise.core.bins import check_bins
from equipoise.core.names import check_choice
from equipoise.core.splits import HISTORIES
from equipoise.data.shift import Shift, read_shifts
from equipoise.experiments.code.component import Component
from equipoise.experiments.specs.calibrators import parse_calibrator
from equipoise.experiments.specs.metrics import metric_mark, parse_metric

__all__ = ["ScoringOptions"]

Named = str | Mapping[str, Any] | Component


@final
@dataclass(frozen=True, kw_only=True)
class ScoringOptions:
    """How runs are scored. A run that was scored with other options is scored again, without training.

    Attributes:
        calibrators: Calibrators to fit and score, by name or with options; ``"identity"`` is no calibration.
        metrics: Metrics beyond the scorecard: ``"kde_ece"`` and ``"sece"``, whose time grows with the square of the
            rows, and the user's own.
        shift: Additional test sets to predict and score, as a spec names them.
        history: ``"test"`` records the scores on ``test`` of every epoch beside those on ``tune``, for curves; nothing
            is chosen by them.
        n_bins: Number of bins of the binned metrics.
        closed: Side of a bin that belongs to it.
        level: Level of the intervals.
        n_resamples: Number of resamples behind them.
        seed: Random seed for resampling.

    Raises:
        SpecError: If a name is not known.

    Example:
        >>> [one.label for one in ScoringOptions(calibrators=["identity", "vector"]).calibrator_list]
        ['identity', 'vector']
    """

    calibrators: Sequence[Named] = ("identity", "temperature")
    metrics: Sequence[Named] = ()
    shift: Sequence[Mapping[str, Any] | Shift] = ()
    history: str = "tune"
    n_bins: int = 15
    closed: str = "right"
    level: float = 0.95
    n_resamples: int = 1000
    seed: int = 0

    def __post_init__(self) -> None:
        where = "ScoringOptions"
        check_choice(self.history, HISTORIES, where=where, name="history")
        check_bins(self.n_bins, self.closed, where=where)
        _ = self.calibrator_list, self.metric_list, self.shift_list

    @cached_property
    def calibrator_list(self) -> tuple[Component, ...]:
        """The calibrators, parsed."""
        return tuple(parse_calibrator(one, where="ScoringOptions.calibrators") for one in self.calibrators)

    @cached_property
    def metric_list(self) -> tuple[Component, ...]:
        """The metrics that no scorecard has, parsed."""
        found = (parse_metric(one, where="ScoringOptions.metrics") for one in self.metrics)
        return tuple(one for one in found if isinstance(one, Component))

    @cached_property
    def shift_list(self) -> tuple[Shift, ...]:
        """The additional test sets, parsed."""
        if all(isinstance(one, Shift) for one in self.shift):
            return tuple(one for one in self.shift if isinstance(one, Shift))
        return tuple(read_shifts([one for one in self.shift if not isinstance(one, Shift)]))

    def pinned(self) -> ScoringOptions:
        """Return the options with the digests of the user's own code."""
        return replace(
            self,
            calibrators=tuple(one.pinned() for one in self.calibrator_list),
            metrics=tuple(one.pinned() for one in self.metric_list),
            shift=self.shift_list,
        )

    @property
    def score_options(self) -> dict[str, Any]:
        """Keyword arguments of :func:`~equipoise.evaluate.score`."""
        names = ("n_bins", "closed", "level", "n_resamples", "seed")
        return {name: getattr(self, name) for name in names}

    def to_table(self) -> dict[str, Any]:
        """Return what scores depend on as plain values, for the manifest of a run."""
        return {**self.score_options, "metrics": sorted(map(metric_mark, self.metric_list))}
