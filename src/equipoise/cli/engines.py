"""Options that say where files are summed: in this process, or spread over a cluster."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import click

from equipoise.cli.inputs import one_or_several

if TYPE_CHECKING:
    from equipoise.core.reading import Columns
    from equipoise.evaluate import AuditState

__all__ = ["Engine", "engine_options"]

F = TypeVar("F", bound=Callable[..., Any])


class Engine(NamedTuple):
    """Where files are summed.

    Attributes:
        name: ``"local"`` or ``"ray"``.
        address: The cluster; None starts one on this machine.
    """

    name: str = "local"
    address: str | None = None

    def sums(
        self, files: Sequence[str], columns: Columns, by: Sequence[str] | None, settings: dict[str, Any]
    ) -> AuditState:
        """Return the sums of all files, one task per file."""
        from equipoise.integrations.ray import sum_on_ray

        binned = {name: settings[name] for name in ("n_bins", "closed", "positive")}
        return sum_on_ray(one_or_several(files), by=by, address=self.address, **binned, **columns)


def engine_options(function: F) -> F:
    """Add ``--engine`` and ``--address``; the command gets them as one argument ``engine``."""

    @wraps(function)
    def command(*args: Any, engine: str, address: str | None, **options: Any) -> Any:
        if address is not None and engine != "ray":
            raise click.UsageError("--address needs --engine ray.")
        return function(*args, engine=Engine(engine, address), **options)

    described: Any = click.option(
        "--address", metavar="ADDRESS", help="The Ray cluster, or 'auto'; by default one is started here."
    )(command)
    described = click.option(
        "--engine",
        type=click.Choice(["local", "ray"]),
        default="local",
        show_default=True,
        help="Where files are summed: here, or each by a worker of a Ray cluster.",
    )(described)
    result: F = described
    return result
