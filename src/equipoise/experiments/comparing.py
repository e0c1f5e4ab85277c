"""Run a comparison and write what came out."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from equipoise.core.files import write_text
from equipoise.core.names import check_choice
from equipoise.experiments.comparison import Comparison
from equipoise.experiments.engines import Report, run_locally, run_on_ray
from equipoise.experiments.folder import write_rows
from equipoise.experiments.results import gather_rows
from equipoise.experiments.run import RunOptions
from equipoise.experiments.table import Table, format_table, make_tables

__all__ = ["Outcome", "run_comparison"]


class Outcome(NamedTuple):
    """What a comparison came to.

    Attributes:
        report: Which runs are done, which failed.
        tables: One per dataset and network; empty while runs are missing.
        results: The file of tidy rows.
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
    write_rows(results, [row for row in gather_rows(runs) if row["calibrator"] in comparison.calibrators])
    tables = make_tables(runs, baseline=comparison.baseline) if runs else []
    text = "\n\n".join(format_table(table, "markdown") for table in tables)
    write_text(base / f"{comparison.name}.table.md", text + "\n")
    return Outcome(report, tables, results)
