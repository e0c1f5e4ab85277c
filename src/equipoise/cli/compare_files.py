"""``equipoise compare-files``: files of predictions as seeds of methods, in one table."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from glob import glob
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from equipoise.cli.inputs import column_options, naming_ids
from equipoise.cli.options import (
    cluster_option,
    group_columns,
    json_option,
    margin_option,
    quiet_option,
    scoring_options,
    style_option,
)
from equipoise.cli.output import check_report, print_json
from equipoise.core.errors import DataError
from equipoise.core.reading.storage import is_address

if TYPE_CHECKING:
    from equipoise.core import Predictions
    from equipoise.core.reading import Columns

__all__ = ["command"]


@click.command("compare-files", epilog="Example:  equipoise compare-files ce/*.npz focal/*.npz --baseline ce")
@click.argument("files", metavar="[NAME=]FILES...", nargs=-1, required=True)
@click.option(
    "--calib",
    multiple=True,
    metavar="[NAME=]FILES",
    help="Held-out predictions of the same trainings, to fit calibrators on; a folder or pattern, once per method.",
)
@click.option("--calibrator", "calibrators", multiple=True, default=("temperature",), show_default=True)
@click.option("--baseline", metavar="NAME", help="The method others are compared with; the first by default.")
@style_option
@click.option(
    "--report", type=click.Path(path_type=Path, dir_okay=False), help="Write a report here too; .html or .md."
)
@margin_option
@column_options
@scoring_options
@cluster_option
@json_option
@quiet_option
def command(
    files: tuple[str, ...],
    calib: tuple[str, ...],
    calibrators: tuple[str, ...],
    baseline: str | None,
    style: str,
    report: Path | None,
    margins: tuple[tuple[str, float], ...],
    columns: Columns,
    settings: dict[str, Any],
    cluster: str | None,
    as_json: bool,
    quiet: bool,
) -> None:
    """Compare methods by files of predictions, one file per seed, all of the same rows.

    Rows must be in the same order, or have --ids.

    Files of one folder are seeds of one method, named after the folder; NAME=FOLDER or NAME='PATTERN' gives another
    name. A word that is an existing file, folder or pattern is never split at its '=': lr=0.1/s0.npz is a seed of
    the method lr=0.1.
    """
    from equipoise.experiments import compare_seeds, format_table
    from equipoise.report import write_report

    if report is not None:
        check_report(report)
    groups = _grouped(files)
    tested = _read(groups, group_columns(columns, (), cluster))
    with naming_ids([file for group in groups.values() for file in group], columns):
        found = compare_seeds(
            tested,
            calib=_read(_grouped(calib), columns) if calib else None,
            calibrators=calibrators,
            baseline=baseline,
            margins=dict(margins),
            clusters=cluster,
            **settings,
        )
    n_dropped = sum(part.n_dropped for parts in tested.values() for part in parts)
    if report is not None:
        write_report(found.report(), report)
    if as_json:
        resampled = found.table.clusters
        print_json(
            {
                **({} if resampled is None else {"clusters": resampled._asdict()}),
                **({"n_dropped": n_dropped} if n_dropped else {}),
                "rows": found.rows(),
                "baseline": found.table.baseline,
                "table": found.table.records(),
                "differences": found.table.difference_records(),
            }
        )
        return
    click.echo(format_table(found.table, style))
    if n_dropped and not quiet:
        click.echo(
            f"\n{n_dropped:,} rows with missing values were left out, over all files.", err=style != "text"
        )
    if report is not None and not quiet:
        click.echo(f"\nreport: {report}")


def _read(groups: dict[str, list[Path]], columns: Columns) -> dict[str, list[Predictions]]:
    from equipoise.core import read_predictions

    return {name: [read_predictions(file, **columns) for file in files] for name, files in groups.items()}


def _grouped(words: Sequence[str]) -> dict[str, list[Path]]:
    """Return files by method: of the name given, or of the folder they lie in; each sorted as its seeds are."""
    groups: dict[str, list[Path]] = {}
    folders: dict[str, Path] = {}
    for word in words:
        name, source = _split_name(word)
        for file in _files(source):
            folder = file.resolve().parent
            if name is None and folders.setdefault(folder.name, folder) != folder:
                raise DataError(
                    f"compare-files: two folders are called {folder.name!r}, {folders[folder.name]} and {folder}, so "
                    "their files would be seeds of one method. Name each: NAME=FOLDER."
                )
            groups.setdefault(name or folder.name, []).append(file)
    for name, files in groups.items():
        if len({file.resolve() for file in files}) < len(files):
            raise DataError(f"compare-files: a file of {name!r} is given twice. Each is one seed.")
    return groups


def _split_name(word: str) -> tuple[str | None, str]:
    """Return NAME and FILES of a word; a word that is a path, or a pattern with a match, has no name."""
    name, equals, source = word.partition("=")
    path = Path(word)
    in_folder = "=" in str(path.parent) and path.parent.is_dir()
    is_path = is_address(word) or in_folder or path.exists() or any(True for _ in _found(path))
    if not (name and equals and source) or is_path:
        return None, word
    return name, source


def _found(path: Path) -> Iterable[Path]:
    if path.is_dir():
        return path.iterdir()
    # A folder that is there is no pattern, whatever brackets its name holds.
    return path.parent.glob(path.name) if path.parent.is_dir() else map(Path, glob(str(path)))


def _files(source: str) -> list[Path]:
    from equipoise.core.reading.files import find_sources
    from equipoise.core.reading.formats import ENDINGS

    path = Path(source)
    if path.is_file():
        return [path]
    files = sorted(file for file in _found(path) if file.suffix.lower() in ENDINGS)
    if not files and path.suffix:
        find_sources(source)  # raises the error that other commands raise
    if not files:
        raise DataError(
            f"compare-files: found no file of predictions for {source!r}. Give files, a folder, or a quoted pattern."
        )
    return files
