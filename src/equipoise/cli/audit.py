"""``equipoise audit``: is anyone's file of predictions to be believed? With gates for CI."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from equipoise.cli.inputs import column_options, one_or_several
from equipoise.cli.limits import MARGIN, METRIC_LIMIT
from equipoise.cli.scoring import scoring_options
from equipoise.cli.shared import check_output, json_option, print_json, quiet_option
from equipoise.core.predictions import Predictions
from equipoise.core.progress import progress
from equipoise.core.reading import Columns, iter_predictions, read_predictions
from equipoise.evaluate.audit import Audit, audit
from equipoise.evaluate.compare import PairedDifferences, compare
from equipoise.evaluate.gates import Bound, Gate, Limit, check_limits, check_not_worse

__all__ = ["command"]

_EXAMPLES = """\b
Examples:
  equipoise audit predictions.npz
  equipoise audit 'part-*.parquet' --by site --max ece=0.03 --min accuracy=90%
  equipoise audit new.npz --against old.npz --not-worse nll --not-worse accuracy=0.5%
"""


@click.command("audit", epilog=_EXAMPLES)
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@column_options
@click.option(
    "--by", multiple=True, metavar="NAME", help="Column of groups to look at one by one; repeatable."
)
@scoring_options
@click.option(
    "--max", "maxima", type=METRIC_LIMIT, multiple=True, help="Exit with 1 if a metric is above this."
)
@click.option(
    "--min", "minima", type=METRIC_LIMIT, multiple=True, help="Exit with 1 if a metric is below this."
)
@click.option(
    "--bound",
    type=click.Choice(["low", "value", "high"]),
    help="What is held against limits: the estimate or an end of its interval. "
    "By default the unfavourable end: high for --max, low for --min.",
)
@click.option(
    "--against", metavar="FILE", help="Another model's predictions for the same rows, to compare with."
)
@click.option(
    "--not-worse",
    "not_worse",
    type=MARGIN,
    multiple=True,
    help="Exit with 1 if a metric is shown to be worse than in --against; "
    "with a margin: unless it is shown to be worse by no more.",
)
@click.option(
    "--report",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write a report too, .html or .md.",
)
@json_option
@quiet_option
def command(
    files: tuple[str, ...],
    columns: Columns,
    by: tuple[str, ...],
    settings: dict[str, Any],
    maxima: tuple[tuple[str, float], ...],
    minima: tuple[tuple[str, float], ...],
    bound: Bound | None,
    against: str | None,
    not_worse: tuple[tuple[str, float | None], ...],
    report: Path | None,
    as_json: bool,
    quiet: bool,
) -> int:
    """Audit the calibration of predictions in FILE.

    FILE holds logits, probabilities, or predicted class and confidence, with the true labels: .npz, .csv, .parquet,
    .safetensors, or a pair of .npy files. Several files, or a quoted pattern, are one stream, read in bounded memory.

    METRIC is accuracy, nll, brier, ece, ada_ece, classwise_ece, mce, rms_ce, smece, ks, auroc or another key of the
    scores that --json prints. Numbers are fractions or percent: ece=0.03 is ece=3%.

    Exit codes: 0 all is well, 1 a gate failed (--max, --min, --not-worse), 2 the files or options are wrong.
    """
    if not_worse and against is None:
        raise click.UsageError("--not-worse needs --against FILE, the predictions to compare with.")
    if report is not None:
        check_output(report, (".html", ".htm", ".md"), option="--report")
    source, grouped = one_or_several(files), columns | Columns(groups=by)
    rows: Predictions | None = None
    baseline = None if against is None else read_predictions(against, **columns)
    if baseline is None:
        chunks = progress(iter_predictions(source, **grouped), label="auditing", unit="chunks", quiet=quiet)
        found = audit(chunks, by=by or None, **settings)
    else:
        rows = read_predictions(source, **grouped)
        found = audit(rows, by=by or None, **settings)
    comparison = None if baseline is None or rows is None else compare(baseline, rows, **settings)
    limits = [Limit(key, "max", number) for key, number in maxima]
    limits += [Limit(key, "min", number) for key, number in minima]
    gates = check_limits(found.card, limits, bound=bound)
    if comparison is not None:
        gates += check_not_worse(comparison, not_worse, level=settings["level"])
    if report is not None:
        _write_report(report, found, baseline, comparison, files, settings)
    _print(found, comparison, gates, files, as_json=as_json, quiet=quiet)
    return 0 if all(gate.passed for gate in gates) else 1


def _write_report(
    path: Path,
    found: Audit,
    baseline: Predictions | None,
    comparison: PairedDifferences | None,
    files: tuple[str, ...],
    settings: dict[str, Any],
) -> None:
    """Write what was found as a report, without looking at the rows again."""
    from equipoise.report import report_of, write_report

    name = Path(files[0]).stem if len(files) == 1 else "all files"
    if baseline is None or comparison is None:
        report = report_of({name: found}, title=f"Audit of {name}")
    else:
        # The baseline may lack the columns of groups, and it is not what is audited.
        shared = tuple(column for column in found.groups if column in baseline.groups)
        named = {"baseline": audit(baseline, by=shared, **settings), name: found}
        report = report_of(named, title=f"Audit of {name}", versus={name: comparison})
    write_report(report, path)


def _print(
    found: Audit,
    comparison: PairedDifferences | None,
    gates: Sequence[Gate],
    files: tuple[str, ...],
    *,
    as_json: bool,
    quiet: bool,
) -> None:
    if as_json:
        content = {"files": list(files)} | found.to_dict()
        if comparison is not None:
            content["comparison"] = [row._asdict() for row in comparison]
        content["gates"] = [gate._asdict() for gate in gates]
        content["passed"] = all(gate.passed for gate in gates)
        print_json(content)
        return
    if sys.stdout.isatty():
        from equipoise.cli.audit_tables import show_audit  # rich is slow to load, and a pipe does not need it

        show_audit(found, quiet=quiet)
    else:
        click.echo(found.describe(quiet=quiet))
    if comparison is not None:
        click.echo("\nAgainst the baseline (first), this model (second):")
        click.echo(str(comparison))
    if gates:
        click.echo("")
    for gate in gates:
        mark = click.style("PASS", fg="green") if gate.passed else click.style("FAIL", fg="red", bold=True)
        click.echo(f"{mark}  {gate.text}.")
