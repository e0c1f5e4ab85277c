"""Specs, the catalogue, run folders and engines."""

from equipoise.experiments.catalogue import CATALOGUE, Entry
from equipoise.experiments.comparison import (
    ComparisonResult,
    ComparisonSpec,
    read_comparison,
    run_comparison,
)
from equipoise.experiments.engines import RunSummary
from equipoise.experiments.folder import RunFolder
from equipoise.experiments.formatting import format_table, format_tables
from equipoise.experiments.paper_results import PaperResult, find_paper_results
from equipoise.experiments.run import RunOptions, run
from equipoise.experiments.run_groups import RunGroup, group_runs
from equipoise.experiments.run_plots import NEEDS_NO_RUNS, PLOTS, PlotOptions, plot_runs
from equipoise.experiments.run_report import report_of_runs
from equipoise.experiments.run_search import find_runs
from equipoise.experiments.scores import RunScores
from equipoise.experiments.shift_scores import format_shifts
from equipoise.experiments.spec import Spec, read_spec, write_spec
from equipoise.experiments.table import ResultTable, make_tables

__all__ = [
    "CATALOGUE",
    "NEEDS_NO_RUNS",
    "PLOTS",
    "ComparisonResult",
    "ComparisonSpec",
    "Entry",
    "PaperResult",
    "PlotOptions",
    "ResultTable",
    "RunFolder",
    "RunGroup",
    "RunOptions",
    "RunScores",
    "RunSummary",
    "Spec",
    "find_paper_results",
    "find_runs",
    "format_shifts",
    "format_table",
    "format_tables",
    "group_runs",
    "make_tables",
    "plot_runs",
    "read_comparison",
    "read_spec",
    "report_of_runs",
    "run",
    "run_comparison",
    "write_spec",
]
