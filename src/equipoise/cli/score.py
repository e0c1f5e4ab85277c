"""``equipoise score``: the scorecard of a file of predictions."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from equipoise.cli.inputs import COLUMN_OPTIONS, column_options, one_or_several, refuse_given
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
from equipoise.core.errors import DataError
from equipoise.core.escaping import visible, without_secrets

if TYPE_CHECKING:
    from equipoise.core.reading import Columns
    from equipoise.decisions import PoweredRate

__all__ = ["command"]

#: Level of the warning that labelled rows are not a random sample.
_SHIFT_LEVEL = 0.001


_EXAMPLES = """\b
Examples:
  equipoise score predictions.npz --bins 15 --json
  equipoise score labelled.csv --unlabelled big.npz --decision decision.json
"""


@click.command("score", epilog=_EXAMPLES)
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@column_options
@scoring_options
@target_options
@cluster_option
@engine_options
@click.option(
    "--unlabelled",
    metavar="FILE",
    help="More predictions of the same source without labels: print the accuracy with a prediction-powered interval.",
)
@click.option(
    "--decision",
    "decision_path",
    type=click.Path(path_type=Path, dir_okay=False),
    help="With --unlabelled: print the error among the predictions that a saved rule accepts, too.",
)
@click.option(
    "--strata",
    metavar="NAME",
    help="FILE has the rows that `equipoise plan` chose, with this column of strata: print the accuracy.",
)
@json_option
@quiet_option
def command(
    files: tuple[str, ...],
    columns: Columns,
    settings: dict[str, Any],
    cluster: str | None,
    engine: Engine,
    unlabelled: str | None,
    decision_path: Path | None,
    strata: str | None,
    as_json: bool,
    quiet: bool,
) -> None:
    """Print every calibration metric of FILE with its interval.

    FILE holds logits, probabilities, or predicted class and confidence, with the true labels; or confidence and whether
    the prediction was right: .npz, .csv, .jsonl, .parquet, .safetensors, or a pair of .npy files. Several files are
    read as one. A state that `equipoise audit --save-state` wrote is scored without rows. With --target positive, the
    numbers are those of the probability of one of two classes.

    With --unlabelled, FILE is a random sample of labelled rows, and the accuracy is printed with an interval that uses
    the confidences of the other rows, too. It holds whether they are calibrated or not. Rows that `equipoise plan`
    chose are not a random sample: give --strata for them instead.
    """
    if decision_path is not None and unlabelled is None:
        raise click.UsageError(
            "--decision needs --unlabelled; for labelled rows use `equipoise audit --decision`."
        )
    if strata is not None and unlabelled is not None:
        raise click.UsageError(
            "--strata is for rows that `equipoise plan` chose, --unlabelled for a random sample; give one of them."
        )
    if strata is not None or unlabelled is not None:
        # Clusters above all: rows of one cluster are not a random sample.
        kept = {"unlabelled", "decision_path", "strata", "level", "as_json", "quiet", *COLUMN_OPTIONS}
        others = {one.name or "" for one in click.get_current_context().command.params} - kept - {"files"}
        refuse_given(
            others, f"does not apply with --{'strata' if unlabelled is None else 'unlabelled'}. Leave it out."
        )
    if strata is not None:
        _score_strata(files, strata, columns, settings["level"], as_json=as_json)
        return
    if unlabelled is not None:
        _score_powered(files, unlabelled, decision_path, columns, settings["level"], as_json=as_json)
        return
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


def _score_powered(
    files: tuple[str, ...],
    unlabelled: str,
    decision_path: Path | None,
    columns: Columns,
    level: float,
    *,
    as_json: bool,
) -> None:
    """Print the accuracy, and the error among accepted predictions, from few labels and many rows without."""
    from equipoise.core.reading import read_predictions
    from equipoise.decisions import AcceptRule, compare_unlabelled, load_decision, powered_rate
    from equipoise.decisions.files import needed_columns
    from equipoise.decisions.inputs import apply_calibrator
    from equipoise.decisions.promise import unchecked_notes

    rule = None if decision_path is None else load_decision(decision_path)
    if rule is not None and not isinstance(rule, AcceptRule):
        raise click.UsageError("--decision needs a certified threshold; sets and costs accept nothing.")
    wanted = () if rule is None else tuple(needed_columns(rule))
    some, many = (
        read_predictions(one, **group_columns(columns, wanted, None))
        for one in (one_or_several(files), unlabelled)
    )
    if rule is not None:
        rule.check_disjoint(some, where="score")
        for note in unchecked_notes(rule, some):
            click.echo(f"Warning: {note}", err=True)
    taken = None if rule is None else (rule(some), rule(many))
    judged, others = some, many
    if rule is not None:
        judged, others = (apply_calibrator(rule.calibrator, one, where="score") for one in (some, many))
    rates = {"accuracy": powered_rate(judged, others, level=level)}
    if taken is not None:
        if taken[0].sum() < 10 or not taken[1].any():
            raise DataError(
                f"score: expected at least 10 labelled rows and 1 other row that the decision accepts, got "
                f"{taken[0].sum()} and {taken[1].sum()}. Label more rows, or leave out --decision."
            )
        accepted = powered_rate(judged.take(taken[0]), others.take(taken[1]), level=level)
        rates["error among accepted"] = accepted.of_errors
    shift = compare_unlabelled(some, many, level=_SHIFT_LEVEL)
    if shift.shifted:
        name, p_value = min(shift.p_values.items(), key=lambda one: one[1])
        click.echo(
            f"Warning: the {name} of labelled rows and of the other rows differs (p = {p_value:.2g}). The interval "
            "holds only if the labelled rows are a random sample of the same source.",
            err=True,
        )
    _print_rates(rates, as_json=as_json)


def _score_strata(
    files: tuple[str, ...], strata: str, columns: Columns, level: float, *, as_json: bool
) -> None:
    """Print the accuracy from rows that a plan chose."""
    from equipoise.core.reading import read_predictions
    from equipoise.decisions import stratified_rate

    rows = read_predictions(one_or_several(files), **group_columns(columns, (strata,), None))
    _print_rates({"accuracy": stratified_rate(rows, rows.groups[strata], level=level)}, as_json=as_json)


def _print_rates(rates: dict[str, PoweredRate], *, as_json: bool) -> None:
    if as_json:
        print_json({name: one.as_dict() for name, one in rates.items()})
        return
    for name, one in rates.items():
        other = f" and {one.n_unlabelled:,} other rows" if one.n_unlabelled else ""
        alone = "labelled rows alone give" if one.n_unlabelled else "as many random rows would give"
        click.echo(
            f"{name} {100 * one.value:.2f}% [{100 * one.low:.2f}, {100 * one.high:.2f}] from {one.n:,} labelled rows"
            f"{other}; {alone} [{100 * one.classical_low:.2f}, {100 * one.classical_high:.2f}]"
        )
