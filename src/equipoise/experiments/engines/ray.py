"""Runs on a Ray cluster: the same runs, the same folders, on storage that all machines share."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from equipoise.core.child_processes import ray_cluster
from equipoise.core.errors import first_line, require
from equipoise.experiments.engines.progress import RunSummary, StatusLine
from equipoise.experiments.engines.worker import work
from equipoise.experiments.runs.folder import RunFolder
from equipoise.experiments.specs.execution import Execution
from equipoise.experiments.specs.run import Spec
from equipoise.experiments.specs.scoring import ScoringOptions

__all__ = ["run_on_ray"]

_RETRIES = 3


def run_on_ray(
    specs: Sequence[Spec],
    folder: str | os.PathLike[str],
    *,
    scoring: ScoringOptions,
    execution: Execution,
    address: str | None = None,
) -> RunSummary:
    """Do all runs on a Ray cluster.

    A worker that dies is replaced, and its run goes on from its checkpoint.

    Args:
        specs: What to run.
        folder: Where run folders are; every machine must see it under the same path.
        scoring: How runs are scored.
        execution: How they are executed; ``threads`` is what each run asks of the cluster, and with
            ``accelerator="cuda"`` it asks for a graphics card.
        address: The cluster, ``"auto"`` for the one this machine belongs to; None starts one here.

    Returns:
        What is done, and what failed and why.

    Raises:
        MissingExtraError: If Ray is not installed.
    """
    ray = require("ray", extra="ray", purpose="run on a cluster")
    base = Path(folder).resolve()
    base.mkdir(parents=True, exist_ok=True)
    threads = execution.threads or 1
    root = execution.root and str(Path(execution.root).resolve())
    there = replace(execution, threads=threads, root=root, quiet=True)
    cards = 1 if execution.accelerator in ("cuda", "gpu") else 0
    running: dict[Any, Spec] = {}
    with ray_cluster(ray, address):
        remote = ray.remote(num_cpus=threads, num_gpus=cards, max_retries=_RETRIES, retry_exceptions=False)(
            work
        )
        line = StatusLine(specs, base, quiet=execution.quiet)
        line.print_finished(specs)
        try:
            for spec in specs:
                running[remote.remote(spec, str(base), scoring, there)] = spec
            return _gather(ray, running, line, base)
        except BaseException:
            for reference in running:
                ray.cancel(reference, force=True)
            raise


def _gather(ray: Any, running: dict[Any, Spec], line: StatusLine, base: Path) -> RunSummary:
    """Wait for all runs, showing how far they are."""
    report, total = RunSummary(), len(running)
    while running:
        ended, _ = ray.wait(list(running), num_returns=1, timeout=0.5)
        line.show(done=len(report.done), running=_started(list(running.values()), base))
        for reference in ended:
            spec = running.pop(reference)
            try:
                report.done.append(RunFolder(Path(ray.get(reference))))
                line.print(f"{len(report.done)}/{total} done: {spec.label}")
            except ray.exceptions.RayError as error:
                report.failed[spec.label] = _sentence(error)
                line.print(f"failed: {spec.label}: {report.failed[spec.label]}")
    line.clear()
    return report


def _sentence(error: Exception) -> str:
    """Return what the run itself said, or else the first line of what Ray says of its process."""
    cause = getattr(error, "cause", None)
    return first_line(cause or error, most=None)


def _started(specs: Sequence[Spec], base: Path) -> list[Spec]:
    return [spec for spec in specs if (base / spec.identity / "spec.toml").exists()]
