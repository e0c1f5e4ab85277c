"""torchmetrics: our metrics as Metrics; in a MetricCollection they share one state and one pass over the batch."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Literal, final

from equipoise.core import torch_required as _torch_required  # noqa: F401 - first, for its message

# isort: split
import torch
from torch import Tensor

from equipoise.core.errors import needs
from equipoise.core.names import check_choice
from equipoise.metrics.facts import metric_facts
from equipoise.metrics.state import CalibrationState
from equipoise.metrics.values import sketch_metrics, state_metrics

with needs("torchmetrics", extra="torchmetrics", purpose="offer our metrics to torchmetrics"):
    from torchmetrics import Metric

__all__ = [
    "ECE",
    "KS",
    "MCE",
    "NLL",
    "AdaptiveECE",
    "Brier",
    "CalibrationMetric",
    "ClasswiseECE",
    "SmECE",
]


class CalibrationMetric(Metric):  # type: ignore[misc]
    """What all members share: a :class:`~equipoise.metrics.CalibrationState` in two tensors that add up.

    Whatever a member reads, the state is the same, so that a ``MetricCollection`` with ``compute_groups=True``, its
    default, updates one of them and the others follow. States of batches, epochs and processes are added, exactly:
    counts are int64, sums float64. (MPS has no float64; keep the metric on the CPU there.)

    Args:
        num_classes: Number of classes; 2 for one column of the positive class.
        inputs: What ``preds`` are, ``"logits"`` or ``"probs"``. Never guessed from values.
        n_bins: Bins of equal width.
        ignore_index: Targets with this label are left out.
        **kwargs: Arguments of ``torchmetrics.Metric``, such as ``dist_sync_on_step``.

    Example:
        >>> from torchmetrics import MetricCollection
        >>> metrics = MetricCollection([ECE(3, inputs="probs"), NLL(3, inputs="probs")])
        >>> found = metrics(torch.tensor([[0.8, 0.1, 0.1], [0.3, 0.6, 0.1]]), torch.tensor([0, 2]))
        >>> {name: round(float(value), 4) for name, value in found.items()}
        {'ECE': 0.4, 'NLL': 1.2629}
    """

    is_differentiable = False
    higher_is_better = False
    full_state_update = False
    plot_lower_bound: float | None = 0.0

    key: ClassVar[str]
    counts: Tensor
    floats: Tensor

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if hasattr(cls, "key"):
            facts = metric_facts(cls.key)
            cls.higher_is_better = facts.better == "higher"
            cls.plot_lower_bound, cls.plot_upper_bound = (
                end if math.isfinite(end) else None for end in (facts.low, facts.high)
            )

    def __init__(
        self,
        num_classes: int,
        *,
        inputs: Literal["logits", "probs"],
        n_bins: int = 15,
        ignore_index: int | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        check_choice(inputs, ("logits", "probs"), where=type(self).__name__, name="inputs")
        self.num_classes, self.inputs = num_classes, inputs
        self.n_bins, self.ignore_index = n_bins, ignore_index
        empty = CalibrationState(num_classes, n_bins=n_bins).sums
        self.add_state("counts", torch.from_numpy(empty.counts), dist_reduce_fx="sum")
        self.add_state("floats", torch.from_numpy(empty.floats), dist_reduce_fx="sum")

    def update(self, preds: Tensor, target: Tensor) -> None:
        """Add a batch: scores ``(n, k)``, ``(n,)`` or ``(n, k, d1, ...)``, and true classes."""
        rows: dict[str, Any] = {self.inputs: preds}
        self.state().update(**rows, labels=target, ignore_index=self.ignore_index)

    def state(self) -> CalibrationState:
        """Return the state, from which every other number can be read too; it shares the metric's memory."""
        state = self._empty_state()
        state.sums.share(self.counts, self.floats)
        return state

    def compute(self) -> Tensor:
        """Return the metric over everything added so far; NaN if all of it was ignored."""
        state = self.state()
        is_empty = self._update_count > 0 and self.ignore_index is not None and state.total_weight == 0
        value = math.nan if is_empty else self._read(state)
        return torch.tensor(value, dtype=torch.float32, device=self.counts.device)

    def _apply(self, fn: Callable[[Tensor], Tensor], exclude_state: Sequence[str] = "") -> CalibrationMetric:
        """Move the sums to another device; their types stay int64 and float64 under ``half()`` or ``to(dtype)``."""

        def move(tensor: Tensor) -> Tensor:
            moved = fn(tensor)
            return moved if moved.dtype == tensor.dtype else tensor.to(moved.device)

        moved: CalibrationMetric = super()._apply(move, exclude_state)
        return moved

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *args: Any) -> None:
        """Copy the sums of another metric, if it has the same classes and bins and its sums are possible."""
        if all(prefix + name in state_dict for name in ("counts", "floats")):
            loaded = [state_dict[prefix + name] for name in ("counts", "floats")]
            sums = self._empty_state().sums
            sums.share(*loaded)
            sums.check_values()
            for name, part in zip(("counts", "floats"), loaded, strict=True):
                state_dict[prefix + name] = part.to(self.counts.device).clone()
        super()._load_from_state_dict(state_dict, prefix, *args)

    def _empty_state(self) -> CalibrationState:
        return CalibrationState(self.num_classes, n_bins=self.n_bins, device=self.counts.device)

    @abstractmethod
    def _read(self, state: CalibrationState) -> float:
        """Read the number from the state."""


class _Exact(CalibrationMetric):
    """A number that the state holds exactly."""

    def _read(self, state: CalibrationState) -> float:
        state.curve()  # says what is missing, if there are no rows yet
        return state_metrics(state)[self.key]


class _Sketched(CalibrationMetric):
    """A number read from the state's sketch of confidence, true to about one part in a thousand."""

    def _read(self, state: CalibrationState) -> float:
        state.curve()
        return sketch_metrics(state)[self.key]


@final
class ECE(_Exact):
    """Expected calibration error of the predicted class; arguments as in :class:`CalibrationMetric`.

    Example:
        >>> metric = ECE(2, inputs="probs")
        >>> metric.update(torch.tensor([[0.9, 0.1], [0.9, 0.1]]), torch.tensor([0, 1]))
        >>> metric.compute()
        tensor(0.4000)
    """

    key = "ece"


@final
class MCE(_Exact):
    """Maximum calibration error; arguments as in :class:`CalibrationMetric`.

    Example:
        >>> MCE(2, inputs="probs")(torch.tensor([[0.9, 0.1]]), torch.tensor([0]))
        tensor(0.1000)
    """

    key = "mce"


@final
class ClasswiseECE(_Exact):
    """Calibration error of every class's probability, averaged; arguments as in :class:`CalibrationMetric`.

    Example:
        >>> ClasswiseECE(2, inputs="probs")(torch.tensor([[0.9, 0.1]]), torch.tensor([0]))
        tensor(0.1000)
    """

    key = "classwise_ece"


@final
class NLL(_Exact):
    """Negative log-likelihood; arguments as in :class:`CalibrationMetric`.

    Example:
        >>> NLL(2, inputs="logits")(torch.zeros(1, 2), torch.tensor([0]))
        tensor(0.6931)
    """

    key = "nll"


@final
class Brier(_Exact):
    """Brier score, summed over classes; arguments as in :class:`CalibrationMetric`.

    Example:
        >>> Brier(2, inputs="probs")(torch.tensor([[0.5, 0.5]]), torch.tensor([0]))
        tensor(0.5000)
    """

    key = "brier"


@final
class AdaptiveECE(_Sketched):
    """Calibration error in bins of equal mass, from the sketch; arguments as in :class:`CalibrationMetric`.

    Example:
        >>> AdaptiveECE(2, inputs="probs")(torch.tensor([[0.9, 0.1]]), torch.tensor([0])).round(decimals=3)
        tensor(0.1000)
    """

    key = "ada_ece"


@final
class SmECE(_Sketched):
    """Smooth calibration error, from the sketch; arguments as in :class:`CalibrationMetric`.

    Example:
        >>> metric = SmECE(2, inputs="probs")
        >>> metric.update(torch.tensor([[0.75, 0.25]]).expand(4, 2), torch.tensor([0, 0, 0, 1]))
        >>> bool(metric.compute() < 0.01)
        True
    """

    key = "smece"


@final
class KS(_Sketched):
    """Kolmogorov-Smirnov calibration error, from the sketch; arguments as in :class:`CalibrationMetric`.

    Example:
        >>> KS(2, inputs="probs")(torch.tensor([[0.9, 0.1]]), torch.tensor([0])).round(decimals=3)
        tensor(0.1000)
    """

    key = "ks"
