"""Ray: the files of an audit spread over a cluster, their sums added here."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any, Unpack

from equipoise.core.child_processes import ray_cluster
from equipoise.core.errors import DataError, EquipoiseError, first_line, require
from equipoise.core.reading import Columns
from equipoise.core.reading.columns import check_columns
from equipoise.core.reading.files import FilePart, FileSource, SourceLike, find_sources, name_of
from equipoise.core.reading.read import columns_of_stream, iter_file
from equipoise.evaluate.audit_state import AuditState

__all__ = ["sum_on_ray"]

_WHERE = "sum_on_ray"
_RETRIES = 3
#: Files under way at once, at most; what they gave waits here until its turn.
_AHEAD = 256


def sum_on_ray(
    path: SourceLike,
    *,
    by: Sequence[str] | None = None,
    n_bins: int = 15,
    closed: str = "right",
    positive: str | int | None = None,
    address: str | None = None,
    **columns: Unpack[Columns],
) -> AuditState:
    """Sum files for an audit on a Ray cluster, one task per file.

    A task reads its file in chunks, so a worker's memory does not grow with it. Sums are added in the order of the
    files, whatever the order in which workers finish: the result does not depend on how many there are. A worker
    that dies is replaced and its file is read again.

    Args:
        path: Files as in :func:`equipoise.read_predictions`; every machine must see them under the
            same path or address.
        by: Columns of groups to look at one by one; by default all that the predictions have.
        n_bins: Bins of equal width.
        closed: Which side of a bin belongs to it.
        positive: Of two classes, the one whose probability is summed too; by default class 1.
        address: The cluster, ``"auto"`` for the one this machine belongs to; None starts one here.
        **columns: What the columns are, as in :func:`equipoise.read_predictions`.

    Returns:
        The sums, for :func:`equipoise.evaluate.audit`.

    Raises:
        DataError: If a file is damaged, or the files do not belong together.
        MissingExtraError: If Ray is not installed.
    """
    ray = require("ray", extra="ray", purpose="spread files over a cluster")
    said = check_columns(columns, where=_WHERE)
    sources = [_absolute(source) for source in find_sources(path)]
    said = columns_of_stream(sources, said)
    total: AuditState | None = None
    with ray_cluster(ray, address):
        remote = ray.remote(num_cpus=1, max_retries=_RETRIES, retry_exceptions=False)(_sum_file)
        tasks = (remote.remote(source, said, by, n_bins, closed, positive) for source in sources)
        for source, found in zip(sources, _in_order(ray, tasks), strict=True):
            total = _added(total, found, source)
    if total is None:
        raise DataError(f"{_WHERE}: no rows to score: every label is ignored.")
    return total


def _sum_file(
    source: FileSource,
    columns: Columns,
    by: Sequence[str] | None,
    n_bins: int,
    closed: str,
    positive: str | int | None = None,
) -> AuditState | None:
    """Sum one file where a worker runs; None if every row of it is ignored."""
    chunks = iter_file(source, columns)
    first = next(chunks, None)
    if first is None:
        return None
    state = AuditState.like(first, by=by, n_bins=n_bins, closed=closed, positive=positive)
    state.update(first)
    for chunk in chunks:
        state.update(chunk)
    return state


def _in_order(ray: Any, tasks: Iterator[Any]) -> Iterator[AuditState | None]:
    """Yield what tasks give in their order, with some of them under way."""
    waiting = deque(islice(tasks, _AHEAD))
    try:
        while waiting:
            yield _result(ray, waiting[0])
            waiting.popleft()
            waiting.extend(islice(tasks, 1))
    finally:
        for reference in waiting:
            ray.cancel(reference, force=True)


def _result(ray: Any, reference: Any) -> AuditState | None:
    try:
        found: AuditState | None = ray.get(reference)
    except ray.exceptions.RayTaskError as error:
        # What the file did wrong is said as if it had been read here.
        if isinstance(error.cause, (EquipoiseError, ValueError)):
            raise error.cause from None
        raise
    except ray.exceptions.RayError as error:
        raise DataError(
            f"{_WHERE}: a worker was lost {_RETRIES + 1} times ({first_line(error, most=160)}). Has it enough memory?"
        ) from error
    return found


def _added(total: AuditState | None, found: AuditState | None, source: FileSource) -> AuditState | None:
    if total is None or found is None:
        # Arrays in Ray's store are read-only, and the first state is added to.
        return total or deepcopy(found)
    try:
        total.merge(found, same_source=True)
    except DataError as error:
        raise error.at(where=name_of(source)) from None
    return total


def _absolute(source: FileSource) -> FileSource:
    if isinstance(source, Mapping):
        return {name: file.resolve() for name, file in source.items()}
    if isinstance(source, FilePart):
        return replace(source, file=source.file.resolve()) if isinstance(source.file, Path) else source
    return source.resolve() if isinstance(source, Path) else source
