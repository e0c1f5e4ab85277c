"""Run a comparison and write what came out."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from equipoise.core.files import write_text
from equipoise.core.names import check_choice
from equipoise.experiments.comparison import Comparison
from equipoise.experiments.engines import Report, run_locally, run_on_ray
from equipoise.experiments.folder import RunFolder, write_rows
from equipoise.experiments.formatting import format_tables
from equipoise.experiments.places import find_places
from equipoise.experiments.run import RunOptions
from equipoise.experiments.table import Table, make_tables

__all__ = ["Outcome", "run_comparison"]


class Outcome(NamedTuple):
    """What a comparison came to.

    Attributes:
        report: Which runs are done, which failed.
        tables: One per dataset and network, of the runs that are done.
        results: The file of tidy rows.

    Example:
        >>> Outcome(Report(), [], Path("runs/mine.results.csv")).report.is_whole
        True
    """

    report: Report
    tables: list[Table]
    results: Path


def run_comparison(
    comparison: Comparison,
    folder: str | os.PathLike[str],
    *,
    options: RunOptions | None = None,
    engine: str = "local",
    workers: int | None = None,
    address: str | None = None,
) -> Outcome:
    """Do what is left of a comparison, and write its results and tables.

    Args:
        comparison: What to run.
        folder: Where run folders and results go.
        options: What does not change results.
        engine: ``"local"`` or ``"ray"``.
        workers: Processes of the local engine.
        address: Cluster of the Ray engine.

    Returns:
        Which runs are done, the tables, and the file of tidy rows.

    Example:
        >>> import tempfile
        >>> table = {"data": "digits", "model": "mlp", "objective": "ce", "recipe": {"name": "quick", "epochs": 1}}
        >>> options = RunOptions(n_resamples=20, quiet=True)
        >>> outcome = run_comparison(Comparison.from_table(table), tempfile.mkdtemp(), options=options)
        >>> outcome.report.is_whole, outcome.tables[0].rows[0].method
        (True, 'ce')
    """
    check_choice(engine, ("local", "ray"), where="run_comparison", name="engine")
    chosen = replace(options or RunOptions(), calibrators=comparison.calibrators)
    base = Path(folder)
    base.mkdir(parents=True, exist_ok=True)
    if engine == "ray":
        report = run_on_ray(comparison.specs, base, options=chosen, address=address)
    else:
        report = run_locally(comparison.specs, base, options=chosen, workers=workers)
    order = {spec.identity: number for number, spec in enumerate(comparison.specs)}
    runs = sorted(report.done, key=lambda run: order[run.name])
    results = base / f"{comparison.name}.results.csv"
    write_rows(results, _rows(runs, comparison.calibrators))
    labels = {
        spec.objective.label for spec in comparison.specs if spec.identity in {run.name for run in runs}
    }
    tables = make_tables(runs, baseline=comparison.baseline if comparison.baseline in labels else None)
    write_text(base / f"{comparison.name}.table.md", format_tables(tables, "markdown") + "\n")
    return Outcome(report, tables, results)


def _rows(runs: Sequence[RunFolder], calibrators: Sequence[str]) -> list[dict[str, Any]]:
    """Return the tidy rows; data that differ in a setting have names that differ."""
    titles = {run.name: place.title for place in find_places(runs) for run in place.runs}
    return [
        {**row, "data": titles[run.name]}
        for run in runs
        for row in run.scores()
        if row["calibrator"] in calibrators
    ]
