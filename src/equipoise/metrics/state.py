"""CalibrationState: what a confusion matrix is to accuracy, for the whole binned family."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, final

import numpy as np

from equipoise.core.array_functions import asarray_like
from equipoise.core.arrays import Array, as_numpy, as_tensor, is_tensor
from equipoise.core.bins import check_bins, lower_edges, precision_of
from equipoise.core.checks import check_labels
from equipoise.core.choices import ScoreSettings
from equipoise.core.errors import DataError
from equipoise.core.predictions import Predictions
from equipoise.core.rows import check_disjoint
from equipoise.metrics.accumulate import (
    add_confidence,
    add_predictions,
    losses_of_being_right,
    sum_rows,
)
from equipoise.metrics.curve import ReliabilityCurve, calibration_errors
from equipoise.metrics.sums import Sums
from equipoise.metrics.tensors import as_plain_batch, flat_batch

if TYPE_CHECKING:
    import torch
    from torch import Tensor

__all__ = ["CalibrationState"]

_WHERE = "CalibrationState"
# How far a row's sum may be from one. Predictions check theirs; this only finds rows that were changed since.
_TOLERANCE = 1e-2


@final
class CalibrationState:
    """Fixed-size, mergeable sums from which the binned metrics, NLL, Brier and accuracy are read.

    Exact over batches, files, processes and days: counts are int64, sums float64, and adding states adds their
    rows. Memory is ``O(n_bins * n_classes)`` whatever the number of rows.

    Args:
        n_classes: Number of classes; 0 for confidences, from which only their own scores and the accuracy are known.
        n_bins: Bins of equal width on [0, 1].
        closed: Which side of a bin belongs to it: ``"right"``, as in the authors' codes, or ``"left"``.
        n_ranks: The largest k of top-k accuracy.
        n_fine: Cells of the confidence sketch, from which adaptive and smooth errors of streams are approximated.
        device: Where the sums live: ``"cpu"``, as NumPy arrays, or a device of torch, as tensors. Batches on a GPU are
            summed there, without waiting for it.

    Example:
        >>> state = CalibrationState(n_classes=2, n_bins=15)
        >>> state.update(probs=[[0.9, 0.1], [0.6, 0.4]], labels=[0, 1])
        >>> state.update(probs=[[0.2, 0.8]], labels=[1])
        >>> state.n_samples
        3
        >>> round(state.curve().expected_error(), 6)
        0.3
    """

    def __init__(
        self,
        n_classes: int,
        *,
        n_bins: int = 15,
        closed: str = "right",
        n_ranks: int = 5,
        n_fine: int = 4096,
        device: torch.device | str = "cpu",
    ) -> None:
        check_bins(n_bins, closed, where=_WHERE)
        _check_sizes(n_classes, n_ranks, n_fine)
        self.n_classes, self.n_bins, self.closed = int(n_classes), int(n_bins), closed
        self.n_ranks, self.n_fine = int(n_ranks), int(n_fine)
        self.sums = Sums(
            n_classes=self.n_classes,
            n_bins=self.n_bins,
            n_ranks=self.n_ranks,
            n_fine=self.n_fine,
            device=device,
        )

    @classmethod
    def of(cls, predictions: Predictions, *, n_bins: int = 15, closed: str = "right") -> CalibrationState:
        """Return the state of some predictions, in one pass.

        Example:
            >>> CalibrationState.of(Predictions(probs=[0.9, 0.2], labels=[1, 0])).n_samples
            2
        """
        n_classes = predictions.n_classes or 0 if predictions.has_scores else 0
        state = cls(n_classes, n_bins=n_bins, closed=closed)
        state.update(predictions)
        return state

    @classmethod
    def of_checked(cls, predictions: Predictions, settings: ScoreSettings) -> CalibrationState:
        """Return the state of predictions whose rows are known not to be those of a calibrator's fit."""
        n_classes = predictions.n_classes or 0 if predictions.has_scores else 0
        state = cls(n_classes, n_bins=settings.n_bins, closed=settings.closed)
        state.add_checked(predictions)
        return state

    def add_checked(self, predictions: Predictions) -> None:
        """Add predictions whose rows are known not to be those of a calibrator's fit."""
        if self.sums.on_cpu:
            self._add(predictions, self.sums)
            return
        here = self.sums.like()
        self._add(predictions, here)
        self.sums.add(here)

    def update(
        self,
        predictions: Predictions | None = None,
        *,
        labels: Any = None,
        logits: Any = None,
        probs: Any = None,
        predicted: Any = None,
        confidence: Any = None,
        correct: Any = None,
        weights: Any = None,
        ignore_index: int | None = None,
    ) -> None:
        """Add a batch: Predictions, or the arrays to make them from.

        Nothing is added if the batch is refused. Tensors on a GPU are summed there with torch operations; their
        values are not checked, because that would wait for the device.

        Args:
            predictions: A batch of predictions; or
            labels: true classes, with one of
            logits: unnormalized scores,
            probs: probabilities,
            predicted: predicted classes with
            confidence: their probabilities, or probabilities of being right with
            correct: whether they are.
            weights: One weight per row.
            ignore_index: Rows with this label are left out; a batch of such rows only adds nothing.

        Raises:
            TypeError: If Predictions come with further arguments.
            DataError: If the rows do not fit this state.
            SplitError: If the rows were used to fit the calibrator that made these predictions.
        """
        beside = (labels, logits, probs, predicted, confidence, correct, weights, ignore_index)
        if predictions is not None and any(part is not None for part in beside):
            raise TypeError(
                f"{_WHERE}.update: Predictions hold their labels and weights already; pass nothing beside them."
            )
        scores = logits if logits is not None else probs
        if ignore_index is not None and _all_ignored(labels, ignore_index):
            return
        if predictions is None and is_tensor(scores) and scores.device.type != "cpu":
            self._update_on_device(scores, labels, weights, ignore_index, is_logits=logits is not None)
            return
        nothing_else = all(
            part is None for part in (predictions, predicted, confidence, correct, weights, ignore_index)
        )
        if nothing_else and (logits is None) != (probs is None) and self.sums.on_cpu:
            batch = as_plain_batch(scores, labels, "probs" if logits is None else "logits", self.n_classes)
            if batch is not None and add_predictions(batch, self.sums, self.closed, tolerance=1e-3) < 0:
                return  # otherwise Predictions raise an error that names the row and a remedy
        if predictions is None:
            predictions = Predictions(
                labels=labels,
                logits=logits,
                probs=probs,
                predicted=predicted,
                confidence=confidence,
                correct=correct,
                weights=weights,
                ignore_index=ignore_index,
            )
        if predictions.fitted_on is not None:
            check_disjoint(predictions.rows, predictions.fitted_on, where=f"{_WHERE}.update")
        self.add_checked(predictions)

    def _add(self, predictions: Predictions, sums: Sums) -> None:
        if self.n_classes == 0:
            confidence = np.minimum(predictions.confidence.astype(np.float64), 1.0)
            weight = np.ones(len(predictions)) if predictions.weights is None else predictions.weights
            edges = predictions.lower_edges(self.n_bins, self.closed)
            loss, brier = losses_of_being_right(predictions.confidence, predictions.correct)
            count = np.ones(len(predictions), np.int64)
            add_confidence(
                sums, confidence, predictions.correct, weight, edges, loss=loss, brier=brier, count=count
            )
            sums.impossible[0] += int((predictions.confidence == 1 - predictions.correct).sum())
            return
        if not predictions.has_scores or predictions.n_classes != self.n_classes:
            raise DataError(
                f"{_WHERE}: this state is for {self.n_classes} classes, got {predictions!r}. "
                "Start a state of its own for each kind of predictions."
            )
        n, top = len(predictions), None
        if predictions.kind == "logits" and not predictions.is_top_known:
            top = np.empty(n, np.int64), np.empty(n)
        bad = add_predictions(predictions, sums, self.closed, tolerance=_TOLERANCE, top=top)
        if bad < 0 and top is not None:
            predictions.keep_top(*top)
        if bad >= 0:
            check_labels(predictions.labels, n_classes=self.n_classes, where=_WHERE)
            assert predictions.scores is not None
            raise DataError(
                f"{_WHERE}: row {bad} is not a probability distribution: {predictions.scores[bad]}. "
                "Was it changed after the predictions were made?"
            )

    def _update_on_device(
        self,
        scores: Tensor,
        labels: Tensor,
        weights: Tensor | None,
        ignore_index: int | None,
        *,
        is_logits: bool,
    ) -> None:
        """Add a batch that lives on a GPU: flattened, ignored rows given weight zero, nothing read back."""
        batch = flat_batch(scores, labels, weights, ignore_index, is_logits=is_logits)
        if batch.probs.shape[1] != self.n_classes:
            raise DataError(
                f"{_WHERE}: this state is for {self.n_classes} classes, got {batch.probs.shape[1]}. "
                "Start a state of its own for each kind of predictions."
            )
        precision = "float64" if is_logits else precision_of(scores)
        edges = asarray_like(lower_edges(self.n_bins, self.closed, precision), scores)
        self.sums.add(sum_rows(batch, self.sums, edges))

    def merge(self, other: CalibrationState) -> None:
        """Add the rows of another state to this one.

        Raises:
            ValueError: If the other state has other bins or classes.

        Example:
            >>> one, two = (CalibrationState(2) for _ in range(2))
            >>> one.update(probs=[0.9], labels=[1]); two.update(probs=[0.2], labels=[0])
            >>> one.merge(two); one.n_samples
            2
        """
        if self.settings() != other.settings():
            raise ValueError(
                f"{_WHERE}.merge: the states must have the same settings, got {self.settings()} and "
                f"{other.settings()}. Score both with the same bins and classes."
            )
        self.sums.add(other.sums)

    def all_reduce(self, group: Any = None) -> None:
        """Add up the states of all processes of a torch.distributed group; afterwards every one has the whole."""
        import torch.distributed

        for part in (self.sums.counts, self.sums.floats):
            # On the CPU the tensor shares the array's memory.
            torch.distributed.all_reduce(as_tensor(part) if self.sums.on_cpu else part, group=group)

    def settings(self) -> dict[str, Any]:
        """Return what two states must share to be merged.

        Example:
            >>> CalibrationState(3).settings()["n_classes"]
            3
        """
        names = ("n_classes", "n_bins", "closed", "n_ranks", "n_fine")
        return {name: getattr(self, name) for name in names}

    def state_dict(self) -> dict[str, Any]:
        """Return everything as plain values, for a checkpoint or JSON.

        Example:
            >>> copy = CalibrationState.from_state_dict(CalibrationState(3).state_dict())
            >>> copy.n_classes
            3
        """
        return {
            "settings": self.settings(),
            "sums": {name: part.tolist() for name, part in self.sums.parts().items()},
        }

    @classmethod
    def from_state_dict(
        cls, content: Mapping[str, Any], *, device: torch.device | str = "cpu"
    ) -> CalibrationState:
        """Return the state that :meth:`state_dict` described.

        Args:
            content: What :meth:`state_dict` gave.
            device: Where the sums shall live.

        Raises:
            ValueError: If the sums are of other classes or bins than the settings.
        """
        settings = dict(content["settings"])
        state = cls(settings.pop("n_classes"), **settings, device=device)
        types = {"rows": np.int64, "impossible": np.int64}
        state.sums.fill(
            {
                name: as_numpy(content["sums"][name]).astype(types.get(name, np.float64))
                for name in state.sums.parts()
            }
        )
        return state

    @property
    def arrays(self) -> Sums:
        """The sums as NumPy arrays, copied from the device if they live on one."""
        return self.sums.to_cpu()

    @property
    def n_samples(self) -> int:
        """How many rows were added."""
        return int(self.sums.rows.sum())

    @property
    def total_weight(self) -> float:
        """The sum of their weights; the number of rows if they have none."""
        return float(self.sums.cells[..., 0].sum())

    @property
    def effective_samples(self) -> float:
        """How many equally weighted rows carry as much information: ``(sum w)^2 / sum w^2``."""
        squares = float(self.sums.squares[0])
        return self.total_weight**2 / squares if squares else 0.0

    @property
    def n_impossible(self) -> int:
        """Rows whose true class was given probability zero; the NLL counts them at 87.3 nats."""
        return int(self.sums.impossible[0])

    def curve(self, target: str = "top_label") -> ReliabilityCurve:
        """Return the reliability curve of the top label, or of the positive class of a binary classifier.

        Args:
            target: ``"top_label"``: confidence against accuracy; ``"positive"``: probability of class 1 against its
                frequency.

        Returns:
            The bins, with counts; empty ones included.
        """
        self._check_filled()
        if target == "top_label":
            cells = self.arrays.cells
            both = cells.sum(axis=1)
            return ReliabilityCurve(
                both[:, 0], both[:, 1], cells[:, 1, 0], target="top_label", closed=self.closed
            )
        return self.class_curves(target)[1]

    def class_curves(self, target: str = "classwise") -> list[ReliabilityCurve]:
        """Return one reliability curve per class: its probability against its frequency."""
        self._check_filled()
        self._check_scores()
        if target == "positive" and self.n_classes != 2:
            raise ValueError(
                f"{_WHERE}: target='positive' is for two classes, got {self.n_classes}. Use 'classwise'."
            )
        table = self.arrays.classwise
        return [ReliabilityCurve(c[:, 0], c[:, 1], c[:, 2], target=target, closed=self.closed) for c in table]

    def class_errors(self, name: str = "ece") -> Array:
        """Return one error of every class at once, ``(k,)``; names as in ``calibration_errors``."""
        self._check_filled()
        self._check_scores()
        table = self.arrays.classwise
        return calibration_errors(table[..., 0], table[..., 1], table[..., 2])[name]

    def _check_scores(self) -> None:
        if self.n_classes == 0:
            raise DataError(
                f"{_WHERE}: only predicted class and confidence are known here, not the scores of every class. "
                "Save logits or probabilities to get this number."
            )

    def _check_filled(self) -> None:
        if self.total_weight == 0:
            what = "every row has weight zero" if self.n_samples else "no rows yet"
            raise DataError(f"{_WHERE}: {what}. Call update with rows to score first.")

    def __repr__(self) -> str:
        return f"CalibrationState(n={self.n_samples}, k={self.n_classes}, n_bins={self.n_bins}, closed={self.closed})"


def _check_sizes(n_classes: int, n_ranks: int, n_fine: int) -> None:
    for name, value in (("n_classes", n_classes), ("n_ranks", n_ranks), ("n_fine", n_fine)):
        if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
            remedy = " Pass 0 for top-1 data, whose other classes are not known." if value is None else ""
            raise TypeError(f"{_WHERE}: `{name}` must be a whole number, got {value!r}.{remedy}")
    if n_classes < 0 or n_classes == 1:
        raise ValueError(
            f"{_WHERE}: `n_classes` must be 2 or more, or 0 for top-1 data, got {n_classes}. "
            "One column of the positive class is two classes."
        )
    if n_ranks < 1 or n_fine < 2:
        raise ValueError(
            f"{_WHERE}: `n_ranks` must be 1 or more and `n_fine` 2 or more, got {n_ranks} and {n_fine}. "
            "Leave them at 5 and 4096."
        )


def _all_ignored(labels: Any, ignore_index: int) -> bool:
    """Return whether no row of a batch counts; labels on another device are not waited for."""
    if is_tensor(labels) and labels.device.type != "cpu":
        return False
    numbers = as_numpy(labels)
    return labels is not None and numbers.size > 0 and bool(np.all(numbers == ignore_index))
