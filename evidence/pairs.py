"""Paired differences of each seed: two methods on the same test rows."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Collection, Iterable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple, Protocol, final

from advised import NAME, Advised, advise
from tidy import HERE

from equipoise.core.choices import ScoreSettings
from equipoise.core.predictions import Predictions
from equipoise.evaluate import Scorecard
from equipoise.evaluate.differences import paired_difference
from equipoise.experiments import RunFolder, RunGroup
from equipoise.metrics.row_draws import RowDraws, draw_rows

#: Resamples of the test rows, which all runs share.
RESAMPLES = 1000
METRICS = ("accuracy", "nll", "brier", "ece")
BASELINE = "ce"
SCALED = "temperature"
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


class DrawSource(Protocol):
    """Source of what runs score in shared resamples of the rows."""

    def asks(self, seed: int) -> bool:
        """Whether the advisor is asked about the runs of a seed."""

    def draws(self, run: RunFolder, calibrator: str, split: str) -> RowDraws:
        """Return the draws of a run after a calibrator."""


@final
class Judge:
    """Predictions and scorecards of runs, after the calibrators that were scored and after the advisor's."""

    def __init__(self, kept: Path, further: list[str], advise: list[int] | None = None) -> None:
        self.further = further
        self._asked = advise
        self._kept = kept
        self.advised = lru_cache(maxsize=None)(self._advised)
        self.predictions = lru_cache(maxsize=4096)(self._predictions)
        self._drawn = lru_cache(maxsize=None)(self._draws)

    def asks(self, seed: int) -> bool:
        """Whether the advisor is asked about the runs of a seed."""
        return self._asked is None or seed in self._asked

    def _advised(self, run: RunFolder) -> Advised:
        return advise(run, self._kept)

    def _predictions(self, run: RunFolder, calibrator: str, split: str) -> Predictions:
        if calibrator == NAME:
            return self.advised(run)(run.predictions(split))
        return run.calibrated(calibrator, split)

    def draws(self, run: RunFolder, calibrator: str, split: str) -> RowDraws:
        """Return what a run scores in resamples of the rows that all runs share."""
        return self._drawn(run, calibrator, split)

    def _draws(self, run: RunFolder, calibrator: str, split: str) -> RowDraws:
        return draw_rows(self.predictions(run, calibrator, split), ScoreSettings(n_resamples=RESAMPLES))

    def cards(self, run: RunFolder, calibrator: str) -> dict[str, Scorecard]:
        """Give the scorecards of test and of additional test sets."""
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
    scaled = Side(BASELINE, SCALED)
    for calibrator in ("identity", "temperature", NAME):
        pairs = [(Side(BASELINE, calibrator), Side(one, calibrator)) for one in labels]
        yield Family("baseline", "test", pairs)
    yield Family("scaled baseline", "test", [(scaled, Side(one, "identity")) for one in group.methods])
    yield Family("advisor", "test", [(Side(one, "temperature"), Side(one, NAME)) for one in group.methods])
    for split in further:
        yield Family("scaled baseline", split, [(scaled, Side(one, "identity")) for one in group.methods])
        yield Family("baseline", split, [(scaled, Side(one, "temperature")) for one in labels])
    variants = [(base_of(one), one) for one in labels if is_variant(one, group.methods)]
    for calibrator in ("identity", "temperature"):
        yield Family("variant", "test", _sides(group, variants, calibrator))
        yield rival_family(group, calibrator)


def rival_family(group: RunGroup, calibrator: str) -> Family:
    """Return the comparisons that claims of papers are about, other than those with cross-entropy."""
    return Family("rival", "test", _sides(group, _rivals(), calibrator))


def _sides(group: RunGroup, pairs: Iterable[tuple[str, str]], calibrator: str) -> list[tuple[Side, Side]]:
    known = [pair for pair in pairs if group.methods.keys() >= set(pair)]
    return [(Side(one, calibrator), Side(other, calibrator)) for one, other in known]


def is_variant(label: str, labels: Collection[str]) -> bool:
    """Whether a method is another one of these in a setting that is not the paper's, or chosen."""
    return base_of(label) != label and base_of(label) in labels


def base_of(label: str) -> str:
    """Return the name of a method without its setting: ``mbls(margin=3.0)`` and ``mbls@decay`` are ``mbls``."""
    return re.split(r"[(@]", label, maxsplit=1)[0]


def _rivals() -> list[tuple[str, str]]:
    """Give the pairs that claims of papers are about, other than those with cross-entropy."""
    claims = tomllib.loads((HERE / "claims.toml").read_text("utf-8"))["claim"]
    return [(one["versus"], one["method"]) for one in claims if one["versus"] != BASELINE]


def paired(families: Iterable[Family], group: RunGroup, judge: DrawSource) -> Iterator[dict[str, Any]]:
    """Yield one row per question, pair of methods, metric and seed that both methods have.

    Args:
        families: The comparisons.
        group: Runs of the methods.
        judge: Source of the draws, which are the same resamples of the rows for all runs.
    """
    for family in families:
        metrics = METRICS if family.split == "test" else ("nll", "ece")
        for first, second in family.pairs:
            seeds = list(_shared(group, judge, first, second))
            if not seeds:
                continue
            sides = [
                [judge.draws(runs[place], side.calibrator, family.split) for _, runs in seeds]
                for place, side in enumerate((first, second))
            ]
            for metric in metrics:
                about = dict(zip(KEYS, (family.question, family.split, *second, *first, metric), strict=True))
                shared = paired_difference(metric, *sides).error.rows if len(seeds) > 1 else None
                for (seed, _), before, after in zip(seeds, *sides, strict=True):
                    found = paired_difference(metric, [before], [after])
                    yield {
                        **about,
                        "seed": seed,
                        "value": found.after,
                        "versus_value": found.before,
                        "low": found.low,
                        "high": found.high,
                        "shared_error": shared,
                    }


def paired_row(
    method: str, metric: str, seed: int, value: float, versus: float, gap: float, half: float
) -> dict[str, Any]:
    """Return a row as in ``paired.csv``: a method and cross-entropy, both after temperature scaling."""
    return {
        "question": "baseline",
        "split": "test",
        "method": method,
        "calibrator": SCALED,
        "versus": BASELINE,
        "versus_calibrator": SCALED,
        "metric": metric,
        "seed": seed,
        "value": value,
        "versus_value": versus,
        "low": gap - half,
        "high": gap + half,
        "shared_error": None,
    }


def _shared(
    group: RunGroup, judge: DrawSource, first: Side, second: Side
) -> Iterator[tuple[int, list[RunFolder]]]:
    known = [
        {group.specs[run.name].seed: run for run in group.methods[side.method]} for side in (first, second)
    ]
    for seed in sorted(known[0].keys() & known[1].keys()):
        if NAME not in (first.calibrator, second.calibrator) or judge.asks(seed):
            yield seed, [runs[seed] for runs in known]
