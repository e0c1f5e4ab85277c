"""Judge finished runs on rows that no split used: fresh rows of a mixture, or training images that were left out.

python evidence/fresh.py e --runs ~/evidence-runs/runs
python evidence/fresh.py a --runs ~/evidence-runs/runs --data ~/data

Networks are those of the checkpoints; calibrators were fitted on ``calib``. The files are in ``<benchmark>_fresh/``.
"""

from __future__ import annotations

import argparse
import inspect
import os
import sys
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, final

import numpy as np
import torch
from collect import gather, members
from differences import LEVEL, differences
from pairs import BASELINE, KEYS, RESAMPLES, Family, Side, paired, rival_family
from tidy import SECOND, add, folder_of, write
from truth import truth_scores

from equipoise import Predictions
from equipoise.calibrators.loading import KINDS
from equipoise.core.arrays import Array
from equipoise.core.choices import ScoreSettings
from equipoise.core.seeds import numpy_generator
from equipoise.data import Dataset, batches, gaussian_mixture
from equipoise.experiments import Execution, RunFolder, RunGroup, Spec
from equipoise.experiments.build.data import data_of
from equipoise.experiments.build.run_parts import build
from equipoise.experiments.runs.stages import load_network
from equipoise.metrics import area_under_risk_coverage, expected_calibration_error
from equipoise.metrics.facts import metric_facts
from equipoise.metrics.intervals import error_interval
from equipoise.metrics.row_draws import ResamplePlan, RowDraws, draw_rows
from equipoise.training import predict

#: Rows that are drawn from a mixture, and the seed that no split was drawn with.
N_ROWS, SEED = 1_000_000, 2_026
#: Rows of a batch; a network needs no gradients here.
BATCH = 10_000
CALIBRATORS = ("identity", "temperature", "sms")
METRICS = ("accuracy", "nll", "brier", "ece")
EXTRA = ("aurc", "true_error", "true_nll")


def fresh_data(spec: Spec, folder: str | None) -> tuple[Dataset, torch.Tensor | None]:
    """Return the rows to judge on as a ``test`` split, and their true probabilities where these are known.

    Args:
        spec: Spec of a run; all runs of a benchmark have the same data.
        folder: The data folder.
    """
    data = data_of(spec, Execution(root=folder))
    if spec.data.name == "mixture":
        if spec.data.seed == SEED:
            raise SystemExit(
                f"mixture: the splits were drawn with seed {SEED}; choose another for fresh rows."
            )
        known = inspect.signature(gaussian_mixture).parameters
        options = {key: value for key, value in spec.data.options.items() if key in known}
        source = gaussian_mixture(**options, seed=spec.data.seed)
        inputs, labels = source.sample(N_ROWS, seed=SEED)
        # Behind the rows of the splits, so that no fresh row has the number of a row that a calibrator was fitted on.
        fresh = replace(
            data,
            inputs=torch.cat([data.inputs, inputs]),
            labels=torch.cat([data.labels, labels]),
            splits={"test": torch.arange(len(data), len(data) + N_ROWS)},
            soft_labels=None,
        )
        return fresh, source.posterior(inputs)
    is_used = torch.zeros(len(data), dtype=torch.bool)
    for split in ("train", "tune", "calib"):
        is_used[data.rows(split)] = True
    return replace(data, splits={"test": (~is_used).nonzero()[:, 0]}), None


@final
class FreshDraws:
    """Scores of runs on fresh rows, and their draws in shared resamples; each run is judged once and kept."""

    def __init__(self, group: RunGroup, folder: str | None, kept: Path) -> None:
        self._folder, self._kept = folder, kept
        self.data, self.truth = fresh_data(group.runs[0].spec(), folder)
        self._read = cache(self._judged)

    def asks(self, seed: int) -> bool:
        """No advisor is asked about fresh rows."""
        return False

    def draws(self, run: RunFolder, calibrator: str, split: str) -> RowDraws:
        """Return the draws of a run after a calibrator."""
        found = {metric: self._read(run)[f"{calibrator} {metric}"] for metric in METRICS}
        values = {metric: float(one[0]) for metric, one in found.items()}
        plan = ResamplePlan(*map(int, self._read(run)["plan"]))
        return RowDraws(values, {metric: one[1:] for metric, one in found.items()}, plan)

    def extras(self, run: RunFolder, calibrator: str) -> dict[str, float]:
        """Return the numbers of a run after a calibrator that have no draws."""
        known = {metric: self._read(run).get(f"{calibrator} {metric}") for metric in EXTRA}
        return {metric: float(value) for metric, value in known.items() if value is not None}

    def _judged(self, run: RunFolder) -> dict[str, Array]:
        """Return values and draws of a run by calibrator and metric, from its file if there is one."""
        file = self._kept / f"{run.name}.npz"
        if not file.exists():
            self._kept.mkdir(parents=True, exist_ok=True)
            unfinished = file.with_suffix(f".{os.getpid()}.npz")
            np.savez(unfinished, **dict(self._judge(run)))
            unfinished.replace(file)
        with np.load(file) as found:
            return dict(found)

    def _judge(self, run: RunFolder) -> Iterator[tuple[str, Array]]:
        network = load_network(run, build(run.spec(), Execution(root=self._folder)), run.spec())
        raw = predict(network, batches(self.data, "test", batch_size=BATCH), split="test")
        for calibrator in CALIBRATORS:
            found = _calibrated(run, calibrator, raw)
            drawn = draw_rows(found, ScoreSettings(n_resamples=RESAMPLES))
            for metric in METRICS:
                yield f"{calibrator} {metric}", np.array([drawn.values[metric], *drawn.draws[metric]])
            extras = {} if self.truth is None else truth_scores(found, self.truth)
            if calibrator == "identity":
                extras["aurc"] = float(area_under_risk_coverage(found))
            for metric, value in extras.items():
                yield f"{calibrator} {metric}", np.array(value)
        yield "plan", np.array(drawn.plan)


def _calibrated(run: RunFolder, calibrator: str, raw: Predictions) -> Predictions:
    """Return predictions after a calibrator that was fitted with the run, or is fitted on the same rows."""
    if calibrator == "identity":
        return raw
    if calibrator in run.calibrators():
        return run.calibrator(calibrator)(raw)
    return KINDS[calibrator]().fit(run.predictions("calib"))(raw)


def families(group: RunGroup) -> Iterator[Family]:
    """Yield the comparisons: with cross-entropy, with scaled cross-entropy, between calibrators, between rivals."""
    labels, scaled = [label for label in group.methods if label != BASELINE], Side(BASELINE, "temperature")
    for calibrator in CALIBRATORS:
        pairs = [(Side(BASELINE, calibrator), Side(one, calibrator)) for one in labels]
        yield Family("baseline", "test", pairs)
    yield Family("scaled baseline", "test", [(scaled, Side(one, "identity")) for one in group.methods])
    yield Family(
        "calibrator", "test", [(Side(one, "temperature"), Side(one, "sms")) for one in group.methods]
    )
    for calibrator in ("identity", "temperature"):
        yield rival_family(group, calibrator)


def score_rows(benchmark: str, group: RunGroup, judge: FreshDraws) -> Iterator[dict[str, Any]]:
    """Yield one row per method, seed, calibrator and metric."""
    for label, seed, run in members(group, tried=benchmark not in SECOND):
        for calibrator in CALIBRATORS:
            draws = judge.draws(run, calibrator, "test")
            about = {
                "benchmark": benchmark,
                "method": label,
                "seed": seed,
                "calibrator": calibrator,
                "split": "test",
            }
            for metric in METRICS:
                value = draws.values[metric]
                drawn = value + draws.draws[metric]
                if metric_facts(metric).is_error:
                    low, high = error_interval(value, drawn, None, level=LEVEL)
                else:
                    low, high = np.quantile(drawn, ((1 - LEVEL) / 2, (1 + LEVEL) / 2))
                ends = {"value": value, "low": float(low), "high": float(high)}
                yield {**about, "metric": metric, **ends, "n": draws.plan.n_rows}
            for metric, value in judge.extras(run, calibrator).items():
                yield {
                    **about,
                    "metric": metric,
                    "value": value,
                    "low": None,
                    "high": None,
                    "n": draws.plan.n_rows,
                }


def perfect_rows(truth: torch.Tensor) -> Iterator[dict[str, Any]]:
    """Yield the ECE that a perfect model has by chance: true probabilities, with labels drawn from them."""
    probs = truth.numpy()
    for n, repeats in ((10_000, 100), (len(probs), 5)):
        found = []
        for repeat in range(repeats):
            rng = numpy_generator(SEED, "perfect", n, repeat)
            chosen = probs if n == len(probs) else probs[n * repeat : n * (repeat + 1)]
            labels = (rng.random((n, 1)) > chosen.cumsum(axis=1)[:, :-1]).sum(axis=1)
            found.append(expected_calibration_error(chosen, labels))
        spread = float(np.std(found, ddof=1))
        yield {"n": n, "repeats": repeats, "mean_ece": float(np.mean(found)), "sd_ece": spread}


def main() -> int:
    """Write the files of each benchmark."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("benchmarks", nargs="+", metavar="benchmark")
    parser.add_argument("--runs", type=Path, required=True, help="folder of runs, as given to run.py")
    parser.add_argument("--data", help="folder that holds the datasets")
    args = parser.parse_args()
    for benchmark in args.benchmarks:
        group = gather(benchmark, args.runs)
        judge = FreshDraws(group, args.data, args.runs.parent / "fresh")
        name = f"{folder_of(benchmark)}_fresh"
        if judge.truth is not None:
            write(f"{name}/perfect.csv", perfect_rows(judge.truth))
        add(f"{name}/scores.csv", score_rows(benchmark, group, judge), by=("method", "seed", "calibrator"))
        pairs = add(f"{name}/paired.csv", paired(families(group), group, judge), by=(*KEYS, "seed"))
        write(f"{name}/differences.csv", differences(benchmark, pairs))
    return 0


if __name__ == "__main__":
    sys.exit(main())
