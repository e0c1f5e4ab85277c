"""``equipoise report``: predictions as one HTML file."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import click
from click.core import ParameterSource

from equipoise.cli.inputs import COLUMN_OPTIONS, column_options, given_words, naming_ids
from equipoise.cli.options import (
    FRACTION,
    cluster_option,
    group_columns,
    json_option,
    quiet_option,
    scoring_options,
    target_options,
    verify_option,
)
from equipoise.cli.output import check_report, print_json
from equipoise.cli.states import read_states, refuse_clusters, refuse_options_of_rows, state_paths
from equipoise.core.atomic_files import write_text
from equipoise.core.errors import DataError
from equipoise.core.escaping import visible, without_secrets
from equipoise.core.reading import Columns
from equipoise.core.reading.storage import is_address

if TYPE_CHECKING:
    from equipoise.core import Predictions
    from equipoise.report import MethodResult, Report

__all__ = ["command"]

_GIVEN = ParameterSource.COMMANDLINE
#: The parameters that apply to folders of runs.
_RUN_PARAMETERS = ("paths", "output", "title", "baseline", "n_bins", "verify", "as_json", "quiet")

#: The rows of one model: a file, pattern, folder or address; or .npy files, one per column.
_Rows: TypeAlias = str | list[str]


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
@click.option("--title", help="Title of the report.")
@click.option(
    "--name", "names", multiple=True, metavar="NAME", help="Name of a file; once per file, in order."
)
@click.option("--by", multiple=True, metavar="COLUMN", help="Column of groups to report on; repeatable.")
@click.option("--baseline", metavar="NAME", help="The file (its --name, or without ending) to compare with.")
@click.option(
    "--calib",
    multiple=True,
    metavar="FILE",
    help="Held-out predictions of the same model, to choose and fit a calibrator on; one per file, in order.",
)
@click.option(
    "--calib-share",
    type=FRACTION,
    help="Instead of --calib: choose and fit a calibrator on this share of each file, and report on the rest.",
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

    PREDICTIONS are files that `equipoise audit` reads: a file, a quoted pattern, a folder of .parquet files, or an
    address such as s3://bucket/rows.

    One file of predictions gets a report of its own; several, of the same rows in the same order, are compared with the
    first or with --baseline. With one labeled file only, --calib-share 0.3 shows the effect of calibration: fitted on a
    random 30% of the rows, scored on the others. States that `equipoise audit --save-state` wrote are one model over
    time, in order: the report shows whether and when it changed.
    """
    if card is not None and not dataset:
        raise click.UsageError("--card needs --dataset, the name of the dataset.")
    from equipoise.core.predictions.combine import align_all
    from equipoise.report import report_of, to_model_card, write_report

    check_report(output, option="--output")
    if _are_run_folders(paths):
        _check_run_parameters()
        is_given = click.get_current_context().get_parameter_source("n_bins") is _GIVEN
        _report_runs(
            paths,
            output,
            title=title,
            baseline=baseline,
            n_bins=settings["n_bins"] if is_given else None,
            verify=verify,
            as_json=as_json,
            quiet=quiet,
        )
        return
    states = state_paths(paths)
    if states:
        refuse_clusters(cluster, because="a saved state")
        _report_states(states, names, output, title=title, settings=settings, as_json=as_json, quiet=quiet)
        return
    sources = _name_sources(paths, names)
    if calib and len(calib) != len(sources):
        raise click.UsageError(
            f"--calib must be given once per file, {len(sources)} times, got {len(calib)}."
        )
    if calib and calib_share is not None:
        raise click.UsageError("--calib and --calib-share exclude each other. Leave out one of them.")
    inputs = _read(sources, calib, columns, group_columns(columns, by, cluster))
    with naming_ids(list(sources.values()), columns):
        rows = align_all(list(inputs.tested.values()), where="report")
    inputs = inputs._replace(tested=dict(zip(inputs.tested, rows, strict=True)))
    if calib_share is not None:
        inputs = _divided(inputs, calib_share, settings["seed"], cluster)
    report = report_of(
        inputs.tested,
        title=title or ": ".join(["Calibration report", *(inputs.tested if len(inputs.tested) == 1 else ())]),
        by=by,
        baseline=baseline,
        calib=inputs.held_out,
        sources=inputs.shown,
        command=_repeat_command(paths),
        hint=f"{_repeat_command(paths)} --calib-share 0.3",
        clusters=cluster,
        **settings,
    )
    report = _with_commands(report, inputs.sources, inputs.fits)
    write_report(report, output)
    if card is not None and dataset:
        first = report.base
        write_text(card, to_model_card(first.first, model=first.name, dataset=dataset))
    _print_conclusion(report, output, as_json=as_json, quiet=quiet)


class _Inputs(NamedTuple):
    """Files of predictions by the name of their model.

    Attributes:
        sources: The files.
        tested: The rows that are reported on.
        held_out: The rows that calibrators are fitted on, for models that have some.
        shown: The source of the rows, as the page describes it.
        fits: The files to fit on and their options, for commands to copy.
    """

    sources: Mapping[str, _Rows]
    tested: dict[str, Predictions]
    held_out: dict[str, Predictions]
    shown: dict[str, str]
    fits: dict[str, list[str]]


def _read(sources: Mapping[str, _Rows], calib: Sequence[str], columns: Columns, grouped: Columns) -> _Inputs:
    from equipoise.core import read_predictions

    return _Inputs(
        sources,
        tested={name: read_predictions(source, **grouped) for name, source in sources.items()},
        held_out={
            name: read_predictions(path, **columns) for name, path in zip(sources, calib, strict=False)
        },
        shown={name: _describe_source(source) for name, source in sources.items()},
        fits={name: _source_words(path) for name, path in zip(sources, calib, strict=False)},
    )


def _divided(whole: _Inputs, share: float, seed: int, cluster: str | None) -> _Inputs:
    """Hold a share of every file out to fit on; clusters stay whole."""
    from equipoise.core.predictions.combine import divide
    from equipoise.metrics.clusters import find_clusters

    rows = list(whole.tested.values())
    clusters = None if cluster is None else find_clusters(cluster, *rows, where="report").codes
    parts = divide(rows, share, seed=seed, clusters=clusters)
    kept_back = ["--holdout", f"{1 - share:g}", "--seed", str(seed)]
    return _Inputs(
        sources=whole.sources,
        tested={name: rest for name, (_, rest) in zip(whole.tested, parts, strict=True)},
        held_out={name: fit for name, (fit, _) in zip(whole.tested, parts, strict=True)},
        shown={
            name: f"{text}, without the rows to fit on (seed {seed})" for name, text in whole.shown.items()
        },
        fits={name: [*_source_words(source), *kept_back] for name, source in whole.sources.items()},
    )


def _report_runs(
    paths: Sequence[str],
    output: Path,
    *,
    title: str | None,
    baseline: str | None,
    n_bins: int | None,
    verify: bool,
    as_json: bool,
    quiet: bool,
) -> None:
    """Report on folders of runs: one file per dataset and network."""
    from equipoise.experiments import find_runs, report_of_runs
    from equipoise.report import write_report

    runs = [run for path in paths for run in find_runs(path) if run.status(verify=verify) == "finished"]
    if not runs:
        raise DataError(f"report: no finished run in {', '.join(paths)}. `equipoise runs` lists the runs.")
    reports = report_of_runs(runs, baseline=baseline, title=title, n_bins=n_bins)
    targets = {
        name: output if len(reports) == 1 else output.with_name(f"{output.stem}-{name}{output.suffix}")
        for name in reports
    }
    for name, report in reports.items():
        write_report(report, targets[name])
    if as_json and len(reports) > 1:
        print_json({"reports": [_record(report, targets[name]) for name, report in reports.items()]})
        return
    for name, report in reports.items():
        _print_conclusion(report, targets[name], as_json=as_json, quiet=quiet)


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
    """Report on saved states of one model, in the order given."""
    from equipoise.report import report_of, write_report

    refuse_options_of_rows()
    sources = _name_sources(paths, names)
    report = report_of(
        {name: read_states([path]) for name, path in zip(sources, paths, strict=True)},
        title=title or "Calibration over time",
        sources={name: _describe_source(source) for name, source in sources.items()},
        over_time=True,
        command=_repeat_command(paths),
        hint="",
        **settings,
    )
    write_report(report, output)
    _print_conclusion(report, output, as_json=as_json, quiet=quiet)


def _check_run_parameters() -> None:
    """Raise if an option was given that does not apply to run folders, which are scored already."""
    context = click.get_current_context()
    for parameter in context.command.params:
        given = context.get_parameter_source(parameter.name or "") is _GIVEN
        if given and parameter.name not in _RUN_PARAMETERS:
            raise click.UsageError(
                f"{parameter.opts[0]} is for files of predictions, not for folders of runs."
            )


def _repeat_command(paths: Sequence[str]) -> str:
    """Return the command that makes the report again: the files, and the options that were given."""
    names = [parameter.name or "" for parameter in click.get_current_context().command.params]
    repeated = [name for name in names if name not in ("paths", "verify", "as_json", "quiet")]
    return shlex.join(["equipoise", "report", *map(without_secrets, paths), *given_words(*repeated)])


def _with_commands(report: Report, sources: Mapping[str, _Rows], fits: Mapping[str, Sequence[str]]) -> Report:
    """Return the report with its advice as commands instead of Python.

    Args:
        report: The report.
        sources: The files that are reported on, by name.
        fits: The arguments of `equipoise calibrate` for each.
    """

    def commands(method: MethodResult) -> MethodResult:
        if method.advice is None or not method.advice.chosen:
            return method
        tested = _source_words(sources[method.name])
        held_out = fits[method.name]
        saved = f"{_stem(held_out[0])}-{method.advice.chosen}.json"
        columns = given_words(*COLUMN_OPTIONS)
        fit = ["equipoise", "calibrate", *held_out, *columns, "--method", method.advice.chosen, "-o", saved]
        use = ["equipoise", "apply", saved, *tested, *columns, "-o", f"{_stem(tested[0])}-calibrated.npz"]
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
    return record | {"methods": {one.name: one.kind for one in conclusion.judgments}}


def _print_conclusion(report: Report, output: Path, *, as_json: bool, quiet: bool) -> None:
    if as_json:
        print_json(_record(report, output))
        return
    if not quiet:
        from equipoise.report.conclusion import conclusion_of

        conclusion = conclusion_of(report)
        words = f"{conclusion.headline}. {' '.join(conclusion.sentences)}"
        click.echo(visible(words.replace("\u00a0", " ")))
    click.echo(str(output))


def _are_run_folders(paths: Sequence[str]) -> bool:
    """Return whether the paths are folders of runs; a folder without runs is a folder of rows.

    Raises:
        DataError: If some hold runs and others do not, or a folder holds neither runs nor rows.
    """
    folders = [path for path in paths if not is_address(path) and os.path.isdir(path)]
    if not folders:
        return False
    from equipoise.core.reading.files import find_sources
    from equipoise.experiments import find_runs

    with_runs = [path for path in folders if find_runs(path)]
    if not with_runs:
        for folder in folders:
            try:
                find_sources(folder)
            except DataError as error:
                raise DataError(f"report: no run in {folder}, and no rows. {error}") from None
        return False
    other = next((path for path in paths if path not in with_runs), None)
    if other is not None:
        raise DataError(
            f"report: {with_runs[0]} contains runs and {without_secrets(other)} does not. Name folders of one kind."
        )
    return True


def _name_sources(paths: Sequence[str], given: Sequence[str]) -> dict[str, _Rows]:
    """Return sources by the names given, or the shortest distinct ones; .npy files are one source.

    Raises:
        DataError: If two have the same name.
    """
    groups: list[_Rows] = list(paths)
    if all(Path(path).suffix.lower() == ".npy" for path in paths):
        groups = [list(paths)]
    if given and len(given) != len(groups):
        raise click.UsageError(f"--name must be given once per file, {len(groups)} times, got {len(given)}.")
    if given:
        if len(set(given)) < len(given):
            raise DataError(f"report: names must be distinct, got {', '.join(given)}.")
        return dict(zip(given, groups, strict=True))
    if len(groups) < len(paths):
        return {_stem(paths[0]): groups[0]}
    stems = [_stem(path) for path in paths]
    names = stems if len(set(stems)) == len(stems) else [without_secrets(path) for path in paths]
    if len(set(names)) < len(names):
        raise DataError(f"report: each file may be given once, got {', '.join(names)}.")
    return dict(zip(names, groups, strict=True))


def _stem(path: str) -> str:
    """Return the last part of a path or address, without its ending.

    Example:
        >>> _stem("runs/before.npz"), _stem("s3://bucket/rows.parquet?region=north")
        ('before', 'rows')
    """
    if is_address(path):
        return PurePosixPath(without_secrets(path).partition("?")[0]).stem
    return Path(path).stem or path


def _source_words(source: _Rows) -> list[str]:
    """Return a source as arguments of a command, without secrets."""
    return [without_secrets(path) for path in ([source] if isinstance(source, str) else source)]


def _describe_source(source: _Rows) -> str:
    """Return the description of a source."""
    return " ".join(_source_words(source))
