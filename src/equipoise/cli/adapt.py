"""``equipoise adapt``: a calibrator for other class frequencies."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from equipoise.cli.inputs import column_options
from equipoise.cli.options import json_option, quiet_option
from equipoise.cli.output import check_output, print_json
from equipoise.core.errors import DataError

if TYPE_CHECKING:
    from equipoise.calibrators import PriorShift
    from equipoise.core.reading import Columns

__all__ = ["command"]

_EXAMPLES = """\b
Examples:
  equipoise adapt calibrator.json --priors priors.json -o adapted.json
  equipoise adapt calibrator.json --unlabelled today.npz --reference calib.npz -o adapted.json
"""
_PRIORS = "a JSON list with one number per class, or a table of class names (or numbers from 0) and numbers"


@click.command("adapt", epilog=_EXAMPLES)
@click.argument("calibrator", type=click.Path(path_type=Path))
@click.option(
    "--output", "-o", required=True, type=click.Path(path_type=Path), help="Where the adapted one goes."
)
@click.option(
    "--priors",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help=f"The new class frequencies: {_PRIORS}.",
)
@click.option(
    "--trained-priors",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="The old class frequencies, in the same form; by default those of the rows that CALIBRATOR was fitted on. To "
    "undo resampling or class weights, the frequencies as training counted them.",
)
@click.option(
    "--unlabelled",
    metavar="FILE",
    help="Estimate the new class frequencies from these predictions, which CALIBRATOR was not applied to yet. Labels "
    "are not needed; those that are there are compared with the result.",
)
@click.option(
    "--reference",
    metavar="FILE",
    help="Labeled predictions with the old frequencies, such as those that CALIBRATOR was fitted on. They correct the "
    "estimate of --unlabelled, and its interval then contains the calibrator's own error.",
)
@click.option("--seed", default=0, show_default=True, help="Random seed for the bootstrap interval.")
@column_options
@json_option
@quiet_option
def command(
    calibrator: Path,
    output: Path,
    priors: Path | None,
    trained_priors: Path | None,
    unlabelled: str | None,
    reference: str | None,
    seed: int,
    columns: Columns,
    as_json: bool,
    quiet: bool,
) -> None:
    """Adapt CALIBRATOR to other class frequencies, and save it.

    The new frequencies are known (--priors) or estimated from rows without labels (--unlabelled), with a 95% interval.
    Only frequencies may have changed: within each class, inputs must be distributed as before. If no change is shown,
    probabilities stay as they are. `equipoise apply` uses the adapted calibrator like any other.
    """
    if (priors is None) == (unlabelled is None):
        raise click.UsageError("adapt: expected either --priors or --unlabelled.")
    if reference is not None and unlabelled is None:
        raise click.UsageError("--reference needs --unlabelled.")
    if reference is not None and trained_priors is not None:
        raise click.UsageError(
            "--reference has the old frequencies; give either --reference or --trained-priors."
        )
    check_output(output, (".json", ".safetensors"))
    from equipoise.calibrators import PriorShift, load
    from equipoise.core.reading import read_predictions

    before = load(calibrator)
    predictions = None if unlabelled is None else read_predictions(unlabelled, **columns)
    labeled = None if reference is None else read_predictions(reference, **columns)
    names = None if predictions is None else predictions.class_names
    old = None if trained_priors is None else _read_priors(trained_priors, names)
    adapted = PriorShift(before=before, trained_priors=old)
    if predictions is not None:
        adapted.fit_unlabeled(predictions, reference=labeled, seed=seed)
    elif priors is not None:
        adapted.set_priors(_read_priors(priors, names))
    adapted.save(output)
    _print(adapted, output, names, estimated=predictions is not None, as_json=as_json, quiet=quiet)


def _read_priors(path: Path, names: Sequence[str] | None) -> list[float]:
    """Return the class frequencies in a file, in the order of classes."""
    try:
        content = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise DataError(f"{path}: cannot be read as JSON ({error}). Expected {_PRIORS}.") from error
    if isinstance(content, dict):
        keys = list(names or map(str, range(len(content))))
        if sorted(content) != sorted(keys):
            raise DataError(
                f"{path}: expected the classes {', '.join(keys[:10])}, got {', '.join(map(str, list(content)[:10]))}."
            )
        content = [content[key] for key in keys]
    if not isinstance(content, list) or not all(type(value) in (int, float) for value in content):
        raise DataError(f"{path}: expected {_PRIORS}.")
    return [float(value) for value in content]


def _print(
    adapted: PriorShift,
    output: Path,
    names: Sequence[str] | None,
    *,
    estimated: bool,
    as_json: bool,
    quiet: bool,
) -> None:
    labels = list(names or map(str, range(len(adapted.priors))))
    rows = list(zip(labels, adapted.priors.tolist(), adapted.interval.tolist(), strict=True))
    if as_json:
        record: dict[str, Any] = {
            "output": str(output),
            "words": adapted.result.words,
            "estimated": estimated,
        }
        record["warnings"] = list(adapted.result.warnings)
        record["priors"] = {name: {"frequency": value, "interval": ends} for name, value, ends in rows}
        print_json(record)
        return
    if not quiet:
        click.echo(f"{adapted.result.words}.")
        width = max(map(len, labels))
        for name, value, (low, high) in rows if estimated else ():
            click.echo(f"  {name.ljust(width)}  {value:.4f}  95% interval {low:.4f} to {high:.4f}")
    for warning in adapted.result.warnings:
        click.echo(f"Warning: {warning}.", err=True)
    click.echo(str(output))
