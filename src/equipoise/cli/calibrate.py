"""``equipoise calibrate``: fit a calibrator on held-out predictions and save it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from equipoise.catalogue import CATALOGUE
from equipoise.cli.inputs import column_options, one_or_several
from equipoise.cli.shared import SHARE, check_output, json_option, print_json, quiet_option
from equipoise.core.choices import RULES, Rule
from equipoise.core.names import look_up

if TYPE_CHECKING:
    from equipoise.calibrators import Calibrator, Choice
    from equipoise.core.reading import Columns

__all__ = ["command"]


def _names_of_maps() -> str:
    """Return the maps of the catalogue; an entry that is another one at a setting of its own is left out."""
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
    help=f"auto picks by cross-validated log-loss, and may leave things alone; or one of {_names_of_maps()}.",
)
@click.option(
    "--rule",
    type=click.Choice(RULES),
    help="Of auto: the simplest map within one standard error of the best (the default), or the best.",
)
@click.option(
    "--holdout",
    type=SHARE,
    metavar="SHARE",
    help="Fit on the rest, and judge on this share of the rows: before and after, side by side.",
)
@click.option(
    "--seed", default=0, show_default=True, help="Seed of the cross-validation, and of what is held out."
)
@column_options
@json_option
@quiet_option
def command(
    files: tuple[str, ...],
    output: Path,
    method: str,
    rule: Rule | None,
    holdout: float | None,
    seed: int,
    columns: Columns,
    as_json: bool,
    quiet: bool,
) -> None:
    """Fit a calibrator on FILE, held-out predictions with their labels, and save it.

    FILE must not hold rows that will be used to judge the outcome: those of the split 'test' are refused. With one
    labelled file only, --holdout 0.3 keeps a part of its rows back and judges the calibrator on them. The calibrator is
    saved as plain numbers, .json or .safetensors; `equipoise apply` uses it.
    """
    check_output(output, (".json", ".safetensors"))
    from equipoise.calibrators import choose
    from equipoise.calibrators.load import KINDS
    from equipoise.core.predictions.divide import divide
    from equipoise.core.reading import read_predictions
    from equipoise.evaluate import compare

    if method != "auto":
        look_up(method, KINDS, what="calibrator")
        if rule is not None:
            raise click.UsageError(
                f"--rule is of --method auto; {method} is one map. Leave out one of the two."
            )
    predictions = read_predictions(one_or_several(files), **columns)
    n_dropped, judged = predictions.n_dropped, None
    if holdout is not None:
        ((predictions, judged),) = divide([predictions], 1 - holdout, seed=seed)
    choice = choose(predictions, rule=rule or RULES[0], seed=seed) if method == "auto" else None
    calibrator = choice.calibrator if choice is not None else KINDS[method]().fit(predictions)
    found = None if judged is None else compare(judged, calibrator(judged), seed=seed)
    calibrator.save(output)
    if as_json:
        content = _content(calibrator, choice, output) | ({"n_dropped": n_dropped} if n_dropped else {})
        if judged is not None and found is not None:
            content["holdout"] = {
                "seed": seed,
                "n_fit": len(predictions),
                "n_judged": len(judged),
                "differences": [row._asdict() for row in found],
            }
        print_json(content)
        return
    if choice is not None:
        click.echo(f"{choice}\n")
    click.echo(f"{calibrator.kind}: {calibrator.result}")
    if n_dropped and not quiet:
        click.echo(f"{n_dropped:,} rows with missing values were left out.")
    if judged is not None:
        click.echo(
            f"\nFitted on {len(predictions):,} rows, judged on {len(judged):,} others (seed {seed}), before (first) "
            f"and after (second):\n{found}"
        )
    if not quiet:
        click.echo(f"Saved {output}. Use it:  equipoise apply {output} FILE")


def _content(calibrator: Calibrator, choice: Choice | None, output: Path) -> dict[str, object]:
    result = calibrator.result
    content: dict[str, object] = {
        "output": str(output),
        "method": calibrator.kind,
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
