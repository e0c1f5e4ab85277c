"""One run, in stages that each read what the one before wrote: train, predict, score."""

from __future__ import annotations

import os
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

import torch

from equipoise.core.errors import SpecError
from equipoise.core.names import look_up
from equipoise.core.writing import write_predictions
from equipoise.experiments.build import Built, build, split_source
from equipoise.experiments.catalogue import CATALOGUE
from equipoise.experiments.environment import describe_environment
from equipoise.experiments.folder import RunFolder, write_rows
from equipoise.experiments.scoring import score_rows
from equipoise.experiments.spec import Spec, write_spec
from equipoise.training import Hardware, fit, predict, read_checkpoint

__all__ = ["RunOptions", "run"]

_SPLITS = ("tune", "calib", "test")


@final
@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """What does not change a run's identity.

    Attributes:
        calibrators: Post-hoc maps to score; ``"identity"`` is no calibration.
        root: The data folder.
        download: Bring official files if they are not there.
        threads: Threads of this process; 0 leaves torch's own number.
        accelerator: In the words of Lightning Fabric.
        n_bins: Bins of the binned metrics.
        n_resamples: Resamples behind intervals.
        quiet: Draw no progress bar.

    Example:
        >>> RunOptions().calibrators
        ('identity', 'temperature')
    """

    calibrators: tuple[str, ...] = ("identity", "temperature")
    root: str | None = None
    download: bool = False
    threads: int = 0
    accelerator: str = "auto"
    n_bins: int = 15
    n_resamples: int = 1000
    quiet: bool = False


def run(spec: Spec, folder: str | os.PathLike[str], *, options: RunOptions | None = None) -> RunFolder:
    """Do what is left of a run; a finished run is not touched, a half-finished one goes on where it stopped.

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
    for name in options.calibrators:
        look_up(name, CATALOGUE["calibrators"], what="calibrator")
    target = RunFolder(Path(folder) / spec.identity)
    with _threads(options.threads), target.locked():
        stage = "prepare"
        try:
            _prepare(spec, target)
            todo = _Todo(spec, target, options)
            for name, work in (("train", todo.train), ("predict", todo.predict), ("score", todo.score)):
                stage = name
                work()
        except Exception as error:
            target.note_failure(stage, error, traceback.format_exc())
            raise
    return target


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


def _prepare(spec: Spec, target: RunFolder) -> None:
    """Forget the last failure and what is damaged; every file but the spec can be made again, bit for bit."""
    (target.path / "error.json").unlink(missing_ok=True)
    for unfinished in target.unfinished():
        unfinished.unlink()
    for damaged in target.damaged():
        damaged.unlink()
    file = target.path / "spec.toml"
    if not file.exists():
        write_spec(spec, file)
    elif target.is_misplaced():
        raise SpecError(f"{target.problem()}")
    if not _is_resumable(spec, target):
        for name in ("trained.json", "last.pt", "best.pt", "history.csv"):
            (target.path / name).unlink(missing_ok=True)


def _is_resumable(spec: Spec, target: RunFolder) -> bool:
    """Whether no checkpoint is lost that is still needed; if one is, training starts over."""
    needed = ["last.pt", *(["best.pt"] if spec.recipe.keep == "best" else [])]
    begun = target.is_trained() or (target.path / "last.pt").exists()
    return not begun or target.is_predicted() or all((target.path / name).exists() for name in needed)


@final
class _Todo:
    """The stages of one run; data and networks are built when a stage first needs them."""

    def __init__(self, spec: Spec, target: RunFolder, options: RunOptions) -> None:
        self._spec, self._target, self._options = spec, target, options
        self._made: Built | None = None

    def _built(self) -> Built:
        if self._made is None:
            self._made = build(self._spec, root=self._options.root, download=self._options.download)
        return self._made

    def train(self) -> None:
        if self._target.is_trained():
            return
        built = self._built()
        self._target.write_json(
            "environment.json",
            {
                **describe_environment(),
                "data": {
                    "fingerprints": dict(built.data.fingerprints),
                    "files": [
                        {"path": file.path, "size": file.size, "sha256": file.sha256}
                        for file in built.data.provenance
                    ],
                    "rows": {name: len(rows) for name, rows in built.data.splits.items()},
                },
            },
        )
        began = time.monotonic()
        history = fit(
            built.objective,
            built.train,
            epochs=self._spec.recipe.epochs,
            tune=built.tune,
            folder=self._target.path,
            selection=built.selection,
            hardware=Hardware(accelerator=self._options.accelerator, precision=self._spec.recipe.precision),
            seed=self._spec.seed,
            ignore_index=built.data.ignore_index,
            quiet=self._options.quiet,
        )
        seconds = round(time.monotonic() - began, 3)
        self._target.write_json("trained.json", {"epochs": len(history), "seconds": seconds})

    def predict(self) -> None:
        if self._target.is_predicted():
            return
        built = self._built()
        self._load_network(built)
        network = built.objective.network()
        device = next(network.parameters()).device
        splits = [split for split in _SPLITS if len(built.data.splits.get(split, ()))]
        for split in splits:
            source = split_source(built.data, split, self._spec)
            found = source(epoch=0, visit=None, start=0, rank=0, world_size=1, device=device)
            predictions = predict(network, found, split=split, ignore_index=built.data.ignore_index)
            file = self._target.predictions_file(split)
            file.parent.mkdir(exist_ok=True)
            write_predictions(predictions, file)
        self._target.write_json("predicted.json", {"splits": splits})

    def _load_network(self, built: Built) -> None:
        """Put the weights of the epoch that is kept into the network, whatever it holds now."""
        if self._spec.recipe.keep == "best":
            content: dict[str, Any] = read_checkpoint(self._target.path / "best.pt")
            built.objective.network().load_state_dict(content["network"])
        else:
            content = read_checkpoint(self._target.path / "last.pt")
            built.objective.load_state_dict(content["objective"])

    def score(self) -> None:
        missing = [name for name in self._options.calibrators if not self._target.scores_file(name).exists()]
        if not missing and self._target.is_scored():
            return
        (self._target.path / "scored.json").unlink(missing_ok=True)
        for calibrator in missing:
            rows = score_rows(self._spec, self._target, calibrator, self._options)
            write_rows(self._target.scores_file(calibrator), rows)
        self._target.write_json("scored.json", {"calibrators": self._target.calibrators()})
