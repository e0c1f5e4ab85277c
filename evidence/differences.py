"""Paired differences between methods, on the same rows, over the seeds that both have."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple, final

import numpy as np
from advised import NAME, Advised, advise
from tidy import HERE

from equipoise.core.predictions import Predictions
from equipoise.evaluate import Difference, Scorecard, compare
from equipoise.evaluate.chance import holm
from equipoise.experiments import RunFolder, RunGroup
from equipoise.experiments.results import combine

METRICS = ("accuracy", "nll", "brier", "ece")
BASELINE = "ce"
ALPHA = 0.05


class Side(NamedTuple):
    """A method after a calibrator."""

    method: str
    calibrator: str


class Family(NamedTuple):
    """Comparisons of one question, which are corrected for being many."""

    split: str
    pairs: list[tuple[Side, Side]]


@final
class Judge:
    """Predictions and scorecards of runs, after the calibrators that were scored and after the advisor's."""

    def __init__(self, kept: Path, further: list[str], advise: list[int] | None = None) -> None:
        self.further = further
        self._asked = advise
        self._kept = kept
        self.advised = lru_cache(maxsize=None)(self._advised)
        self.predictions = lru_cache(maxsize=4096)(self._predictions)

    def asks(self, seed: int) -> bool:
        """Whether the advisor is asked about the runs of a seed."""
        return self._asked is None or seed in self._asked

    def _advised(self, run: RunFolder) -> Advised:
        return advise(run, self._kept)

    def _predictions(self, run: RunFolder, calibrator: str, split: str) -> Predictions:
        if calibrator == NAME:
            return self.advised(run)(run.predictions(split))
        return run.calibrated(calibrator, split)

    def cards(self, run: RunFolder, calibrator: str) -> dict[str, Scorecard]:
        """Give the scorecards of test and of further test sets."""
        splits = ["test", *self.further]
        if calibrator != NAME:
            cards = run.scores(calibrator).cards
            return {split: cards[split] for split in splits}
        splits = ["test"]
        card = run.scores().test
        settings = {"n_bins": card.n_bins, "n_resamples": card.n_resamples, "seed": card.seed}
        return self.advised(run).cards(run, splits, settings)


def families(group: RunGroup, further: Iterable[str]) -> Iterator[Family]:
    """Give what is asked: against cross-entropy, against scaling it, under shift, and against the paper's setting."""
    labels = [label for label in group.methods if label != BASELINE]
    scaled = Side(BASELINE, "temperature")
    for calibrator in ("identity", "temperature", NAME):
        yield Family("test", [(Side(BASELINE, calibrator), Side(one, calibrator)) for one in labels])
    yield Family("test", [(scaled, Side(one, "identity")) for one in group.methods])
    yield Family("test", [(Side(one, "temperature"), Side(one, NAME)) for one in group.methods])
    for split in further:
        yield Family(split, [(scaled, Side(one, "identity")) for one in group.methods])
        yield Family(split, [(scaled, Side(one, "temperature")) for one in labels])
    variants = [(one.partition("(")[0], one) for one in labels if "(" in one]
    for calibrator in ("identity", "temperature"):
        for pairs in (variants, _rivals()):
            known = [pair for pair in pairs if group.methods.keys() >= set(pair)]
            yield Family("test", [(Side(one, calibrator), Side(other, calibrator)) for one, other in known])


def _rivals() -> list[tuple[str, str]]:
    """Give the pairs that claims of papers are about, other than those with cross-entropy."""
    claims = tomllib.loads((HERE / "claims.toml").read_text("utf-8"))["claim"]
    return [(one["versus"], one["method"]) for one in claims if one["versus"] != BASELINE]


def differences(arena: str, group: RunGroup, judge: Judge) -> Iterator[dict[str, Any]]:
    """Give one row per question, method and metric; verdicts allow for there being many methods (Holm)."""
    for family in families(group, judge.further):
        found = [_over_seeds(group, judge, family.split, *pair) for pair in family.pairs]
        for metric in METRICS if family.split == "test" else ("nll", "ece"):
            known = [
                (pair, n, rows[metric])
                for pair, (n, rows) in zip(family.pairs, found, strict=True)
                if metric in rows
            ]
            corrected = holm(np.array([one.p_value for _, _, one in known]))
            for ((first, second), n_seeds, one), p_value in zip(known, corrected, strict=True):
                yield {
                    "arena": arena,
                    "split": family.split,
                    "method": second.method,
                    "calibrator": second.calibrator,
                    "versus": first.method,
                    "versus_calibrator": first.calibrator,
                    "metric": metric,
                    "n_seeds": n_seeds,
                    "value": one.second,
                    "versus_value": one.first,
                    "difference": one.difference,
                    "low": one.low,
                    "high": one.high,
                    "p_value": one.p_value,
                    "p_holm": float(p_value),
                    "verdict": _verdict(one, float(p_value)),
                }


def _over_seeds(
    group: RunGroup, judge: Judge, split: str, first: Side, second: Side
) -> tuple[int, dict[str, Difference]]:
    runs = [
        {group.specs[run.name].seed: run for run in group.methods[side.method]} for side in (first, second)
    ]
    shared = sorted(runs[0].keys() & runs[1].keys())
    if NAME in (first.calibrator, second.calibrator):
        shared = [seed for seed in shared if judge.asks(seed)]
    found = []
    for seed in shared:
        one, other = (
            judge.predictions(known[seed], side.calibrator, split)
            for known, side in zip(runs, (first, second), strict=True)
        )
        found.append(compare(one, other, metrics=METRICS, n_resamples=500))
    return len(shared), {rows[0].metric: combine(rows) for rows in zip(*found, strict=True)}


def _verdict(one: Difference, p_value: float) -> str:
    if p_value >= ALPHA or one.difference == 0:
        return "tie"
    # Of all these only accuracy is better when it is larger.
    return "better" if (one.difference > 0) == (one.metric == "accuracy") else "worse"
