"""Saved states, which hold the sums of an audit instead of rows, as input of commands."""

from __future__ import annotations

from collections.abc import Sequence
from glob import glob, has_magic
from pathlib import Path
from typing import TYPE_CHECKING

import click

from equipoise.cli.inputs import COLUMN_OPTIONS, refuse_given
from equipoise.core.errors import DataError
from equipoise.core.escaping import without_secrets
from equipoise.core.reading.storage import is_address

if TYPE_CHECKING:
    from equipoise.evaluate.audit_state import AuditState

__all__ = ["read_states", "refuse_clusters", "refuse_options_of_rows", "state_paths"]

_FIXED = ("n_bins", "closed")


def state_paths(files: Sequence[str]) -> list[str]:
    """Return the files, patterns expanded, if they hold states; none if they hold rows.

    Raises:
        DataError: If some hold states and others rows.
    """
    from equipoise.core.records import is_record

    elsewhere = next((file for file in files if is_address(file) and is_record(file)), None)
    if elsewhere is not None:
        raise DataError(
            f"{without_secrets(elsewhere)}: saved states are small and read from this machine. Copy it here."
        )
    expanded = [name for file in files for name in (sorted(glob(file)) if _is_pattern(file) else [file])]
    states = [name for name in expanded if is_record(name)]
    if states and len(states) < len(expanded):
        rows = next(name for name in expanded if name not in states)
        raise DataError(f"{states[0]} is a saved state and {rows} contains rows. Name files of one kind.")
    return states


def _is_pattern(file: str) -> bool:
    return has_magic(file) and not is_address(file) and not Path(file).exists()


def read_states(paths: Sequence[str]) -> AuditState:
    """Return the states of some files as one.

    Raises:
        DataError: If rows would count twice, or the states do not belong together.
    """
    from equipoise.evaluate.audit_state import merge_states, read_audit_state

    if len(set(paths)) < len(paths):
        raise DataError("a saved state is named twice; its rows would count twice. Name it once.")
    return merge_states({path: read_audit_state(path) for path in paths})


def refuse_clusters(cluster: str | None, *, because: str) -> None:
    """Raise if clusters are to be resampled where only sums are available.

    Raises:
        UsageError: With the reason.
    """
    if cluster is not None:
        raise click.UsageError(f"--cluster needs rows: {because} keeps no clusters. Leave one of them out.")


def refuse_options_of_rows() -> None:
    """Raise if an option was given that only applies to rows, while there are only states.

    Raises:
        UsageError: With the option.
    """
    refuse_given((*COLUMN_OPTIONS, *_FIXED), "applies to rows; a saved state has its own setting.")
