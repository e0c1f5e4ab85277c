"""The reliability curve: bins of confidence, and the errors read from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from scipy.special import ndtri

from equipoise.core.arrays import Array
from equipoise.core.bins import bin_edges, expected_error

__all__ = ["ReliabilityCurve", "calibration_errors", "mean_curve"]


def calibration_errors(weight: Array, confidence: Array, outcome: Array) -> dict[str, Array]:
    """Return the errors of one or many sets of bins at once.

    Args:
        weight: Weight of the rows in each bin, ``(..., bins)``.
        confidence: Sum of their confidence.
        outcome: Sum of what happened: correct, or of the class in question.

    Returns:
        ``ece``, ``mce``, ``rms_ce``, ``avg_ce`` (unweighted over bins with rows), ``ece_over`` and ``ece_under`` (the
        parts of ``ece`` where confidence is above or below the outcome), ``confidence_gap`` (their signed sum),
        ``over_confidence_error`` (the part above, each bin weighed by its confidence), each ``(...)``.

    Example:
        >>> errors = calibration_errors(np.array([2.0, 2.0]), np.array([0.6, 1.8]), np.array([1.0, 1.0]))
        >>> round(float(errors["ece"]), 6)
        0.3
    """
    total = weight.sum(axis=-1)
    difference = confidence - outcome
    filled = weight > 0
    gap = np.divide(difference, weight, out=np.zeros(difference.shape), where=filled)
    mean = np.divide(confidence, weight, out=np.zeros(difference.shape), where=filled)
    over = np.maximum(difference, 0)
    return {
        "ece": expected_error(difference, total),
        "mce": np.abs(gap).max(axis=-1),
        "rms_ce": np.sqrt((weight * gap**2).sum(axis=-1) / total),
        "avg_ce": np.abs(gap).sum(axis=-1) / filled.sum(axis=-1),
        "ece_over": over.sum(axis=-1) / total,
        "ece_under": np.maximum(-difference, 0).sum(axis=-1) / total,
        "confidence_gap": difference.sum(axis=-1) / total,
        "over_confidence_error": (mean * over).sum(axis=-1) / total,
    }


@final
@dataclass(frozen=True, eq=False, repr=False)
class ReliabilityCurve:
    """Bins of equal width on [0, 1] with what fell into them.

    Attributes:
        weight: Weight (without weights: number) of the rows in each bin; zero where a bin is empty.
        confidence_sum: Sum of their confidence.
        outcome_sum: Sum of what happened: correct predictions, or rows of the class in question.
        target: ``"top_label"``, ``"classwise"`` or ``"positive"``.
        closed: Which side of a bin belongs to it.

    Example:
        >>> curve = ReliabilityCurve(np.array([0.0, 2.0]), np.array([0.0, 1.8]), np.array([0.0, 1.0]))
        >>> curve.confidence, curve.frequency
        (array([nan, 0.9]), array([nan, 0.5]))
        >>> round(curve.expected_error(), 6)
        0.4
    """

    weight: Array
    confidence_sum: Array
    outcome_sum: Array
    target: str = "top_label"
    closed: str = "right"

    @property
    def edges(self) -> Array:
        """The ``bins + 1`` edges."""
        return bin_edges(len(self.weight))

    @property
    def confidence(self) -> Array:
        """Mean confidence per bin; NaN where it is empty."""
        return _ratio(self.confidence_sum, self.weight)

    @property
    def frequency(self) -> Array:
        """How often it was right per bin; NaN where it is empty."""
        return _ratio(self.outcome_sum, self.weight)

    def intervals(self, *, level: float = 0.95) -> tuple[Array, Array]:
        """Return the lower and upper ends of an interval for the frequency of each bin; NaN where it is empty.

        Wilson's interval, which stays honest in bins with few rows, or where all of them are right.

        Example:
            >>> curve = ReliabilityCurve(np.array([0.0, 4.0]), np.array([0.0, 3.2]), np.array([0.0, 4.0]))
            >>> low, high = curve.intervals()
            >>> low.round(3), high
            (array([ nan, 0.51]), array([nan,  1.]))
        """
        z = float(ndtri((1 + level) / 2))
        count, share = self.weight, self.frequency
        stretch = 1 + _ratio(np.full_like(count, z**2), count)
        center = (share + _ratio(np.full_like(count, z**2 / 2), count)) / stretch
        spread = _ratio(share * (1 - share), count) + _ratio(np.full_like(count, z**2 / 4), count**2)
        half = z * np.sqrt(spread) / stretch
        return np.clip(center - half, 0, share), np.clip(center + half, share, 1)

    def errors(self) -> dict[str, float]:
        """Return all errors of :func:`calibration_errors`."""
        found = calibration_errors(self.weight, self.confidence_sum, self.outcome_sum)
        return {name: float(value) for name, value in found.items()}

    def expected_error(self) -> float:
        """Return the expected calibration error."""
        return self.errors()["ece"]

    def rows(self) -> list[dict[str, Any]]:
        """Return one tidy row per bin.

        Example:
            >>> ReliabilityCurve(np.array([1.0]), np.array([0.9]), np.array([1.0])).rows()[0]["confidence"]
            0.9
        """
        return [
            {"bin": b, "low": low, "high": high, "weight": w, "confidence": c, "frequency": f}
            for b, (low, high, w, c, f) in enumerate(
                zip(
                    self.edges[:-1].tolist(),
                    self.edges[1:].tolist(),
                    self.weight.tolist(),
                    self.confidence.tolist(),
                    self.frequency.tolist(),
                    strict=True,
                )
            )
        ]

    def to_list(self) -> list[dict[str, Any]]:
        """Return the bins as plain values, for JSON; :meth:`from_list` reads them back without loss.

        Example:
            >>> curve = ReliabilityCurve(np.array([0.0, 3.0]), np.array([0.0, 2.7]), np.array([0.0, 2.0]))
            >>> curve.to_list()[0]["confidence"], curve.to_list()[1]["confidence_sum"]
            (None, 2.7)
        """
        sums = zip(self.rows(), self.confidence_sum.tolist(), self.outcome_sum.tolist(), strict=True)
        known = {"confidence": None, "frequency": None}
        return [
            {**row, **({} if row["weight"] else known), "confidence_sum": confidence, "outcome_sum": outcome}
            for row, confidence, outcome in sums
        ]

    @classmethod
    def from_list(
        cls, bins: Sequence[Mapping[str, Any]], *, target: str = "top_label", closed: str = "right"
    ) -> ReliabilityCurve:
        """Return the curve whose bins :meth:`to_list` described.

        Example:
            >>> curve = ReliabilityCurve(np.array([3.0]), np.array([2.7]), np.array([2.0]))
            >>> ReliabilityCurve.from_list(curve.to_list()).expected_error() == curve.expected_error()
            True
        """
        names = ("weight", "confidence_sum", "outcome_sum")
        weight, confidence, outcome = np.array([[row[name] for name in names] for row in bins], np.float64).T
        return cls(weight, confidence, outcome, target=target, closed=closed)

    def __repr__(self) -> str:
        rows = f"{self.weight.sum():,.6g}"
        return f"ReliabilityCurve({self.target}, bins={len(self.weight)}, rows={rows}, ece={self.expected_error():.4f})"


def mean_curve(curves: Sequence[ReliabilityCurve]) -> ReliabilityCurve:
    """Return the mean of the curves of several trainings on the same rows; they share their rows, so counts stay.

    Its error is not the mean of their errors: where trainings err in opposite directions, it is smaller.

    Example:
        >>> one = ReliabilityCurve(np.array([4.0]), np.array([3.6]), np.array([3.0]))
        >>> other = ReliabilityCurve(np.array([4.0]), np.array([3.2]), np.array([2.0]))
        >>> mean_curve([one, other]).outcome_sum.tolist()
        [2.5]
    """
    weight, confidence, outcome = (
        np.mean([getattr(curve, name) for curve in curves], axis=0)
        for name in ("weight", "confidence_sum", "outcome_sum")
    )
    return ReliabilityCurve(weight, confidence, outcome, target=curves[0].target, closed=curves[0].closed)


def _ratio(above: Array, below: Array) -> Array:
    ratio: Array = np.divide(above, below, out=np.full(below.shape, np.nan), where=below > 0)
    return ratio
