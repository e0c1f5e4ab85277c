"""``equipoise apply``: calibrated predictions from raw ones, or decisions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from equipoise.cli.inputs import column_options, one_or_several
from equipoise.cli.options import json_option, quiet_option
from equipoise.cli.output import check_output, print_json
from equipoise.core.errors import DataError
from equipoise.core.escaping import listed, shown_name

if TYPE_CHECKING:
    from equipoise.core.reading import Columns
    from equipoise.core.reading.rewriting import RewrittenTable

__all__ = ["command"]

_SHOWN_GROUPS = 5

_EXAMPLES = """\b
Examples:
  equipoise apply calibrator.json production.csv
  equipoise apply calibrator.json test.parquet -o calibrated.parquet --suffix _calibrated
  equipoise apply decision.json today.csv -o decided.csv
"""


@click.command("apply", epilog=_EXAMPLES)
@click.argument("calibrator", metavar="CALIBRATOR|DECISION", type=click.Path(path_type=Path))
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option(
    "--output",
    "-o",
    type=click.Path(path_type=Path),
    help="Where the table goes; its ending selects the format. By default next to FILE, as NAME.calibrated.csv or "
    "NAME.decided.csv for NAME.csv.",
)
@click.option(
    "--as",
    "scores",
    type=click.Choice(["logits", "probs"]),
    help="Whether calibrated scores are logits or probabilities; by default as in FILE.",
)
@click.option(
    "--suffix",
    default="",
    metavar="TEXT",
    help="Keep the raw scores, and add calibrated ones in columns of their names with TEXT, such as _calibrated.",
)
@click.option(
    "--force",
    is_flag=True,
    help="Overwrite the input, and calibrate predictions that were calibrated before.",
)
@column_options
@json_option
@quiet_option
def command(
    calibrator: Path,
    files: tuple[str, ...],
    output: Path | None,
    scores: Literal["logits", "probs"] | None,
    suffix: str,
    force: bool,
    columns: Columns,
    as_json: bool,
    quiet: bool,
) -> None:
    """Apply CALIBRATOR or DECISION, saved by `calibrate` or `decide`, to the predictions in FILE.

    The table keeps its columns and rows in the same order. With CALIBRATOR, calibrated scores replace the raw ones. The
    new file records the rows that the calibrator was fitted on, and scoring it is an error if it contains some of them.
    CSV files cannot hold this record: it is written to NAME.csv.equipoise.json next to NAME.csv.

    With DECISION, the scores stay as they are, and one column is added: `accept` (true or false), `set` (classes with
    | between them) or `action`. A calibrator inside the decision is applied first, so FILE must have raw scores.
    """
    from equipoise.calibrators import load
    from equipoise.calibrators.files import calibrate_file
    from equipoise.decisions.files import is_decision

    if is_decision(calibrator):
        if scores is not None or suffix:
            raise click.UsageError("--as and --suffix go with a calibrator; a decision adds one column.")
        _apply_decision(calibrator, files, output, columns, force=force, as_json=as_json, quiet=quiet)
        return
    output = _checked(output, files, force=force)
    fitted = load(calibrator)
    try:
        made = calibrate_file(
            fitted, one_or_several(files), output, scores=scores, suffix=suffix, force=force, **columns
        )
    except RuntimeError as error:
        # A checksum finds damage, not forgery: the parameters of a forged file need not fit together.
        raise DataError(
            f"{calibrator}: does not work on these predictions ({error}). Fit it again."
        ) from error
    if as_json:
        print_json(
            {
                "output": str(output),
                "notes": None if made.notes is None else str(made.notes),
                "method": fitted.kind,
                "words": fitted.result.words if fitted.needs_fit else "",
                "n_samples": made.n_rows,
                "kind": made.kind,
                "columns": list(made.columns),
                "groups_without_calibrator": dict(made.n_without_group),
            }
        )
    elif not quiet:
        notes = "" if made.notes is None else f" Record of the calibrator: {made.notes.name}."
        click.echo(
            f"Wrote {made.n_rows:,} rows to {output}, with {made.kind} calibrated by {fitted.kind}.{notes}"
            f"{'' if made.has_labels else ' They have no labels.'}"
        )
        if made.n_without_group:
            click.echo(
                f"Groups without a calibrator of their own used that of all rows: {_listed(made.n_without_group)}."
            )


def _apply_decision(
    path: Path,
    files: Sequence[str],
    output: Path | None,
    columns: Columns,
    *,
    force: bool,
    as_json: bool,
    quiet: bool,
) -> None:
    from equipoise.decisions.files import decide_file, load_decision

    target = _checked(output, files, force=force, word="decided")
    made = decide_file(load_decision(path), one_or_several(files), target, **columns)
    if as_json:
        print_json(
            {
                "output": str(target),
                "n_samples": made.n_rows,
                "columns": list(made.columns),
                "counts": dict(made.counts),
                "groups_without_threshold": dict(made.n_without_group),
            }
        )
    elif not quiet:
        click.echo(
            f"Wrote {made.n_rows:,} rows to {target}, with a column `{made.columns[0]}`: {_describe_counts(made)}."
        )
        if made.n_without_group:
            click.echo(
                f"Groups without a certified threshold, never accepted: {_listed(made.n_without_group)}."
            )


def _describe_counts(made: RewrittenTable) -> str:
    """Return how often each decision was made."""
    if made.columns == ("accept",):
        return f"{made.counts.get('True', 0) / made.n_rows:.1%} are accepted"
    shares = {name: f"{count / made.n_rows:.1%}" for name, count in made.counts.items()}
    if made.columns == ("set",):
        sizes = sorted(shares, key=int)
        return "sets by number of classes: " + ", ".join(f"{size}: {shares[size]}" for size in sizes)
    return ", ".join(f"{shown_name(name)} {share}" for name, share in shares.items())


def _listed(rows: Mapping[str, int]) -> str:
    """Return the names of some groups, and their number of rows."""
    return f"{listed(sorted(rows), _SHOWN_GROUPS)} ({sum(rows.values()):,} rows)"


def _checked(output: Path | None, files: Sequence[str], *, force: bool, word: str = "calibrated") -> Path:
    """Return where predictions go, which is not where they come from."""
    from equipoise.core.reading.formats import WRITERS

    target = _default_output(files, word, force=force) if output is None else output
    check_output(target, tuple(WRITERS))
    if not force and target.exists() and any(Path(file).exists() and target.samefile(file) for file in files):
        raise click.UsageError(f"--output {target} is the input itself. Name another file, or add --force.")
    return target


def _default_output(files: Sequence[str], word: str, *, force: bool) -> Path:
    """Return where the table goes by default: next to the one file it is made from, where no file is yet."""
    from equipoise.core.reading.formats import WRITERS

    first = Path(files[0])
    # Formats that are read only, such as .npy, which holds a single array and no notes, become .npz.
    ending = first.suffix if first.suffix.lower() in WRITERS else ".npz"
    output = first.with_name(f"{first.stem}.{word}{ending}")
    if len(files) > 1 or any(mark in files[0] for mark in "*?["):
        raise click.UsageError("Several files need --output, the file that the predictions go to.")
    if output.exists() and not force:
        raise click.UsageError(f"{output} already exists. Name another file with --output, or add --force.")
    return output
