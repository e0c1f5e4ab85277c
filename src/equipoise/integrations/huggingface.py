"""Hugging Face Trainer: our losses with the right normalization, calibration metrics, losses that adapt."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import FrameType
from typing import Any, final

from equipoise.core import torch_required as _torch_required  # noqa: F401 - first, for its message

# isort: split
import torch
from torch import Tensor, nn

from equipoise.core.errors import DataError, needs
from equipoise.losses.adaptive import check_saved_state, is_adaptive, made_up_rows
from equipoise.losses.base import log_odds_as_logits
from equipoise.metrics.state import CalibrationState
from equipoise.metrics.values import state_metrics
from equipoise.training.checkpoint import read_checkpoint, write_checkpoint

with needs("transformers", extra="huggingface", purpose="train with the Hugging Face Trainer"):
    from transformers import TrainerCallback

__all__ = ["AdaptLoss", "CalibrationMetrics", "compute_loss_func"]

_IGNORED = -100
_FILE = "equipoise_loss.pt"


def compute_loss_func(loss: nn.Module) -> Callable[..., Tensor]:
    """Return what ``Trainer(compute_loss_func=...)`` wants of a loss.

    The Trainer adds up the gradients of micro-batches and divides by nothing, so each must bring its share of the
    whole: the mean over its labels times their part in the number of labels of the optimizer's step. Then gradients
    do not depend on ``gradient_accumulation_steps``. Terms that come from a whole batch (MMCE, MDCA ...) are those
    of the micro-batches, averaged.

    Args:
        loss: One of ours, or any module of (logits, labels), with ``reduction="mean"``.

    Returns:
        A function of ``(outputs, labels, num_items_in_batch)``; labels of -100 do not count, and logits of tokens
        ``(n, t, k)`` are taken as they come.

    Raises:
        ValueError: For another reduction.

    Example:
        >>> from equipoise.losses import FocalLoss
        >>> function = compute_loss_func(FocalLoss(gamma=0.0))
        >>> function({"logits": torch.zeros(2, 2)}, torch.tensor([0, 1]), num_items_in_batch=4)
        tensor(0.3466)
    """
    reduction = getattr(loss, "reduction", None)
    if reduction not in (None, "mean"):
        raise ValueError(f"compute_loss_func: the loss must have reduction='mean', got {reduction!r}.")

    def function(outputs: Any, labels: Tensor, num_items_in_batch: Any = None) -> Tensor:
        logits = _logits(outputs)
        value: Tensor = loss(log_odds_as_logits(logits.movedim(-1, 1)), labels)
        if num_items_in_batch is None:
            return value
        # A step without any label has no items; its loss is 0, not 0 / 0.
        share: Tensor = (labels != _IGNORED).sum() / torch.as_tensor(num_items_in_batch).clamp(min=1)
        return value * share

    return function


@final
class CalibrationMetrics:
    """For ``Trainer(compute_metrics=...)``: scores of all predictions, in constant memory with ``batch_eval_metrics``.

    The rows of an evaluation that broke off are dropped when the next evaluation begins.

    Args:
        metrics: Names from the scorecard that a state holds: ``accuracy``, ``nll``, ``brier``, ``ece`` ...
        n_bins: Bins of equal width.

    Example:
        >>> from transformers import EvalPrediction
        >>> metrics = CalibrationMetrics(metrics=("accuracy",))
        >>> metrics(EvalPrediction(predictions=torch.eye(3).numpy(), label_ids=torch.tensor([0, 1, -100]).numpy()))
        {'accuracy': 1.0}
    """

    def __init__(
        self, metrics: Sequence[str] = ("accuracy", "nll", "brier", "ece"), *, n_bins: int = 15
    ) -> None:
        self.metrics, self.n_bins = tuple(metrics), n_bins
        self.state: CalibrationState | None = None
        self._evaluations = _Evaluations()

    def __call__(self, evaluation: Any, compute_result: bool = True) -> dict[str, float]:
        """Add a batch, or everything; return the scores if it was the last."""
        is_first = self._evaluations.is_first(last=compute_result)
        logits, labels = _rows(evaluation)
        if is_first or self.state is None:
            self.state = CalibrationState(logits.shape[-1], n_bins=self.n_bins)
        self.state.update(logits=logits.movedim(-1, 1), labels=labels, ignore_index=_IGNORED)
        if not compute_result:
            return {}
        values, self.state = state_metrics(self.state), None
        return {name: values[name] for name in self.metrics}


@final
class AdaptLoss(TrainerCallback):  # type: ignore[misc]
    """Re-tune a loss that adapts after every evaluation, once per epoch, and keep its state in the checkpoints.

    ``Trainer(compute_loss_func=compute_loss_func(loss), compute_metrics=adapt.compute_metrics, callbacks=[adapt])``.
    The evaluation set is what this package calls ``tune``: the loss learns from it, so that results must be judged
    by other rows.

    Args:
        loss: A loss that adapts.
        metrics: What ``compute_metrics`` reports.
    """

    def __init__(self, loss: nn.Module, metrics: CalibrationMetrics | None = None) -> None:
        if not is_adaptive(loss) or not isinstance(loss, nn.Module):
            raise TypeError(
                "AdaptLoss: `loss` must be one that adapts, a torch module with update(logits, labels), got "
                f"{type(loss).__name__}. Others need no callback."
            )
        self.loss, self.metrics, self.epoch = loss, metrics or CalibrationMetrics(), 0
        self._rows: list[tuple[Tensor, Tensor]] = []
        self._evaluations = _Evaluations()

    def compute_metrics(self, evaluation: Any, compute_result: bool = True) -> dict[str, float]:
        """Report the metrics, and keep the rows for the loss."""
        if self._evaluations.is_first(last=compute_result):
            self._rows = []
        logits, labels = _rows(evaluation)
        self._rows.append((logits.reshape(-1, logits.shape[-1]), labels.reshape(-1)))
        return self.metrics(evaluation, compute_result=compute_result)

    def on_evaluate(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Re-tune the loss, if this epoch has not done so yet."""
        rows, self._rows = self._rows, []
        epoch = math.ceil(state.epoch or 0)
        if not rows or epoch <= self.epoch:
            return
        logits, labels = (torch.cat(part) for part in zip(*rows, strict=True))
        device = next((buffer.device for buffer in self.loss.buffers()), torch.device("cpu"))
        self.loss.update(logits.to(device), labels.to(device))  # type: ignore[operator]
        self.epoch = epoch

    def on_save(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Write the loss's state beside the checkpoint."""
        if state.is_world_process_zero:
            content = {"loss": self.loss.state_dict(), "epoch": self.epoch}
            write_checkpoint(_folder(args, state) / _FILE, content)

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Read the loss's state back when training is resumed; before that, try an update on a copy."""
        n_classes = getattr(getattr(kwargs.get("model"), "config", None), "num_labels", None)
        if n_classes:
            check_saved_state(self.loss, *made_up_rows(max(n_classes, 2)), where="AdaptLoss")
        if state.global_step == 0:
            return
        file = _folder(args, state) / _FILE
        if not file.exists():
            raise DataError(
                f"AdaptLoss: {file} is missing, so the loss would start over. Resume from a checkpoint that was "
                "written with this callback."
            )
        content = read_checkpoint(file)
        self.loss.load_state_dict(content["loss"])
        self.epoch = content["epoch"]


class _Evaluations:
    """Tells the first batch of an evaluation from those after it.

    The Trainer reports the last batch of an evaluation and not the first, so that an evaluation that broke off looks
    like the beginning of the next. Its loop is therefore recognized by its stack frame. Without such a frame, an
    evaluation ends with its last batch only.
    """

    def __init__(self) -> None:
        self._loop: FrameType | None = None
        self._is_done = True

    def is_first(self, *, last: bool) -> bool:
        """Return whether a batch is the first of its evaluation; it is called once for each batch."""
        loop = _evaluation_loop()
        first = self._is_done or loop is not self._loop
        self._loop, self._is_done = (None if last else loop), last
        return first

    def __getstate__(self) -> dict[str, Any]:
        return {"_loop": None, "_is_done": True}


def _evaluation_loop() -> FrameType | None:
    """Return the frame of the Trainer's loop over batches that called, if there is one."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_name not in ("evaluation_loop", "prediction_loop"):
        frame = frame.f_back
    return frame


def _folder(args: Any, state: Any) -> Path:
    return Path(args.output_dir) / f"checkpoint-{state.global_step}"


def _logits(outputs: Any) -> Tensor:
    logits: Tensor = outputs["logits"] if isinstance(outputs, dict) else outputs[0]
    return logits


def _rows(evaluation: Any) -> tuple[Tensor, Tensor]:
    scores, labels = evaluation.predictions, evaluation.label_ids
    logits = torch.as_tensor(scores[0] if isinstance(scores, tuple) else scores, device="cpu").float()
    return log_odds_as_logits(logits.movedim(-1, 1)).movedim(1, -1), torch.as_tensor(labels, device="cpu")
