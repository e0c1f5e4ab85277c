"""``equipoise compare``: methods, networks, data and seeds from one file, and the table of them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from equipoise.cli.options import TrainingRequest, margin_option, style_option, training_options
from equipoise.cli.output import print_json, terminal_width
from equipoise.cli.save import usage_of_runs

if TYPE_CHECKING:
    from equipoise.experiments import ComparisonResult

__all__ = ["command", "print_result"]


class _Part(click.ParamType):  # type: ignore[type-arg]
    """``i/n``: the i-th of n parts."""

    name = "i/n"

    def convert(
        self, value: Any, param: click.Parameter | None, context: click.Context | None
    ) -> tuple[int, int]:
        """Return both numbers."""
        if isinstance(value, tuple):
            return value
        number, _, total = str(value).partition("/")
        if not (number.isdecimal() and total.isdecimal() and 1 <= int(number) <= int(total)):
            self.fail(f"expected i/n with i from 1 to n, such as 2/8, got {value!r}.", param, context)
        return int(number), int(total)


@click.command("compare", epilog="Example:  equipoise compare examples/specs/digits.toml --workers 2")
@click.argument("comparison", type=click.Path(path_type=Path))
@click.option("--engine", type=click.Choice(["local", "ray"]), default="local", show_default=True)
@click.option(
    "--workers", type=click.IntRange(min=1), help="Processes on this machine; by default one per core."
)
@click.option(
    "--part",
    type=_Part(),
    help="Do the i-th of n parts of the runs, counted from 1: for job arrays of Slurm and other schedulers.",
)
@click.option("--address", help="Ray cluster; 'auto' for the one this machine belongs to.")
@click.option(
    "--rehearse",
    is_flag=True,
    help="Try the comparison in minutes, on made-up data of the same shape; run folders go to OUT-rehearsal.",
)
@style_option
@margin_option
@training_options
def command(
    comparison: Path,
    engine: str,
    workers: int | None,
    part: tuple[int, int] | None,
    address: str | None,
    rehearse: bool,
    style: str,
    margins: tuple[tuple[str, float], ...],
    request: TrainingRequest,
) -> int:
    """Run methods x networks x data x seeds from one file, and print the table; finished runs are not repeated."""
    if engine != "ray" and address is not None:
        raise click.UsageError("--address needs --engine ray.")
    if engine == "ray" and workers is not None:
        raise click.UsageError("--workers needs --engine local; with ray, --threads sets the cores of a run.")
    from equipoise.experiments import read_comparison, run_comparison

    plan = read_comparison(comparison, overrides=request.overrides, rehearse=rehearse)
    if rehearse:
        request = request._replace(out=request.out.with_name(f"{request.out.name}-rehearsal"))
        if not request.quiet:
            click.echo("rehearsal on made-up data: the scores mean nothing", err=True)
    request.announce_code(plan.specs, plan.extra_code, str(comparison))
    result = run_comparison(
        plan,
        request.out,
        scoring=request.scoring,
        execution=request.execution,
        engine=engine,
        workers=workers,
        address=address,
        margins=dict(margins),
        part=part,
    )
    if part is not None and not result.tables:
        return _print_part(result, part, str(comparison), request)
    return print_result(result, style=style, as_json=request.as_json, quiet=request.quiet)


def _print_part(result: ComparisonResult, part: tuple[int, int], where: str, request: TrainingRequest) -> int:
    """Print what a part of a comparison did; the tables follow when all runs are there."""
    number, total = part
    summary = result.summary
    if request.as_json:
        runs = [run.name for run in summary.done]
        print_json({"part": f"{number}/{total}", "runs": runs, "failed": summary.failed, "left": result.left})
    else:
        click.echo(
            f"part {number}/{total}: {len(summary.done)} runs done, {len(summary.failed)} failed; {result.left} runs "
            "of the comparison are left"
        )
        if not request.quiet:
            click.echo(f"\nwhen all parts are done: equipoise compare {where} --out {request.out}")
    return 0 if summary.is_whole else 1


def print_result(result: ComparisonResult, *, style: str, as_json: bool, quiet: bool) -> int:
    """Print tables and what failed; return 1 if anything did."""
    from equipoise.experiments import format_shifts, format_tables

    if as_json:
        print_json(
            {
                "results": str(result.results),
                "failed": result.summary.failed,
                "rows": result.rows,
                "table": [row for table in result.tables for row in table.records()],
                "differences": [row for table in result.tables for row in table.difference_records()],
            }
        )
    else:
        click.echo(format_tables(result.tables, style, width=terminal_width()))
        shifted = "" if style == "csv" else format_shifts(result.groups, style, width=terminal_width())
        if shifted:
            click.echo(f"\n{shifted}")
        if not quiet:
            click.echo(f"\nresults: {result.results}")
            if result.summary.done:
                first = result.summary.done[0]
                spec = first.spec()
                click.echo(usage_of_runs(first.path.parent, method=spec.method.label, seed=spec.seed))
    failed = result.summary.failed
    if quiet or as_json:  # otherwise failures were printed when they happened
        for label, sentence in failed.items():
            click.echo(f"equipoise: {label}: {sentence}", err=True)
    elif failed:
        n_runs = len(failed) + len(result.summary.done)
        click.echo(f"equipoise: {len(failed)} of {n_runs} runs failed; see above.", err=True)
    return 0 if result.summary.is_whole else 1
