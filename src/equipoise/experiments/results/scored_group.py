"""What a table needs of the runs in it, whether they were trained here or are someone's predictions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from equipoise.experiments.runs.scores import RunScores

__all__ = ["ScoredGroup"]


class ScoredGroup(Protocol):
    """Seeds of several methods that may stand in one table, and what they scored."""

    @property
    def title(self) -> str:
        """What the rows are of."""

    @property
    def model(self) -> str:
        """Whose predictions they are; may be empty."""

    @property
    def methods(self) -> Mapping[str, Sequence[Any]]:
        """Seeds by label of the method."""

    @property
    def scores(self) -> Mapping[str, Mapping[str, RunScores]]:
        """What each scored, by its name and the calibrator."""

    @property
    def calibrators(self) -> list[str]:
        """All calibrators, no calibration first."""

    def seeds(self, label: str, calibrator: str) -> Mapping[int, RunScores]:
        """Return what a method scored after a calibrator, by seed."""

    def history(self, label: str, seed: int) -> Sequence[Mapping[str, Any]]:
        """Return one row per epoch of a training; none if it was not trained here."""

    def fidelity(self, label: str) -> str:
        """Return how far a method was checked against its source."""

    def printed(self, label: str, calibrator: str, metrics: Sequence[str]) -> dict[str, str]:
        """Return what papers printed for the same, by metric."""
