"""`auto`: the best calibrated model within a budget, as one artifact with the evidence behind it."""

from __future__ import annotations

import json
import os
import sys
import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, final

import numpy as np

from equipoise.calibrators.base import Calibrator
from equipoise.calibrators.ensemble import average_predictions
from equipoise.calibrators.loading import KINDS
from equipoise.core.atomic_files import atomic_path, write_text
from equipoise.core.checksums import content_checksum
from equipoise.core.errors import DataError, SpecError
from equipoise.core.escaping import json_text
from equipoise.core.predictions import Predictions
from equipoise.core.progress import clock_text
from equipoise.core.reading import read_predictions
from equipoise.core.tables import Table
from equipoise.evaluate.final_test import BASELINE, FinalTest, choose_and_test, cross_fitted
from equipoise.report import report_of, write_report

__all__ = ["AutoResult", "Trained", "auto", "check_predictions", "start_folder"]

#: What a folder of `auto` is about, so that nothing is mixed up.
_REQUEST, _ANSWER, _REPORT = "request.json", "auto.json", "report.html"
_TABLES, _ARRAYS = (".csv", ".parquet"), ".npz"
#: Recipes for data without a recipe of their own, by kind; images are not flipped or cropped unless asked.
_RECIPES: Mapping[str, Any] = {
    "image": {"name": "quick_images", "flip": False, "crop_padding": 0},
    "features": "quick",
    "text": "quick_text",
}


@final
@dataclass(frozen=True, kw_only=True)
class AutoResult:
    """What `auto` answers.

    Attributes:
        test: The answer, everything tried, and the tests behind it.
        statement: What was chosen, how sure that is, what it gains and what it cost.
        artifact: The model; for predictions, the calibrator.
        folder: Everything else: trainings, ``auto.json``, ``report.html``.
        cost: Trainings, seconds and what is left of the budget; empty for predictions.
        short: Trainings of fewer epochs that decided which methods went on: method, share of epochs, NLL.
        failed: Trainings that failed, and why.
    """

    test: FinalTest
    statement: str
    artifact: Path
    folder: Path
    cost: Mapping[str, Any]
    short: Sequence[Mapping[str, Any]] = ()
    failed: Mapping[str, str]

    def __str__(self) -> str:
        return f"{self.test.table().to_text()}\n\n{self.statement}"

    def as_dict(self) -> dict[str, Any]:
        """Return everything as plain values."""
        return {
            **self.test.as_dict(),
            "statement": self.statement,
            "artifact": str(self.artifact),
            "report": str(self.folder / _REPORT),
            "cost": dict(self.cost),
            "short_trainings": [dict(one) for one in self.short],
            "failed": dict(self.failed),
        }


@final
@dataclass(frozen=True, kw_only=True)
class Trained:
    """Trained models, before one is chosen.

    Attributes:
        sources: Predictions on held-out rows, by name; those of the baseline first.
        planned: The source that was fixed before any held-out row was read.
        counts: Number of models behind each source.
        on_test: Returns the predictions of a source on ``test``.
        save: Writes a source with a fitted calibrator, and returns the file.
        trainings: How many trainings were done.
        seconds: How long they took.
        left: What is left of the budget, in words.
        short: Trainings of fewer epochs.
        failed: Trainings that failed, and why.
    """

    sources: Mapping[str, Predictions]
    planned: str | None
    counts: Mapping[str, int]
    on_test: Callable[[str], Predictions]
    save: Callable[[str, Calibrator], Path]
    trainings: float
    seconds: float
    left: str
    short: Sequence[Mapping[str, Any]] = ()
    failed: Mapping[str, str] = field(default_factory=dict)


def auto(
    data: Any,
    model: Any = None,
    *,
    budget: str | int | None = None,
    folder: str | os.PathLike[str],
    recipe: str | Mapping[str, Any] | None = None,
    overrides: Sequence[tuple[str, Any]] = (),
    level: float = 0.95,
    calibrators: Sequence[str] | None = None,
    engine: str = "local",
    workers: int | None = None,
    address: str | None = None,
    execution: Any = None,
    quiet: bool = False,
) -> AutoResult:
    """Return the best calibrated model within a budget: trained, calibrated, tested and written to a folder.

    Candidates are tried in the order of the evidence: cross-entropy, EMA, an ensemble, richer calibrators, then losses
    and augmentation. Each is scored by its NLL after calibration on rows that fitted nothing. Cross-entropy with
    temperature scaling is replaced only if a paired test on kept rows prefers another candidate. The split ``test``
    chooses nothing; it is scored once, for the report. Call it again to continue after an interruption, or with a
    larger budget.

    Args:
        data: A file of inputs and labels (.npz, .csv, .parquet), a dataset of the catalogue, a table as in a spec,
            a spec (.toml), or a pair of arrays. Without a model: predictions, or a file of them.
        model: A network of the catalogue, a table as in a spec, code, or ``"sklearn:NAME"`` for a classifier of
            scikit-learn. None calibrates predictions, without training.
        budget: Trainings (``5``) or time (``"30m"``); by default 5 trainings.
        folder: Where the answer goes: the artifact, trainings, ``auto.json`` and ``report.html``.
        recipe: A recipe, or a table as in a spec; by default a quick one for the kind of data.
        overrides: Dotted keys of the spec and their values.
        level: Level of the tests together.
        calibrators: Names of calibrators to try.
        engine: ``"local"`` or ``"ray"``.
        workers: Processes of the local engine.
        address: Cluster of the Ray engine.
        execution: How runs are executed.
        quiet: Whether to print no progress.

    Raises:
        DataError: If the data have no labels, or too few held-out rows.
        SpecError: If a name is not known, the budget is not one, or the folder belongs to something else.

    Example:
        >>> import tempfile
        >>> rng = np.random.default_rng(0)
        >>> logits = rng.normal(size=(400, 3)) * 2
        >>> labels = (logits + rng.gumbel(size=(400, 3))).argmax(1)
        >>> found = auto(Predictions(logits=3 * logits, labels=labels), folder=tempfile.mkdtemp() + "/model")
        >>> found.artifact.name, found.test.baseline.label
        ('calibrator.json', 'temperature')
    """
    target = Path(folder)

    def report(sentence: str) -> None:
        if not quiet:
            sys.stderr.write(f"auto: {sentence}\n")

    if isinstance(data, Predictions) or (model is None and _is_predictions(data)):
        rows = data if isinstance(data, Predictions) else read_predictions(data)
        if budget is not None:
            raise SpecError(
                "auto: a budget is for trainings, and there are only predictions. Leave it out, or name a model."
            )
        return _calibrate(rows, target, level=level, calibrators=calibrators)
    from equipoise.experiments.auto import parse_budget  # loads torch, which predictions do without
    from equipoise.experiments.specs.execution import Execution

    table, own_budget = _table_of(data, model, recipe, overrides, target)
    limit = parse_budget(budget if budget is not None else own_budget)
    execution = replace(
        execution or Execution(), quiet=True
    )  # the lines of `report` take the place of others
    base_dir = table.pop("base_dir", None)
    if str(_as_table(table["model"]).get("name")).startswith("sklearn:"):
        from equipoise.integrations.auto_estimators import fit_members

        if engine == "ray":
            raise SpecError(
                "auto: estimators of scikit-learn are fitted on this machine. Leave --engine ray out."
            )
        found = fit_members(table, target, limit, execution, report)
    else:
        engines = {"engine": engine, "workers": workers, "address": address}
        found = _train(table, base_dir, target, limit, execution, report, engines)
    test = choose_and_test(found.sources, planned=found.planned, level=level, calibrators=calibrators)
    return _answer(target, found, test)


def _is_predictions(data: Any) -> bool:
    """Whether something without a model can only be predictions; raise if it holds inputs."""
    if not isinstance(data, (str, os.PathLike)):
        if isinstance(data, Mapping):
            return False
        raise SpecError("auto: inputs and labels need a model. Pass for example model='mlp'.")
    if Path(data).suffix == ".toml":
        return False
    check_predictions(data)
    return True


def check_predictions(data: str | os.PathLike[str]) -> None:
    """Raise if a file does not exist, or holds inputs instead of predictions.

    Raises:
        DataError: If there is no such file.
        SpecError: If it holds inputs and labels, which need a model.
    """
    path = Path(data)
    if not path.exists() and not any(sign in str(data) for sign in "*?["):
        raise DataError(
            f"auto: {path} does not exist, and no model is named. Pass a file of predictions, or --model."
        )
    if path.suffix == _ARRAYS and zipfile.is_zipfile(path):
        with np.load(path, allow_pickle=False) as stored:
            names = set(stored.files)
        if names & {"x", "x_train"} and not names & {"logits", "probs"}:
            raise SpecError(
                f"{path}: holds inputs and labels, which need a model. Pass one, for example --model mlp."
            )


def _calibrate(
    rows: Predictions, target: Path, *, level: float, calibrators: Sequence[str] | None
) -> AutoResult:
    """Choose a calibrator for predictions, and write it."""
    if rows.split not in (None, "calib", "tune", "test"):
        raise DataError(
            f"auto: the rows are from the split {rows.split!r}, which was fitted on. Pass held-out rows."
        )
    test = choose_and_test({"": rows}, calibrators=calibrators, level=level)
    start_folder(target, {"predictions": rows.fingerprint})
    artifact = target / "calibrator.json"
    test.calibrator.save(artifact)
    shown = {one.label: cross_fitted(rows, KINDS[one.calibrator]()) for one in (test.baseline, test.answer)}
    note = (
        "Reliability and scores are those of the held-out rows, each after a calibrator that was fitted without it. "
        f"{test.n_choosing:,} of them chose the calibrator."
    )
    return _written(
        target,
        test,
        artifact,
        test.statement,
        {name: one.with_split(None) for name, one in shown.items()},
        note,
    )


def _table_of(
    data: Any, model: Any, recipe: Any, overrides: Sequence[tuple[str, Any]], target: Path
) -> tuple[dict[str, Any], str | int]:
    """Return the table of a spec, and the budget that stands in it."""
    from equipoise.experiments.specs.parsing import set_key
    from equipoise.experiments.specs.toml import read_toml

    table: dict[str, Any] = {}
    if isinstance(data, (str, os.PathLike)) and Path(data).suffix == ".toml":
        table = {**read_toml(data), "base_dir": str(Path(data).resolve().parent)}
    else:
        table["data"] = _data_table(data, target)
    if model is not None:
        table["model"] = dict(model) if isinstance(model, Mapping) else model
    if recipe is not None:
        table["recipe"] = dict(recipe) if isinstance(recipe, Mapping) else recipe
    for key, value in overrides:
        # Sizes of splits are options of the reader.
        set_key(table, key.replace("data.", "data.options.", 1) if key in _SHORT_KEYS else key, value)
    for key in ("data", "model"):
        if key not in table:
            raise SpecError(f"auto: the spec has no {key!r}. Add it, or pass it with the command.")
    method = table.pop("method", "auto")
    method = {"name": method} if isinstance(method, str) else dict(method)
    if method.pop("name", None) != "auto":
        raise SpecError('auto: the spec has another method. Write method = "auto", or use `equipoise train`.')
    own_budget = method.pop("budget", 5)
    if method:
        raise SpecError(f"auto: method has no key {next(iter(method))!r}; it has name and budget.")
    return table, own_budget


_SHORT_KEYS = frozenset(
    {"data.tune", "data.calib", "data.test", "data.label", "data.layout", "data.standardize"}
)


def _data_table(data: Any, target: Path) -> Any:
    """Return what stands in a spec for a file, a name, a table or arrays."""
    if isinstance(data, Mapping):
        return dict(data)
    if isinstance(data, (str, os.PathLike)):
        path = Path(data)
        if path.suffix in (_ARRAYS, *_TABLES):
            if not path.is_file():
                raise DataError(f"auto: {path} does not exist. Pass a file of inputs and labels.")
            return {
                "name": "npz" if path.suffix == _ARRAYS else "table",
                "options": {"path": str(path.resolve())},
            }
        return str(data)
    if isinstance(data, (tuple, list)) and len(data) == 2:
        inputs, labels = (np.asarray(part) for part in data)
        if inputs.dtype.kind in "iu" and inputs.ndim == 2:
            inputs = inputs.astype(np.float32)
        target.mkdir(parents=True, exist_ok=True)
        file = target / f"data-{content_checksum([inputs, labels])[:12]}.npz"
        if not file.exists():
            with atomic_path(file) as temporary:
                np.savez(temporary, x=inputs, y=labels)
        return {"name": "npz", "options": {"path": str(file.resolve())}}
    raise SpecError(f"auto: expected a file, a name, a table or (inputs, labels), got {type(data).__name__}.")


def start_folder(target: Path, request: Mapping[str, Any]) -> None:
    """Make the folder, or check that it is of the same request.

    Raises:
        SpecError: If it holds something else.
    """
    file = target / _REQUEST
    content = json.loads(json.dumps(dict(request)))
    if file.exists():
        try:
            before = json.loads(file.read_text(encoding="utf-8"))
        except ValueError:
            before = None
        if before != content:
            raise SpecError(
                f"auto: {target} holds the answer for other data, another model or recipe. Pass another folder (-o)."
            )
        return
    if target.exists() and (
        not target.is_dir() or any(not one.name.startswith("data-") for one in target.iterdir())
    ):
        raise SpecError(f"auto: {target} exists and is not a folder of `auto`. Pass another folder (-o).")
    target.mkdir(parents=True, exist_ok=True)
    write_text(file, json.dumps(content, indent=2) + "\n")


def _train(
    table: dict[str, Any],
    base_dir: str | None,
    target: Path,
    limit: Any,
    execution: Any,
    report: Callable[[str], None],
    engines: Mapping[str, Any],
) -> Trained:
    """Climb the ladder with networks."""
    from equipoise.experiments.auto import climb, held_out_rows
    from equipoise.experiments.build.data import data_of
    from equipoise.experiments.build.preparation import pin
    from equipoise.experiments.specs.run import Spec
    from equipoise.integrations.run_model import save_members

    spec = Spec.from_table({"recipe": "quick", **table}, where="auto", base_dir=base_dir)
    recipe = _as_table(table.get("recipe", {}))
    if "name" not in recipe:
        usual = _as_table(_RECIPES.get(data_of(spec, execution).kind, "quick"))
        spec = Spec.from_table({**table, "recipe": {**usual, **recipe}}, where="auto", base_dir=base_dir)
    start_folder(target, {"run": pin(spec, execution, where="auto").identity})
    found = climb(spec, target / "runs", budget=limit, execution=execution, report=report, **engines)
    members = found.members
    return Trained(
        sources={name: held_out_rows(runs) for name, runs in members.items()},
        planned=found.planned,
        counts={name: len(runs) for name, runs in members.items()},
        on_test=lambda name: average_predictions([run.predictions("test") for run in members[name]]),
        save=lambda name, calibrator: save_members(
            members[name], calibrator, target, root=execution.root, code=base_dir
        ),
        trainings=found.trainings,
        seconds=found.seconds,
        left=found.left,
        short=tuple(one._asdict() for one in found.short),
        failed=found.failed,
    )


def _as_table(named: Any) -> dict[str, Any]:
    return {"name": named} if isinstance(named, str) else dict(named)


def _answer(target: Path, found: Trained, test: FinalTest) -> AutoResult:
    """Write the artifact, the answer and the report of trained models."""
    source, count = test.answer.source, found.counts[test.answer.source]
    statement = test.statement
    if count > 1:
        statement += f" It averages {count} models, so predicting costs {count} times as much as with one."
    trainings = f"{found.trainings:g} training{'s' * (found.trainings != 1)}"
    statement += f" Cost: {trainings}, {clock_text(found.seconds)}; {found.left} left."
    artifact = found.save(source, test.calibrator)
    plain = KINDS[BASELINE]().fit(found.sources[test.baseline.source])
    shown = {test.baseline.label: plain(found.on_test(test.baseline.source))}
    if not test.is_baseline:
        shown[test.answer.label] = test.calibrator(found.on_test(source))
    note = "Reliability and scores are those of test, which was read after the choice and decided nothing."
    cost = {"trainings": found.trainings, "seconds": round(found.seconds, 1), "left": found.left}
    return _written(
        target, test, artifact, statement, shown, note, cost=cost, short=found.short, failed=found.failed
    )


def _written(
    target: Path,
    test: FinalTest,
    artifact: Path,
    statement: str,
    shown: Mapping[str, Predictions],
    note: str,
    *,
    cost: Mapping[str, Any] | None = None,
    short: Sequence[Mapping[str, Any]] = (),
    failed: Mapping[str, str] | None = None,
) -> AutoResult:
    """Write the answer and the report."""
    result = AutoResult(
        test=test,
        statement=statement,
        artifact=artifact,
        folder=target,
        cost=cost or {},
        short=short,
        failed=failed or {},
    )
    search: list[str | Table] = [statement, note, test.table()]
    if short:
        rows = [(one["method"], f"{one['share']:.0%}", f"{one['nll']:.4f}") for one in short]
        search.append(Table.of(("successive halving", "epochs", "NLL"), rows, align="lrr"))
    search += [f"Failed: {label}: {sentence}" for label, sentence in result.failed.items()]
    made = report_of(shown, title=f"auto: {test.answer.label}", sources=dict.fromkeys(shown, str(artifact)))
    write_report(replace(made, search=tuple(search)), target / _REPORT)
    write_text(target / _ANSWER, json_text(result.as_dict()) + "\n")
    return result
