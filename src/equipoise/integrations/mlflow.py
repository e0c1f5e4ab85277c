"""MLflow: epochs as they happen, or run folders afterwards; in a database on this machine, or on a server."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import Self, final

from equipoise.core.errors import needs
from equipoise.integrations.run_log import RunLog, Settings, epoch_values
from equipoise.training.history import Row

with needs("mlflow", extra="mlflow", purpose="log runs to MLflow"):
    from mlflow.entities import Metric, Param
    from mlflow.tracking import MlflowClient

__all__ = ["MlflowLog", "export_run"]

#: By which a run is found again.
_TAG = "equipoise.run"
#: As many numbers as MLflow takes in one call.
_MOST = 1000


@final
class MlflowLog:
    """Logs epochs to MLflow; ``fit(..., on_epoch=log)`` calls it.

    Args:
        where: MLflow's address, such as ``"sqlite:///runs.db"`` or that of a server.
        name: What people call the run.
        key: By which the run is found if it was logged before, and then goes on; None always begins a new one.
        experiment: MLflow's name for runs that belong together; it is made if it is not there.
        artifacts: Where a new experiment keeps files; by default where MLflow does.
        settings: What was asked for.
    """

    def __init__(
        self,
        where: str,
        *,
        name: str,
        key: str | None = None,
        experiment: str = "equipoise",
        artifacts: str | None = None,
        settings: Settings = MappingProxyType({}),
    ) -> None:
        self._client = MlflowClient(tracking_uri=where)
        place = self._place(experiment, artifacts)
        self._run_id = self._found(place, key) or self._begun(place, name, key)
        params = [Param(key, str(value)) for key, value in settings.items()]
        self._client.log_batch(self._run_id, params=params)

    def _place(self, experiment: str, artifacts: str | None) -> str:
        found = self._client.get_experiment_by_name(experiment)
        if found is not None:
            return str(found.experiment_id)
        return str(self._client.create_experiment(experiment, artifact_location=artifacts))

    def _found(self, place: str, key: str | None) -> str | None:
        if key is None:
            return None
        found = self._client.search_runs([place], filter_string=f"tags.`{_TAG}` = '{key}'", max_results=1)
        return str(found[0].info.run_id) if found else None

    def _begun(self, place: str, name: str, key: str | None) -> str:
        tags = {} if key is None else {_TAG: key}
        return str(self._client.create_run(place, run_name=name, tags=tags).info.run_id)

    def __call__(self, row: Row) -> None:
        """Log an epoch, unless it was logged before."""
        epoch, values = epoch_values(row)
        first = next(iter(values), None)
        if first is not None and epoch not in self._epochs(first):
            self._log(values, epoch)

    def _epochs(self, name: str) -> set[int]:
        return {metric.step for metric in self._client.get_metric_history(self._run_id, name)}

    def scores(self, values: Mapping[str, float]) -> None:
        """Log what came out in the end; what stands there already is left alone."""
        known = self._client.get_run(self._run_id).data.metrics
        self._log({name: value for name, value in values.items() if known.get(name) != value}, 0)

    def _log(self, values: Mapping[str, float], step: int) -> None:
        now = round(1000 * time.time())
        metrics = [Metric(name, value, now, step) for name, value in values.items()]
        for start in range(0, len(metrics), _MOST):
            self._client.log_batch(self._run_id, metrics=metrics[start : start + _MOST])

    def close(self, status: str = "FINISHED") -> None:
        """Say how the run ended, in MLflow's words; ``"RUNNING"`` leaves it open."""
        if status == "RUNNING":
            self._client.update_run(self._run_id, status=status)
        else:
            self._client.set_terminated(self._run_id, status)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close("FINISHED" if kind is None else "FAILED")


def export_run(run: RunLog, target: Path) -> str:
    """Log a run to a database in a folder; what was logged of it before is completed, not repeated.

    Args:
        run: What it holds so far.
        target: The folder.

    Returns:
        The command that shows it.
    """
    target.mkdir(parents=True, exist_ok=True)
    where = f"sqlite:///{target / 'mlflow.db'}"
    artifacts = (target / "artifacts").resolve().as_uri()
    log = MlflowLog(where, name=run.label, key=run.name, artifacts=artifacts, settings=run.settings)
    for row in run.epochs:
        log(row)
    log.scores(run.scores)
    log.close("FINISHED" if run.is_over else "RUNNING")
    return f"mlflow ui --backend-store-uri {where}"
