"""Processes that we start: they import what this process would import, and nothing from the current folder."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

__all__ = ["SAFE_PATH", "ray_cluster"]

#: For the environment of a child process: Python does not import from the folder it starts in, where a file called
#: numpy.py is not NumPy. Code that a spec names is found by its path.
SAFE_PATH = {"PYTHONSAFEPATH": "1"}


@contextmanager
def ray_cluster(ray: Any, address: str | None) -> Iterator[None]:
    """Join a cluster, or start one here; leave it as it was found.

    Args:
        ray: The package.
        address: The cluster, ``"auto"`` for the one this machine belongs to; None starts one here.
    """
    started = not ray.is_initialized()
    if started:
        # Else Ray hides graphics cards from tasks that ask for none, and warns that it will not in future.
        os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
        ray.init(
            address=address,
            log_to_driver=False,
            include_dashboard=False,
            configure_logging=False,
            job_config=_job_config(ray),
            runtime_env={"env_vars": SAFE_PATH},
        )
    try:
        yield
    finally:
        if started:
            ray.shutdown()


def _job_config(ray: Any) -> Any:
    """Return a configuration that does not give workers the current folder to import from.

    Ray puts that folder first on the path of every worker, even if this process does not import from it.
    """

    class JobConfig(ray.job_config.JobConfig):  # type: ignore[misc]
        def _serialize(self) -> Any:
            own = {os.path.abspath(place) for place in sys.path}
            given: list[str] = vars(self)["_py_driver_sys_path"]
            given[:] = [place for place in given if place in own]
            return super()._serialize()

    return JobConfig()
