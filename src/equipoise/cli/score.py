"""``equipoise score``: the scorecard of a file of predictions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from equipoise.cli.inputs import column_options, one_or_several
from equipoise.cli.options import (
    Engine,
    cluster_option,
    engine_options,
    group_columns,
    json_option,
    quiet_option,
    scoring_options,
    target_options,
)
from equipoise.cli.output import print_json
from equipoise.cli.states import read_states, refuse_clusters, refuse_options_of_rows, state_paths
from equipoise.core.escaping import visible, without_secrets

if TYPE_CHECKING:
    from equipoise.core.reading import Columns

__all__ = ["command"]


@click.command("score", epilog="Example:  equipoise score predictions.npz --bins 15 --json")
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@column_options
@scoring_options
@target_options
@cluster_option
@engine_options
@json_option
@quiet_option
def command(
    files: tuple[str, ...],
    columns: Columns,
    settings: dict[str, Any],
    cluster: str | None,
    engine: Engine,
    as_json: bool,
    quiet: bool,
) -> None:
    """Print every calibration metric of FILE with its interval.

    FILE holds logits, probabilities, or predicted class and confidence, with the true labels; or confidence and whether
    the prediction was right: .npz, .csv, .jsonl, .parquet, .safetensors, or a pair of .npy files. Several files are
    read as one. A state that `equipoise audit --save-state` wrote is scored without rows. With --target positive, the
    numbers are those of the probability of one of two classes.
    """
    from equipoise import read_predictions, score
    from equipoise.evaluate import audit

    states = state_paths(files)
    if states:
        refuse_options_of_rows()
        refuse_clusters(cluster, because="a saved state")
        card = audit(read_states(states), **settings).card
    elif engine.name == "ray":
        refuse_clusters(cluster, because="what --engine ray sums")
        card = audit(engine.sums(files, columns, (), settings), **settings).card
    else:
        rows = read_predictions(one_or_several(files), **group_columns(columns, (), cluster))
        card = score(rows, clusters=cluster, **settings)
    named = visible(" ".join(map(without_secrets, files)))
    if as_json:
        print_json({"file": named, **card.to_dict()})
    else:
        if not quiet:
            click.echo(named)
        click.echo(str(card))
