"""``equipoise apply``: calibrated predictions from raw ones."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from equipoise.cli.inputs import column_options, one_or_several
from equipoise.cli.shared import check_output, json_option, print_json, quiet_option
from equipoise.core.errors import DataError

if TYPE_CHECKING:
    from equipoise.core.reading import Columns

__all__ = ["command"]


@click.command("apply", epilog="Example:  equipoise apply calibrator.json test.npz -o calibrated.npz")
@click.argument("calibrator", type=click.Path(path_type=Path))
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option(
    "--output",
    "-o",
    type=click.Path(path_type=Path),
    help="Where the predictions go; by default beside FILE, as NAME.calibrated.npz.",
)
@click.option(
    "--force",
    is_flag=True,
    help="Overwrite the input, and calibrate what was calibrated before, all the same.",
)
@column_options
@json_option
@quiet_option
def command(
    calibrator: Path,
    files: tuple[str, ...],
    output: Path | None,
    force: bool,
    columns: Columns,
    as_json: bool,
    quiet: bool,
) -> None:
    """Apply CALIBRATOR, saved by `equipoise calibrate`, to the predictions in FILE.

    Labels, if there are any, groups and names stay as they are. The new file remembers the rows that the calibrator
    was fitted on, and is refused when scored if it holds some of them.
    """
    from equipoise.calibrators import load
    from equipoise.core import read_predictions, write_predictions

    output = _checked(output, files, force=force)
    fitted = load(calibrator)
    raw = read_predictions(one_or_several(files), **columns)
    # Rows known by scores that are no longer theirs have been through a calibrator.
    if not force and (raw.fitted_on is not None or (raw.has_kept_rows and not raw.rows.named)):
        raise DataError(
            f"{' '.join(files)}: a calibrator was applied to these predictions already; twice makes them worse. "
            "Take the raw ones, or add --force."
        )
    try:
        predictions = fitted(raw)
    except RuntimeError as error:
        # A hash tells damage, not malice: the numbers of a forged file need not fit together.
        raise DataError(
            f"{calibrator}: does not work on these predictions ({error}). Fit it again."
        ) from error
    write_predictions(predictions, output)
    if as_json:
        print_json(
            {
                "output": str(output),
                "method": fitted.kind,
                "words": fitted.result.words if fitted.needs_fit else "",
                "n_samples": len(predictions),
                "kind": predictions.kind,
            }
        )
    elif not quiet:
        click.echo(
            f"Wrote {len(predictions):,} rows of {predictions.kind} to {output}, through {fitted.kind}."
            f"{'' if predictions.has_labels else ' They have no labels.'}"
        )


def _checked(output: Path | None, files: Sequence[str], *, force: bool) -> Path:
    """Return where predictions go, which is not where they come from."""
    from equipoise.core.reading.formats import WRITERS

    target = _beside(files, force=force) if output is None else output
    check_output(target, tuple(WRITERS))
    if not force and target.exists() and any(Path(file).exists() and target.samefile(file) for file in files):
        raise click.UsageError(f"--output {target} is the input itself. Name another file, or add --force.")
    return target


def _beside(files: Sequence[str], *, force: bool) -> Path:
    """Return where predictions go if nobody says: beside the one file they are made from, where nothing is yet."""
    first = Path(files[0])
    output = first.with_name(f"{first.stem}.calibrated.npz")
    if len(files) > 1 or any(mark in files[0] for mark in "*?["):
        raise click.UsageError("Several files: say where the predictions go with --output.")
    if output.exists() and not force:
        raise click.UsageError(f"{output} is there already. Name another with --output, or add --force.")
    return output
