"""Lightning: callbacks that re-tune adaptive losses and log calibration, and a temperature from a loader."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, final

from equipoise.core import torch_required as _torch_required  # noqa: F401 - first, for its message

# isort: split
import torch
from torch import Tensor

from equipoise.calibrators.temperature import TemperatureScaling
from equipoise.core.errors import DataError, needs
from equipoise.core.predictions import Predictions
from equipoise.losses.adaptive import check_saved_state, is_adaptive
from equipoise.losses.base import log_odds_as_logits
from equipoise.losses.gather import gather_rows
from equipoise.metrics.state import CalibrationState
from equipoise.metrics.values import state_metrics
from equipoise.training.randomness import seed_epoch

with needs("lightning", extra="lightning", purpose="train with Lightning"):
    from lightning.pytorch import Callback

__all__ = ["AdaptLoss", "CalibrationLogger", "SeedEpochs", "fit_temperature"]


@final
class AdaptLoss(Callback):  # type: ignore[misc]
    """Re-tune a loss that adapts, once per epoch, from the logits of the validation loop.

    The validation loader is what this package calls ``tune``: the loss learns from it, so that results must be
    judged by other rows. ``validation_step`` must return ``{"logits": ..., "labels": ...}``, and the loss must be a
    submodule of the LightningModule (``self.loss = AdaFocalLoss()``), so that checkpoints hold what it learned.

    Args:
        loss: Name of the attribute that holds the loss.
        dataloader_idx: Which validation loader to learn from.
    """

    def __init__(self, loss: str = "loss", *, dataloader_idx: int = 0) -> None:
        self.loss, self.dataloader_idx = loss, dataloader_idx
        self.epoch = -1
        self._is_checked = False
        self._rows: list[tuple[Tensor, Tensor]] = []

    @property
    def state_key(self) -> str:
        """Tells apart the callbacks of several losses in a checkpoint."""
        return f"equipoise.AdaptLoss[{self.loss}]"

    def state_dict(self) -> dict[str, Any]:
        """Return the last epoch that was learned from; everything else is in the loss."""
        return {"epoch": self.epoch}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take what :meth:`state_dict` gave."""
        self.epoch = state_dict["epoch"]

    def on_fit_start(self, trainer: Any, pl_module: Any) -> None:
        """Refuse a module whose loss does not adapt, before anything is trained."""
        loss = getattr(pl_module, self.loss, None)
        if not is_adaptive(loss) or not isinstance(loss, torch.nn.Module):
            raise TypeError(
                f"AdaptLoss: `{type(pl_module).__name__}.{self.loss}` must be a loss that adapts, a torch module "
                f"with update(logits, labels), got {type(loss).__name__}. Name its attribute: AdaptLoss(loss=...)."
            )

    def on_validation_epoch_start(self, trainer: Any, pl_module: Any) -> None:
        """Forget the rows of the validation before."""
        self._rows.clear()

    def on_validation_batch_end(
        self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int, dataloader_idx: int = 0
    ) -> None:
        """Keep the rows of a batch, if they will be learned from; the first ones try an update on a copy."""
        if dataloader_idx == self.dataloader_idx and not self._is_checked:
            with torch.inference_mode(mode=False):
                logits, labels = (part.clone() for part in _rows(outputs, where="AdaptLoss"))
                check_saved_state(getattr(pl_module, self.loss), logits, labels, where="AdaptLoss")
            self._is_checked = True
        if dataloader_idx == self.dataloader_idx and self._is_due(trainer):
            logits, labels = _rows(outputs, where="AdaptLoss")
            self._rows.append((logits.detach(), labels))

    def on_validation_epoch_end(self, trainer: Any, pl_module: Any) -> None:
        """Re-tune the loss from all rows of all processes; the first validation of an epoch alone counts."""
        if not self._rows or not self._is_due(trainer):
            return
        # Validation runs in inference mode; its tensors, and buffers made from them, could not be trained with later.
        with torch.inference_mode(mode=False), torch.no_grad():
            logits, labels = (torch.cat(part).clone() for part in zip(*self._rows, strict=True))
            if trainer.world_size > 1:
                there = torch.ones(len(labels), device=logits.device)
                logits, labels, there = gather_rows(logits, labels, there)
                logits, labels = logits[there > 0], labels[there > 0]
            getattr(pl_module, self.loss).update(logits, labels)
        self.epoch = trainer.current_epoch
        self._rows.clear()

    def _is_due(self, trainer: Any) -> bool:
        fitting = trainer.state.fn == "fit" and not trainer.sanity_checking
        return fitting and trainer.current_epoch != self.epoch


@final
class SeedEpochs(Callback):  # type: ignore[misc]
    """Seed torch, NumPy and Python at the start of every epoch, so that no epoch depends on how it was reached.

    Lightning's checkpoints hold no random state: without this, a resumed run shuffles rows and drops units otherwise
    than the straight one. With it, a run that is resumed from a checkpoint of the end of an epoch equals the straight
    run bit for bit on a CPU, if both have the same seed here. Checkpoints from the middle of an epoch are not covered.

    Args:
        seed: Random seed of the run.
    """

    def __init__(self, seed: int = 0) -> None:
        self.seed, self.epoch = seed, 0
        self._is_first = True

    def state_dict(self) -> dict[str, Any]:
        """Return the epoch that comes next."""
        return {"epoch": self.epoch}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take what :meth:`state_dict` gave."""
        self.epoch = state_dict["epoch"]

    def on_fit_start(self, trainer: Any, pl_module: Any) -> None:
        """Seed the first epoch already here: Lightning draws its order of rows before the epoch starts."""
        self._is_first = True
        seed_epoch(self.seed, self.epoch, rank=trainer.global_rank)

    def on_train_epoch_start(self, trainer: Any, pl_module: Any) -> None:
        """Seed every later epoch, by its number and the process."""
        if not self._is_first:
            seed_epoch(self.seed, trainer.current_epoch, rank=trainer.global_rank)
        self._is_first = False
        self.epoch = trainer.current_epoch + 1


@final
class CalibrationLogger(Callback):  # type: ignore[misc]
    """Log calibration scores, and a reliability diagram, at the end of every validation.

    ``validation_step`` must return ``{"logits": ..., "labels": ...}``. Rows are summed as they come, on every process.

    Args:
        metrics: Names from the scorecard that a state holds: ``accuracy``, ``nll``, ``brier``, ``ece`` ...
        prefix: Stands before the names, as in ``val_ece``.
        figures: A folder for one figure per validation; None draws none. A TensorBoard logger gets them as well.
        n_bins: Bins of equal width.
        ignore_index: Labels that do not count.
    """

    def __init__(
        self,
        metrics: Sequence[str] = ("accuracy", "nll", "brier", "ece"),
        *,
        prefix: str = "val_",
        figures: str | os.PathLike[str] | None = None,
        n_bins: int = 15,
        ignore_index: int | None = None,
    ) -> None:
        self.metrics, self.prefix, self.n_bins = tuple(metrics), prefix, n_bins
        self.figures = None if figures is None else Path(figures)
        self.ignore_index = ignore_index
        self.state: CalibrationState | None = None

    def on_validation_epoch_start(self, trainer: Any, pl_module: Any) -> None:
        """Begin a new state."""
        self.state = None

    def on_validation_batch_end(
        self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int, dataloader_idx: int = 0
    ) -> None:
        """Add the rows of a batch."""
        if trainer.sanity_checking:
            return
        logits, labels = _rows(outputs, where="CalibrationLogger")
        if self.state is None:
            self.state = CalibrationState(logits.shape[1], n_bins=self.n_bins, device=logits.device)
        self.state.update(logits=logits.detach(), labels=labels, ignore_index=self.ignore_index)

    def on_validation_epoch_end(self, trainer: Any, pl_module: Any) -> None:
        """Add up the processes, log, draw."""
        if self.state is None:
            return
        if trainer.world_size > 1:
            self.state.all_reduce()
        values = state_metrics(self.state)
        pl_module.log_dict({self.prefix + name: values[name] for name in self.metrics})
        if self.figures is not None and trainer.is_global_zero:
            self._draw(trainer, self.state)

    def _draw(self, trainer: Any, state: CalibrationState) -> None:
        from equipoise.plots import draw_reliability_diagrams  # matplotlib is loaded when something is drawn

        assert self.figures is not None
        figure = draw_reliability_diagrams({f"step {trainer.global_step}": state.curve()})
        self.figures.mkdir(parents=True, exist_ok=True)
        figure.savefig(self.figures / f"reliability-{trainer.global_step:08}.png")
        for logger in trainer.loggers:
            if hasattr(logger.experiment, "add_figure"):
                logger.experiment.add_figure(f"{self.prefix}reliability", figure, trainer.global_step)


def fit_temperature(
    module: torch.nn.Module, loader: Iterable[Any], *, ignore_index: int = -100
) -> TemperatureScaling:
    """Fit a temperature on held-out batches ``(inputs, labels)``.

    Args:
        module: Gives logits; its mode is restored afterwards.
        loader: Rows that neither training nor the choice of the model has seen, and that will not judge it.
        ignore_index: Label of rows that do not count, as in the losses.

    Returns:
        The fitted calibrator; save it, or put ``calibrator.as_module()`` behind the network.

    Example:
        >>> module = torch.nn.Linear(2, 2)
        >>> fit_temperature(module, [(torch.randn(50, 2), torch.randint(0, 2, (50,)))]).fitted
        True
    """
    was_training = module.training
    module.eval()
    device = next((parameter.device for parameter in module.parameters()), torch.device("cpu"))
    try:
        with torch.inference_mode():
            rows = [(module(inputs.to(device)).float().cpu(), labels.cpu()) for inputs, labels in loader]
    finally:
        module.train(was_training)
    if not rows:
        raise DataError("fit_temperature: the loader must give at least one batch, got none.")
    logits, labels = (torch.cat(part) for part in zip(*rows, strict=True))
    return TemperatureScaling().fit(Predictions(logits=logits, labels=labels, ignore_index=ignore_index))


def _rows(outputs: Any, *, where: str) -> tuple[Tensor, Tensor]:
    try:
        logits, labels = outputs["logits"], outputs["labels"]
    except (KeyError, TypeError, IndexError):
        raise DataError(
            f"{where}: validation_step must return {{'logits': ..., 'labels': ...}}, got {type(outputs).__name__}. "
            "Return both from it; the loss may stand beside them."
        ) from None
    return log_odds_as_logits(logits[:, None] if logits.ndim == 1 else logits), labels
