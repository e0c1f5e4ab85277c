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
_PRIORS = (
    'a JSON list with one share or count per class, or a JSON object such as {"honest": 0.99, "fraud": 0.01}, with '
    "class names, whose order --class-names gives, or numbers from 0"
)


@click.command("adapt", epilog=_EXAMPLES)
@click.argument("calibrator", type=click.Path(path_type=Path))
@click.option(
    "--output",
    "-o",
    required=True,
    type=click.Path(path_type=Path),
    help="Where the adapted calibrator goes.",
)
@click.option(
    "--priors",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    metavar="FILE",
    help=f"The new class frequencies: {_PRIORS}.",
)
@click.option(
    "--trained-priors",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    metavar="FILE",
    help="The old class frequencies, in the same form; by default those of the rows that CALIBRATOR was fitted on. To "
    "undo resampling or class weights, name the frequencies that training used.",
)
@click.option(
    "--unlabelled",
    metavar="FILE",
    help="Estimate the new class frequencies from these predictions, which CALIBRATOR was not applied to yet. Labels "
    "are not needed; if there are labels, they are compared with the result.",
)
@click.option(
    "--reference",
    metavar="FILE",
    help="Labeled predictions with the old frequencies, such as those that CALIBRATOR was fitted on. They correct the "
    "estimate of --unlabelled, and its interval then contains the calibrator's own error.",
)
@click.option(
    "--calibrated",
    is_flag=True,
    help="The probabilities of --unlabelled are calibrated already, so that CALIBRATOR may leave them alone.",
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
    calibrated: bool,
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
        raise click.UsageError("Expected the new frequencies: give either --priors or --unlabelled.")
    if reference is not None and unlabelled is None:
        raise click.UsageError("--reference needs --unlabelled.")
    if calibrated and unlabelled is None:
        raise click.UsageError("--calibrated needs --unlabelled.")
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
    names = columns.get("class_names") if predictions is None else predictions.class_names
    names = names or [str(number) for number in range(before.n_classes or 0)]
    if before.n_classes is not None and len(names) != before.n_classes:
        raise click.UsageError(f"--class-names must have {before.n_classes} names, got {len(names)}.")
    old = None if trained_priors is None else _read_priors(trained_priors, names)
    adapted = PriorShift(before=before, trained_priors=old)
    if predictions is not None:
        adapted.fit_unlabeled(predictions, reference=labeled, calibrated=calibrated, seed=seed)
    elif priors is not None:
        adapted.set_priors(_read_priors(priors, names))
    adapted.save(output)
    _print(adapted, output, names, estimated=predictions is not None, as_json=as_json, quiet=quiet)


def _read_priors(path: Path, names: Sequence[str]) -> list[float]:
    """Return the class frequencies in a file, in the order of classes."""
    try:
        content = json.loads(path.read_text("utf-8"), object_pairs_hook=_unique)
    except (OSError, ValueError) as error:
        raise DataError(f"{path}: cannot be read as JSON ({error}). Expected {_PRIORS}.") from error
    if isinstance(content, dict):
        numbers = [str(number) for number in range(len(names or content))]
        names = names or numbers
        keys = next((one for one in (names, numbers) if sorted(content) == sorted(one)), None)
        if keys is None:
            remedy = " Name the classes in order: --class-names." if list(names) == numbers else ""
            raise DataError(
                f"{path}: expected the classes {', '.join(names[:10])}, got {', '.join(list(content)[:10])}.{remedy}"
            )
        content = [content[key] for key in keys]
    if not isinstance(content, list) or not all(type(value) in (int, float) for value in content):
        raise DataError(f"{path}: expected {_PRIORS}.")
    return [float(value) for value in content]


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object of JSON; a class that is named twice is an error."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a class is named twice")
    return found


def _print(
    adapted: PriorShift,
    output: Path,
    names: Sequence[str],
    *,
    estimated: bool,
    as_json: bool,
    quiet: bool,
) -> None:
    names = names or [str(number) for number in range(len(adapted.priors))]
    rows = list(zip(names, adapted.priors.tolist(), adapted.interval.tolist(), strict=True))
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
        click.echo(f"The calibrator {adapted.result.words}.")
        if estimated:
            click.echo("Estimated class frequencies:")
        width = max(map(len, names))
        for name, value, (low, high) in rows if estimated else ():
            click.echo(f"  {name.ljust(width)}  {value:.4f}  95% interval {low:.4f} to {high:.4f}")
    for warning in adapted.result.warnings:
        click.echo(f"Warning: {warning}.", err=True)
    click.echo(str(output) if quiet else f"Saved {output}. Use it:  equipoise apply {output} FILE")
