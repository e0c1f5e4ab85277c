"""``equipoise plot``: figures of runs."""

from __future__ import annotations

import io
from pathlib import Path

import click

from equipoise.cli.options import quiet_option
from equipoise.cli.output import check_output
from equipoise.core.atomic_files import write_bytes
from equipoise.core.choices import MOST_BINS
from equipoise.core.errors import DataError
from equipoise.experiments import NEEDS_NO_RUNS, PLOTS, PlotOptions, plot_runs

__all__ = ["command"]

_ENDINGS = (".svg", ".png", ".pdf")


@click.command("plot", epilog="Example:  equipoise plot reliability runs -o reliability.svg")
@click.argument("kind", metavar="KIND", type=click.Choice(sorted({**PLOTS, **NEEDS_NO_RUNS})))
@click.argument("runs", nargs=-1, type=click.Path(path_type=Path))
@click.option(
    "--output",
    "-o",
    type=click.Path(path_type=Path),
    help="Where to write: .svg, .png or .pdf; by default KIND.svg.",
)
@click.option("--metric", default="ece", show_default=True, help="Metric to draw.")
@click.option("--calibrator", help="Draw results after this calibrator.")
@click.option("--column", help="history: a column; multipliers: the learned quantity.")
@click.option("--smooth", type=click.IntRange(min=1), default=1, help="history: epochs of a moving average.")
@click.option(
    "--ema",
    type=click.FloatRange(min=0, max=1, max_open=True),
    default=0.0,
    help="history: decay of an exponential moving average, such as 0.9.",
)
@click.option(
    "--bins",
    "n_bins",
    type=click.IntRange(1, MOST_BINS),
    help="Score the runs anew with so many bins; by default those they were scored with.",
)
@click.option("--parameter", help="hyperparameter: its name, such as gamma.")
@click.option("--corruption", "family", help="shift: which corruption; by default all.")
@click.option("--gamma", default=1.0, show_default=True, help="phi: the focusing parameter.")
@click.option(
    "--rival",
    "rivals",
    type=click.FloatRange(0, 0.5),
    multiple=True,
    default=(0.3,),
    show_default=True,
    help="phi: probability of the rival; may be repeated.",
)
@quiet_option
def command(
    kind: str,
    runs: tuple[Path, ...],
    output: Path | None,
    metric: str,
    calibrator: str | None,
    column: str | None,
    smooth: int,
    ema: float,
    n_bins: int | None,
    parameter: str | None,
    family: str | None,
    gamma: float,
    rivals: tuple[float, ...],
    quiet: bool,
) -> None:
    """Draw a KIND of figure of the finished runs in folders RUNS; one file per dataset and network.

    KIND is bars, confidence, gammas, history, hyperparameter, logits, multipliers, reliability, rivals, shift,
    sweep or tradeoff; or a figure of theory, which needs no runs: penalties or phi.
    """
    if (kind in NEEDS_NO_RUNS) == bool(runs):
        raise click.UsageError(
            f"{kind} {'takes no runs. Leave them out.' if runs else 'needs a folder of runs.'}"
        )
    target = output or Path(f"{kind}.svg")
    check_output(target, _ENDINGS)
    from equipoise.experiments import find_runs

    found = [run for folder in runs for run in find_runs(folder) if run.status() == "finished"]
    if runs and not found:
        raise DataError(
            f"plot: no finished run in {', '.join(map(str, runs))}. `equipoise runs` lists the runs."
        )
    options = PlotOptions(
        metric=metric,
        calibrator=calibrator,
        column=column,
        smooth=smooth,
        ema=ema,
        n_bins=n_bins,
        parameter=parameter,
        family=family,
        gamma=gamma,
        rivals=rivals,
    )
    from equipoise.plots.style import own_settings

    with own_settings():
        figures = plot_runs(kind, found, options)
        for name, figure in figures.items():
            path = target if len(figures) == 1 else target.with_name(f"{target.stem}-{name}{target.suffix}")
            ending = path.suffix.lower()[1:]
            metadata = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(ending)
            # In memory: some writers raise other errors if the disk is full.
            content = io.BytesIO()
            figure.savefig(content, dpi=150, format=ending, metadata=metadata)
            write_bytes(path, content.getvalue())
            if not quiet:
                click.echo(str(path))
