"""``equipoise demo``: the main job on embedded data."""

from __future__ import annotations

from importlib.resources import as_file, files
from pathlib import Path

import click

from equipoise.cli.compare import print_result
from equipoise.cli.options import json_option, quiet_option

__all__ = ["command"]


@click.command("demo", epilog="Example:  equipoise demo")
@click.option(
    "--out", default="runs/demo", show_default=True, type=click.Path(path_type=Path), help="Run folders."
)
@click.option(
    "--set", "overrides", multiple=True, metavar="KEY=VALUE", help="Override a key of the demo's comparison."
)
@json_option
@quiet_option
def command(out: Path, overrides: tuple[str, ...], as_json: bool, quiet: bool) -> int:
    """Train five methods with five seeds on embedded data, calibrate, print the table and write a report."""
    from equipoise.experiments import Execution, read_comparison, report_of_runs, run_comparison
    from equipoise.experiments.engines.local import usable_cores
    from equipoise.report import write_report

    with as_file(files("equipoise").joinpath("data", "embedded", "demo.toml")) as path:
        comparison = read_comparison(path, overrides=overrides)
    if not (quiet or as_json):
        click.echo(
            f"{len(comparison.specs)} runs of a small network on noisy handwritten digits, "
            f"{min(usable_cores(), len(comparison.specs))} at a time; finished runs are saved in {out}.\n",
            err=True,
        )
    result = run_comparison(comparison, out, execution=Execution(keep_memory=True, quiet=quiet or as_json))
    code = print_result(result, style="text", as_json=as_json, quiet=quiet)
    if result.summary.is_whole and not as_json:
        reports = report_of_runs(result.summary.done, tables=result.tables)
        for name, report in reports.items():
            target = out / ("report.html" if len(reports) == 1 else f"report-{name}.html")
            write_report(report, target)
            click.echo(f"report:  {target}")
    return code
