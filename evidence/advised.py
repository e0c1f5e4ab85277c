"""What the advisor makes of a run: which map it chooses on calib, and what that map and its rivals give on test."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import isnan
from pathlib import Path
from typing import Any, final

from equipoise.calibrators import Calibrator, choose, load
from equipoise.calibrators.loading import KINDS
from equipoise.core.predictions import Predictions
from equipoise.evaluate import Scorecard, score
from equipoise.experiments import RunFolder
from equipoise.experiments.runs.json_files import read_json, write_json
from equipoise.metrics import negative_log_likelihood

NAME = "advised"


@final
@dataclass(frozen=True, kw_only=True)
class Advised:
    """The advisor's map for one run, and the line of each candidate."""

    calibrator: Calibrator
    trials: list[dict[str, Any]]

    def __call__(self, predictions: Predictions) -> Predictions:
        """Apply the calibrator."""
        return self.calibrator(predictions)

    def cards(self, run: RunFolder, splits: list[str], settings: Mapping[str, Any]) -> dict[str, Scorecard]:
        """Score test sets after the calibrator."""
        return {split: score(self(run.predictions(split)), **settings) for split in splits}


def advise(run: RunFolder, folder: Path) -> Advised:
    """Ask the advisor, or read what it said before; rivals are fitted on the same rows and judged on test."""
    kept = folder / run.name
    if not (kept / "trials.json").exists():
        kept.mkdir(parents=True, exist_ok=True)
        calib, test = run.predictions("calib"), run.predictions("test")
        choice = choose(calib)
        choice.calibrator.save(kept / "map.json")
        trials = [
            {
                "candidate": trial.name,
                "cross_validated_nll": None if isnan(trial.log_loss) else trial.log_loss,
                "test_nll": float(negative_log_likelihood(KINDS[trial.name]().fit(calib)(test))),
                "chosen": trial.name == choice.calibrator.kind,
            }
            for trial in choice.trials
        ]
        write_json(kept / "trials.json", {"trials": trials})
    return Advised(calibrator=load(kept / "map.json"), trials=read_json(kept / "trials.json")["trials"])
