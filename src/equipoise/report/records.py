"""The contents of a report: results by method, after calibrators, advice, provenance.

A single set of predictions fills these records, and so does a folder of runs; pages are made from nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, final

import numpy as np

from equipoise.core.errors import DataError
from equipoise.core.tables import Table
from equipoise.decisions import DecisionCheck, SetReport
from equipoise.evaluate.comparison import PairedDifferences, correct_for_many
from equipoise.evaluate.scorecard import Score, Scorecard
from equipoise.evaluate.shift import ShiftScores
from equipoise.evaluate.slices import Slice
from equipoise.evaluate.standard_error import mean_over_seeds
from equipoise.evaluate.sweep import Sweep
from equipoise.evaluate.trend import Trend
from equipoise.evaluate.verdict import Verdict, verdict_of_runs
from equipoise.metrics.curve import ReliabilityCurve, mean_curve
from equipoise.metrics.row_draws import RowDraws
from equipoise.metrics.selective import RiskCoverage
from equipoise.report.details import RowDetails

__all__ = [
    "Advice",
    "AfterCalibrator",
    "MethodCard",
    "MethodResult",
    "Option",
    "Provenance",
    "Report",
    "RunResult",
    "over_runs",
]


@final
@dataclass(frozen=True, kw_only=True)
class RunResult:
    """One training of a method, or one file of predictions.

    Attributes:
        scores: Its scorecard on the test split.
        seed: The seed it was trained with, if known.
        history: One row per epoch, if it was trained here.
        draws: Its scores in resamples of the rows that all runs share, if known.
    """

    scores: Scorecard
    seed: int | None = None
    history: Sequence[Mapping[str, float]] = ()
    draws: RowDraws | None = None


@final
@dataclass(frozen=True, kw_only=True)
class AfterCalibrator:
    """The same predictions after a calibrator.

    Attributes:
        name: The calibrator.
        scores: Scorecards after it, one per run.
        words: The fitted parameters, such as ``"a = 0.9, b = 1.2"``.
        temperatures: The temperature of each run, for calibrators that have one.
        versus: The paired comparison with no calibrator, over all runs.
        versus_base: The paired comparison with the baseline after the same calibrator, baseline first.
        draws: The scores of each run in resamples of the shared rows, if known.
        warnings: Warnings of the fits.
        details: Details of the first run that need its rows, if they were in memory.

    Example:
        >>> AfterCalibrator(name="temperature", scores=(), temperatures=(1.8, 2.0)).fitted
        'T = 1.90 on average over 2 seeds, 1.80 to 2.00'
    """

    name: str
    scores: tuple[Scorecard, ...]
    words: str = ""
    temperatures: tuple[float, ...] = ()
    versus: PairedDifferences | None = None
    versus_base: PairedDifferences | None = None
    draws: tuple[RowDraws | None, ...] = ()
    warnings: tuple[str, ...] = ()
    details: RowDetails | None = None

    @property
    def fitted(self) -> str:
        """The fitted parameters, over all runs if they are temperatures."""
        if len(self.temperatures) < 2:
            return self.words
        mean, low, high = (float(f(self.temperatures)) for f in (np.mean, min, max))
        mean_text, low_text, high_text = (
            f"{value:.2f}" if 0.1 <= value < 1000 else f"{value:.2g}" for value in (mean, low, high)
        )
        return f"T = {mean_text} on average over {len(self.temperatures)} seeds, {low_text} to {high_text}"

    def curve(self) -> ReliabilityCurve:
        """Return the reliability curve over all runs."""
        return mean_curve([card.curve for card in self.scores])

    def score(self, key: str) -> Score:
        """Return a number over the runs: their mean with its interval."""
        return over_runs(key, self.scores, self.draws)


@final
@dataclass(frozen=True, kw_only=True)
class MethodCard:
    """The description of a method in the catalogue.

    Attributes:
        title: The usual name.
        summary: One sentence: what it does.
        formula: LaTeX without dollar signs.
        paper: Authors (year), title.
        fidelity: How far it was checked against its source.
        parameters: The values used.
        use_when: When it is the right choice.
        avoid_when: When it is not.
    """

    title: str
    summary: str = ""
    formula: str = ""
    paper: str = ""
    fidelity: str = ""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    use_when: str = ""
    avoid_when: str = ""


@final
@dataclass(frozen=True, kw_only=True)
class Option:
    """One calibrator that the advisor tried.

    Attributes:
        name: Which.
        n_parameters: Number of fitted parameters.
        log_loss: On held-out rows; NaN if it was not tried.
        improvement: How much lower that is than without calibration.
        ece: Of the held-out confidences.
        note: ``"chosen"``, or why it was refused.
    """

    name: str
    n_parameters: int
    log_loss: float
    improvement: float
    ece: float
    note: str = ""


@final
@dataclass(frozen=True, kw_only=True)
class Advice:
    """What to do about it.

    Attributes:
        recommendation: One sentence.
        options: What was tried.
        code: Lines to paste.
        chosen: The calibrator recommended; empty if none is.
    """

    recommendation: str
    options: tuple[Option, ...] = ()
    code: str = ""
    chosen: str = ""


@final
@dataclass(frozen=True, kw_only=True)
class MethodResult:
    """Everything known about one method, or one file of predictions.

    Attributes:
        name: Its name in tables and figures.
        runs: At least one; several are seeds of the same method.
        calibrated: After each calibrator.
        classes: Slices by predicted class, worst first.
        groups: Slices by the values of each column.
        risk: Error rate by coverage.
        versus: The paired comparison with the baseline, baseline first.
        card: What the method is.
        advice: What to do.
        details: Details that need the rows, if they were in memory.
        sets: Prediction sets, if there were rows to fit them on.
    """

    name: str
    runs: tuple[RunResult, ...]
    calibrated: tuple[AfterCalibrator, ...] = ()
    classes: tuple[Slice, ...] = ()
    groups: Mapping[str, tuple[Slice, ...]] = field(default_factory=dict)
    risk: RiskCoverage | None = None
    versus: PairedDifferences | None = None
    card: MethodCard | None = None
    advice: Advice | None = None
    details: RowDetails | None = None
    sets: SetReport | None = None

    @property
    def first(self) -> Scorecard:
        """The scorecard of the first run."""
        return self.runs[0].scores

    @property
    def keys(self) -> tuple[str, ...]:
        """The metrics that every run has."""
        return tuple(key for key in self.first.scores if all(key in run.scores.scores for run in self.runs))

    def score(self, key: str) -> Score:
        """Return a number over the runs: one run's own, or the mean with the interval that its spread gives."""
        return over_runs(key, [run.scores for run in self.runs], [run.draws for run in self.runs])

    def verdict(self) -> Verdict:
        """Return whether it is calibrated, in every run."""
        return verdict_of_runs([run.scores for run in self.runs])

    def curve(self) -> ReliabilityCurve:
        """Return the reliability curve over all runs; seeds share their rows, so they add no counts."""
        return mean_curve([run.scores.curve for run in self.runs])


@final
@dataclass(frozen=True, kw_only=True)
class Provenance:
    """Where the numbers come from.

    Attributes:
        facts: Labels and values, in the order they are shown.
        command: The command that makes this report again.
    """

    facts: tuple[tuple[str, str], ...] = ()
    command: str = ""


@final
@dataclass(frozen=True, kw_only=True)
class Report:
    """A whole report.

    Attributes:
        title: The title of the page.
        methods: One result is a report of its own; several are a comparison.
        baseline: Name of the method the others are compared with; by default the first.
        provenance: Where the numbers come from.
        notes: Sentences about the whole report.
        sweeps: Methods whose setting was chosen, and what each setting gave.
        shifts: Scores of each method, after each calibrator, on additional test sets.
        over_time: Whether the methods are one model at several times, in order.
        trend: What changed over time; None unless there are several times.
        hint: A command, or lines of Python, that give advice about these predictions; empty if there is none.
        search: How the model was found, as sentences and tables; empty if it was given.
        decision: Whether a saved decision keeps its promise on these rows, if one was checked.
    """

    title: str
    methods: tuple[MethodResult, ...]
    baseline: str | None = None
    provenance: Provenance = Provenance()
    notes: tuple[str, ...] = ()
    sweeps: tuple[Sweep, ...] = ()
    shifts: tuple[ShiftScores, ...] = ()
    over_time: bool = False
    trend: Trend | None = None
    hint: str = ""
    search: tuple[str | Table, ...] = ()
    decision: DecisionCheck | None = None

    def __post_init__(self) -> None:
        names = [method.name for method in self.methods]
        if not names:
            raise DataError("Report: `methods` is empty. Pass at least one result.")
        if len(set(names)) < len(names):
            raise DataError(f"Report: names of methods must be distinct, got {names}. Rename one.")
        if self.baseline is not None and self.baseline not in names:
            raise DataError(f"Report: the baseline must be one of {names}, got {self.baseline!r}.")

    @property
    def base(self) -> MethodResult:
        """The baseline."""
        name = self.baseline or self.methods[0].name
        return next(method for method in self.methods if method.name == name)

    @property
    def is_of_networks(self) -> bool:
        """Whether a method was trained only once, so that comparisons are about networks and not about methods."""
        return any(len(method.runs) == 1 and method.runs[0].seed is not None for method in self.methods)

    @property
    def others(self) -> tuple[MethodResult, ...]:
        """All methods but the baseline."""
        return tuple(method for method in self.methods if method is not self.base)

    @property
    def shared_calibrators(self) -> tuple[str, ...]:
        """The calibrators after which every method was compared with the baseline."""
        return tuple(
            one.name
            for one in self.base.calibrated
            if all(
                any(other.name == one.name and other.versus_base is not None for other in method.calibrated)
                for method in self.others
            )
        )

    def after(self, method: MethodResult, calibrator: str) -> AfterCalibrator:
        """Return the results of a method after a calibrator."""
        return next(one for one in method.calibrated if one.name == calibrator)

    def versus(self, calibrator: str | None = None) -> dict[str, PairedDifferences]:
        """Return the methods' comparisons with the baseline, corrected for their number.

        Args:
            calibrator: The calibrator; by default none.
        """
        found = {
            method.name: (method.versus if calibrator is None else self.after(method, calibrator).versus_base)
            for method in self.others
        }
        known = {name: one for name, one in found.items() if one is not None}
        return correct_for_many(known, level=self.base.first.level)

    def gains(self) -> dict[tuple[str, str], PairedDifferences]:
        """Return what each calibrator adds to each method, corrected for their number."""
        found = {
            (method.name, one.name): one.versus
            for method in self.methods
            for one in method.calibrated
            if one.versus is not None
        }
        return correct_for_many(found, level=self.base.first.level)


def over_runs(key: str, cards: Sequence[Scorecard], draws: Sequence[RowDraws | None] = ()) -> Score:
    """Return a metric over the runs of a method: one run's own, or the mean with an interval for other trainings.

    Args:
        key: The metric.
        cards: Scorecards, one per run.
        draws: The scores of the runs in shared resamples of their rows, where they are known.
    """
    return mean_over_seeds(key, [card[key] for card in cards], level=cards[0].level, draws=draws)
