"""Runs on a Ray cluster: the same runs, the same folders, on storage that all machines share."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from equipoise.core.errors import require
from equipoise.experiments.engines.progress import Report, StatusLine
from equipoise.experiments.engines.worker import work
from equipoise.experiments.folder import RunFolder
from equipoise.experiments.run import RunOptions
from equipoise.experiments.spec import Spec

__all__ = ["run_on_ray"]

_RETRIES = 3


def run_on_ray(
    specs: Sequence[Spec],
    folder: str | os.PathLike[str],
    *,
    options: RunOptions,
    address: str | None = None,
) -> Report:
    """Do all runs on a Ray cluster.

    A worker that dies is replaced, and its run goes on from its checkpoint.

    Args:
        specs: What to run.
        folder: Where run folders are; every machine must see it under the same path.
        options: What does not change results; ``threads`` is what each run asks of the cluster.
        address: The cluster, ``"auto"`` for the one this machine belongs to; None starts one here.

    Returns:
        What is done, and what failed and why.

    Raises:
        MissingExtraError: If Ray is not installed.
    """
    ray = require("ray", extra="ray", purpose="run on a cluster")
    base = Path(folder).resolve()
    base.mkdir(parents=True, exist_ok=True)
    threads = options.threads or 1
    started = not ray.is_initialized()
    if started:
        ray.init(address=address, log_to_driver=False, include_dashboard=False, configure_logging=False)
    try:
        remote = ray.remote(num_cpus=threads, max_retries=_RETRIES, retry_exceptions=False)(work)
        quiet = replace(options, threads=threads, quiet=True)
        running = {remote.remote(spec.to_table(), str(base), quiet): spec for spec in specs}
        report, line = Report(), StatusLine(specs, base, quiet=options.quiet)
        while running:
            ended, _ = ray.wait(list(running), num_returns=1, timeout=0.5)
            line.show(done=len(report.done), running=_started(list(running.values()), base))
            for reference in ended:
                spec = running.pop(reference)
                try:
                    report.done.append(RunFolder(Path(ray.get(reference))))
                    line.tell(f"{len(report.done)}/{len(specs)} done: {spec.label}")
                except ray.exceptions.RayError as error:
                    report.failed[spec.label] = str(error).strip().splitlines()[-1]
                    line.tell(f"failed: {spec.label}: {report.failed[spec.label]}")
        line.clear()
        return report
    finally:
        if started:
            ray.shutdown()


def _started(specs: Sequence[Spec], base: Path) -> list[Spec]:
    return [spec for spec in specs if (base / spec.identity / "spec.toml").exists()]
