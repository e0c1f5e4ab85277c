"""Specs, the catalogue, run folders and engines."""

from typing import TYPE_CHECKING

from equipoise.core.lazy import lazy_names as _lazy_names

__all__ = [
    "HISTORIES",
    "NEEDS_NO_RUNS",
    "PLOTS",
    "ComparisonResult",
    "ComparisonSpec",
    "Component",
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
    "RunScores",
    "RunSummary",
    "ScoringOptions",
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
    from equipoise.experiments.build.preparation import code_files, prepare, refuse_code
    from equipoise.experiments.code.component import Component
    from equipoise.experiments.comparison import ComparisonResult, run_comparison
    from equipoise.experiments.engines import RunSummary
    from equipoise.experiments.from_objects import compare_methods
    from equipoise.experiments.results.figures import NEEDS_NO_RUNS, PLOTS, PlotOptions, plot_runs
    from equipoise.experiments.results.formatting import format_table, format_tables
    from equipoise.experiments.results.groups import RunGroup, group_runs
    from equipoise.experiments.results.papers import PaperResult, find_paper_results
    from equipoise.experiments.results.report import report_of_runs
    from equipoise.experiments.results.seed_comparison import SeedComparison, compare_seeds
    from equipoise.experiments.results.shift import format_shifts
    from equipoise.experiments.results.tables import ResultTable, make_tables
    from equipoise.experiments.runs.finding import find_runs
    from equipoise.experiments.runs.folder import RunFolder
    from equipoise.experiments.runs.scores import RunScores
    from equipoise.experiments.runs.stages import run
    from equipoise.experiments.specs.comparison import ComparisonSpec, read_comparison
    from equipoise.experiments.specs.execution import Execution
    from equipoise.experiments.specs.run import (
        DataSpec,
        MethodSpec,
        ModelSpec,
        RecipeSpec,
        Spec,
        read_spec,
        write_spec,
    )
    from equipoise.experiments.specs.scoring import ScoringOptions
else:
    # The catalogue and specs are read without torch; what trains is loaded when it is used.
    __getattr__, __dir__ = _lazy_names(
        __name__,
        {
            "ComparisonResult": "equipoise.experiments.comparison",
            "ComparisonSpec": "equipoise.experiments.specs.comparison",
            "DataSpec": "equipoise.experiments.specs.run",
            "HISTORIES": "equipoise.core.splits",
            "MethodSpec": "equipoise.experiments.specs.run",
            "ModelSpec": "equipoise.experiments.specs.run",
            "NEEDS_NO_RUNS": "equipoise.experiments.results.figures",
            "PLOTS": "equipoise.experiments.results.figures",
            "PlotOptions": "equipoise.experiments.results.figures",
            "PaperResult": "equipoise.experiments.results.papers",
            "RecipeSpec": "equipoise.experiments.specs.run",
            "ResultTable": "equipoise.experiments.results.tables",
            "RunFolder": "equipoise.experiments.runs.folder",
            "RunGroup": "equipoise.experiments.results.groups",
            "Execution": "equipoise.experiments.specs.execution",
            "ScoringOptions": "equipoise.experiments.specs.scoring",
            "Component": "equipoise.experiments.code.component",
            "RunScores": "equipoise.experiments.runs.scores",
            "RunSummary": "equipoise.experiments.engines",
            "SeedComparison": "equipoise.experiments.results.seed_comparison",
            "Spec": "equipoise.experiments.specs.run",
            "code_files": "equipoise.experiments.build.preparation",
            "compare_methods": "equipoise.experiments.from_objects",
            "compare_seeds": "equipoise.experiments.results.seed_comparison",
            "find_paper_results": "equipoise.experiments.results.papers",
            "find_runs": "equipoise.experiments.runs.finding",
            "format_shifts": "equipoise.experiments.results.shift",
            "format_table": "equipoise.experiments.results.formatting",
            "format_tables": "equipoise.experiments.results.formatting",
            "group_runs": "equipoise.experiments.results.groups",
            "make_tables": "equipoise.experiments.results.tables",
            "plot_runs": "equipoise.experiments.results.figures",
            "prepare": "equipoise.experiments.build.preparation",
            "read_comparison": "equipoise.experiments.specs.comparison",
            "read_spec": "equipoise.experiments.specs.run",
            "refuse_code": "equipoise.experiments.build.preparation",
            "report_of_runs": "equipoise.experiments.results.report",
            "run": "equipoise.experiments.runs.stages",
            "run_comparison": "equipoise.experiments.comparison",
            "write_spec": "equipoise.experiments.specs.run",
        },
    )
