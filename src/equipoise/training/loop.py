"""The loop: it owns time and knows no method."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Sized
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

import torch
from torch import Tensor

from equipoise.core.errors import DataError
from equipoise.core.progress import PlainLines, clock_text, progress
from equipoise.training.adapting import check_losses, may_lose_state
from equipoise.training.batch_source import BatchLike, Source, as_source, draw
from equipoise.training.checkpoint import read_checkpoint, write_checkpoint
from equipoise.training.divergence import divergence_error
from equipoise.training.epoch_scores import scores_on_test
from equipoise.training.evaluation import SplitPredictions, predict
from equipoise.training.hardware import Hardware
from equipoise.training.history import EpochLog, History, Row, epoch_row
from equipoise.training.interruption import Interruption
from equipoise.training.learner import Learner
from equipoise.training.objective import Objective
from equipoise.training.randomness import random_state, restore_random_state, seed_epoch
from equipoise.training.selection import Selection

if TYPE_CHECKING:
    from lightning_fabric import Fabric

__all__ = ["fit"]

# How often processes or devices that would have to wait for each other are asked.
_PERIOD = 20
# An update is tried on so many pixels of dense labels.
_FEW_PIXELS = 10_000


def fit(
    objective: Objective,
    train: Source | Iterable[Any],
    *,
    epochs: int,
    tune: Source | Iterable[Any] | None = None,
    test: Source | Iterable[Any] | None = None,
    folder: str | os.PathLike[str] | None = None,
    resume: bool = True,
    selection: Selection | None = None,
    hardware: Hardware | None = None,
    seed: int = 0,
    ignore_index: int | None = None,
    quiet: bool = False,
    on_epoch: Callable[[Row], object] | None = None,
) -> History:
    """Train; go on where an earlier run in the same folder stopped.

    A resumed run equals the straight run bit for bit on a CPU. Ctrl-C and SIGTERM are acted on after the current
    batch: the run is saved, then KeyboardInterrupt or SystemExit(143) is raised. A crash loses the current epoch
    at most.

    Args:
        objective: The method; it holds the networks, which are trained in place.
        train: Batches of the ``train`` split; a ``DataLoader`` of tuples or dictionaries will do, as in
            :class:`Loader`.
        epochs: How many times through them.
        tune: Batches of the ``tune`` split. It scores every epoch, chooses the best one and re-tunes objectives
            that adapt; it must hold nothing that the result is judged by later.
        test: Batches of the ``test`` split, if curves over training shall show it: their scores become columns
            ``test_...`` of the history, and nothing else. No epoch is chosen, no loss re-tuned, no run stopped by
            them, and the run is the same bit for bit without.
        folder: Where ``last.pt`` (everything), ``best.pt`` (the best epoch's network) and ``history.csv`` are
            kept; None keeps nothing.
        resume: Whether to go on from ``last.pt`` if there is one; False starts over.
        selection: How the best epoch is chosen, and whether to stop early.
        hardware: Devices, precision, processes.
        seed: Of every random number drawn during training; initial weights are the caller's.
        ignore_index: Label of rows of ``tune`` that are no class, for dense labels.
        quiet: Draw no progress bar on a terminal, and print no lines about epochs elsewhere.
        on_epoch: Called with a copy of each epoch's row once it is saved, on the first process: for live logs. What
            it raises ends the run, which can be resumed.

    Returns:
        One row per epoch.

    Raises:
        DivergenceError: If the loss stops being finite.
        ValueError: If the folder holds a run of something else.

    Example:
        >>> from torch import nn
        >>> from equipoise.objectives import Supervised
        >>> batches = [(torch.eye(2), torch.tensor([0, 1]))]
        >>> objective = Supervised(nn.Linear(2, 2), nn.CrossEntropyLoss())
        >>> history = fit(objective, batches, epochs=5, tune=batches, hardware=Hardware(accelerator="cpu"))
        >>> history[-1]["loss"] < history[0]["loss"]
        True
    """
    if epochs < 1:
        raise ValueError(f"fit: `epochs` must be at least 1, got {epochs}.")
    hardware = hardware or Hardware()
    fabric = hardware.make_fabric()
    objective.to(fabric.device)
    learners = [module for module in objective.modules() if isinstance(module, Learner)]
    for learner in learners:
        learner.attach(fabric, compile=hardware.compile, sync_batchnorm=hardware.sync_batchnorm)
    objective.train()
    run = _Run(
        objective=objective,
        learners=learners,
        train=as_source(train),
        tune=None if tune is None else as_source(tune),
        test=None if test is None else as_source(test),
        epochs=epochs,
        seed=seed,
        fabric=fabric,
        folder=None if folder is None else Path(folder),
        selection=selection or Selection(),
        ignore_index=ignore_index,
        quiet=quiet,
        on_epoch=on_epoch,
    )
    run.check_losses()
    if resume:
        run.load()
    else:
        run.clear()
    with Interruption() as interruption:
        while not run.is_done():
            run.train_epoch(interruption)
            run.end_epoch()
            run.check_signal(interruption)
    return run.history


@final
@dataclass(kw_only=True)
class _Run:
    """Where a run is in time, and how to get back there."""

    objective: Objective
    learners: list[Learner[Any]]
    train: Source
    tune: Source | None
    test: Source | None
    epochs: int
    seed: int
    fabric: Fabric
    folder: Path | None
    selection: Selection
    ignore_index: int | None
    quiet: bool
    on_epoch: Callable[[Row], object] | None
    history: History = field(default_factory=History)
    epoch: int = 0
    batch: int = 0
    indices: Tensor | None = None
    log: EpochLog = field(default_factory=EpochLog)
    random: dict[str, Any] | None = None
    began: tuple[float, float] = (0.0, 0.0)
    lines: PlainLines = field(default_factory=PlainLines)

    def check_losses(self) -> None:
        """Raise before the first step if what a loss learns would not be saved; random numbers stay as they are."""
        if self.tune is None or not may_lose_state(self.objective):
            return
        before = random_state()
        first = next(iter(draw(self.tune, self.fabric, epoch=0)), None)
        if first is not None:
            with self.fabric.autocast():
                network = self.objective.network()
                found = predict(network, [first], ignore_index=self.ignore_index, n_pixels=_FEW_PIXELS)
            check_losses(self.objective, found)
        restore_random_state(before)

    def is_done(self) -> bool:
        """Whether all epochs are done, or patience is used up."""
        return self.epoch >= self.epochs or (self.batch == 0 and self.selection.is_done(self.history))

    def train_epoch(self, interruption: Interruption) -> None:
        """Go through the epoch's batches, or through those that are left of it."""
        batches = self._begin_epoch()
        left = len(batches) if isinstance(batches, Sized) else None
        total = None if left is None else self.batch + left
        label = f"epoch {self.epoch + 1}/{self.epochs}"
        if self.history:
            label += f" loss {self.history[-1]['loss']:.4f}"
        quiet = self.quiet or not self.fabric.is_global_zero
        for batch in progress(batches, label=label, total=left, unit="batches", quiet=quiet):
            time_in_epochs = self.epoch + (self.batch / total if total else 0.0)
            for learner in self.learners:
                learner.set_lr(time_in_epochs, epochs=self.epochs)
            step = self.objective.step(batch)
            self.log.add(step.scalars, n_samples=len(batch.index))
            self.batch += 1
            if self.fabric.device.type == "cpu" or self.batch % _PERIOD == 0:
                self._check(batch)
            if self.fabric.world_size == 1 or self.batch % _PERIOD == 0:
                self.check_signal(interruption)
        self._check(None)
        if self.batch == 0:
            raise ValueError(
                f"fit: `train` gave no batch in epoch {self.epoch}, so there is nothing to learn from. Is it empty, or "
                "smaller than one batch of a loader with drop_last=True?"
            )

    def _begin_epoch(self) -> Iterable[BatchLike]:
        self.began = _clocks()
        if self.batch == 0:
            self._restore_random()
            self.indices = self.objective.plan_epoch(self.epoch)
        seed_epoch(self.seed, self.epoch, rank=self.fabric.global_rank)
        batches = draw(self.train, self.fabric, epoch=self.epoch, indices=self.indices, start=self.batch)
        self._restore_random()  # of an epoch resumed in the middle; nothing is left to restore otherwise
        return batches

    def end_epoch(self) -> None:
        """Score, adapt, remember, save."""
        self._share_buffers()
        self.objective.prepare_evaluation()
        held_out = None if self.tune is None else self._predictions(self.tune, "tune")
        row = epoch_row(self.epoch, self.log.joined(self.fabric), self.objective, held_out)
        row |= self._scores_on_test(row)
        self.objective.end_epoch(held_out)
        seconds, of_cpu = (round(now - then, 3) for now, then in zip(_clocks(), self.began, strict=True))
        self.history.add({**row, "seconds": seconds, "cpu_seconds": of_cpu})
        self.epoch, self.batch, self.log = self.epoch + 1, 0, EpochLog()
        self._save()
        if self.fabric.is_global_zero and not self.quiet:
            self.lines.write(self._line(), last=self.is_done())
        if self.on_epoch is not None and self.fabric.is_global_zero:
            self.on_epoch(dict(self.history[-1]))

    def _line(self) -> str:
        """Return the last epoch in a line: its loss, its scores on ``tune``, and how long the others will take."""
        row = self.history[-1]
        shown = [f"{name} {row[name]:.4f}" for name in ("loss", "tune_nll", "tune_accuracy") if name in row]
        left = (self.epochs - self.epoch) * row["seconds"]
        shown += [f"{row['seconds']:.1f} s", *([f"about {clock_text(left)} left"] if left >= 1 else [])]
        return f"epoch {self.epoch}/{self.epochs}: {', '.join(shown)}"

    def _share_buffers(self) -> None:
        """Give all processes the buffers of the first, which are saved: batch norms may have parts of a batch each."""
        if self.fabric.world_size > 1:
            for learner in self.learners:
                for buffer in learner.network.buffers():
                    torch.distributed.broadcast(buffer, src=0)

    def _predictions(self, source: Source, split: str) -> SplitPredictions:
        return SplitPredictions(source, fabric=self.fabric, split=split, ignore_index=self.ignore_index)

    def _scores_on_test(self, row: Row) -> Row:
        """Score ``test`` for the curves; what was random before is so after it."""
        if self.test is None:
            return {}
        before = random_state()
        found = self._predictions(self.test, "test")(self.objective.network())
        restore_random_state(before)
        return scores_on_test(found, temperature=row.get("tune_temperature"))

    def check_signal(self, interruption: Interruption) -> None:
        """Save and exit, if any process received a signal."""
        if self.fabric.world_size > 1:
            received = torch.tensor(interruption.signal, device=self.fabric.device)
            interruption.signal = int(self.fabric.all_reduce(received, reduce_op="max"))
        if interruption.signal:
            self._check(None)
            self._save()
            interruption.exit()

    def _check(self, batch: BatchLike | None) -> None:
        number = self.log.first_bad_batch()
        if number is not None:
            at_hand = batch if number == self.batch - 1 else None
            learner = self.learners[0] if self.learners else None
            raise divergence_error(epoch=self.epoch, number=number, batch=at_hand, learner=learner)

    def _save(self) -> None:
        """Write everything; on every process, because all have random states to give."""
        if self.folder is None:
            return
        log, states = self.log.joined(self.fabric), _random_states(self.fabric)
        if self.fabric.is_global_zero:
            if self.batch == 0 and self.selection.best(self.history) == len(self.history) - 1:
                network = self.objective.network().state_dict()
                write_checkpoint(self.folder / "best.pt", {"epoch": self.epoch - 1, "network": network})
            content = {
                "objective": self.objective.state_dict(),
                "kind": type(self.objective).__name__,
                "seed": self.seed,
                "epoch": self.epoch,
                "batch": self.batch,
                "indices": self.indices,
                "log": {"columns": log.columns(), "sizes": log.sizes},
                "history": list(self.history),
                "random": states,
                "precision": self.fabric.strategy.precision.state_dict(),
            }
            write_checkpoint(self.folder / "last.pt", content)
            self.history.write(self.folder / "history.csv")
        self.fabric.barrier()

    def clear(self) -> None:
        """Remove what an earlier run left, so that it cannot be taken for this one after a crash."""
        if self.folder is not None and self.fabric.is_global_zero:
            for name in ("last.pt", "best.pt", "history.csv"):
                (self.folder / name).unlink(missing_ok=True)
        self.fabric.barrier()

    def load(self) -> None:
        """Go back to where ``last.pt`` was written, if there is one."""
        content = self._read_last()
        if content is None:
            return
        self._check_same(content)
        try:
            self.objective.load_state_dict(content["objective"])
        except (RuntimeError, ValueError) as error:
            raise ValueError(self._other_run(f"networks of other shapes ({error})")) from error
        self.epoch, self.batch, self.indices = content["epoch"], content["batch"], content["indices"]
        self.history = History(content["history"])
        sizes = content["log"]["sizes"]
        self.log = EpochLog(
            content["log"]["columns"], sizes if self.fabric.is_global_zero else [0] * len(sizes)
        )
        if self.fabric.global_rank < len(content["random"]):
            self.random = content["random"][self.fabric.global_rank]
        self.fabric.strategy.precision.load_state_dict(content["precision"])

    def _read_last(self) -> dict[str, Any] | None:
        """Return the checkpoint, if there is one; the first process reads it for all, whose disks may differ."""
        found: Any = None
        if self.fabric.is_global_zero and self.folder is not None and (self.folder / "last.pt").exists():
            try:
                found = read_checkpoint(self.folder / "last.pt")
            except (DataError, OSError) as error:
                found = error
        if self.fabric.world_size > 1:
            found = self.fabric.broadcast(found)
        if isinstance(found, Exception):
            raise found
        content: dict[str, Any] | None = found
        return content

    def _check_same(self, content: dict[str, Any]) -> None:
        kind = type(self.objective).__name__
        if content["kind"] != kind:
            raise ValueError(self._other_run(f"{content['kind']}, not {kind}"))
        if content["seed"] != self.seed:
            raise ValueError(self._other_run(f"seed {content['seed']}, not {self.seed}"))

    def _other_run(self, what: str) -> str:
        return (
            f"fit: {self.folder} holds a run of {what}. Pass another folder, or resume=False to overwrite it."
        )

    def _restore_random(self) -> None:
        if self.random is not None:
            restore_random_state(self.random)
            self.random = None


def _clocks() -> tuple[float, float]:
    """Give the time by the clock, and that of the processor for this process."""
    return time.monotonic(), time.process_time()


def _random_states(fabric: Fabric) -> list[dict[str, Any]]:
    states: list[Any] = [random_state()]
    if fabric.world_size > 1:
        states *= fabric.world_size
        torch.distributed.all_gather_object(states, random_state())
    return states
