"""``equipoise auto``: the best calibrated model within a budget, by one command."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from equipoise.cli.inputs import column_options, one_or_several
from equipoise.cli.options import FRACTION, json_option, quiet_option
from equipoise.cli.output import print_json

if TYPE_CHECKING:
    from equipoise.core.reading import Columns
    from equipoise.integrations.auto import AutoResult

__all__ = ["command", "print_answer"]

_EXAMPLES = """\b
Examples:
  equipoise auto data.npz --model small_cnn --budget 30m -o model
  equipoise auto table.csv --model sklearn:HistGradientBoostingClassifier --budget 5 -o model
  equipoise auto predictions.npz -o model
"""


@click.command("auto", epilog=_EXAMPLES)
@click.argument("data", nargs=-1, required=True, metavar="DATA")
@click.option(
    "--model",
    metavar="NAME",
    help="A network of `equipoise list models`, code, or sklearn:CLASS. Without it, DATA are predictions, and only a "
    "calibrator is chosen.",
)
@click.option(
    "--budget", metavar="BUDGET", help="Trainings (5) or time (90s, 30m, 2h); 5 trainings by default."
)
@click.option("--output", "-o", required=True, type=click.Path(path_type=Path), help="Folder of the answer.")
@click.option(
    "--recipe",
    metavar="NAME",
    help="How networks are trained; by default a quick recipe for the kind of data.",
)
@click.option(
    "--set",
    "overrides",
    multiple=True,
    metavar="KEY=VALUE",
    help="Set a key of the spec, e.g. recipe.epochs=5.",
)
@click.option(
    "--level",
    default=0.95,
    type=FRACTION,
    show_default=True,
    help="Level of the test against cross-entropy + temperature.",
)
@click.option("--engine", type=click.Choice(["local", "ray"]), default="local", show_default=True)
@click.option("--workers", type=click.IntRange(min=1), help="Processes on this machine; one per core.")
@click.option("--address", help="Ray cluster; 'auto' for the one this machine belongs to.")
@click.option("--data", "root", type=click.Path(), help="Data folder; else EQUIPOISE_DATA.")
@click.option("--download", is_flag=True, help="Download official files that are missing.")
@click.option("--threads", type=click.IntRange(min=0), default=0, help="Threads per training.")
@click.option("--accelerator", default="auto", show_default=True, help="cpu, cuda, mps ...")
@column_options
@json_option
@quiet_option
def command(
    data: tuple[str, ...],
    model: str | None,
    budget: str | None,
    output: Path,
    recipe: str | None,
    overrides: tuple[str, ...],
    level: float,
    engine: str,
    workers: int | None,
    address: str | None,
    root: str | None,
    download: bool,
    threads: int,
    accelerator: str,
    columns: Columns,
    as_json: bool,
    quiet: bool,
) -> None:
    """Find the best calibrated model within a budget: trained, calibrated, tested, with a report.

    DATA is a file of inputs and labels (.npz with x and y; .csv or .parquet with a column `label`), a dataset of the
    catalogue, or a spec (.toml) with method = "auto". Cross-entropy, EMA, an ensemble, richer calibrators, losses and
    augmentation are tried in this order. Each is scored by NLL on held-out rows, after calibration. Another candidate
    replaces cross-entropy + temperature only if it is significantly better in a paired test on held-out rows. Run the
    same command again to continue after an interruption, or with a larger budget to try more.
    """
    if address is not None and engine != "ray":
        raise click.UsageError("--address needs --engine ray.")
    from equipoise.integrations.auto import auto

    if model is None and not data[0].endswith(".toml"):
        for option, value in (("--budget", budget), ("--recipe", recipe), ("--set", overrides)):
            if value:
                raise click.UsageError(f"{option} is for trainings: name a network with --model.")
        found = auto(_predictions(data, columns), folder=output, level=level, quiet=quiet or as_json)
    else:
        from equipoise.experiments import Execution
        from equipoise.experiments.specs.toml import parse_override

        if len(data) > 1:
            raise click.UsageError(f"expected one DATA to train on, got {len(data)}.")
        if columns:
            raise click.UsageError(
                f"the option for {next(iter(columns))} describes predictions, and --model trains. Leave one out."
            )
        found = auto(
            data[0],
            model,
            budget=budget,
            folder=output,
            recipe=recipe,
            overrides=[parse_override(one) for one in overrides],
            level=level,
            engine=engine,
            workers=workers,
            address=address,
            execution=Execution(
                accelerator=None if accelerator == "auto" else accelerator,
                root=root,
                download=download,
                threads=threads,
                quiet=True,
            ),
            quiet=quiet or as_json,
        )
    print_answer(found, as_json=as_json, quiet=quiet)


def _predictions(files: tuple[str, ...], columns: Columns) -> object:
    """Return what to calibrate: files are read here, because options describe their columns."""
    from equipoise.core.reading import read_predictions
    from equipoise.integrations.auto import check_predictions

    for file in files:
        check_predictions(file)
    return read_predictions(one_or_several(files), **columns)


def print_answer(found: AutoResult, *, as_json: bool, quiet: bool) -> None:
    """Print everything tried, the statement, and how to use the answer."""
    if as_json:
        print_json(found.as_dict())
        return
    if not quiet:
        click.echo(f"{found.test.table().to_text()}\n")
    click.echo(found.statement)
    if not quiet:
        click.echo(f"\nWrote {found.artifact} and {found.folder / 'report.html'}.\n{_usage(found.artifact)}")


def _usage(artifact: Path) -> str:
    if artifact.suffix == ".json":
        return f"Use it:  equipoise apply {artifact} FILE"
    if artifact.suffix == ".joblib":
        return f'Use it:  joblib.load("{artifact}").predict_proba(inputs)'
    if artifact.suffix == ".onnx":
        return f"Use it:  onnxruntime.InferenceSession({str(artifact)!r})"
    return (
        f'Use it:  equipoise.load_model("{artifact}").predict_proba(inputs)\n'
        f"    or:  equipoise export {artifact} -o model.onnx"
    )
