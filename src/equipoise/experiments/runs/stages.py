"""One run, in stages that each read what the one before wrote: train, predict, score."""

from __future__ import annotations

import os
import shutil
import time
import traceback
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any, final

import torch
from torch import nn

from equipoise.calibrators import Calibrator
from equipoise.catalogue import add_plugins
from equipoise.core.errors import SpecError
from equipoise.core.predictions import Predictions
from equipoise.core.writing import write_predictions
from equipoise.data import Dataset
from equipoise.experiments.build.preparation import pin
from equipoise.experiments.build.run_parts import Built, build, split_source
from equipoise.experiments.runs.environment import describe_environment
from equipoise.experiments.runs.folder import RunFolder
from equipoise.experiments.runs.json_files import write_json
from equipoise.experiments.runs.scoring import score_run
from equipoise.experiments.runs.segmentation import DENSE, predict_dense
from equipoise.experiments.runs.shift import predict_shifts
from equipoise.experiments.specs.execution import Execution
from equipoise.experiments.specs.run import Spec, write_spec
from equipoise.experiments.specs.scoring import ScoringOptions
from equipoise.kernels.dispatch import use_backend
from equipoise.training import BatchLike, Hardware, History, fit, load_weights, predict, read_checkpoint
from equipoise.training.processes import Processes

__all__ = ["hardware_of", "load_network", "run", "store_predictions"]

_SPLITS = ("tune", "calib", "test")


def run(
    spec: Spec,
    folder: str | os.PathLike[str],
    *,
    scoring: ScoringOptions | None = None,
    execution: Execution | None = None,
) -> RunFolder:
    """Do what is left of a run; a finished run is not touched, a half-finished one goes on where it stopped.

    Several processes train together; the first one does everything else, and alone writes to the folder. The others
    return when it is done.

    Args:
        spec: What to run.
        folder: The folder that contains run folders.
        scoring: How it is scored.
        execution: How it is executed; the spec's own settings fill the gaps.

    Returns:
        The run's folder.

    Example:
        >>> import tempfile
        >>> table = {"data": "digits", "model": "mlp", "recipe": {"name": "quick", "epochs": 1}}
        >>> scoring = ScoringOptions(n_resamples=20)
        >>> done = run(Spec.from_table(table), tempfile.mkdtemp(), scoring=scoring, execution=Execution(quiet=True))
        >>> done.status()
        'finished'
    """
    add_plugins()
    scoring = (scoring or ScoringOptions()).pinned()
    execution = (execution or Execution()).over(spec.execution)
    spec = pin(spec, execution)
    target = RunFolder(Path(folder) / spec.identity)
    processes = Processes(hardware_of(spec, execution))
    stages = _Stages(spec, target, scoring, execution, processes)
    # The numbers of a run must be the same to the last bit, whatever was compiled before: only the fallback is used.
    with use_backend("fallback"), _threads(execution.threads), closing(processes):
        if processes.is_first:
            stages.lead()
        else:
            stages.follow()
    return target


def hardware_of(spec: Spec, execution: Execution) -> Hardware:
    """Return the hardware of a run: what the execution says, then what the spec says.

    Example:
        >>> spec = Spec.from_table({"data": "digits", "model": "mlp", "execution": {"devices": 2}})
        >>> hardware_of(spec, Execution(accelerator="cpu")).devices
        2
    """
    chosen = execution.over(spec.execution)
    return Hardware(
        accelerator=chosen.accelerator or "auto",
        devices=chosen.devices,
        nodes=chosen.nodes,
        strategy=chosen.strategy or "auto",
        compile=bool(chosen.compile),
        precision=spec.training.precision,
        keep_memory=chosen.keep_memory,
        sync_batchnorm=spec.training.sync_batchnorm,
    )


@contextmanager
def _threads(number: int) -> Iterator[None]:
    """Use so many threads, and restore torch's own number afterwards."""
    before = torch.get_num_threads()
    if number:
        torch.set_num_threads(number)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@final
class _Stages:
    """The stages of one run; data and networks are built when a stage first needs them."""

    def __init__(
        self,
        spec: Spec,
        target: RunFolder,
        scoring: ScoringOptions,
        execution: Execution,
        processes: Processes,
    ) -> None:
        self._spec, self._target, self._scoring, self._execution = spec, target, scoring, execution
        self._processes = processes
        self._is_decided = self._is_fitting = False

    @cached_property
    def _built(self) -> Built:
        return build(self._spec, self._execution)

    def lead(self) -> None:
        """Go through the stages; other processes learn what they take part in, and how it ended."""
        stage = "prepare"
        try:
            with self._target.locked():
                try:
                    _repair(self._spec, self._target, verify=self._execution.verify)
                    for work in (self.start, self.train, self.predict, self.shift, self.score):
                        stage = work.__name__
                        work()
                except Exception as error:
                    self._target.write_error(stage, error, traceback.format_exc())
                    raise
        except Exception as error:
            self._release(str(error) or type(error).__name__)
            raise
        self._release(None)

    def follow(self) -> None:
        """Take part in training, and wait until the first process has done the rest.

        Raises:
            RuntimeError: If it failed, with its message.
        """
        if self._processes.share():
            self._fit()
        problem = self._processes.share()
        if problem is not None:
            raise RuntimeError(f"the first process failed: {problem}")

    def _decide(self, *, trains: bool) -> None:
        """Tell the other processes whether there is something to train."""
        self._is_decided = True
        self._processes.share(trains)

    def _release(self, problem: str | None) -> None:
        """Let the other processes go; those that are in the middle of training are stopped by torch."""
        if self._is_fitting:
            return
        if not self._is_decided:
            self._decide(trains=False)
        self._processes.share(problem)

    def start(self) -> None:
        """Record versions, machine and data."""
        if self._target.is_done("started"):
            return
        data = self._built.data
        files = [{"path": file.path, "size": file.size, "sha256": file.sha256} for file in data.provenance]
        write_json(
            self._target.path / "environment.json",
            {
                **describe_environment(),
                "data": {
                    "fingerprints": dict(data.fingerprints),
                    "files": files,
                    "rows": {name: len(rows) for name, rows in data.splits.items()},
                },
                **({"remade": "the first record was lost"} if self._target.is_done("trained") else {}),
            },
        )
        self._target.write_record("started", ["spec.toml", "environment.json"])

    def train(self) -> None:
        """Train the network, or go on where it stopped."""
        if self._target.is_done("trained"):
            if self._scoring.history == "test" and "test_ece" not in self._target.history()[0]:
                raise SpecError(
                    f"{self._target.path}: was trained without scores on test of every epoch, and they cannot be had "
                    "afterwards. Delete the folder to train it again, or leave `history` out."
                )
            self._decide(trains=False)
            return
        objective = self._built.objective
        began = time.monotonic()
        self._decide(trains=True)
        self._is_fitting = True
        history = self._fit()
        self._is_fitting = False
        seconds = round(time.monotonic() - began, 3)
        folder = self._target.path
        if not (folder / "history.csv").exists():
            history.write(folder / "history.csv")  # was lost after the last epoch
        self._target.write_record(
            "trained",
            [name for name in ("history.csv", "last.pt", "best.pt") if (folder / name).exists()],
            epochs=len(history),
            seconds=seconds,
            parameters=sum(part.numel() for part in objective.parameters() if part.requires_grad),
            processes=self._processes.count,
        )

    def _fit(self) -> History:
        built = self._built
        return fit(
            built.objective,
            built.train,
            epochs=self._spec.training.epochs,
            tune=built.tune,
            test=self._source(built.data, "test") if self._scoring.history == "test" else None,
            folder=self._target.path,
            selection=built.selection,
            hardware=hardware_of(self._spec, self._execution),
            seed=self._spec.seed,
            ignore_index=built.data.ignore_index,
            quiet=self._execution.quiet,
        )

    def _source(self, data: Dataset, split: str) -> Any:
        return split_source(data, split, self._spec, loader_workers=self._execution.loader_workers or 0)

    def _batches(self, data: Dataset, split: str, network: nn.Module) -> Iterable[BatchLike]:
        device = next(network.parameters()).device
        found: Iterable[BatchLike] = self._source(data, split)(
            epoch=0, indices=None, start=0, rank=0, world_size=1, device=device
        )
        return found

    def predict(self) -> None:
        """Predict each split."""
        if self._target.is_done("predicted"):
            # Pixels are scored when they are predicted, so that other bins need other predictions.
            options = self._scoring.score_options
            if (self._target.record("predicted") or {}).get("settings", options) == options:
                return
            self._check_weights("pixels cannot be scored with other settings", "give the earlier settings")
        self._target.clear_stages("predicted")
        data = self._built.data
        network = load_network(self._target, self._built, self._spec)
        splits = [split for split in _SPLITS if len(data.splits.get(split, ()))]
        if data.kind != "segmentation":
            found = (
                predict(network, self._batches(data, split, network), split=split, joined=False)
                for split in splits
            )
            store_predictions(self._target, found)
            return
        tables: dict[str, Any] = {}

        def samples() -> Iterator[Predictions]:
            for split in splits:
                sample, tables[split] = self._predict_pixels(network, split)
                yield sample

        store_predictions(self._target, samples(), tables, settings=self._scoring.score_options)

    def _predict_pixels(
        self, network: nn.Module, split: str, calibrator: Calibrator | None = None
    ) -> tuple[Predictions, dict[str, Any]]:
        data = self._built.data
        return predict_dense(
            network,
            self._batches(data, split, network),
            split=split,
            n_classes=data.n_classes,
            ignore_index=data.ignore_index,
            seed=self._spec.data.seed,
            options=self._scoring,
            calibrator=calibrator,
        )

    def shift(self) -> None:
        """Predict additional test sets."""

        def predict_test(data: Dataset) -> Predictions:
            self._check_weights("no additional test set can be predicted", "leave `shift` out")
            network = load_network(self._target, self._built, self._spec)
            return predict(network, self._batches(data, "test", network), split="test", joined=False)

        predict_shifts(
            self._target,
            self._spec,
            self._scoring.shift_list,
            self._execution,
            predict=predict_test,
            data=lambda: self._built.data,
        )

    def _check_weights(self, consequence: str, alternative: str) -> None:
        """Raise if the weights that predict are gone."""
        name = "best.pt" if self._spec.training.keep == "best" else "last.pt"
        if not (self._target.path / name).exists():
            raise SpecError(
                f"{self._target.path / name}: was deleted, so {consequence}. Delete the run's folder to train it "
                f"again, or {alternative}."
            )

    def score(self) -> None:
        """Fit calibrators and write scores."""
        score_run(self._target, self._spec, self._scoring, score_pixels=self._score_pixels)

    def _score_pixels(self, calibrator: Calibrator) -> dict[str, Any]:
        """Score all pixels of ``test`` after a calibrator; the network predicts them again."""
        self._check_weights("pixels cannot be scored after another calibrator", "leave that calibrator out")
        return self._predict_pixels(load_network(self._target, self._built, self._spec), "test", calibrator)[
            1
        ]


def _repair(spec: Spec, target: RunFolder, *, verify: bool) -> None:
    """Remove what is damaged and the last failure; everything can be made again, on a CPU bit for bit."""
    if target.is_misplaced():
        raise SpecError(f"{target.problem()}")
    for unfinished in target.unfinished():
        unfinished.unlink()
    while damaged := target.damaged(verify=verify):
        for file in damaged:
            _remove(target, file)
    target.clear_error()
    spec_file = target.path / "spec.toml"
    if spec_file.exists() and target.unreadable_spec() is not None:
        spec_file.unlink()  # its content is known here
    if not spec_file.exists():
        has_started = target.record("started") is not None and (target.path / "environment.json").exists()
        write_spec(spec, spec_file)
        if has_started:
            target.write_record("started", ["spec.toml", "environment.json"])
    if not _is_resumable(spec, target):
        _restart_training(target)


def _remove(target: RunFolder, file: Path) -> None:
    """Remove a damaged file, and forget the stages that used it."""
    shutil.rmtree(file) if file.is_dir() else file.unlink(missing_ok=True)
    name = file.relative_to(target.path).as_posix()
    if name.endswith(".pt") or name == "history.csv":
        _restart_training(target)
    elif name.startswith("predict"):
        target.clear_stages("predicted")


def _restart_training(target: RunFolder) -> None:
    target.clear_stages("trained")
    for name in ("last.pt", "best.pt", "history.csv"):
        (target.path / name).unlink(missing_ok=True)


def _is_resumable(spec: Spec, target: RunFolder) -> bool:
    """Whether no checkpoint is lost that is still needed; if one is, training starts over."""
    needed = ["last.pt", *(["best.pt"] if spec.training.keep == "best" else [])]
    has_begun = target.is_done("trained") or (target.path / "last.pt").exists()
    return (
        not has_begun or target.is_done("predicted") or all((target.path / name).exists() for name in needed)
    )


def load_network(target: RunFolder, built: Built, spec: Spec) -> nn.Module:
    """Return the network of a run with the weights of the epoch that is kept, in the precision they were saved in.

    Args:
        target: A run that is trained.
        built: What its spec names.
        spec: Its spec.
    """
    if spec.training.keep == "best":
        content: dict[str, Any] = read_checkpoint(target.path / "best.pt")
        load_weights(built.objective.network(), content["network"])
    else:
        content = read_checkpoint(target.path / "last.pt")
        load_weights(built.objective, content["objective"])
    return built.objective.network()


def store_predictions(
    target: RunFolder,
    predictions: Iterable[Predictions],
    dense: Mapping[str, Any] = MappingProxyType({}),
    *,
    settings: Mapping[str, Any] = MappingProxyType({}),
) -> None:
    """Write the predictions on each split, and record that the stage is done.

    Args:
        target: A run that is trained.
        predictions: One per split.
        dense: For segmentation, what all pixels came to, by split; complete when all predictions are made.
        settings: The options that all pixels were scored with.
    """
    (target.path / "predictions").mkdir(exist_ok=True)
    files = {}
    for found in predictions:
        files[found.split] = f"predictions/{found.split}.npz"
        write_predictions(found, target.path / files[found.split])
    if dense:
        write_json(target.path / DENSE, dict(dense))
    shares = {split: table["share"] for split, table in dense.items()}
    names = [*files.values(), *([DENSE] if dense else [])]
    facts = {"sample": shares, "settings": dict(settings)} if dense else {}
    target.write_record("predicted", names, splits=list(files), **facts)
