"""What becomes of a model away from its test set: calibration under shift, and whether it knows what is foreign."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from equipoise.core.predictions import Predictions
from equipoise.core.seeds import numpy_generator
from equipoise.evaluate.scorecard import Score
from equipoise.metrics.facts import DETECTION_FACTS, MetricFacts
from equipoise.metrics.intervals import check_resamples, mean_interval
from equipoise.metrics.out_of_distribution import SURENESS, DetectionCells, detection_cells, sureness

__all__ = ["DETECTION", "ShiftScores", "score_detection"]

#: The three numbers of detection.
DETECTION: Mapping[str, MetricFacts] = DETECTION_FACTS
#: Cells that intervals are drawn from; the values themselves are exact.
_CELLS = 1000


def score_detection(
    known: Predictions,
    foreign: Predictions,
    *,
    level: float = 0.95,
    n_resamples: int = 1000,
    seed: int = 0,
) -> dict[str, dict[str, Score]]:
    """Return how well each score of a network tells known rows from foreign ones, with intervals.

    Args:
        known: Predictions on the test set.
        foreign: Predictions on rows of other classes; their labels are not used.
        level: Level of the intervals.
        n_resamples: Resamples of both sets behind them.
        seed: Of the resamples.

    Returns:
        By score (``confidence``, ``entropy``, and of logits ``energy`` and ``max_logit``) and number: ``ood_auroc``,
        ``ood_fpr95`` and ``ood_aupr``.

    Example:
        >>> known = Predictions(logits=[[4.0, 0.0], [3.0, 0.0]], labels=[0, 0])
        >>> foreign = Predictions(logits=[[0.5, 0.0], [0.1, 0.0]], labels=[0, 0])
        >>> score_detection(known, foreign, n_resamples=20)["energy"]["ood_auroc"].value
        1.0
    """
    check_resamples(n_resamples, where="score_detection")
    both_logits = known.kind == foreign.kind == "logits"
    found = {}
    for name in SURENESS if both_logits else SURENESS[:2]:
        scores = [sureness(part, name) for part in (known, foreign)]
        values = _read(detection_cells(scores[0], scores[1]))
        coarse = detection_cells(scores[0], scores[1], most=_CELLS)
        random = numpy_generator(seed, "detection", name)
        drawn = _read(
            DetectionCells(
                *(
                    random.multinomial(int(part.sum()), part / part.sum(), size=n_resamples).astype(
                        np.float64
                    )
                    for part in coarse
                )
            )
        )
        found[name] = {
            key: Score(float(value), *mean_interval(float(value), drawn[key], level=level, within=(0.0, 1.0)))
            for key, value in values.items()
        }
    return found


def _read(cells: DetectionCells) -> dict[str, np.ndarray]:
    return dict(zip(DETECTION, (cells.auroc(), cells.false_alarms(), cells.precision()), strict=True))


class ShiftScores(NamedTuple):
    """One method after one calibrator, on further test sets.

    Attributes:
        method: Which.
        calibrator: After which map, fitted on clean rows.
        curves: By corruption, severity (0 is the clean test set) and metric.
        foreign: By foreign dataset, score of the network and number.
    """

    method: str
    calibrator: str
    curves: Mapping[str, Mapping[int, Mapping[str, Score]]]
    foreign: Mapping[str, Mapping[str, Mapping[str, Score]]]

    @property
    def name(self) -> str:
        """What tables and pictures call it."""
        return self.method if self.calibrator == "identity" else f"{self.method} + {self.calibrator}"
