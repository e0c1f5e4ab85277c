"""One run, in stages that each read what the one before wrote: train, predict, score."""

from __future__ import annotations

import os
import shutil
import time
import traceback
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, final

import torch
from torch import nn

from equipoise.core.bins import check_bins
from equipoise.core.errors import SpecError
from equipoise.core.names import check_choice
from equipoise.core.predictions import Predictions
from equipoise.core.splits import HISTORIES
from equipoise.core.writing import write_predictions
from equipoise.data import Dataset, read_shifts
from equipoise.experiments.build.preparation import pin, pinned
from equipoise.experiments.build.run_parts import Built, build, split_source
from equipoise.experiments.runs.environment import describe_environment
from equipoise.experiments.runs.folder import RunFolder
from equipoise.experiments.runs.json_files import write_json
from equipoise.experiments.runs.manifest import Stage
from equipoise.experiments.runs.scoring import ScoringSettings, score_run
from equipoise.experiments.runs.segmentation import DENSE, predict_dense
from equipoise.experiments.runs.shift import predict_shifts
from equipoise.experiments.specs.calibrators import MapSpec, as_map
from equipoise.experiments.specs.execution import Execution
from equipoise.experiments.specs.metrics import MetricSpec, as_metric
from equipoise.experiments.specs.run import Spec, write_spec
from equipoise.kernels.dispatch import use_backend
from equipoise.training import BatchLike, Hardware, History, fit, load_weights, predict, read_checkpoint
from equipoise.training.processes import Processes

__all__ = ["RunOptions", "keep_predictions", "load_network", "run"]

_SPLITS = ("tune", "calib", "test")


@final
@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """What does not change a run's identity.

    Settings of scoring may change from command to command; the run is then scored again, and says with what.

    Attributes:
        calibrators: Post-hoc maps to score, by name or with options; ``"identity"`` is no calibration.
        shift: Further test sets to predict and score, as a spec names them.
        root: The data folder.
        download: Bring official files if they are not there.
        threads: Threads of this process; 0 leaves torch's own number.
        accelerator: In the words of Lightning Fabric.
        execution: Devices, processes and loaders; what it leaves open is up to the spec.
        keep_memory: Let the process keep memory between steps (:class:`Hardware` says what that changes). Commands,
            whose processes are their own, ask for it; Python does not unless told to.
        metrics: Numbers beyond the scorecard: ``"kde_ece"``, or metrics of one's own.
        history: ``"test"`` writes the scores on ``test`` of every epoch beside those on ``tune``, for curves;
            nothing is chosen by them.
        n_bins: Bins of the binned metrics.
        closed: Which side of a bin belongs to it.
        level: Level of the intervals.
        n_resamples: Resamples behind them.
        resample_seed: Seed of the resamples.
        quiet: Draw no progress bar.
        verify: Hash every file of a run that is there already, not only those whose size or time differ.

    Example:
        >>> RunOptions().calibrators
        ('identity', 'temperature')
    """

    calibrators: tuple[str | MapSpec, ...] = ("identity", "temperature")
    shift: tuple[Mapping[str, Any], ...] = ()
    root: str | None = None
    download: bool = False
    threads: int = 0
    accelerator: str = "auto"
    execution: Execution = field(default_factory=Execution)
    keep_memory: bool = False
    metrics: tuple[str | MetricSpec, ...] = ()
    history: str = "tune"
    n_bins: int = 15
    closed: str = "right"
    level: float = 0.95
    n_resamples: int = 1000
    resample_seed: int = 0
    quiet: bool = False
    verify: bool = False

    def hardware(self, spec: Spec) -> Hardware:
        """Return what a run is given: what these options say, then what its spec says."""
        chosen = self.execution.over(spec.execution)
        return Hardware(
            accelerator=self.accelerator if self.accelerator != "auto" else chosen.accelerator or "auto",
            devices=chosen.devices,
            nodes=chosen.nodes,
            strategy=chosen.strategy or "auto",
            compile=bool(chosen.compile),
            precision=spec.training.precision,
            keep_memory=self.keep_memory,
            sync_batchnorm=spec.training.sync_batchnorm,
        )

    @property
    def scoring(self) -> ScoringSettings:
        """What numbers and intervals depend on; a run that was scored with other settings is scored again."""
        return ScoringSettings(
            n_bins=self.n_bins,
            closed=self.closed,
            level=self.level,
            n_resamples=self.n_resamples,
            seed=self.resample_seed,
            metrics=self.measures,
        )

    @property
    def measures(self) -> tuple[MetricSpec, ...]:
        """The metrics that no scorecard has, with the digests of their code."""
        found = (as_metric(given, where="RunOptions.metrics") for given in self.metrics)
        return tuple(pinned(one) for one in found if isinstance(one, MetricSpec))


def run(spec: Spec, folder: str | os.PathLike[str], *, options: RunOptions | None = None) -> RunFolder:
    """Do what is left of a run; a finished run is not touched, a half-finished one goes on where it stopped.

    Several processes train together; the first one does everything else, and alone writes to the folder. The others
    return when it is done.

    Args:
        spec: What to run.
        folder: The folder that holds run folders.
        options: What does not change the result's identity.

    Returns:
        The run's folder.

    Example:
        >>> import tempfile
        >>> table = {"data": "digits", "model": "mlp", "recipe": {"name": "quick", "epochs": 1}}
        >>> done = run(Spec.from_table(table), tempfile.mkdtemp(), options=RunOptions(n_resamples=20, quiet=True))
        >>> done.status()
        'finished'
    """
    options = options or RunOptions()
    maps = [pinned(as_map(given, where="RunOptions.calibrators")) for given in options.calibrators]
    options = replace(options, metrics=options.measures)
    read_shifts(options.shift)
    check_choice(options.history, HISTORIES, where="RunOptions", name="history")
    check_bins(options.n_bins, options.closed, where="RunOptions")
    spec = pin(spec, root=options.root, download=options.download)
    target = RunFolder(Path(folder) / spec.identity)
    processes = Processes(options.hardware(spec))
    todo = _Todo(spec, target, options, maps, processes)
    # The numbers of a run must be the same to the last bit, whatever was compiled before: only the fallback is used.
    with use_backend("fallback"), _threads(options.threads), closing(processes):
        if processes.is_first:
            _lead(todo, spec, target, verify=options.verify)
        else:
            todo.follow()
    return target


def _lead(todo: _Todo, spec: Spec, target: RunFolder, *, verify: bool) -> None:
    """Go through the stages; other processes learn what they shall take part in, and how it ended."""
    stage = "prepare"
    try:
        with target.locked():
            try:
                _prepare(spec, target, verify=verify)
                stages = {
                    "start": todo.start,
                    "train": todo.train,
                    "predict": todo.predict,
                    "shift": todo.shift,
                    "score": todo.score,
                }
                for name, work in stages.items():
                    stage = name
                    work()
            except Exception as error:
                target.write_error(stage, error, traceback.format_exc())
                raise
    except Exception as error:
        todo.release(str(error) or type(error).__name__)
        raise
    todo.release(None)


@contextmanager
def _threads(number: int) -> Iterator[None]:
    """Use so many threads, and give torch its own number back afterwards."""
    before = torch.get_num_threads()
    if number:
        torch.set_num_threads(number)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _prepare(spec: Spec, target: RunFolder, *, verify: bool) -> None:
    """Forget the last failure and what is damaged; everything can be made again, on a CPU bit for bit."""
    if target.is_misplaced():
        raise SpecError(f"{target.problem()}")
    for unfinished in target.unfinished():
        unfinished.unlink()
    while damaged := target.damaged(verify=verify):
        for file in damaged:
            _forget(target, file)
    target.clear_error()
    if (target.path / "spec.toml").exists() and target.unreadable_spec() is not None:
        (target.path / "spec.toml").unlink()  # what it must say is known here
    if not (target.path / "spec.toml").exists():
        begun = target.record("started") is not None and (target.path / "environment.json").exists()
        write_spec(spec, target.path / "spec.toml")
        if begun:
            target.write_record("started", ["spec.toml", "environment.json"])
    if not _is_resumable(spec, target):
        _begin_again(target, "trained")


def _forget(target: RunFolder, file: Path) -> None:
    """Remove a damaged file and what was made from it."""
    shutil.rmtree(file) if file.is_dir() else file.unlink(missing_ok=True)
    name = file.relative_to(target.path).as_posix()
    if name.endswith(".pt") or name == "history.csv":
        _begin_again(target, "trained")
    elif name.startswith("predict"):
        _begin_again(target, "predicted")


def _begin_again(target: RunFolder, stage: Stage) -> None:
    """Forget that a stage and those after it were over; what it made is overwritten."""
    target.clear_stages(stage)
    if stage == "trained":
        for name in ("last.pt", "best.pt", "history.csv"):
            (target.path / name).unlink(missing_ok=True)


def _is_resumable(spec: Spec, target: RunFolder) -> bool:
    """Whether no checkpoint is lost that is still needed; if one is, training starts over."""
    needed = ["last.pt", *(["best.pt"] if spec.training.keep == "best" else [])]
    begun = target.is_done("trained") or (target.path / "last.pt").exists()
    return not begun or target.is_done("predicted") or all((target.path / name).exists() for name in needed)


@final
class _Todo:
    """The stages of one run; data and networks are built when a stage first needs them."""

    def __init__(
        self,
        spec: Spec,
        target: RunFolder,
        options: RunOptions,
        maps: Sequence[MapSpec],
        processes: Processes,
    ) -> None:
        self._maps, self._processes = maps, processes
        self._is_decided = self._is_fitting = False
        self._spec, self._target, self._options = spec, target, options
        self._made: Built | None = None

    def _built(self) -> Built:
        if self._made is None:
            self._made = build(
                self._spec,
                root=self._options.root,
                download=self._options.download,
                loader_workers=self._loader_workers,
            )
        return self._made

    @property
    def _loader_workers(self) -> int:
        return self._options.execution.over(self._spec.execution).loader_workers or 0

    def _decide(self, *, is_due: bool) -> None:
        """Let the other processes know whether there is something to train."""
        self._is_decided = True
        self._processes.share(is_due)

    def follow(self) -> None:
        """Take part in training, and wait until the first process has done the rest.

        Raises:
            RuntimeError: If it failed, with what it said.
        """
        if self._processes.share():
            self._fit(self._built())
        problem = self._processes.share()
        if problem is not None:
            raise RuntimeError(f"the first process failed: {problem}")

    def release(self, problem: str | None) -> None:
        """Let the other processes go; those that are in the middle of training learn of it from torch."""
        if self._is_fitting:
            return
        if not self._is_decided:
            self._decide(is_due=False)
        self._processes.share(problem)

    def start(self) -> None:
        if self._target.is_done("started"):
            return
        data = self._built().data
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
        watched = self._options.history == "test"
        if self._target.is_done("trained"):
            if watched and "test_ece" not in self._target.history()[0]:
                raise SpecError(
                    f"{self._target.path}: was trained without scores on test of every epoch, and they cannot be had "
                    "afterwards. Delete the folder to train it again, or leave `history` out."
                )
            self._decide(is_due=False)
            return
        built = self._built()
        began = time.monotonic()
        self._decide(is_due=True)
        self._is_fitting = True
        history = self._fit(built)
        self._is_fitting = False
        seconds = round(time.monotonic() - began, 3)
        if not (self._target.path / "history.csv").exists():
            history.write(self._target.path / "history.csv")  # was lost after the last epoch
        made = [name for name in ("history.csv", "last.pt", "best.pt") if (self._target.path / name).exists()]
        learnt = sum(part.numel() for part in built.objective.parameters() if part.requires_grad)
        self._target.write_record(
            "trained",
            made,
            epochs=len(history),
            seconds=seconds,
            parameters=learnt,
            processes=self._processes.count,
        )

    def _fit(self, built: Built) -> History:
        watched = self._options.history == "test"
        return fit(
            built.objective,
            built.train,
            epochs=self._spec.training.epochs,
            tune=built.tune,
            test=split_source(built.data, "test", self._spec, loader_workers=self._loader_workers)
            if watched
            else None,
            folder=self._target.path,
            selection=built.selection,
            hardware=self._options.hardware(self._spec),
            seed=self._spec.seed,
            ignore_index=built.data.ignore_index,
            quiet=self._options.quiet,
        )

    def predict(self) -> None:
        if self._target.is_done("predicted"):
            # Pixels are scored when they are predicted, so that other bins need other predictions.
            settings = self._options.scoring.of_card
            if (self._target.record("predicted") or {}).get("settings", settings) == settings:
                return
            self._check_weights("pixels cannot be scored with other settings", "give the settings of before")
        _begin_again(self._target, "predicted")
        built = self._built()
        network = load_network(self._target, built)
        device = next(network.parameters()).device
        splits = [split for split in _SPLITS if len(built.data.splits.get(split, ()))]
        sources = {
            split: split_source(built.data, split, self._spec, loader_workers=self._loader_workers)
            for split in splits
        }
        parts = {
            split: source(epoch=0, visit=None, start=0, rank=0, world_size=1, device=device)
            for split, source in sources.items()
        }
        if built.data.kind == "segmentation":
            self._predict_pixels(network, parts, built.data)
            return
        keep_predictions(
            self._target,
            (predict(network, part, split=split, joined=False) for split, part in parts.items()),
        )

    def _predict_pixels(
        self, network: nn.Module, parts: Mapping[str, Iterable[BatchLike]], data: Dataset
    ) -> None:
        tables: dict[str, Any] = {}

        def samples() -> Iterator[Predictions]:
            for split, part in parts.items():
                sample, tables[split] = predict_dense(
                    network,
                    part,
                    split=split,
                    n_classes=data.n_classes,
                    ignore_index=data.ignore_index,
                    seed=self._spec.data.seed,
                    settings=self._options.scoring.of_card,
                )
                yield sample

        keep_predictions(self._target, samples(), tables, settings=self._options.scoring.of_card)

    def shift(self) -> None:
        def predict_test(data: Dataset) -> Predictions:
            built = self._built()
            self._check_weights("no further test set can be predicted", "leave `shift` out")
            network = load_network(self._target, built)
            device = next(network.parameters()).device
            source = split_source(data, "test", self._spec, loader_workers=self._loader_workers)
            found = source(epoch=0, visit=None, start=0, rank=0, world_size=1, device=device)
            return predict(network, found, split="test", joined=False)

        predict_shifts(
            self._target,
            self._options.shift,
            predict_test,
            lambda: self._built().data,
            home=self._spec.home,
            root=self._options.root,
            seed=self._spec.data.seed,
            download=self._options.download,
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
        score_run(self._target, self._maps, self._options.scoring)


def load_network(target: RunFolder, built: Built) -> nn.Module:
    """Return the network of a run with the weights of the epoch that is kept, in the precision they were saved in.

    Args:
        target: A run that is trained.
        built: What its spec names.
    """
    if target.spec().training.keep == "best":
        content: dict[str, Any] = read_checkpoint(target.path / "best.pt")
        load_weights(built.objective.network(), content["network"])
    else:
        content = read_checkpoint(target.path / "last.pt")
        load_weights(built.objective, content["objective"])
    return built.objective.network()


def keep_predictions(
    target: RunFolder,
    predictions: Iterable[Predictions],
    dense: Mapping[str, Any] = MappingProxyType({}),
    *,
    settings: Mapping[str, Any] = MappingProxyType({}),
) -> None:
    """Write the predictions on each split, and that the stage is over.

    Args:
        target: The run.
        predictions: On each split.
        dense: What all pixels of each split came to; known when all predictions are made.
        settings: What the scores of all pixels were made with.
    """
    (target.path / "predictions").mkdir(exist_ok=True)
    files = {}
    for found in predictions:
        files[found.split] = f"predictions/{found.split}.npz"
        write_predictions(found, target.path / files[found.split])
    if dense:
        write_json(target.path / DENSE, dict(dense))
    shares = {split: table["share"] for split, table in dense.items()}
    made = [*files.values(), *([DENSE] if dense else [])]
    facts = {"sample": shares, "settings": dict(settings)} if dense else {}
    target.write_record("predicted", made, splits=list(files), **facts)
