"""``equipoise train`` and ``equipoise compare``: runs from a file."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import click

from equipoise.cli.limits import equivalence_option
from equipoise.cli.save import use_of_runs
from equipoise.cli.shared import json_option, print_json, quiet_option, verify_option
from equipoise.cli.tables import print_table, terminal_width
from equipoise.experiments import HISTORIES

if TYPE_CHECKING:
    from equipoise.experiments import ComparisonResult, Component, Execution, ScoringOptions, Spec

__all__ = ["compare_command", "print_result", "train_command"]

#: So many metrics are shown of a run when it is done.
_MOST_SHOWN = 6
F = TypeVar("F", bound=Callable[..., Any])


class _Asked(NamedTuple):
    """What training and comparing are both told.

    Attributes:
        out: Where run folders are.
        overrides: Keys of the file that have other values.
        no_code: Whether a file that names code is refused.
        scoring: How runs are scored.
        execution: How runs are executed.
        as_json: Whether results are printed for machines,
        quiet: or alone.
    """

    out: Path
    overrides: tuple[str, ...]
    no_code: bool
    scoring: ScoringOptions
    execution: Execution
    as_json: bool
    quiet: bool


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


def _run_options(function: F) -> F:
    """Add the options that training and comparing share; the command gets them as one argument ``asked``."""

    @wraps(function)
    def command(
        *args: Any,
        out: Path,
        root: str | None,
        download: bool,
        overrides: tuple[str, ...],
        threads: int,
        accelerator: str,
        devices: int | None,
        nodes: int | None,
        strategy: str | None,
        compile: bool | None,
        loader_workers: int | None,
        precision: str | None,
        sync_batchnorm: bool | None,
        keep_memory: bool,
        resamples: int,
        no_code: bool,
        verify: bool,
        as_json: bool,
        quiet: bool,
        **others: Any,
    ) -> Any:
        from equipoise.experiments import Execution, ScoringOptions

        execution = Execution(
            accelerator=None if accelerator == "auto" else accelerator,
            devices=devices,
            nodes=nodes,
            strategy=strategy,
            compile=compile,
            loader_workers=loader_workers,
            root=root,
            download=download,
            threads=threads,
            keep_memory=keep_memory,
            verify=verify,
            quiet=quiet or as_json,
        )
        recipe = {"precision": precision and json.dumps(precision), "sync_batchnorm": sync_batchnorm}
        overrides += tuple(
            f"recipe.{key}={str(value).lower() if isinstance(value, bool) else value}"
            for key, value in recipe.items()
            if value is not None
        )
        scoring = ScoringOptions(n_resamples=resamples)
        asked = _Asked(out, overrides, no_code, scoring, execution, as_json, quiet)
        return function(*args, asked=asked, **others)

    described: Any = command
    for option in reversed(
        (
            click.option(
                "--out",
                default="runs",
                show_default=True,
                type=click.Path(path_type=Path),
                help="Run folders.",
            ),
            click.option("--data", "root", type=click.Path(), help="Data folder; else EQUIPOISE_DATA."),
            click.option("--download", is_flag=True, help="Bring official files that are missing."),
            click.option(
                "--set",
                "overrides",
                multiple=True,
                metavar="KEY=VALUE",
                help="Override a key, e.g. recipe.epochs=5.",
            ),
            click.option(
                "--threads",
                type=click.IntRange(min=0),
                default=0,
                help="Threads per run; by default the cores are shared out.",
            ),
            click.option("--accelerator", default="auto", show_default=True, help="cpu, cuda, mps ..."),
            click.option(
                "--devices",
                type=click.IntRange(min=1),
                help="Devices, and so processes, of each run on a machine; under torchrun leave it out.",
            ),
            click.option("--nodes", type=click.IntRange(min=1), help="Machines of one run."),
            click.option("--strategy", help="How processes share a run: ddp ... (Lightning Fabric's names)."),
            click.option("--precision", help="32-true, bf16-mixed, 64-true ...; part of a run's identity."),
            click.option("--compile/--no-compile", default=None, help="Train through torch.compile."),
            click.option(
                "--loader-workers",
                type=click.IntRange(min=0),
                help="Processes that read images from disk, for each process of a run.",
            ),
            click.option(
                "--sync-batchnorm/--no-sync-batchnorm",
                default=None,
                help="Batch norm over all processes (the default), or in each; part of a run's identity.",
            ),
            click.option(
                "--keep-memory/--no-keep-memory",
                default=True,
                show_default=True,
                help="Keep what a step has freed for the next: faster on a CPU, and the peak is held to the end.",
            ),
            click.option("--resamples", default=1000, show_default=True, help="Resamples behind intervals."),
            click.option("--no-code", is_flag=True, help="Refuse a file that names code to run."),
            verify_option,
            json_option,
            quiet_option,
        )
    ):
        described = option(described)
    result: F = described
    return result


def _announce_code(
    specs: Sequence[Spec], extra: Mapping[str, Sequence[Component]], where: str, asked: _Asked
) -> None:
    """Print which files will be run before any is; or refuse them."""
    from equipoise.experiments import code_files, refuse_code
    from equipoise.training.processes import is_first_process

    if asked.no_code:
        refuse_code(specs, where=where, extra=extra)
    files = code_files(specs, where=where, extra=extra)
    if files and not asked.quiet and is_first_process():
        click.echo(f"{where} runs code: {', '.join(map(_near, files))}", err=True)


def _near(file: Path) -> str:
    here = Path.cwd()
    return str(file.relative_to(here) if file.is_relative_to(here) else file)


@click.command("train", epilog="Example:  equipoise train run.toml --set recipe.epochs=5")
@click.argument("spec", type=click.Path(path_type=Path))
@click.option("--calibrator", "calibrators", multiple=True, default=("temperature",), show_default=True)
@click.option(
    "--history",
    type=click.Choice(HISTORIES),
    default="tune",
    show_default=True,
    help="test: score it after every epoch too, for curves; nothing is chosen by it.",
)
@_run_options
def train_command(
    spec: Path,
    calibrators: tuple[str, ...],
    history: str,
    asked: _Asked,
) -> None:
    """Train, predict and score one run, or go on where it stopped."""
    from equipoise.experiments import RunFolder, prepare, read_spec, run
    from equipoise.experiments.specs.calibrators import parse_calibrator
    from equipoise.metrics.facts import columns
    from equipoise.training.processes import is_first_process

    wanted = read_spec(spec, overrides=asked.overrides)
    chosen = [
        parse_calibrator(name, where="--calibrator") for name in dict.fromkeys(("identity", *calibrators))
    ]
    own = {"calibrator": [one for one in chosen if one.is_code]}
    _announce_code([wanted], own, str(spec), asked)
    scoring = replace(asked.scoring, calibrators=chosen, history=history)
    [wanted] = prepare([wanted], where=str(spec), execution=asked.execution, scoring=scoring)
    is_finished = RunFolder(asked.out / wanted.identity).is_finished()
    if is_finished and not asked.execution.quiet and is_first_process():
        click.echo(f"already finished: {wanted.label}", err=True)
    folder = run(wanted, asked.out, scoring=scoring, execution=asked.execution)
    if not is_first_process():
        return
    if asked.as_json:
        print_json(
            {"name": wanted.name, "run": folder.name, "path": str(folder.path), "scores": folder.rows()}
        )
        return
    shown = columns()[:_MOST_SHOWN]
    rows = [row for row in folder.rows() if row["split"] == "test" and row["metric"] in shown]
    print_table(("calibrator", "metric", "value", "interval"), [_cells(row) for row in rows])
    if not asked.quiet:
        named = f"{wanted.name}: {folder.path}" if wanted.name else str(folder.path)
        click.echo(f"\n{named}\n{use_of_runs(folder.path)}")


def _cells(row: Mapping[str, Any]) -> tuple[str, ...]:
    """Return a score as it is shown, by its name and in its unit."""
    from equipoise.metrics.facts import metric_facts

    facts = metric_facts(row["metric"])
    ends = ", ".join(facts.number(row[end]) for end in ("low", "high"))
    return row["calibrator"], facts.title, facts.text(row["value"]), f"[{ends}]"


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
@click.option("--format", "style", type=click.Choice(["text", "markdown", "latex", "csv"]), default="text")
@equivalence_option
@_run_options
def compare_command(
    comparison: Path,
    engine: str,
    workers: int | None,
    part: tuple[int, int] | None,
    address: str | None,
    style: str,
    margins: tuple[tuple[str, float], ...],
    asked: _Asked,
) -> int:
    """Run methods x networks x data x seeds from one file, and print the table; finished runs are not repeated."""
    if engine != "ray" and address is not None:
        raise click.UsageError("--address goes with --engine ray.")
    if engine == "ray" and workers is not None:
        raise click.UsageError(
            "--workers goes with --engine local; --threads says what a run asks of a cluster."
        )
    from equipoise.experiments import read_comparison, run_comparison

    wanted = read_comparison(comparison, overrides=asked.overrides)
    _announce_code(wanted.specs, wanted.extra_code, str(comparison), asked)
    result = run_comparison(
        wanted,
        asked.out,
        scoring=asked.scoring,
        execution=asked.execution,
        engine=engine,
        workers=workers,
        address=address,
        margins=dict(margins),
        part=part,
    )
    if part is not None and not result.tables:
        return _print_part(result, part, str(comparison), asked)
    return print_result(result, style=style, as_json=asked.as_json, quiet=asked.quiet)


def _print_part(result: ComparisonResult, part: tuple[int, int], where: str, asked: _Asked) -> int:
    """Print what a part of a comparison did; the tables follow when all runs are there."""
    number, total = part
    summary = result.summary
    if asked.as_json:
        runs = [run.name for run in summary.done]
        print_json({"part": f"{number}/{total}", "runs": runs, "failed": summary.failed, "left": result.left})
    else:
        click.echo(
            f"part {number}/{total}: {len(summary.done)} runs done, {len(summary.failed)} failed; {result.left} runs "
            "of the comparison are left"
        )
        if not asked.quiet:
            click.echo(f"\nwhen all parts are done: equipoise compare {where} --out {asked.out}")
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
        further = "" if style == "csv" else format_shifts(result.groups, style, width=terminal_width())
        if further:
            click.echo(f"\n{further}")
        if not quiet:
            click.echo(f"\nresults: {result.results}")
            if result.summary.done:
                first = result.summary.done[0]
                spec = first.spec()
                click.echo(use_of_runs(first.path.parent, method=spec.method.label, seed=spec.seed))
    failed = result.summary.failed
    if quiet or as_json:  # else they were told when they happened
        for label, sentence in failed.items():
            click.echo(f"equipoise: {label}: {sentence}", err=True)
    elif failed:
        n_runs = len(failed) + len(result.summary.done)
        click.echo(f"equipoise: {len(failed)} of {n_runs} runs failed, as said above.", err=True)
    return 0 if result.summary.is_whole else 1
