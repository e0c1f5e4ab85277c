"""``equipoise audit``: the calibration of a file of predictions, with gates for CI."""

from __future__ import annotations

import shlex
import sys
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from equipoise.cli.inputs import COLUMN_OPTIONS, column_options, given_words, naming_ids, one_or_several
from equipoise.cli.options import (
    METRIC_LIMIT,
    OPTIONAL_MARGIN,
    Engine,
    cluster_option,
    engine_options,
    group_columns,
    json_option,
    quiet_option,
    scoring_options,
    target_options,
)
from equipoise.cli.output import check_output, check_report, print_json
from equipoise.cli.states import read_states, refuse_clusters, refuse_options_of_rows, state_paths
from equipoise.core.choices import ScoreSettings
from equipoise.core.escaping import without_secrets

if TYPE_CHECKING:
    from equipoise.core import Predictions
    from equipoise.core.reading import Columns
    from equipoise.decisions import DecisionCheck
    from equipoise.evaluate import Audit, AuditState, Gate, Limit
    from equipoise.evaluate.differences import Differences
    from equipoise.evaluate.gates import Bound

__all__ = ["command"]

_DRAWN = ("level", "n_resamples", "seed")
_EVENT = {"target": "positive"}
_EXAMPLES = """\b
Examples:
  equipoise audit predictions.npz
  equipoise audit 'part-*.parquet' --by site --max ece=0.03 --min accuracy=90%
  equipoise audit new.npz --against old.npz --not-worse nll --not-worse accuracy=0.5%
  equipoise audit fraud.csv --positive fraud --max ece=5%
  equipoise audit rows.parquet --by site --max ece=3% --worst-group
  equipoise audit tomorrow.csv --decision decision.json
  equipoise audit today.parquet --save-state today.state
  equipoise audit today.state --against last-month.state --not-worse ece
"""


@click.command("audit", epilog=_EXAMPLES)
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@column_options
@click.option("--by", multiple=True, metavar="NAME", help="Column of groups to audit one by one; repeatable.")
@scoring_options
@target_options
@cluster_option
@click.option(
    "--max", "maxima", type=METRIC_LIMIT, multiple=True, help="Exit with 1 if a metric is above this."
)
@click.option(
    "--min", "minima", type=METRIC_LIMIT, multiple=True, help="Exit with 1 if a metric is below this."
)
@click.option(
    "--bound",
    type=click.Choice(["low", "value", "high"]),
    help="What is compared with limits: the estimate or an end of its interval. "
    "By default the unfavorable end: high for --max, low for --min.",
)
@click.option(
    "--worst-group",
    is_flag=True,
    help="Apply --max and --min to every group of --by too; intervals are corrected for the number of groups. A group "
    "fails if its whole interval is beyond the limit; groups with too few rows to decide are named and do not fail.",
)
@click.option(
    "--against",
    metavar="FILE",
    help="Another model's predictions for the same rows, to compare with; or a saved state, of any rows.",
)
@click.option(
    "--not-worse",
    "not_worse",
    type=OPTIONAL_MARGIN,
    multiple=True,
    help="Exit with 1 if a metric is shown to be worse than in --against; "
    "with a margin: unless it is shown to be worse by no more.",
)
@click.option(
    "--save-state",
    "save_state",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Save the sums in a file, .state, .npz or .json, that `audit`, `score` and `merge` read instead of rows.",
)
@click.option(
    "--decision",
    "decision_path",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Exit with 1 if these rows show that the promise of a decision that `equipoise decide` saved is broken "
    "(exact test at 5%). One look only: for a check every day use `equipoise watch --decision`.",
)
@click.option(
    "--report",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write a report too, .html or .md.",
)
@engine_options
@json_option
@quiet_option
def command(
    files: tuple[str, ...],
    columns: Columns,
    by: tuple[str, ...],
    settings: dict[str, Any],
    cluster: str | None,
    maxima: tuple[tuple[str, float], ...],
    minima: tuple[tuple[str, float], ...],
    bound: Bound | None,
    worst_group: bool,
    against: str | None,
    not_worse: tuple[tuple[str, float | None], ...],
    save_state: Path | None,
    decision_path: Path | None,
    report: Path | None,
    engine: Engine,
    as_json: bool,
    quiet: bool,
) -> int:
    """Audit the calibration of predictions in FILE.

    FILE holds logits, probabilities, or predicted class and confidence, with the true labels; or confidence and whether
    the prediction was right: .npz, .csv, .jsonl, .parquet, .safetensors, or a pair of .npy files; or it is a folder of
    .parquet files, or an address such as s3://bucket/rows.
    Several files, or a quoted pattern, are one stream, read in bounded memory. A state that --save-state wrote is
    audited without rows; several are added.

    METRIC is accuracy, nll, brier, ece, ada_ece, classwise_ece, mce, rms_ce, smece, ks, auroc, correct_brier or another
    key of the scores that --json prints. Numbers are fractions or percent: ece=0.03 is ece=3%.

    With --target positive, or --positive CLASS, every number, gate and comparison is about the probability of one of
    two classes. Without a target, a file of two classes with clearly unequal frequencies is scored in both views, and
    gates apply to both.

    Exit codes: 0 all gates passed, 1 a gate failed (--max, --min, --not-worse), 2 the files or options are wrong, 70 an
    unexpected error.
    """
    if worst_group and not (maxima or minima):
        raise click.UsageError("--worst-group needs a limit for every group: --max or --min.")
    if not_worse and against is None:
        raise click.UsageError("--not-worse needs --against FILE, the predictions to compare with.")
    from equipoise.core.records import RECORD_ENDINGS
    from equipoise.evaluate import Gate, Limit, check_limits, check_not_worse, write_audit_state

    if report is not None:
        check_report(report)
    if save_state is not None:
        check_output(save_state, RECORD_ENDINGS, option="--save-state")
        refuse_clusters(cluster, because="what --save-state writes")
    if state_paths(files) and (against is None or state_paths((against,))):
        refuse_options_of_rows()
    if state_paths(files) or (against is not None and state_paths((against,))):
        refuse_clusters(cluster, because="a saved state")
    if engine.name == "ray":
        refuse_clusters(cluster, because="what --engine ray sums")
    request = _Request(files, columns, by, settings, engine, quiet, cluster)
    result = request.run() if against is None else request.run_against(against)
    found, comparison = result.found, result.comparison
    limits = [Limit(key, "max", number) for key, number in maxima]
    limits += [Limit(key, "min", number) for key, number in minima]
    gates = check_limits(found.card, limits, bound=bound)
    if worst_group:
        gates += _check_groups(result, limits, bound, settings, by)
    for part in (comparison, result.comparison_of_event):
        if part is not None:
            gates += check_not_worse(part, not_worse, level=settings["level"])
    decision = None
    if decision_path is not None:
        decision = _check_decision(decision_path, files, columns)
        text = ".\n".join([decision.text.rstrip("."), *(note.rstrip(".") for note in decision.notes)])
        gates += (Gate("decision", decision.kept, text),)
    if save_state is not None:
        write_audit_state(result.sums, save_state)
    if report is not None:
        _write_report(report, result, files, decision)
    _print(found, comparison, result.comparison_of_event, gates, files, as_json=as_json, quiet=quiet)
    return 0 if all(gate.passed for gate in gates) else 1


def _check_decision(path: Path, files: tuple[str, ...], columns: Columns) -> DecisionCheck:
    """Return whether the rows keep the promise of a saved decision."""
    from equipoise.core.reading import read_predictions
    from equipoise.decisions import check_decision, load_decision
    from equipoise.decisions.files import needed_columns

    if state_paths(files):
        raise click.UsageError("--decision needs rows, and a saved state has none. Pass the predictions.")
    decision = load_decision(path)
    rows = read_predictions(
        one_or_several(files), **group_columns(columns, tuple(needed_columns(decision)), None)
    )
    checked = check_decision(decision, rows)
    if decision.calibrator is None:
        return checked
    note = "The decision applies its calibrator first; the scores above are those of the file."
    return checked._replace(notes=(note, *checked.notes))


def _check_groups(
    result: _Result, limits: Sequence[Limit], bound: Bound | None, settings: dict[str, Any], by: Sequence[str]
) -> tuple[Gate, ...]:
    from equipoise.evaluate import check_groups

    state, clusters = result.sums, result.found.card.clusters
    drawn = {name: settings[name] for name in ("level", "n_resamples", "seed")}
    return check_groups(
        state.with_groups(by) if by else state,
        limits,
        bound=bound,
        target=state.find_target(settings["target"], settings["positive"], where="audit"),
        inflation=1.0 if clusters is None else clusters.inflation(settings["level"]),
        **drawn,
    )


def _write_report(
    path: Path, result: _Result, files: tuple[str, ...], decision: DecisionCheck | None
) -> None:
    """Write what was found as a report, without looking at the rows again."""
    from equipoise.evaluate import PairedDifferences
    from equipoise.report import report_of, write_report

    name = Path(without_secrets(files[0])).stem if len(files) == 1 else "all files"
    title = f"Audit of {name}"
    hint = "" if state_paths(files) else _hint(files)
    rows = {} if result.rows is None else {name: result.rows}
    if result.baseline is None:
        report = report_of({name: result.found}, title=title, hint=hint, rows=rows)
    else:
        paired = result.comparison if isinstance(result.comparison, PairedDifferences) else None
        versus = {} if paired is None else {name: paired}
        report = report_of(
            {"baseline": result.baseline, name: result.found}, title=title, versus=versus, rows=rows
        )
    write_report(replace(report, decision=decision), path)


def _hint(files: Sequence[str]) -> str:
    """Return the command that gives advice about these files."""
    words, columns = [without_secrets(file) for file in files], given_words(*COLUMN_OPTIONS)
    if len(words) > 1:  # `report` takes several files for several models
        return shlex.join(
            ["equipoise", "calibrate", *words, *columns, "--holdout", "0.7", "-o", "calibrator.json"]
        )
    chosen = given_words("by", "cluster", "target", "positive")
    return shlex.join(["equipoise", "report", *words, *columns, *chosen, "--calib-share", "0.3"])


def _print(
    found: Audit,
    comparison: Differences | None,
    comparison_of_event: Differences | None,
    gates: Sequence[Gate],
    files: tuple[str, ...],
    *,
    as_json: bool,
    quiet: bool,
) -> None:
    if as_json:
        content = {"files": [without_secrets(file) for file in files]} | found.to_dict()
        if comparison is not None:
            content["comparison"] = [row._asdict() for row in (*comparison, *(comparison_of_event or ()))]
        content["gates"] = [gate._asdict() for gate in gates]
        content["passed"] = all(gate.passed for gate in gates)
        print_json(content)
        return
    text = found.describe(quiet=quiet)
    click.echo(_highlighted(text, found) if sys.stdout.isatty() else text)
    for part in filter(None, (comparison, comparison_of_event)):
        click.echo(f"\n{_heading(part)}")
        click.echo(str(part))
    if gates:
        click.echo("")
    held = [gate for gate in gates if gate.group and gate.passed and gate.decided]
    for gate in sorted((gate for gate in gates if gate not in held), key=lambda gate: not gate.decided):
        mark = click.style("PASS", fg="green") if gate.passed else click.style("FAIL", fg="red", bold=True)
        mark = mark if gate.decided else click.style("UNDECIDED", fg="yellow")
        click.echo(f"{mark}  {gate.text}.")
    n_groups = sum(1 for gate in gates if gate.group)
    if n_groups:
        click.echo(f"{len(held):,} of {n_groups:,} gates of groups are shown to hold.")


def _highlighted(text: str, found: Audit) -> str:
    """Return the text of an audit with its verdicts and warnings in color."""
    from equipoise.evaluate.verdict import views_of_card

    for verdict in views_of_card(found.card):
        for line in textwrap.wrap(str(verdict), 100):
            color = "green" if verdict.is_calibrated else "yellow"
            text = text.replace(line, click.style(line, fg=color, bold=True))
    return text.replace("Warning:", click.style("Warning:", fg="yellow", bold=True))


def _heading(comparison: Differences) -> str:
    from equipoise.evaluate import PairedDifferences

    if isinstance(comparison, PairedDifferences):
        return "The baseline (before) and this model (after):"
    return (
        "The baseline (before) and these rows (after). The rows are not the same, so both are resampled, and the part\n"
        "of calibration errors that chance alone adds to fewer rows is subtracted from the difference:"
    )


class _Result(NamedTuple):
    """The outcome of an audit.

    Attributes:
        found: The audit.
        sums: The sums it was computed from.
        baseline: The audit of the baseline.
        comparison: Differences from the baseline.
        comparison_of_event: Differences in the probability of the positive class, where the audit has both views.
        rows: The rows, if they were one chunk; None if they were read as a stream.
    """

    found: Audit
    sums: AuditState
    baseline: Audit | None = None
    comparison: Differences | None = None
    comparison_of_event: Differences | None = None
    rows: Predictions | None = None


@dataclass(frozen=True)
class _Request:
    """The files to audit, and how.

    Attributes:
        files: Files of rows, or of saved states.
        columns: The columns of the rows.
        by: Columns of groups.
        settings: How predictions are scored.
        engine: Where the files are summed.
        quiet: Whether progress is not shown.
        cluster: Column of clusters; all rows are held in memory for it.
    """

    files: tuple[str, ...]
    columns: Columns
    by: tuple[str, ...]
    settings: dict[str, Any]
    engine: Engine
    quiet: bool
    cluster: str | None = None

    def run(self) -> _Result:
        """Return the audit."""
        from equipoise.core.predictions.combine import concatenate
        from equipoise.core.progress import progress
        from equipoise.core.reading import iter_predictions
        from equipoise.evaluate import audit

        states = state_paths(self.files)
        if states:
            saved = read_states(states)
            return _Result(audit(saved, by=self.by or None, **self.settings), saved)
        if self.engine.name == "ray":
            state = self.engine.sums(self.files, self._grouped, self.by or None, self.settings)
            return _Result(audit(state, **self.settings), state)
        chunks = progress(
            iter_predictions(one_or_several(self.files), **self._grouped),
            label="auditing",
            unit="chunks",
            quiet=self.quiet,
        )
        return self._of_rows(chunks if self.cluster is None else concatenate(list(chunks)))

    def _of_rows(self, rows: Predictions | Iterable[Predictions]) -> _Result:
        from equipoise.evaluate.auditing import audit_sums, sum_chunks

        by = None if not self.by and self.cluster is None else self.by
        state, held = sum_chunks(rows, by=by, **self._chosen("n_bins", "closed", "positive"))
        chosen = state.find_target(self.settings["target"], self.settings["positive"], where="audit")
        drawn = self._chosen(*_DRAWN)
        found = audit_sums(state, held, ScoreSettings(**drawn), clusters=self.cluster, target=chosen)
        return _Result(found, state, rows=held)

    def run_against(self, against: str) -> _Result:
        """Return the audit and a comparison with another file: of the same rows, or of sums where one has no rows."""
        from equipoise.core.predictions.combine import align
        from equipoise.core.reading import read_predictions
        from equipoise.evaluate import audit
        from equipoise.evaluate.comparison import compare, compare_states
        from equipoise.metrics.clusters import find_clusters

        states = state_paths((against,))
        if states or state_paths(self.files):
            mine, other = self.run(), replace(self, files=(against,), by=()).run()
            settings = self._chosen(*_DRAWN, "target", "positive")
            both = mine.found.card.event is not None and other.sums.event is not None
            return mine._replace(
                baseline=other.found,
                comparison=compare_states(other.sums, mine.sums, **settings),
                comparison_of_event=compare_states(other.sums, mine.sums, **settings | _EVENT)
                if both
                else None,
            )
        if self.engine.name == "ray":
            raise click.UsageError(
                "--engine ray sums files; to be paired with --against, rows must be held here. "
                "Compare with a saved state: --against baseline.state."
            )
        baseline = read_predictions(against, **self.columns)
        rows = read_predictions(one_or_several(self.files), **self._grouped)
        with naming_ids([one_or_several(self.files), against], self.columns):
            rows, baseline = align(rows, baseline, where="audit")
        mine = self._of_rows(rows)
        # The baseline may lack the columns of groups.
        shared = tuple(column for column in mine.found.groups if column in baseline.groups)
        settings = self.settings
        if self.cluster is not None:
            settings = settings | {"clusters": find_clusters(self.cluster, rows, baseline, where="audit")}
        both = mine.found.card.event is not None and baseline.has_scores
        return mine._replace(
            baseline=audit(baseline, by=shared, **settings),
            comparison=compare(baseline, rows, **settings),
            comparison_of_event=compare(baseline, rows, **settings | _EVENT) if both else None,
        )

    @property
    def _grouped(self) -> Columns:
        return group_columns(self.columns, self.by, self.cluster)

    def _chosen(self, *names: str) -> dict[str, Any]:
        return {name: self.settings[name] for name in names}
