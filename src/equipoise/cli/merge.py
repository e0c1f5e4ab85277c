"""``equipoise merge``: saved states of several files as one."""

from __future__ import annotations

from pathlib import Path

import click

from equipoise.cli.options import quiet_option
from equipoise.cli.output import check_output
from equipoise.cli.states import read_states, state_paths
from equipoise.core.errors import DataError

__all__ = ["command"]


@click.command("merge", epilog="Example:  equipoise merge monday.state tuesday.state -o week.state")
@click.argument("files", nargs=-1, required=True, metavar="STATE...")
@click.option(
    "--output",
    "-o",
    required=True,
    type=click.Path(path_type=Path, dir_okay=False),
    help="Where to write; .state, .npz or .json.",
)
@quiet_option
def command(files: tuple[str, ...], output: Path, quiet: bool) -> None:
    """Add saved states: one file per day, machine or partition becomes one file for all.

    STATE is what `equipoise audit ... --save-state` wrote. No rows are needed. States that share rows are an error:
    always if they contain the same source, whatever its bins and groups, or the same --ids; otherwise if more rows are
    equal than coincidence explains.
    """
    from equipoise.core.records import RECORD_ENDINGS
    from equipoise.evaluate import write_audit_state

    check_output(output, RECORD_ENDINGS)
    paths = state_paths(files)
    if not paths:
        raise DataError(
            f"{files[0]}: contains rows, not a saved state. Write one: equipoise audit FILE --save-state NAME.state"
        )
    merged = read_states(paths)
    write_audit_state(merged, output)
    if not quiet:
        click.echo(f"{merged.n_samples:,} rows of {len(paths)} states", err=True)
    click.echo(str(output))
