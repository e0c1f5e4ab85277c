"""``equipoise score``: the scorecard of a file of predictions."""

from __future__ import annotations

from pathlib import Path

import click

from equipoise import read_predictions, score
from equipoise.cli.shared import json_option, print_json, quiet_option

__all__ = ["command"]


@click.command("score", epilog="Example:  equipoise score predictions.npz --bins 15 --json")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--logits", help="Name of the array or column with logits.")
@click.option("--probs", help="Name of the array or column with probabilities.")
@click.option("--labels", help="Name of the array or column with true classes.")
@click.option("--bins", "n_bins", default=15, show_default=True, help="Bins of equal width.")
@click.option("--closed", type=click.Choice(["right", "left"]), default="right", show_default=True)
@click.option("--level", default=0.95, show_default=True, help="Level of the intervals.")
@click.option("--resamples", default=1000, show_default=True, help="Bootstrap resamples.")
@click.option("--seed", default=0, show_default=True, help="Seed of the resamples.")
@json_option
@quiet_option
def command(
    file: Path,
    logits: str | None,
    probs: str | None,
    labels: str | None,
    n_bins: int,
    closed: str,
    level: float,
    resamples: int,
    seed: int,
    as_json: bool,
    quiet: bool,
) -> None:
    """Print every calibration metric of FILE with its interval.

    FILE holds logits, probabilities, or predicted class and confidence, with the true labels: .npz, .npy, .csv,
    .parquet or .safetensors.
    """
    predictions = read_predictions(file, logits=logits, probs=probs, labels=labels)
    card = score(predictions, n_bins=n_bins, closed=closed, level=level, n_resamples=resamples, seed=seed)
    if as_json:
        print_json({"file": str(file), **card.to_dict()})
    else:
        if not quiet:
            click.echo(f"{file}")
        click.echo(str(card))
