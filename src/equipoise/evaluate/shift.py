"""A model away from its test set: calibration under shift, and detection of out-of-distribution rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from equipoise.calibrators import Calibrator
from equipoise.core.predictions import Predictions
from equipoise.core.seeds import numpy_generator
from equipoise.evaluate.scorecard import Score
from equipoise.metrics.detection import (
    NEED_LOGIT_SIZE,
    OOD_SCORES,
    DetectionCells,
    detection_cells,
    ood_score,
)
from equipoise.metrics.facts import DETECTION_FACTS, MetricFacts
from equipoise.metrics.intervals import check_resamples, mean_interval

__all__ = ["DETECTION", "ShiftScores", "describe_missing_scores", "score_detection"]

#: The three numbers of detection.
DETECTION: Mapping[str, MetricFacts] = DETECTION_FACTS
#: Cells that intervals are drawn from; the values themselves are exact.
_CELLS = 1000


def score_detection(
    known: Predictions,
    ood: Predictions,
    *,
    level: float = 0.95,
    n_resamples: int = 1000,
    seed: int = 0,
    calibrator: Calibrator | None = None,
) -> dict[str, dict[str, Score]]:
    """Return how well each score of a network distinguishes known rows from out-of-distribution rows, with intervals.

    Args:
        known: Predictions on the test set.
        ood: Predictions on rows of other classes; their labels are not used.
        level: Level of the intervals.
        n_resamples: Resamples of both sets behind them.
        seed: Of the resamples.
        calibrator: The fitted calibrator that both went through, if any. Scores that read the size of the logits are
            left out after a calibrator that loses it (:attr:`~equipoise.calibrators.Calibrator.keeps_logit_level`).

    Returns:
        By score (``confidence``, ``entropy``, and of logits ``energy`` and ``max_logit``) and number: ``ood_auroc``,
        ``ood_fpr95`` and ``ood_aupr``.

    Example:
        >>> known = Predictions(logits=[[4.0, 0.0], [3.0, 0.0]], labels=[0, 0])
        >>> ood = Predictions(logits=[[0.5, 0.0], [0.1, 0.0]], labels=[0, 0])
        >>> score_detection(known, ood, n_resamples=20)["energy"]["ood_auroc"].value
        1.0
    """
    check_resamples(n_resamples, where="score_detection")
    has_level = known.kind == ood.kind == "logits" and (calibrator is None or calibrator.keeps_logit_level)
    found = {}
    for name in OOD_SCORES:
        if name in NEED_LOGIT_SIZE and not has_level:
            continue
        scores = [ood_score(part, name) for part in (known, ood)]
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
    """One method after one calibrator, on additional test sets.

    Attributes:
        method: Which.
        calibrator: After which map, fitted on clean rows.
        curves: By corruption, severity (0 is the clean test set) and metric.
        ood: By out-of-distribution dataset, score of the network and number.
    """

    method: str
    calibrator: str
    curves: Mapping[str, Mapping[int, Mapping[str, Score]]]
    ood: Mapping[str, Mapping[str, Mapping[str, Score]]]

    @property
    def name(self) -> str:
        """What tables and figures call it."""
        return self.method if self.calibrator == "identity" else f"{self.method} + {self.calibrator}"


def describe_missing_scores(shifts: Sequence[ShiftScores], name: str) -> str:
    """Return which scores of an out-of-distribution set are missing after which calibrators, and why; or nothing.

    Args:
        shifts: What methods scored.
        name: The out-of-distribution set.

    Example:
        >>> auroc = {"ood_auroc": Score(0.9, 0.8, 1.0)}
        >>> before = {"confidence": auroc, "energy": auroc}
        >>> found = [
        ...     ShiftScores("ce", "identity", {}, {"letters": before}),
        ...     ShiftScores("ce", "svs", {}, {"letters": {"confidence": auroc}}),
        ... ]
        >>> print(describe_missing_scores(found, "letters"))
        energy is not shown after svs: it normalizes the logits of every row, and this score reads their size.
    """
    known = [one for one in shifts if name in one.ood]
    every = dict.fromkeys(score for one in known for score in one.ood[name])
    missing = [score for score in every if any(score not in one.ood[name] for one in known)]
    if not missing:
        return ""
    after = dict.fromkeys(one.calibrator for one in known if any(m not in one.ood[name] for m in missing))
    verb, what = ("is", "this score reads") if len(missing) == 1 else ("are", "these scores read")
    who = "it normalizes" if len(after) == 1 else "they normalize"
    return (
        f"{' and '.join(missing)} {verb} not shown after {', '.join(after)}: {who} the logits of every row, and "
        f"{what} their size."
    )
