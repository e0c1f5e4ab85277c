"""What a table needs to know of the runs in it, whether we trained them or someone brought their predictions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, TypeAlias

from equipoise.core.predictions import Predictions
from equipoise.evaluate import Difference
from equipoise.experiments.scores import RunScores

__all__ = ["ComparedPair", "Judged", "JudgedGroup"]

#: A calibrator, and two methods that are compared after it.
ComparedPair: TypeAlias = tuple[str, str, str]


class Judged(Protocol):
    """One seed of a method: its predictions, before and after the maps that were fitted for it."""

    @property
    def name(self) -> str:
        """What tells it from others."""

    def predictions(self, split: str) -> Predictions:
        """Return the predictions on a split."""

    def mapped(self, name: str, test: Predictions) -> Predictions:
        """Return its predictions on ``test`` after a map that was fitted for it."""

    def history(self) -> Sequence[Mapping[str, Any]]:
        """Return one row per epoch; none if it was not trained here."""


class JudgedGroup(Protocol):
    """Seeds of several methods that may stand in one table, and what they scored."""

    @property
    def title(self) -> str:
        """What the rows are of."""

    @property
    def model(self) -> str:
        """Whose predictions they are; may be empty."""

    @property
    def methods(self) -> Mapping[str, Sequence[Judged]]:
        """Seeds by label of the method."""

    @property
    def scores(self) -> Mapping[str, Mapping[str, RunScores]]:
        """What each scored, by its name and the calibrator."""

    @property
    def calibrators(self) -> list[str]:
        """All calibrators, no calibration first."""

    @property
    def known_seeds(self) -> list[int]:
        """All seeds, in order."""

    def seeds(self, label: str, calibrator: str) -> Mapping[int, Judged]:
        """Return the seeds of a method that were scored after a calibrator."""

    def scored(self, label: str, calibrator: str) -> list[RunScores]:
        """Return what a method scored after a calibrator, one per seed."""

    def kept(self, pair: ComparedPair, seed: int) -> Sequence[Difference]:
        """Return the differences of two methods at a seed, if they are written down; else nothing."""

    def fidelity(self, label: str) -> str:
        """Return how far a method was checked against its source."""

    def printed(self, label: str, calibrator: str, metrics: Sequence[str]) -> dict[str, str]:
        """Return what papers printed for the same, by metric."""
