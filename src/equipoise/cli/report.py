"""``equipoise report``: predictions as one HTML file."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import click

from equipoise import Predictions, read_predictions
from equipoise.cli.shared import json_option, print_json, quiet_option
from equipoise.core.errors import DataError
from equipoise.core.files import write_text
from equipoise.experiments import find_runs, report_of_runs
from equipoise.report import Report, report_of, to_model_card, write_report
from equipoise.report.verdict import verdict_of

__all__ = ["command"]


@click.command("report", epilog="Example:  equipoise report before.npz after.npz -o report.html --by site")
@click.argument(
    "paths", metavar="RUNS|PREDICTIONS...", nargs=-1, required=True, type=click.Path(path_type=Path)
)
@click.option(
    "--output",
    "-o",
    default="report.html",
    show_default=True,
    type=click.Path(path_type=Path, dir_okay=False),
    help="Where to write; .html or .md.",
)
@click.option("--title", help="What stands on top.")
@click.option("--by", multiple=True, metavar="COLUMN", help="Column of groups to look at; may be repeated.")
@click.option("--baseline", metavar="NAME", help="The file (without ending) that others are compared with.")
@click.option(
    "--calib",
    multiple=True,
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Held-out predictions of the same model, to ask the advisor for a calibrator; one per file, in order.",
)
@click.option("--logits", help="Name of the array or column with logits.")
@click.option("--probs", help="Name of the array or column with probabilities.")
@click.option("--labels", help="Name of the array or column with true classes.")
@click.option("--bins", "n_bins", default=15, show_default=True, help="Bins of equal width.")
@click.option("--level", default=0.95, show_default=True, help="Level of the intervals.")
@click.option("--resamples", default=1000, show_default=True, help="Bootstrap resamples.")
@click.option("--seed", default=0, show_default=True, help="Seed of the resamples.")
@click.option(
    "--card", type=click.Path(path_type=Path, dir_okay=False), help="Write a model card's YAML here too."
)
@click.option("--dataset", help="Name of the dataset, for the model card.")
@json_option
@quiet_option
def command(
    paths: tuple[Path, ...],
    output: Path,
    title: str | None,
    by: tuple[str, ...],
    baseline: str | None,
    calib: tuple[Path, ...],
    logits: str | None,
    probs: str | None,
    labels: str | None,
    n_bins: int,
    level: float,
    resamples: int,
    seed: int,
    card: Path | None,
    dataset: str | None,
    as_json: bool,
    quiet: bool,
) -> None:
    """Write a report on folders of runs or on predictions: one file that opens offline.

    One file of predictions is reported on its own; several, of the same rows in the same order, are compared with the
    first or with --baseline.
    """
    if card is not None and not dataset:
        raise click.UsageError("--card needs --dataset, the name of the dataset.")
    if any(path.is_dir() for path in paths):
        _report_runs(paths, output, title=title, baseline=baseline, as_json=as_json, quiet=quiet)
        return
    if calib and len(calib) != len(paths):
        raise click.UsageError(f"--calib must be given once per file, {len(paths)} times, got {len(calib)}.")
    read = partial(_read, logits=logits, probs=probs, labels=labels)
    named = {name: read(path, by) for name, path in _names(paths).items()}
    held_out = {name: read(path, ()) for name, path in zip(named, calib, strict=False)}
    report = report_of(
        named,
        title=title
        or ("Calibration report: " + ", ".join(named) if len(named) == 1 else "Calibration report"),
        by=by,
        baseline=baseline,
        calib=held_out,
        sources={name: str(path) for name, path in _names(paths).items()},
        command=_again(paths, output, by, baseline, calib),
        n_bins=n_bins,
        level=level,
        n_resamples=resamples,
        seed=seed,
    )
    write_report(report, output)
    if card is not None and dataset:
        first = report.base
        write_text(card, to_model_card(first.first, model=first.name, dataset=dataset))
    _tell(report, output, as_json=as_json, quiet=quiet)


def _report_runs(
    paths: Sequence[Path],
    output: Path,
    *,
    title: str | None,
    baseline: str | None,
    as_json: bool,
    quiet: bool,
) -> None:
    """Report on folders of runs, as they were scored: one file per dataset and network."""
    runs = [run for path in paths for run in find_runs(path) if run.status() == "finished"]
    if not runs:
        raise DataError(
            f"report: no finished run in {', '.join(map(str, paths))}. `equipoise runs` shows what is there."
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


def _read(
    path: Path, by: Sequence[str], *, logits: str | None, probs: str | None, labels: str | None
) -> Predictions:
    """Read a file of predictions."""
    return read_predictions(path, logits=logits, probs=probs, labels=labels, groups=tuple(by))


def _names(paths: Sequence[Path]) -> dict[str, Path]:
    """Return paths by the shortest names that tell them apart: stems, else the paths themselves."""
    stems = [path.stem for path in paths]
    names = stems if len(set(stems)) == len(stems) else [str(path) for path in paths]
    if len(set(names)) < len(names):
        raise DataError(f"report: each file may be given once, got {', '.join(names)}.")
    return dict(zip(names, paths, strict=True))


def _again(
    paths: Sequence[Path], output: Path, by: Sequence[str], baseline: str | None, calib: Sequence[Path]
) -> str:
    words = ["equipoise", "report", *map(str, paths)]
    words += [word for column in by for word in ("--by", column)]
    words += ["--baseline", baseline] if baseline else []
    words += [word for path in calib for word in ("--calib", str(path))]
    return shlex.join([*words, "-o", str(output)])


def _record(report: Report, output: Path) -> dict[str, object]:
    verdict = verdict_of(report)
    judged = {one.name: one.kind for one in verdict.judgements}
    return {"report": str(output), "headline": verdict.headline, "tone": verdict.tone, "methods": judged}


def _tell(report: Report, output: Path, *, as_json: bool, quiet: bool) -> None:
    if as_json:
        print_json(_record(report, output))
        return
    if not quiet:
        verdict = verdict_of(report)
        click.echo(f"{verdict.headline}. {' '.join(verdict.sentences)}".replace("\u00a0", " "))
    click.echo(str(output))
