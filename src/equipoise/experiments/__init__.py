"""Specs, the catalogue, run folders and engines."""

from equipoise.experiments.catalogue import CATALOGUE, Entry
from equipoise.experiments.comparing import Outcome, run_comparison
from equipoise.experiments.comparison import Comparison, read_comparison
from equipoise.experiments.folder import RunFolder, find_runs
from equipoise.experiments.formatting import format_table, format_tables
from equipoise.experiments.published import Published, find_published
from equipoise.experiments.run import RunOptions, run
from equipoise.experiments.spec import Spec, read_spec, write_spec
from equipoise.experiments.table import Table, make_tables

__all__ = [
    "CATALOGUE",
    "Comparison",
    "Entry",
    "Outcome",
    "Published",
    "RunFolder",
    "RunOptions",
    "Spec",
    "Table",
    "find_published",
    "find_runs",
    "format_table",
    "format_tables",
    "make_tables",
    "read_comparison",
    "read_spec",
    "run",
    "run_comparison",
    "write_spec",
]
