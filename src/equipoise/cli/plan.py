"""``equipoise plan``: which rows to label."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import TYPE_CHECKING

import click

from equipoise.cli.inputs import column_options, one_or_several
from equipoise.cli.options import PERCENT, group_columns, json_option, quiet_option
from equipoise.cli.output import check_output, print_json

if TYPE_CHECKING:
    from equipoise.core.reading import Columns

__all__ = ["command"]


@click.command("plan", epilog="Example:  equipoise plan predictions.csv --width 2% -o to-label.csv")
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option(
    "--width", type=PERCENT, required=True, help="Width of the 95% interval of the accuracy, such as 2%."
)
@click.option("--seed", default=0, show_default=True, help="Random seed of the choice.")
@click.option(
    "--output", "-o", type=click.Path(path_type=Path), help="Where the table of rows to label goes, .csv."
)
@column_options
@json_option
@quiet_option
def command(
    files: tuple[str, ...],
    width: float,
    seed: int,
    output: Path | None,
    columns: Columns,
    as_json: bool,
    quiet: bool,
) -> None:
    """Choose rows of FILE to label, so that the accuracy is known to a given width.

    Rows are stratified by confidence, with more of them where predictions are uncertain. The table that is written has
    the number of each row (from 0) or with --ids its id, its stratum, how many rows it stands for (weight), its
    confidence and, if known, its predicted class. Add a column `label` (or `correct`, 1 or 0), then run
    `equipoise score to-label.csv --strata stratum`.
    """
    if output is not None:
        check_output(output, (".csv",))
    import numpy as np

    from equipoise.core.atomic_files import write_bytes
    from equipoise.core.reading import read_predictions
    from equipoise.decisions import plan_labels

    ids = columns.get("ids")
    predictions = read_predictions(
        one_or_several(files), **group_columns(columns, () if ids is None else (ids,), None)
    )
    if ids is None and predictions.n_dropped:
        raise click.UsageError(
            "Numbers of rows need all rows, and some were left out. Name their ids: --ids."
        )
    plan = plan_labels(predictions, width=width, seed=seed)
    if output is not None:
        chosen = predictions.take(plan.rows)
        named = {"row": plan.rows} if ids is None else {ids: chosen.groups[ids]}
        table = {**named, "stratum": plan.stratum, "weight": [f"{one:.6g}" for one in plan.weight]}
        if chosen.kind != "confidence":
            names = chosen.class_names
            table["predicted"] = chosen.predicted if names is None else np.array(names)[chosen.predicted]
        table["confidence"] = [f"{one:.6g}" for one in chosen.confidence]
        lines = io.StringIO()
        writer = csv.writer(lines, lineterminator="\n")
        writer.writerows([tuple(table), *zip(*table.values(), strict=True)])
        write_bytes(output, lines.getvalue().encode())
    if as_json:
        print_json({"n": len(plan.rows), "n_random": plan.n_random, "width": width, "rows": plan.rows})
    else:
        click.echo(plan.describe())
        if output is not None and not quiet:
            click.echo(
                f"Wrote {output}. Add a column `{'correct' if predictions.kind == 'confidence' else 'label'}`, then:  "
                f"equipoise score {output} --strata stratum"
            )
