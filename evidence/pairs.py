"""Paired differences of each seed: two methods on the same test rows."""

from __future__ import annotations

import tomllib
from collections.abc import Collection, Iterable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple, final

from advised import NAME, Advised, advise
from tidy import HERE

from equipoise.core.predictions import Predictions
from equipoise.evaluate import Scorecard, compare
from equipoise.experiments import RunFolder, RunGroup

METRICS = ("accuracy", "nll", "brier", "ece")
BASELINE = "ce"
#: What a row of paired differences is about.
KEYS = ("question", "split", "method", "calibrator", "versus", "versus_calibrator", "metric")


class Side(NamedTuple):
    """A method after a calibrator."""

    method: str
    calibrator: str


class Family(NamedTuple):
    """Comparisons that answer one question, on one test set."""

    question: str
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
        pairs = [(Side(BASELINE, calibrator), Side(one, calibrator)) for one in labels]
        yield Family("baseline", "test", pairs)
    yield Family("scaled baseline", "test", [(scaled, Side(one, "identity")) for one in group.methods])
    yield Family("advisor", "test", [(Side(one, "temperature"), Side(one, NAME)) for one in group.methods])
    for split in further:
        yield Family("scaled baseline", split, [(scaled, Side(one, "identity")) for one in group.methods])
        yield Family("baseline", split, [(scaled, Side(one, "temperature")) for one in labels])
    variants = [(one.partition("(")[0], one) for one in labels if is_variant(one, group.methods)]
    for calibrator in ("identity", "temperature"):
        for question, pairs in (("variant", variants), ("rival", _rivals())):
            known = [pair for pair in pairs if group.methods.keys() >= set(pair)]
            sides = [(Side(one, calibrator), Side(other, calibrator)) for one, other in known]
            yield Family(question, "test", sides)


def is_variant(label: str, labels: Collection[str]) -> bool:
    """Whether a method is another one of these in a setting that is not the paper's, or chosen."""
    base, bracket, _ = label.partition("(")
    return bool(bracket) and base in labels


def _rivals() -> list[tuple[str, str]]:
    """Give the pairs that claims of papers are about, other than those with cross-entropy."""
    claims = tomllib.loads((HERE / "claims.toml").read_text("utf-8"))["claim"]
    return [(one["versus"], one["method"]) for one in claims if one["versus"] != BASELINE]


def paired(group: RunGroup, judge: Judge) -> Iterator[dict[str, Any]]:
    """Give one row per question, pair of methods, metric and seed that both methods have."""
    for family in families(group, judge.further):
        metrics = METRICS if family.split == "test" else ("nll", "ece")
        for first, second in family.pairs:
            for seed, runs in _shared(group, judge, first, second):
                one, other = (
                    judge.predictions(run, side.calibrator, family.split)
                    for run, side in zip(runs, (first, second), strict=True)
                )
                for found in compare(one, other, metrics=metrics, n_resamples=500):
                    about = (family.question, family.split, *second, *first, found.metric)
                    yield {
                        **dict(zip(KEYS, about, strict=True)),
                        "seed": seed,
                        "value": found.second,
                        "versus_value": found.first,
                        "low": found.low,
                        "high": found.high,
                    }


def _shared(
    group: RunGroup, judge: Judge, first: Side, second: Side
) -> Iterator[tuple[int, list[RunFolder]]]:
    known = [
        {group.specs[run.name].seed: run for run in group.methods[side.method]} for side in (first, second)
    ]
    for seed in sorted(known[0].keys() & known[1].keys()):
        if NAME not in (first.calibrator, second.calibrator) or judge.asks(seed):
            yield seed, [runs[seed] for runs in known]
