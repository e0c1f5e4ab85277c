"""`auto` with classifiers of scikit-learn: members are fitted on other draws of the training rows."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, final

import numpy as np
from torch import Tensor

from equipoise.calibrators.base import Calibrator
from equipoise.calibrators.ensemble import average_predictions
from equipoise.core.arrays import Array
from equipoise.core.atomic_files import atomic_path
from equipoise.core.errors import DataError, SpecError, needs
from equipoise.core.names import look_up
from equipoise.core.predictions import Predictions
from equipoise.data import Dataset
from equipoise.evaluate.final_test import FEWEST_ROWS, choosing_nll
from equipoise.experiments.auto import Budget
from equipoise.experiments.build.data import load_data
from equipoise.experiments.specs.checking import read_data
from equipoise.experiments.specs.execution import Execution
from equipoise.integrations.auto import Trained, start_folder
from equipoise.integrations.sklearn import CalibratedClassifier, predictions_of

with needs("sklearn", extra="sklearn", purpose="fit scikit-learn estimators"):
    import joblib
    from sklearn.base import BaseEstimator, ClassifierMixin
    from sklearn.frozen import FrozenEstimator
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from sklearn.utils import all_estimators, resample

__all__ = ["MeanClassifier", "fit_members"]

_MOST_MEMBERS, _PLANNED = 10, 5


@final
class MeanClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """The mean probabilities of fitted classifiers.

    Args:
        estimators: Fitted classifiers of the same classes.
    """

    def __init__(self, estimators: Sequence[Any]) -> None:
        self.estimators = estimators

    @property
    def classes_(self) -> Array:
        """The classes."""
        classes: Array = self.estimators[0].classes_
        return classes

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def fit(self, X: Any, y: Any) -> MeanClassifier:  # noqa: N803
        """Return the classifier itself: its members are fitted already."""
        return self

    def predict_proba(self, X: Any) -> Array:  # noqa: N803
        """Return mean probabilities ``(n, k)``."""
        probs: Array = np.mean([one.predict_proba(X) for one in self.estimators], axis=0)
        return probs

    def predict(self, X: Any) -> Array:  # noqa: N803
        """Return the most probable class of each row."""
        named: Array = self.classes_[self.predict_proba(X).argmax(axis=1)]
        return named


def fit_members(
    table: Mapping[str, Any],
    target: Path,
    budget: Budget,
    execution: Execution,
    report: Callable[[str], None],
) -> Trained:
    """Fit a classifier on all training rows, and members on bootstrap samples of them, within a budget.

    Other seeds alone would give many classifiers of scikit-learn no other members: their fit is not random.

    Args:
        table: Data, model and seed, as in a spec.
        target: The folder of the answer.
        budget: When to stop.
        execution: The data folder.
        report: Gets a line after every fit.

    Raises:
        SpecError: If scikit-learn has no such classifier.
        DataError: If there are too few held-out rows.
    """
    name, options = _named(table["model"])
    seed = int(table.get("seed", 0))
    make = _maker(name, options)
    make(seed)
    data = load_data(read_data(table["data"], where="auto.data"), execution)
    rows = {split: _inputs(data, split) for split in ("train", "tune", "calib", "test")}
    n_rows = len(rows["tune"][1]) + len(rows["calib"][1])
    if n_rows < FEWEST_ROWS:
        raise DataError(
            f"auto: expected at least {FEWEST_ROWS} rows in tune and calib, got {n_rows}. Hold out more, for example "
            "with --set data.calib=0.3."
        )
    given = {key: repr(value) for key, value in options.items()}
    start_folder(target, {"estimator": name, "options": given, "seed": seed, "data": dict(data.fingerprints)})
    held_out = tuple(np.concatenate([rows[split][part] for split in ("tune", "calib")]) for part in (0, 1))
    members, seconds = _fit(make, rows["train"], held_out, target / "runs", seed, budget, report)
    planned = min(len(members), _PLANNED)
    counts = {name: 1} | {f"ensemble of {count}": count for count in (planned, len(members)) if count > 1}

    def save(source: str, calibrator: Calibrator) -> Path:
        chosen = members[: counts[source]]
        used = chosen[0] if len(chosen) == 1 else MeanClassifier(chosen)
        model = CalibratedClassifier(FrozenEstimator(used), method=calibrator).fit(*held_out)
        with atomic_path(target / "model.joblib") as temporary:
            joblib.dump(model, temporary)
        return target / "model.joblib"

    return Trained(
        sources={source: _mean(members[:count], held_out, "calib") for source, count in counts.items()},
        planned=f"ensemble of {planned}" if planned > 1 else None,
        counts=counts,
        on_test=lambda source: _mean(members[: counts[source]], rows["test"], "test"),
        save=save,
        trainings=len(members),
        seconds=seconds,
        left=budget.left(len(members), seconds),
    )


def _mean(members: Sequence[Any], rows: tuple[Array, ...], split: str) -> Predictions:
    parts = [predictions_of(one, *rows, split=split) for one in members]
    return parts[0] if len(parts) == 1 else average_predictions(parts)


def _named(model: Any) -> tuple[str, dict[str, Any]]:
    given: dict[str, Any] = {"name": model} if isinstance(model, str) else dict(model)
    return str(given["name"]).removeprefix("sklearn:"), dict(given.get("options", {}))


def _maker(name: str, options: Mapping[str, Any]) -> Callable[[int], Any]:
    """Return a function from a seed to an unfitted classifier behind a scaling of its inputs.

    Raises:
        SpecError: If scikit-learn has no such classifier, or the classifier no such option.
    """
    known = dict(all_estimators(type_filter="classifier"))
    kind = look_up(name, known, what="classifier of scikit-learn")

    def make(seed: int) -> Any:
        try:
            found = kind(**options)
        except TypeError as error:
            raise SpecError(f"auto.model.options: {name}: {error}. Use options of the classifier.") from None
        if not hasattr(found, "predict_proba"):
            raise SpecError(
                f"auto.model: {name} has no probabilities. Use a classifier with predict_proba, or set its option for "
                "them, such as probability=true."
            )
        if "random_state" in found.get_params() and "random_state" not in options:
            found.set_params(random_state=seed)
        return make_pipeline(StandardScaler(), found)

    return make


def _inputs(data: Dataset, split: str) -> tuple[Array, Array]:
    if data.kind not in ("features", "image") or not isinstance(data.inputs, Tensor):
        raise DataError(f"auto: scikit-learn needs a table of features, got {data.kind}. Use a network.")
    rows = data.rows(split)
    return data.inputs[rows].flatten(1).numpy(), data.labels[rows].numpy()


def _fit(
    make: Callable[[int], Any],
    train: tuple[Array, Array],
    held_out: tuple[Array, ...],
    folder: Path,
    seed: int,
    budget: Budget,
    report: Callable[[str], None],
) -> tuple[list[Any], float]:
    """Return fitted members and the seconds they took; those in the folder are read."""
    folder.mkdir(exist_ok=True)
    members: list[Any] = []
    seconds = longest = 0.0
    while len(members) < min(_MOST_MEMBERS, budget.runs or _MOST_MEMBERS):
        if budget.seconds is not None and members and seconds + 1.1 * longest > budget.seconds:
            break
        number = len(members)
        file = folder / f"member-{number}.joblib"
        if file.exists():
            found, taken = joblib.load(file)
        else:
            began = time.monotonic()
            X, y = train  # noqa: N806
            # Every class keeps its number of rows, so that all members have the same classes.
            drawn = (
                resample(np.arange(len(y)), stratify=y, random_state=seed + number) if number else slice(None)
            )
            found = make(seed + number).fit(X[drawn], y[drawn])
            taken = time.monotonic() - began
            with atomic_path(file) as temporary:
                joblib.dump((found, taken), temporary)
        members.append(found)
        seconds, longest = seconds + taken, max(longest, taken)
        values = {
            "one model": choosing_nll(_mean(members[:1], held_out, "calib")),
            f"ensemble of {len(members)}": choosing_nll(_mean(members, held_out, "calib")),
        }
        best = min(values, key=values.__getitem__)
        report(
            f"{len(members)} training{'s' * bool(number)} done, {budget.left(len(members), seconds)} left; best so "
            f"far: {best} + temperature, NLL {values[best]:.4f} on the choosing rows"
        )
    return members, seconds
