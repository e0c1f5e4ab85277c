"""``equipoise calibrate``: fit a calibrator on held-out predictions and save it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from equipoise.catalogue import CATALOGUE
from equipoise.cli.inputs import column_options, one_or_several
from equipoise.cli.options import FRACTION, json_option, quiet_option
from equipoise.cli.output import check_output, print_json
from equipoise.core.choices import RULES, Rule
from equipoise.core.names import look_up

if TYPE_CHECKING:
    from equipoise.calibrators import Calibrator, Choice
    from equipoise.core.reading import Columns

__all__ = ["command"]


def _calibrator_names() -> str:
    """Return the calibrators of the catalogue, without entries that are another one with other options."""
    names: dict[object, str] = {}
    for key, entry in CATALOGUE["calibrators"].items():
        names.setdefault(entry.made_by, key)
    return ", ".join(names.values())


@click.command("calibrate", epilog="Example:  equipoise calibrate calib.npz -o calibrator.json")
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option(
    "--output", "-o", required=True, type=click.Path(path_type=Path), help="Where the calibrator goes."
)
@click.option(
    "--method",
    default="auto",
    show_default=True,
    metavar="NAME",
    help=f"auto chooses by cross-validated log-loss, and may choose identity; or one of {_calibrator_names()}.",
)
@click.option(
    "--rule",
    type=click.Choice(RULES),
    help="For auto: the best calibrator, or the simplest within one standard error of it; by default the best from "
    "2,000 rows on, and with fewer only if it beats temperature scaling by more than a standard error.",
)
@click.option(
    "--by",
    metavar="NAME",
    help="Column of groups: each group gets a calibrator of its own, shrunk towards that of all rows. Groups with few "
    "rows, and those that FILE does not contain, use that of all rows.",
)
@click.option(
    "--holdout",
    type=FRACTION,
    help="Fit on the rest, and score this share of the rows before and after calibration.",
)
@click.option(
    "--seed", default=0, show_default=True, help="Random seed for cross-validation and for the held-out rows."
)
@column_options
@json_option
@quiet_option
def command(
    files: tuple[str, ...],
    output: Path,
    method: str,
    rule: Rule | None,
    by: str | None,
    holdout: float | None,
    seed: int,
    columns: Columns,
    as_json: bool,
    quiet: bool,
) -> None:
    """Fit a calibrator on FILE, held-out predictions with their labels, and save it.

    FILE must not contain rows that the calibrated predictions will be scored on: the split 'test' is an error. With one
    labeled file only, --holdout 30% keeps that share of its rows back and scores the calibrator on them. The calibrator
    is saved as .json or .safetensors; `equipoise apply` uses it. With --by site, cross-validation decides how much each
    site's own rows count.
    """
    check_output(output, (".json", ".safetensors"))
    from equipoise.calibrators import CalibrationByGroup, choose
    from equipoise.calibrators.forms import is_claims
    from equipoise.calibrators.loading import KINDS
    from equipoise.calibrators.selection import CANDIDATES, CLAIM_CANDIDATES, GROUP_CANDIDATES
    from equipoise.core.predictions.combine import divide
    from equipoise.core.reading import read_predictions
    from equipoise.evaluate import compare

    if method != "auto":
        look_up(method, KINDS, what="calibrator")
        if rule is not None:
            raise click.UsageError(f"--rule needs --method auto, got {method}. Leave out one of the two.")
    if by is not None:
        columns = {**columns, "groups": [by]}
    predictions = read_predictions(one_or_several(files), **columns)
    n_dropped, held_out = predictions.n_dropped, None
    if holdout is not None:
        ((predictions, held_out),) = divide([predictions], 1 - holdout, seed=seed)
    choice, candidates = None, None
    if by is not None:
        own = CLAIM_CANDIDATES if is_claims(predictions) else CANDIDATES
        candidates = [name for name in own if name in GROUP_CANDIDATES]
    if method == "auto":
        choice = choose(predictions, candidates=candidates, rule=rule, seed=seed)
    calibrator = choice.calibrator if choice is not None else KINDS[method]()
    if by is not None:
        # Groups may err in opposite directions where all rows together need no calibrator.
        simple = "platt" if is_claims(predictions) else "temperature"
        base = KINDS[calibrator.kind if calibrator.needs_fit else simple]()
        calibrator = CalibrationByGroup(base=base, by=by).fit(predictions)
    elif choice is None:
        calibrator.fit(predictions)
    found = None if held_out is None else compare(held_out, calibrator(held_out), seed=seed)
    calibrator.save(output)
    if as_json:
        content = _content(calibrator, choice, output) | ({"n_dropped": n_dropped} if n_dropped else {})
        if held_out is not None and found is not None:
            content["holdout"] = {
                "seed": seed,
                "n_fit": len(predictions),
                "n_judged": len(held_out),
                "differences": [row._asdict() for row in found],
            }
        print_json(content)
        return
    if choice is not None:
        click.echo(f"{choice}\n")
    click.echo(f"{calibrator.kind}: {calibrator.result}")
    if n_dropped and not quiet:
        click.echo(f"{n_dropped:,} rows with missing values were left out.")
    if held_out is not None:
        click.echo(
            f"\nFitted on {len(predictions):,} rows, scored on {len(held_out):,} others (seed {seed}), before (first) "
            f"and after (second):\n{found}"
        )
    if not quiet:
        click.echo(f"Saved {output}. Use it:  equipoise apply {output} FILE")


def _content(calibrator: Calibrator, choice: Choice | None, output: Path) -> dict[str, object]:
    result = calibrator.result
    content: dict[str, object] = {
        "output": str(output),
        "method": calibrator.kind,
        "groups": list(result.groups),
        "words": result.words,
        "converged": result.converged,
        "nll_before": result.nll_before,
        "nll_after": result.nll_after,
        "warnings": list(result.warnings),
        "notes": list(result.notes),
        "zero_counts_as": list(result.floor),
    }
    if choice is not None:
        content["reason"], content["improvement"] = choice.reason, choice.improvement
        content["interval"] = list(choice.interval)
        content["trials"] = [
            {name: getattr(trial, name) for name in trial.__dataclass_fields__} for trial in choice.trials
        ]
    return content
