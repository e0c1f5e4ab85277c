"""Specs, the catalogue, run folders and engines."""

from typing import TYPE_CHECKING

from equipoise.core.lazy import lazy_names as _lazy_names

__all__ = [
    "HISTORIES",
    "NEEDS_NO_RUNS",
    "PLOTS",
    "ComparisonResult",
    "ComparisonSpec",
    "DataSpec",
    "Execution",
    "MethodSpec",
    "ModelSpec",
    "PaperResult",
    "PlotOptions",
    "RecipeSpec",
    "ResultTable",
    "RunFolder",
    "RunGroup",
    "RunOptions",
    "RunScores",
    "RunSummary",
    "SeedComparison",
    "Spec",
    "code_files",
    "compare_methods",
    "compare_seeds",
    "find_paper_results",
    "find_runs",
    "format_shifts",
    "format_table",
    "format_tables",
    "group_runs",
    "make_tables",
    "plot_runs",
    "prepare",
    "read_comparison",
    "read_spec",
    "refuse_code",
    "report_of_runs",
    "run",
    "run_comparison",
    "write_spec",
]

if TYPE_CHECKING:
    from equipoise.core.splits import HISTORIES
    from equipoise.experiments.comparison import ComparisonResult, run_comparison
    from equipoise.experiments.comparison_spec import ComparisonSpec, read_comparison
    from equipoise.experiments.engines import RunSummary
    from equipoise.experiments.execution import Execution
    from equipoise.experiments.finding_runs import find_runs
    from equipoise.experiments.folder import RunFolder
    from equipoise.experiments.formatting import format_table, format_tables
    from equipoise.experiments.from_objects import compare_methods
    from equipoise.experiments.paper_results import PaperResult, find_paper_results
    from equipoise.experiments.preparation import code_files, prepare, refuse_code
    from equipoise.experiments.run_groups import RunGroup, group_runs
    from equipoise.experiments.run_plots import NEEDS_NO_RUNS, PLOTS, PlotOptions, plot_runs
    from equipoise.experiments.run_report import report_of_runs
    from equipoise.experiments.scores import RunScores
    from equipoise.experiments.seeds import SeedComparison, compare_seeds
    from equipoise.experiments.shift_scores import format_shifts
    from equipoise.experiments.single_run import RunOptions, run
    from equipoise.experiments.spec import (
        DataSpec,
        MethodSpec,
        ModelSpec,
        RecipeSpec,
        Spec,
        read_spec,
        write_spec,
    )
    from equipoise.experiments.table import ResultTable, make_tables
else:
    # The catalogue and specs are read without torch; what trains is loaded when it is used.
    __getattr__, __dir__ = _lazy_names(
        __name__,
        {
            "ComparisonResult": "equipoise.experiments.comparison",
            "ComparisonSpec": "equipoise.experiments.comparison_spec",
            "DataSpec": "equipoise.experiments.spec",
            "HISTORIES": "equipoise.core.splits",
            "MethodSpec": "equipoise.experiments.spec",
            "ModelSpec": "equipoise.experiments.spec",
            "NEEDS_NO_RUNS": "equipoise.experiments.run_plots",
            "PLOTS": "equipoise.experiments.run_plots",
            "PlotOptions": "equipoise.experiments.run_plots",
            "PaperResult": "equipoise.experiments.paper_results",
            "RecipeSpec": "equipoise.experiments.spec",
            "ResultTable": "equipoise.experiments.table",
            "RunFolder": "equipoise.experiments.folder",
            "RunGroup": "equipoise.experiments.run_groups",
            "Execution": "equipoise.experiments.execution",
            "RunOptions": "equipoise.experiments.single_run",
            "RunScores": "equipoise.experiments.scores",
            "RunSummary": "equipoise.experiments.engines",
            "SeedComparison": "equipoise.experiments.seeds",
            "Spec": "equipoise.experiments.spec",
            "code_files": "equipoise.experiments.preparation",
            "compare_methods": "equipoise.experiments.from_objects",
            "compare_seeds": "equipoise.experiments.seeds",
            "find_paper_results": "equipoise.experiments.paper_results",
            "find_runs": "equipoise.experiments.finding_runs",
            "format_shifts": "equipoise.experiments.shift_scores",
            "format_table": "equipoise.experiments.formatting",
            "format_tables": "equipoise.experiments.formatting",
            "group_runs": "equipoise.experiments.run_groups",
            "make_tables": "equipoise.experiments.table",
            "plot_runs": "equipoise.experiments.run_plots",
            "prepare": "equipoise.experiments.preparation",
            "read_comparison": "equipoise.experiments.comparison_spec",
            "read_spec": "equipoise.experiments.spec",
            "refuse_code": "equipoise.experiments.preparation",
            "report_of_runs": "equipoise.experiments.run_report",
            "run": "equipoise.experiments.single_run",
            "run_comparison": "equipoise.experiments.comparison",
            "write_spec": "equipoise.experiments.spec",
        },
    )
