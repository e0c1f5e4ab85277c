"""``equipoise report``: predictions as one HTML file."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click
from click.core import ParameterSource

from equipoise.cli.inputs import COLUMN_OPTIONS, column_options, given_words, naming_ids
from equipoise.cli.report_sources import Rows, are_runs, named_rows, shown, stem_of, words_of
from equipoise.cli.scoring import cluster_option, read_along, scoring_options, target_options
from equipoise.cli.shared import SHARE, check_report, json_option, print_json, quiet_option, verify_option
from equipoise.cli.states import read_states, refuse_clusters, refuse_options_of_rows, state_paths
from equipoise.core.atomic_files import write_text
from equipoise.core.errors import DataError
from equipoise.core.escaping import visible, without_secrets
from equipoise.core.reading import Columns

if TYPE_CHECKING:
    from equipoise.core import Predictions
    from equipoise.report import MethodResult, Report

__all__ = ["command"]

_GIVEN = ParameterSource.COMMANDLINE
#: What a report on folders of runs heeds.
_FOR_RUNS = ("paths", "output", "title", "baseline", "verify", "as_json", "quiet")


@click.command("report", epilog="Example:  equipoise report before.npz after.npz -o report.html --by site")
@click.argument("paths", metavar="RUNS|PREDICTIONS...", nargs=-1, required=True)
@click.option(
    "--output",
    "-o",
    default="report.html",
    show_default=True,
    type=click.Path(path_type=Path, dir_okay=False),
    help="Where to write; .html or .md.",
)
@click.option("--title", help="What stands on top.")
@click.option(
    "--name", "names", multiple=True, metavar="NAME", help="What to call a file; once per file, in order."
)
@click.option("--by", multiple=True, metavar="COLUMN", help="Column of groups to look at; may be repeated.")
@click.option("--baseline", metavar="NAME", help="The file (its --name, or without ending) to compare with.")
@click.option(
    "--calib",
    multiple=True,
    metavar="FILE",
    help="Held-out predictions of the same model, to ask the advisor for a calibrator; one per file, in order.",
)
@click.option(
    "--calib-share",
    type=SHARE,
    metavar="SHARE",
    help="In place of --calib: fit the advisor's calibrator on this share of each file, and report on the rest.",
)
@column_options
@scoring_options
@target_options
@cluster_option
@click.option(
    "--card", type=click.Path(path_type=Path, dir_okay=False), help="Write a model card's YAML here too."
)
@click.option("--dataset", help="Name of the dataset, for the model card.")
@verify_option
@json_option
@quiet_option
def command(
    paths: tuple[str, ...],
    output: Path,
    title: str | None,
    names: tuple[str, ...],
    by: tuple[str, ...],
    baseline: str | None,
    calib: tuple[str, ...],
    calib_share: float | None,
    columns: Columns,
    settings: dict[str, Any],
    cluster: str | None,
    card: Path | None,
    dataset: str | None,
    verify: bool,
    as_json: bool,
    quiet: bool,
) -> None:
    """Write a report on folders of runs or on predictions: one file that opens offline.

    PREDICTIONS are what `equipoise audit` reads: a file, a quoted pattern, a folder of .parquet files, or an address
    such as s3://bucket/rows.

    One file of predictions is reported on its own; several, of the same rows in the same order, are compared with the
    first or with --baseline. With one labelled file only, --calib-share 0.3 shows what calibration would do: fitted on
    30 % of its rows, which --seed decides, before and after on the others. States that `equipoise audit --save-state`
    kept are one model over time, in order: the report says whether it changed and since when.
    """
    if card is not None and not dataset:
        raise click.UsageError("--card needs --dataset, the name of the dataset.")
    from equipoise.core.predictions.alignment import align_all
    from equipoise.report import report_of, to_model_card, write_report

    check_report(output, option="--output")
    if are_runs(paths):
        _refuse_for_runs()
        _report_runs(
            paths, output, title=title, baseline=baseline, verify=verify, as_json=as_json, quiet=quiet
        )
        return
    states = state_paths(paths)
    if states:
        refuse_clusters(cluster, because="a saved state")
        _report_states(states, names, output, title=title, settings=settings, as_json=as_json, quiet=quiet)
        return
    sources = named_rows(paths, names)
    if calib and len(calib) != len(sources):
        raise click.UsageError(
            f"--calib must be given once per file, {len(sources)} times, got {len(calib)}."
        )
    if calib and calib_share is not None:
        raise click.UsageError("--calib and --calib-share are two ways to say the same. Give one of them.")
    told = _read(sources, calib, columns, read_along(columns, by, cluster))
    with naming_ids(list(sources.values()), columns):
        rows = align_all(list(told.judged.values()), where="report")
    told = told._replace(judged=dict(zip(told.judged, rows, strict=True)))
    if calib_share is not None:
        told = _divided(told, calib_share, settings["seed"], cluster)
    report = report_of(
        told.judged,
        title=title or ": ".join(["Calibration report", *(told.judged if len(told.judged) == 1 else ())]),
        by=by,
        baseline=baseline,
        calib=told.held_out,
        sources=told.shown,
        command=_again(paths),
        hint=f"{_again(paths)} --calib-share 0.3",
        clusters=cluster,
        **settings,
    )
    report = _with_commands(report, told.sources, told.fits)
    write_report(report, output)
    if card is not None and dataset:
        first = report.base
        write_text(card, to_model_card(first.first, model=first.name, dataset=dataset))
    _tell(report, output, as_json=as_json, quiet=quiet)


class _Told(NamedTuple):
    """Files of predictions by the name of their model.

    Attributes:
        sources: What a command to copy is told to read.
        judged: The rows that are reported on.
        held_out: The rows that calibrators are fitted on; of some, or of none.
        shown: What the page says about where rows come from.
        fits: What a command to copy is told to fit on.
    """

    sources: Mapping[str, Rows]
    judged: dict[str, Predictions]
    held_out: dict[str, Predictions]
    shown: dict[str, str]
    fits: dict[str, list[str]]


def _read(sources: Mapping[str, Rows], calib: Sequence[str], columns: Columns, grouped: Columns) -> _Told:
    from equipoise.core import read_predictions

    return _Told(
        sources,
        judged={name: read_predictions(source, **grouped) for name, source in sources.items()},
        held_out={
            name: read_predictions(path, **columns) for name, path in zip(sources, calib, strict=False)
        },
        shown={name: shown(source) for name, source in sources.items()},
        fits={name: words_of(path) for name, path in zip(sources, calib, strict=False)},
    )


def _divided(whole: _Told, share: float, seed: int, cluster: str | None) -> _Told:
    """Hold a share of every file out to fit on; of clusters whole ones."""
    from equipoise.core.predictions.divide import divide
    from equipoise.metrics.clusters import find_clusters

    rows = list(whole.judged.values())
    clusters = None if cluster is None else find_clusters(cluster, *rows, where="report").codes
    parts = divide(rows, share, seed=seed, clusters=clusters)
    kept_back = ["--holdout", f"{1 - share:g}", "--seed", str(seed)]
    return _Told(
        sources=whole.sources,
        judged={name: rest for name, (_, rest) in zip(whole.judged, parts, strict=True)},
        held_out={name: fit for name, (fit, _) in zip(whole.judged, parts, strict=True)},
        shown={
            name: f"{text}, without the rows to fit on (seed {seed})" for name, text in whole.shown.items()
        },
        fits={name: [*words_of(source), *kept_back] for name, source in whole.sources.items()},
    )


def _report_runs(
    paths: Sequence[str],
    output: Path,
    *,
    title: str | None,
    baseline: str | None,
    verify: bool,
    as_json: bool,
    quiet: bool,
) -> None:
    """Report on folders of runs, as they were scored: one file per dataset and network."""
    from equipoise.experiments import find_runs, report_of_runs
    from equipoise.report import write_report

    runs = [run for path in paths for run in find_runs(path) if run.status(verify=verify) == "finished"]
    if not runs:
        raise DataError(
            f"report: no finished run in {', '.join(paths)}. `equipoise runs` shows what is there."
        )
    reports = report_of_runs(runs, baseline=baseline, title=title)
    targets = {
        place: output if len(reports) == 1 else output.with_name(f"{output.stem}-{place}{output.suffix}")
        for place in reports
    }
    for place, report in reports.items():
        write_report(report, targets[place])
    if as_json and len(reports) > 1:
        print_json({"reports": [_record(report, targets[place]) for place, report in reports.items()]})
        return
    for place, report in reports.items():
        _tell(report, targets[place], as_json=as_json, quiet=quiet)


def _report_states(
    paths: Sequence[str],
    names: Sequence[str],
    output: Path,
    *,
    title: str | None,
    settings: dict[str, Any],
    as_json: bool,
    quiet: bool,
) -> None:
    """Report on saved states of one model, in the order in which they are named: did it change, and since when?"""
    from equipoise.report import report_of, write_report

    refuse_options_of_rows()
    sources = named_rows(paths, names)
    report = report_of(
        {name: read_states([path]) for name, path in zip(sources, paths, strict=True)},
        title=title or "Calibration over time",
        sources={name: shown(source) for name, source in sources.items()},
        over_time=True,
        command=_again(paths),
        hint="",
        **settings,
    )
    write_report(report, output)
    _tell(report, output, as_json=as_json, quiet=quiet)


def _refuse_for_runs() -> None:
    """Raise if an option was given that run folders, whose scores were written when they were made, do not heed."""
    context = click.get_current_context()
    for parameter in context.command.params:
        given = context.get_parameter_source(parameter.name or "") is _GIVEN
        if given and parameter.name not in _FOR_RUNS:
            raise click.UsageError(
                f"{parameter.opts[0]} is for files of predictions, not for folders of runs."
            )


def _again(paths: Sequence[str]) -> str:
    """Return the command that makes the report again: the files, and the options that were given."""
    names = [parameter.name or "" for parameter in click.get_current_context().command.params]
    kept = [name for name in names if name not in ("paths", "verify", "as_json", "quiet")]
    return shlex.join(["equipoise", "report", *map(without_secrets, paths), *given_words(*kept)])


def _with_commands(report: Report, sources: Mapping[str, Rows], fits: Mapping[str, Sequence[str]]) -> Report:
    """Return the report with its advice as commands: who asked on the command line goes on there.

    Args:
        report: The report.
        sources: The files that are judged, by name.
        fits: What `equipoise calibrate` is to be given for each.
    """

    def commands(method: MethodResult) -> MethodResult:
        if method.advice is None or not method.advice.chosen:
            return method
        judged = words_of(sources[method.name])
        held_out = fits[method.name]
        kept = f"{stem_of(held_out[0])}-{method.advice.chosen}.json"
        columns = given_words(*COLUMN_OPTIONS)
        fit = ["equipoise", "calibrate", *held_out, *columns, "--method", method.advice.chosen, "-o", kept]
        use = ["equipoise", "apply", kept, *judged, *columns, "-o", f"{stem_of(judged[0])}-calibrated.npz"]
        code = f"{shlex.join(fit)}\n{shlex.join(use)}"
        return replace(method, advice=replace(method.advice, code=code))

    return replace(report, methods=tuple(map(commands, report.methods)))


def _record(report: Report, output: Path) -> dict[str, object]:
    from equipoise.report.conclusion import conclusion_of

    conclusion = conclusion_of(report)
    record: dict[str, object] = {
        "report": str(output),
        "headline": conclusion.headline,
        "tone": conclusion.tone,
        "target": report.base.first.target._asdict(),
        "sentences": [one.replace("\u00a0", " ") for one in conclusion.sentences],
        "warnings": [
            {"method": method.name, "calibrator": one.name, "warning": text}
            for method in report.methods
            for one in method.calibrated
            for text in one.warnings
        ],
    }
    if report.trend is not None:
        return record | {"trend": report.trend.to_dict()}
    return record | {"methods": {one.name: one.kind for one in conclusion.judgements}}


def _tell(report: Report, output: Path, *, as_json: bool, quiet: bool) -> None:
    if as_json:
        print_json(_record(report, output))
        return
    if not quiet:
        from equipoise.report.conclusion import conclusion_of

        conclusion = conclusion_of(report)
        words = f"{conclusion.headline}. {' '.join(conclusion.sentences)}"
        click.echo(visible(words.replace("\u00a0", " ")))
    click.echo(str(output))
