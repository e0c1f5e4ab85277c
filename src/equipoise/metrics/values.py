"""Values of the metrics of a scorecard: from sums by bin, from a state, from its sketch, and from rows."""

from __future__ import annotations

import numpy as np

from equipoise.core.arrays import Array
from equipoise.metrics.binned import debiased_from_curve
from equipoise.metrics.curve import calibration_errors
from equipoise.metrics.detection import auroc_of_cells
from equipoise.metrics.facts import metrics_where
from equipoise.metrics.inputs import ConfidenceCells, TopLabel
from equipoise.metrics.ranked import adaptive_error, equal_mass_error, largest_gap
from equipoise.metrics.selective import aurc_of_cells
from equipoise.metrics.smooth import smooth_error
from equipoise.metrics.state import CalibrationState

__all__ = ["cell_metrics", "has_top5", "row_metrics", "sketch_cells", "sketch_metrics", "state_metrics"]


def cell_metrics(cells: Array) -> dict[str, Array]:
    """Return what can be read from sums by confidence bin and correctness.

    Args:
        cells: ``(..., bins, 2, 4)``: weight, confidence, nll, Brier of wrong and right rows. The last two are of the
            true class, or of being right where only a confidence is known; they are returned under both names.

    Returns:
        One array ``(...)`` per name.

    Example:
        >>> cells = np.zeros((1, 2, 4)); cells[0, 1] = [2.0, 1.8, 0.2, 0.1]
        >>> float(cell_metrics(cells)["accuracy"])
        1.0
    """
    total = cells[..., 0].sum(axis=(-1, -2))
    nll, brier = (cells[..., place].sum(axis=(-1, -2)) / total for place in (2, 3))
    errors = calibration_errors(cells[..., 0].sum(-1), cells[..., 1].sum(-1), cells[..., 1, 0])
    return {
        "accuracy": cells[..., 1, 0].sum(-1) / total,
        "confidence": cells[..., 1].sum(axis=(-1, -2)) / total,
        "nll": nll,
        "brier": brier,
        "correct_nll": nll,
        "correct_brier": brier,
        **errors,
    }


def state_metrics(state: CalibrationState) -> dict[str, float]:
    """Return every number that the state holds exactly.

    States of confidences lack the scores of every class: NLL and Brier score of the classes, classwise error and top-k
    accuracy are not there. They have the log-loss and the Brier score of being right instead.

    Args:
        state: A state with at least one row.

    Returns:
        Values by key.

    Example:
        >>> state = CalibrationState(2); state.update(probs=[0.8, 0.4], labels=[1, 1])
        >>> state_metrics(state)["accuracy"]
        0.5
    """
    cells = state.arrays.cells[..., [0, 1, 3, 5]]
    found = {name: float(value) for name, value in cell_metrics(cells).items()}
    absent = metrics_where(**({"needs_scores": True} if state.n_classes == 0 else {"only_confidence": True}))
    found = {name: value for name, value in found.items() if name not in absent}
    if state.n_classes == 0:
        return found
    found["classwise_ece"] = float(state.class_errors("ece").mean())
    found["brier_calibration"] = brier_calibration(state)
    found["brier_refinement"] = found["brier"] - found["brier_calibration"]
    found["root_brier"] = float(np.sqrt(found["brier"]))
    if has_top5(state):
        found["top5_accuracy"] = top_k_from_state(state, 5)
    return found


def has_top5(state: CalibrationState) -> bool:
    """Return whether top-5 accuracy is known, and not 1 for want of classes."""
    return state.n_classes > 5 and state.n_ranks >= 5


def brier_calibration(state: CalibrationState) -> float:
    """Return the part of the Brier score that calibration errors cost: squared classwise gaps, over the bins."""
    table = state.arrays.classwise
    difference, weight = table[..., 1] - table[..., 2], table[..., 0]
    squared = np.divide(difference**2, weight, out=np.zeros_like(weight), where=weight > 0)
    return float(squared.sum() / state.total_weight)


def top_k_from_state(state: CalibrationState, k: int) -> float:
    """Return the share of rows whose true class is among the ``k`` most probable."""
    ranks = state.arrays.ranks
    return float(ranks[: min(k, len(ranks) - 1)].sum() / ranks.sum())


def row_metrics(top: TopLabel, state: CalibrationState) -> dict[str, float]:
    """Return the metrics that need the rows themselves.

    Args:
        top: Confidence and correctness of the rows.
        state: Their sums.
    """
    cells = top.cells
    sums = cells.accepted, cells.mistakes
    return _defined(
        {
            "ada_ece": adaptive_error(top, state.n_bins),
            "smece": smooth_error(top.confidence, top.gaps, top.total),
            "ks": largest_gap(top),
            "auroc": float(auroc_of_cells(cells.right, cells.wrong, above=cells.mistakes[::-1])),
            "aurc": float(aurc_of_cells(cells.mass[::-1], cells.wrong[::-1], sums=sums)),
            "debiased_ece": debiased_from_curve(state.curve(), state.effective_samples, norm="l1"),
        }
    )


def sketch_cells(state: CalibrationState) -> ConfidenceCells:
    """Return the rows of a stream by cell of the state's sketch of confidence, as rows of equal confidence."""
    sketch = state.arrays.sketch[state.arrays.sketch[:, 0] > 0]
    mass, confidence, right = sketch.T[:3]
    return ConfidenceCells(confidence / mass, mass, np.minimum(right, mass))


def sketch_metrics(state: CalibrationState) -> dict[str, float]:
    """Return the same metrics for a stream, from the state's sketch of confidence."""
    sketch = state.arrays.sketch
    # Weights count rows, as in the metrics of arrays.
    sketch = sketch * max(1.0, state.n_samples / state.total_weight)
    mass, right = sketch[:, 0], sketch[:, 2]
    wrong, gaps = np.maximum(mass - right, 0), sketch[:, 1] - right
    total = mass.sum()
    confidence = np.divide(sketch[:, 1], mass, out=np.zeros_like(mass), where=mass > 0)
    return _defined(
        {
            "ada_ece": float(equal_mass_error(mass, gaps, state.n_bins)),
            "smece": smooth_error(confidence, gaps, total),
            "ks": float(np.abs(np.cumsum(gaps)).max() / total),
            "auroc": float(auroc_of_cells(right, wrong)),
            "aurc": float(aurc_of_cells(mass[::-1], wrong[::-1])),
            "debiased_ece": debiased_from_curve(state.curve(), state.effective_samples, norm="l1"),
        }
    )


def _defined(values: dict[str, float]) -> dict[str, float]:
    return {key: value for key, value in values.items() if not np.isnan(value)}
