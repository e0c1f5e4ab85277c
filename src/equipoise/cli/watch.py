"""``equipoise watch``: a model after release, day by day."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from equipoise.cli.inputs import column_options, one_or_several, refuse_given
from equipoise.cli.options import PERCENT, group_columns, json_option, quiet_option
from equipoise.cli.output import check_output, print_json

if TYPE_CHECKING:
    from equipoise.core.reading import Columns
    from equipoise.decisions import DailyMonitor

__all__ = ["command"]

_EXAMPLES = """\b
Examples:
  equipoise watch model.watch.json today.csv --day 2026-03-09 --by site
  equipoise watch model.watch.json today.csv --day 2026-03-10 --by site --decision decision.json
  equipoise watch --unlabelled today.npz --reference calib.npz
"""


@click.command("watch", epilog=_EXAMPLES)
@click.argument("files", nargs=-1, metavar="[STATE FILE...]")
@click.option("--day", metavar="DATE", help="The day of the rows, as 2026-03-09; by default today.")
@click.option(
    "--alpha", type=PERCENT, default="5%", show_default=True, help="Probability of a false alarm, ever."
)
@click.option(
    "--tolerance",
    type=PERCENT,
    default="0%",
    show_default=True,
    help="Deviation from calibration that is no alarm.",
)
@click.option("--by", multiple=True, metavar="NAME", help="Column of groups to watch one by one; repeatable.")
@click.option(
    "--decision",
    "decision_path",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Watch the promise of this decision too, a threshold that `equipoise decide` certified; given every day.",
)
@click.option("--min-accuracy", type=PERCENT, help="Watch whether the accuracy is at least this.")
@click.option("--unlabelled", metavar="FILE", help="Predictions of today without labels; needs --reference.")
@click.option("--reference", metavar="FILE", help="Predictions of rows on which calibration was checked.")
@click.option(
    "--looks",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="With --unlabelled: how often the comparison is repeated; --alpha is for all looks together.",
)
@click.option(
    "--metrics-out",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write the numbers for dashboards: .prom (Prometheus text) or .jsonl (one line is added).",
)
@column_options
@json_option
@quiet_option
def command(
    files: tuple[str, ...],
    day: str | None,
    alpha: float,
    tolerance: float,
    by: tuple[str, ...],
    decision_path: Path | None,
    min_accuracy: float | None,
    unlabelled: str | None,
    reference: str | None,
    looks: int,
    metrics_out: Path | None,
    columns: Columns,
    as_json: bool,
    quiet: bool,
) -> int:
    """Continue the monitors in STATE with the labelled rows of one day, and alarm if a claim is broken.

    STATE is a small .json file that the first day creates. The monitors are about calibration, overall, by band of
    confidence and by group, and if given about the promise of a decision and about accuracy. Looking every day is
    allowed: over all days and monitors together, the probability of a false alarm is at most --alpha.
    A day that was added before raises an error, and missing days are named. --alpha, --tolerance, --by and
    --min-accuracy are those of the first day. --decision is given every day, from the first one on; a calibrator inside
    the decision is applied first, so FILE must have raw scores.

    With --unlabelled and --reference there is no state: confidences, predicted classes and groups are compared with the
    reference, and the accuracy is shown that is expected if calibration still holds. This is one look at one day; for
    a look every day of a year give --looks 365.

    Exit codes: 0 no alarm, 1 alarm, 2 the files or options are wrong.
    """
    if metrics_out is not None:
        check_output(metrics_out, (".prom", ".jsonl"), option="--metrics-out")
    if (unlabelled is None) != (reference is None):
        raise click.UsageError("--unlabelled and --reference go with each other; give both.")
    if unlabelled is not None and reference is not None:
        if files:
            raise click.UsageError("--unlabelled must be given without STATE and FILE; leave them out.")
        refuse_given(
            ("day", "decision_path", "min_accuracy", "tolerance"),
            "needs labels; leave it out with --unlabelled.",
        )
        files = (unlabelled, reference)
        return _compare(files, columns, by, alpha / looks, metrics_out, as_json=as_json, quiet=quiet)
    if looks > 1:
        raise click.UsageError(
            "--looks is for --unlabelled; labelled days may be looked at as often as you like."
        )
    if len(files) < 2:
        raise click.UsageError("Expected STATE and FILE, such as: equipoise watch model.watch.json today.csv")
    from equipoise.core.reading import read_predictions
    from equipoise.decisions import AcceptRule, DailyMonitor, load_decision
    from equipoise.decisions.files import needed_columns
    from equipoise.decisions.promise import unchecked_notes

    state = Path(files[0])
    check_output(state, (".json",), option="STATE")
    decision = None if decision_path is None else load_decision(decision_path)
    rule = decision if isinstance(decision, AcceptRule) else None
    if rule is None and decision is not None:
        raise click.UsageError(
            "--decision needs a certified threshold here; use `equipoise audit` for others."
        )
    if state.exists():
        monitor = DailyMonitor.load(state)
        if by and tuple(by) != monitor.by:
            raise click.UsageError(f"--by must be that of the first day, {', '.join(monitor.by) or 'none'}.")
        _check_settings(monitor)
    else:
        monitor = DailyMonitor(alpha=alpha, tolerance=tolerance, by=tuple(by), min_accuracy=min_accuracy)
    wanted = tuple(dict.fromkeys((*monitor.by, *([] if rule is None else needed_columns(rule)))))
    rows = read_predictions(one_or_several(files[1:]), **group_columns(columns, wanted, None))
    for note in () if rule is None else unchecked_notes(rule, rows):
        click.echo(f"Warning: {note}", err=True)
    found = monitor.watch(rows, day=str(date.today()) if day is None else day, rule=rule)
    monitor.save(state)
    if metrics_out is not None:
        numbers = {
            "evidence_mean": found.mean_evidence,
            "evidence_limit": found.limit,
            "alarms": len(found.alarms),
            "rows": found.n,
            "missed_days": len(found.missed),
        }
        _write_metrics(metrics_out, {"evidence": ("monitor", found.evidence)}, numbers, found.as_dict())
    if as_json:
        print_json(found.as_dict())
    elif not quiet or found.alarms:
        click.echo(found.describe())
    elif found.missed:
        click.echo(found.describe_missed(), err=True)
    return 1 if found.alarms else 0


def _check_settings(monitor: DailyMonitor) -> None:
    """Raise if an option that is fixed on the first day was given with another value."""
    context = click.get_current_context()
    for name in ("alpha", "tolerance", "min_accuracy"):
        given = context.get_parameter_source(name) is ParameterSource.COMMANDLINE
        if given and context.params[name] != getattr(monitor, name):
            first = getattr(monitor, name)
            raise click.UsageError(
                f"--{name.replace('_', '-')} must be that of the first day, "
                f"{'none' if first is None else f'{100 * first:g}%'}. Start a new STATE for another one."
            )


def _compare(
    files: tuple[str, ...],
    columns: Columns,
    by: tuple[str, ...],
    level: float,
    metrics_out: Path | None,
    *,
    as_json: bool,
    quiet: bool,
) -> int:
    from equipoise.core.reading import read_predictions
    from equipoise.decisions import compare_unlabelled

    new, old = (read_predictions(one, **group_columns(columns, by, None)) for one in files)
    found = compare_unlabelled(new, old, level=level)
    if metrics_out is not None:
        _write_metrics(
            metrics_out,
            {"p_value": ("test", found.p_values)},
            {
                "accuracy_expected_if_calibration_holds": found.expected_accuracy,
                "alarms": int(found.shifted),
                "rows": found.n,
            },
            {"day": str(date.today()), **found.as_dict()},
        )
    if as_json:
        print_json(found.as_dict())
    elif not quiet or found.shifted:
        click.echo(found.describe())
    return 1 if found.shifted else 0


def _write_metrics(
    path: Path,
    labelled: Mapping[str, tuple[str, Mapping[str, float]]],
    values: Mapping[str, float],
    record: Mapping[str, Any],
) -> None:
    """Write numbers as Prometheus text, or add a record as a line of JSON.

    Args:
        path: Where to: .prom or .jsonl.
        labelled: Metrics with a Prometheus label: its name, and the value for each of its values.
        values: Metrics without one.
        record: Everything, for JSON.
    """
    from equipoise.core.atomic_files import write_bytes

    if path.suffix.lower() == ".jsonl":
        before = path.read_bytes() if path.exists() else b""
        write_bytes(path, before + (json.dumps(record) + "\n").encode())
        return
    lines = []
    for name, (label, parts) in labelled.items():
        lines.append(f"# TYPE equipoise_{name} gauge")
        lines += [f"equipoise_{name}{{{label}={_quoted(key)}}} {value:.6g}" for key, value in parts.items()]
    for name, value in values.items():
        lines += [f"# TYPE equipoise_{name} gauge", f"equipoise_{name} {value:.6g}"]
    write_bytes(path, ("\n".join(lines) + "\n").encode())


def _quoted(text: str) -> str:
    """Return a value of a label as Prometheus text has it: only these three characters are escaped."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
