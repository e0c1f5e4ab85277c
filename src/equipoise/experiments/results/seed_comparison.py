"""Seeds of predictions that someone already has: the same table, tests and report as for runs trained here."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, final

from equipoise.calibrators import Calibrator, UserCalibrator
from equipoise.calibrators.own import as_calibrator
from equipoise.calibrators.selection import Advisor
from equipoise.core.errors import DataError
from equipoise.core.names import look_up
from equipoise.core.predictions import Predictions
from equipoise.core.predictions.combine import align_all, order_classes
from equipoise.experiments.code.component import Component
from equipoise.experiments.results.report import methods_of, title_of
from equipoise.experiments.results.tables import COLUMNS, ResultTable, table_of
from equipoise.experiments.runs.scores import RunScores
from equipoise.experiments.runs.scoring import score_calibrated, score_plain
from equipoise.experiments.specs.calibrators import calibrator_key, make_calibrator, parse_calibrator
from equipoise.experiments.specs.metrics import parse_metric
from equipoise.experiments.specs.scoring import ScoringOptions
from equipoise.metrics.clusters import find_clusters
from equipoise.metrics.facts import metrics_where
from equipoise.report import MethodCard, Provenance, Report

__all__ = ["SeedComparison", "compare_seeds"]

#: As in tables of runs, and what is scored where only confidences are known.
_COLUMNS = (*COLUMNS, *metrics_where(only_confidence=True))

Seeds = Mapping[str, Predictions | Sequence[Predictions]]


@final
@dataclass(frozen=True)
class _SeedGroup:
    """Seeds of several methods, and what they scored."""

    title: str
    methods: Mapping[str, list[str]]
    scores: Mapping[str, Mapping[str, RunScores]]
    calibrators: list[str]
    model: str = ""

    def seeds(self, label: str, calibrator: str) -> dict[int, RunScores]:
        found = enumerate(self.scores[name] for name in self.methods[label])
        return {number: parts[calibrator] for number, parts in found if calibrator in parts}

    def history(self, label: str, seed: int) -> list[dict[str, Any]]:
        return []

    def fidelity(self, label: str) -> str:
        return "yours"

    def printed(self, label: str, calibrator: str, metrics: Sequence[str]) -> dict[str, str]:
        return {}


@final
@dataclass(frozen=True, repr=False)
class SeedComparison:
    """How methods compare over seeds.

    Attributes:
        table: Methods in rows, metrics in columns, ties called ties; what printing it shows.
    """

    table: ResultTable
    _group: _SeedGroup

    def __repr__(self) -> str:
        return f"SeedComparison({self.table!r})"

    def __str__(self) -> str:
        return str(self.table)

    def _repr_html_(self) -> str:
        return self.table._repr_html_()

    def rows(self) -> list[dict[str, Any]]:
        """Return one tidy row per method, seed, calibrator and metric."""
        return [
            {"method": label, "seed": number, **row}
            for label, seeds in self._group.methods.items()
            for number, seed in enumerate(seeds)
            for part in self._group.scores[seed].values()
            for row in part.rows()
        ]

    def report(self, *, title: str | None = None, command: str = "") -> Report:
        """Return the records of a report; :func:`~equipoise.report.write_report` makes a file of them.

        Args:
            title: What stands on top.
            command: What makes it again.
        """
        names = self._group.methods
        cards = {label: MethodCard(title=label) for label in names}
        counts = ", ".join(f"{label}: {len(seeds)}" for label, seeds in names.items())
        facts = (("rows", f"{self.table.n_test:,}"), ("seeds", counts))
        return Report(
            title=title or title_of(names, self._group.title),
            methods=methods_of(self._group, self.table, cards),
            baseline=self.table.baseline,
            provenance=Provenance(facts=facts, command=command),
        )


def compare_seeds(
    predictions: Seeds,
    *,
    calib: Seeds | None = None,
    calibrators: Sequence[str | Component | Mapping[str, Any] | Calibrator | UserCalibrator] = (
        "temperature",
    ),
    baseline: str | None = None,
    metrics: Sequence[str | Mapping[str, Any] | Callable[[Predictions], float]] = _COLUMNS,
    name: str = "predictions",
    n_bins: int = 15,
    closed: str = "right",
    level: float = 0.95,
    n_resamples: int = 1000,
    seed: int = 0,
    margins: Mapping[str, float] | None = None,
    clusters: Any = None,
) -> SeedComparison:
    """Compare methods by the predictions of several trainings of each, on the same rows in the same order.

    Args:
        predictions: Predictions to judge by method, one per training; seed by seed they are compared in pairs.
        calib: Held-out predictions of the same trainings. If given, calibrators are fitted on them.
        calibrators: Post-hoc maps to show, if there is ``calib``: names, tables of name and options, or maps of your
            own. ``"auto"`` lets the advisor choose one for each training.
        baseline: The method others are compared with; by default the first.
        metrics: Columns: keys, or functions of predictions that give a number.
        name: What the rows are called.
        n_bins: Bins of the binned metrics.
        closed: Which side of a bin belongs to it.
        level: Level of the intervals.
        n_resamples: Resamples behind intervals and tests.
        seed: Random seed of the resamples.
        margins: By metric: a difference that is shown to be smaller is called equivalent.
        clusters: Where rows depend on each other, such as pixels of one image or posts of one author: one value per
            row, or the name of a column of groups. Clusters are then resampled, not rows.

    Returns:
        The table, which printing shows, tidy rows, and a report.

    Raises:
        DataError: If predictions are of other rows, or are missing.
        SpecError: If a name is not known.

    Example:
        >>> rows = Predictions(probs=[[0.99, 0.01]] * 40, labels=[0] * 24 + [1] * 16)
        >>> calmer = rows.with_scores(probs=[[0.6, 0.4]] * 40)
        >>> found = compare_seeds({"ce": [rows, rows], "focal": [calmer, calmer]}, n_resamples=99)
        >>> [row.versus["ece"] for row in found.table.rows]
        ['', 'better']
    """
    judged = {label: _listed(found) for label, found in predictions.items()}
    held_out = {label: _listed(found) for label, found in (calib or {}).items()}
    _check(judged, held_out, baseline)
    judged, held_out = _aligned(judged, held_out)
    columns = [parse_metric(one, where="compare_seeds") for one in metrics]
    chosen = dict(map(_calibrator, calibrators)) if held_out else {}
    chosen.pop("identity", None)
    options = ScoringOptions(
        calibrators=(),
        n_bins=n_bins,
        closed=closed,
        level=level,
        n_resamples=n_resamples,
        seed=seed,
        metrics=tuple(one for one in columns if not isinstance(one, str)),
    )
    if clusters is not None:
        every = [part for parts in judged.values() for part in parts]
        clusters = find_clusters(clusters, *every, where="compare_seeds")
    names = {
        label: [f"{label} seed {number}" for number in range(len(found))] for label, found in judged.items()
    }
    scores = {
        name: _score(part, held_out[label][number] if held_out else None, chosen, options, clusters)
        for label, found in judged.items()
        for number, (name, part) in enumerate(zip(names[label], found, strict=True))
    }
    group = _SeedGroup(name, names, scores, ["identity", *chosen])
    keys = [one if isinstance(one, str) else one.label for one in columns]
    table = table_of(group, baseline=baseline or next(iter(names)), metrics=keys, margins=margins)
    return SeedComparison(table, group)


def _calibrator(given: Any) -> tuple[str, Callable[[], Calibrator | Advisor]]:
    """Return what a calibrator is called, and what makes it anew for each training."""
    if isinstance(given, (Calibrator, UserCalibrator)) and not isinstance(given, type):
        name = type(given).__name__
        return name, lambda: as_calibrator(copy.deepcopy(given), name=name)
    found = parse_calibrator(given, where="compare_seeds")
    return calibrator_key(found), partial(make_calibrator, found)


def _listed(found: Predictions | Sequence[Predictions]) -> list[Predictions]:
    return [found] if isinstance(found, Predictions) else list(found)


def _check(
    judged: Mapping[str, list[Predictions]], held_out: Mapping[str, list[Predictions]], baseline: str | None
) -> None:
    where = "compare_seeds"
    if not judged or not all(judged.values()):
        raise DataError(f"{where}: expected predictions of at least one training of each method, got none.")
    others = [part for parts in (*judged.values(), *held_out.values()) for part in parts]
    wrong = next((part for part in others if not isinstance(part, Predictions)), None)
    if wrong is not None:
        raise DataError(
            f"{where}: expected Predictions, got {type(wrong).__name__}. Pass Predictions(logits=...)."
        )
    sizes = {len(part) for parts in judged.values() for part in parts}
    if len(sizes) > 1:
        raise DataError(
            f"{where}: all must predict the same rows, got {' and '.join(map(str, sorted(sizes)))} rows."
        )
    if baseline is not None and baseline not in judged:
        look_up(baseline, judged, what="method to compare with")
    if held_out and {k: len(v) for k, v in held_out.items()} != {k: len(v) for k, v in judged.items()}:
        raise DataError(f"{where}: `calib` must hold as many predictions for each method as are judged.")


def _aligned(
    judged: Mapping[str, list[Predictions]], held_out: Mapping[str, list[Predictions]]
) -> tuple[dict[str, list[Predictions]], dict[str, list[Predictions]]]:
    """Return predictions with rows in one order, if they have ids, and classes in one order, if they have names."""
    where = "compare_seeds"
    flat = iter(align_all([part for parts in judged.values() for part in parts], where=where))
    rows = {label: [next(flat) for _ in parts] for label, parts in judged.items()}
    calib = {
        label: [order_classes(rows[label][0], part, where=where)[1] for part in parts]
        for label, parts in held_out.items()
    }
    return rows, calib


def _score(
    test: Predictions,
    calib: Predictions | None,
    calibrators: Mapping[str, Callable[[], Calibrator | Advisor]],
    options: ScoringOptions,
    clusters: Any,
) -> dict[str, RunScores]:
    """Score one seed, before and after calibrators that are fitted for it."""
    found = {"identity": score_plain({"test": test}, options, clusters=clusters)}
    for key, make in calibrators.items():
        assert calib is not None
        found[key] = score_calibrated(key, test, make().fit(calib), options, clusters=clusters)
    return found
