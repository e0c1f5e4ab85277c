"""What ``equipoise report`` is given: folders of runs, or predictions by the name of their model."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from typing import TypeAlias

import click

from equipoise.core.errors import DataError
from equipoise.core.escaping import without_secrets
from equipoise.core.reading.storage import is_address

__all__ = ["Rows", "are_runs", "named_rows", "shown", "stem_of", "words_of"]

#: The rows of one model: a file, pattern, folder or address; or .npy files, one per column.
Rows: TypeAlias = str | list[str]


def are_runs(paths: Sequence[str]) -> bool:
    """Say whether folders of runs were named; a folder that holds none is taken for one of rows.

    Raises:
        DataError: If some hold runs and others do not, or a folder holds neither runs nor rows.
    """
    from equipoise.core.reading.files import find_sources
    from equipoise.experiments import find_runs

    folders = [path for path in paths if not is_address(path) and os.path.isdir(path)]
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
            f"report: {with_runs[0]} holds runs and {without_secrets(other)} does not. Name places of one sort."
        )
    return True


def named_rows(paths: Sequence[str], given: Sequence[str]) -> dict[str, Rows]:
    """Return sources by the names given, or the shortest that tell them apart; .npy files are one source.

    Raises:
        DataError: If two have the same name.
    """
    groups: list[Rows] = list(paths)
    if all(Path(path).suffix.lower() == ".npy" for path in paths):
        groups = [list(paths)]
    if given and len(given) != len(groups):
        raise click.UsageError(f"--name must be given once per file, {len(groups)} times, got {len(given)}.")
    if given:
        if len(set(given)) < len(given):
            raise DataError(f"report: names must differ, got {', '.join(given)}.")
        return dict(zip(given, groups, strict=True))
    if len(groups) < len(paths):
        return {stem_of(paths[0]): groups[0]}
    stems = [stem_of(path) for path in paths]
    names = stems if len(set(stems)) == len(stems) else [without_secrets(path) for path in paths]
    if len(set(names)) < len(names):
        raise DataError(f"report: each file may be given once, got {', '.join(names)}.")
    return dict(zip(names, groups, strict=True))


def stem_of(path: str) -> str:
    """Return the last part of a path or address, without its ending.

    Example:
        >>> stem_of("runs/before.npz"), stem_of("s3://bucket/rows.parquet?region=north")
        ('before', 'rows')
    """
    if is_address(path):
        return PurePosixPath(without_secrets(path).partition("?")[0]).stem
    return Path(path).stem or path


def words_of(source: Rows) -> list[str]:
    """Return a source as words of a command, without what is secret in addresses."""
    return [without_secrets(path) for path in ([source] if isinstance(source, str) else source)]


def shown(source: Rows) -> str:
    """Return what a page says about where rows come from."""
    return " ".join(words_of(source))
