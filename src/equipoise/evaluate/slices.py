"""Where it goes wrong: calibration of one class or one group at a time, corrected for looking at many."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, final

import numpy as np
from scipy.special import stdtrit

from equipoise.core.arrays import Array
from equipoise.core.bins import bin_of, check_bins
from equipoise.core.errors import DataError
from equipoise.core.names import look_up
from equipoise.core.predictions import Predictions
from equipoise.core.rows import Rows
from equipoise.evaluate.chance import gap_p_values, holm
from equipoise.metrics.curve import calibration_errors
from equipoise.metrics.inputs import as_predictions
from equipoise.metrics.intervals import check_level
from equipoise.metrics.state import CalibrationState

__all__ = [
    "Slice",
    "SliceSums",
    "distinct",
    "one_vs_rest",
    "score_by_class",
    "score_by_group",
    "slices_off",
    "with_class_names",
]

_MOST = 100_000
_TABLE = 1 << 16


class Slice(NamedTuple):
    """Calibration of some of the rows.

    Attributes:
        name: The class or group.
        n_samples: How many rows.
        accuracy: How often they are right.
        confidence: Their mean confidence.
        gap: Confidence minus accuracy; above zero is overconfident.
        low: Lower end of the gap's interval.
        high: Upper end.
        ece: Expected calibration error.
        p_value: How often a calibrated model with the same confidences has a gap this wide, by Holm's rule for the
            number of slices looked at.
    """

    name: str
    n_samples: int
    accuracy: float
    confidence: float
    gap: float
    low: float
    high: float
    ece: float
    p_value: float


@final
class SliceSums:
    """Sums over the rows of each slice, of fixed size per slice, filled chunk by chunk.

    Args:
        n_bins: Bins of equal width.
        closed: Which side of a bin belongs to it.
        most: The most slices; a column with more different values is no column of groups.

    Example:
        >>> sums = SliceSums()
        >>> for site in ("a", "b", "a"):
        ...     sums.update(Predictions(probs=[0.9, 0.2], labels=[1, 1]), [site, site], name="site")
        >>> [(part.name, part.n_samples) for part in sums.slices()]
        [('a', 4), ('b', 2)]
    """

    def __init__(self, *, n_bins: int = 15, closed: str = "right", most: int = 1000) -> None:
        check_bins(n_bins, closed, where="SliceSums")
        self._most, self._n_bins, self._closed = most, n_bins, closed
        self._names: dict[str, int] = {}
        self._rows = np.zeros(0, np.int64)
        # Per bin: weight, confidence, correct. Per slice: squared weight; with it the gap and the squared gap.
        self._bins = np.zeros((0, n_bins, 3))
        self._squares = np.zeros((0, 3))

    def update(self, predictions: Predictions, column: Array | list[str], *, name: str = "column") -> None:
        """Add rows.

        Args:
            predictions: A chunk of predictions of any form.
            column: One value per row: the slice it belongs to.
            name: What the column is called, for messages.

        Raises:
            DataError: If there are too many different values.
        """
        values, which = distinct(np.asarray(column))
        places = self._places(values, name)[which]
        x, hit = predictions.confidence.astype(np.float64), predictions.correct.astype(np.float64)
        weight = np.ones(len(x)) if predictions.weights is None else predictions.weights
        inner = predictions.lower_edges(self._n_bins, self._closed)[1:-1]
        cell = places * self._n_bins + bin_of(x, inner)
        gap, square = x - hit, weight * weight
        self._rows += np.bincount(places, minlength=len(self._rows))
        for place, values in enumerate((weight, weight * x, weight * hit)):
            sums = np.bincount(cell, values, minlength=self._bins[..., 0].size)
            self._bins[..., place] += sums.reshape(self._bins.shape[:2])
        for place, values in enumerate((square, square * gap, square * gap * gap)):
            self._squares[:, place] += np.bincount(places, values, minlength=len(self._rows))

    def _places(self, values: Array, name: str) -> Array:
        """Return the number of each slice; new ones get a place."""
        for value in values.tolist():
            self._names.setdefault(str(value), len(self._names))
        grown = len(self._names) - len(self._rows)
        if len(self._names) > self._most:
            raise DataError(
                f"SliceSums: `{name}` has more than {self._most} different values, too many to look at one by one. "
                "Name a column of groups, or put its values into ranges first."
            )
        self._rows = np.pad(self._rows, (0, grown))
        self._bins = np.pad(self._bins, ((0, grown), (0, 0), (0, 0)))
        self._squares = np.pad(self._squares, ((0, grown), (0, 0)))
        return np.array([self._names[str(value)] for value in values.tolist()], np.int64)

    def merge(self, other: SliceSums, *, name: str = "column") -> None:
        """Add the rows of other sums to these.

        Raises:
            DataError: If there are too many different values together.

        Example:
            >>> one, two = SliceSums(), SliceSums()
            >>> one.update(Predictions(probs=[0.9], labels=[1]), ["a"])
            >>> two.update(Predictions(probs=[0.8, 0.7], labels=[1, 0]), ["b", "a"])
            >>> one.merge(two)
            >>> [(part.name, part.n_samples) for part in one.slices()]
            [('a', 2), ('b', 1)]
        """
        places = self._places(np.array(list(other._names), np.str_), name)
        self._rows[places] += other._rows
        self._bins[places] += other._bins
        self._squares[places] += other._squares

    def parts(self) -> tuple[list[str], dict[str, Array]]:
        """Return the names of the slices and their sums, for a file; :meth:`fill` takes them back.

        Example:
            >>> SliceSums().parts()[0]
            []
        """
        return list(self._names), {"rows": self._rows, "bins": self._bins, "squares": self._squares}

    def fill(self, names: Sequence[str], parts: Mapping[str, Array]) -> None:
        """Take over what :meth:`parts` gave.

        Raises:
            ValueError: If something is not as it must be.
        """
        shapes = {
            "rows": (len(names),),
            "bins": (len(names), *self._bins.shape[1:]),
            "squares": (len(names), 3),
        }
        if len(set(names)) < len(names) or {key: parts[key].shape for key in shapes} != shapes:
            raise ValueError("names and sums of slices do not fit together")
        self._names = {name: place for place, name in enumerate(names)}
        self._rows, self._bins, self._squares = (parts[key].copy() for key in shapes)

    def slices(self, *, level: float = 0.95, inflation: float = 1.0) -> tuple[Slice, ...]:
        """Return the slices, those first that chance does not explain, and of them the widest gap.

        Slices whose rows all have weight zero are left out.

        The interval is that of Student's t around the mean gap; one right and one wrong row are added to its variance,
        so that a few rows that are all right do not look certain.

        Args:
            level: Level of the intervals.
            inflation: By how much the variance of a gap is larger than for independent rows: so many times fewer rows
                are counted.
        """
        check_level(level, where="slices")
        kept = np.flatnonzero(self._bins[..., 0].sum(axis=1) > 0)
        names = [list(self._names)[place] for place in kept]
        return _slices_of(names, self._rows[kept], self._bins[kept], self._squares[kept], level, inflation)


def _slices_of(
    names: Sequence[str], rows: Array, bins: Array, sums: Array, level: float, inflation: float
) -> tuple[Slice, ...]:
    """Return slices from sums by slice and bin of weight, confidence and hits, and sums of squared weights and gaps."""
    weight, confidence, correct = np.moveaxis(bins, -1, 0)
    errors = calibration_errors(weight, confidence, correct)
    total = weight.sum(axis=1)
    accuracy, gap = correct.sum(axis=1) / total, errors["confidence_gap"]
    squares, gaps, squared_gaps = sums.T
    effective = total**2 / squares / inflation
    spread = np.maximum(squared_gaps - 2 * gap * gaps + gap**2 * squares, 0.0) / squares
    variance = (effective * spread + accuracy**2 + (1 - accuracy) ** 2) / (effective + 2)
    margin = stdtrit(effective + 1, (1 + level) / 2) * np.sqrt(variance / effective)
    # Weights count rows only up to a factor: their squares give what a row of effective size one adds.
    scale = (effective / total)[:, None]
    mean = np.divide(confidence, weight, out=np.zeros_like(weight), where=weight > 0)
    columns = {
        "n_samples": rows,
        "accuracy": accuracy,
        "confidence": accuracy + gap,
        "gap": gap,
        "low": np.maximum(gap - margin, -1.0),
        "high": np.minimum(gap + margin, 1.0),
        "ece": errors["ece"],
        "p_value": holm(gap_p_values(weight * scale, mean, correct * scale)),
    }
    table = zip(*(column.tolist() for column in columns.values()), strict=True)
    found = [Slice(name, *row) for name, row in zip(names, table, strict=True)]
    # Tiny p-values do not say where it matters most; the gap does.
    return tuple(sorted(found, key=lambda part: (part.p_value >= 1 - level, -abs(part.gap), part.name)))


def one_vs_rest(state: CalibrationState, *, level: float = 0.95, inflation: float = 1.0) -> tuple[Slice, ...]:
    """Return the probability of each class against its frequency, over all rows.

    Args:
        state: Sums of predictions with the scores of every class.
        level: Level of the intervals.
        inflation: By how much the variance of a gap is larger than for independent rows.

    Returns:
        One slice per class: ``confidence`` is its mean probability, ``accuracy`` its frequency. Those come first that
        chance does not explain, and of them the widest gap.

    Example:
        >>> state = CalibrationState(2); state.update(probs=[0.4] * 200, labels=[0] * 190 + [1] * 10)
        >>> [(part.name, round(part.gap, 2)) for part in one_vs_rest(state)]
        [('0', -0.35), ('1', 0.35)]
    """
    table = state.arrays.classwise
    weight, probability, positive = np.moveaxis(table, -1, 0)
    mean = np.divide(probability, weight, out=np.zeros_like(weight), where=weight > 0)
    gaps = (probability - positive).sum(axis=1)
    squared = (positive * (1 - mean) ** 2 + (weight - positive) * mean**2).sum(axis=1)
    squares = float(state.arrays.squares[0])
    factor = squares / state.total_weight
    sums = np.stack([np.full(len(table), squares), factor * gaps, factor * squared], axis=-1)
    names = [str(place) for place in range(len(table))]
    rows = np.full(len(table), state.n_samples)
    return _slices_of(names, rows, table, sums, level, inflation)


def distinct(column: Array) -> tuple[Array, Array]:
    """Return the different values of a column, and which of them each row has.

    Example:
        >>> distinct(np.array([7, 3, 7]))
        (array([3, 7]), array([1, 0, 1]))
    """
    if column.dtype.kind == "U":
        # Sorting one number per row is far quicker than sorting text.
        _, first, which = np.unique(Rows.from_ids(column).hashes, return_index=True, return_inverse=True)
        return column[first], which
    if column.dtype.kind in "iu" and len(column):
        low, high = int(column.min()), int(column.max())
        if high - low < _TABLE:
            shifted = column - low
            table = np.bincount(shifted, minlength=high - low + 1) > 0
            return np.flatnonzero(table) + low, (np.cumsum(table) - 1)[shifted]
    values, which = np.unique(column, return_inverse=True)
    return values, which


def score_by_class(
    predictions: Predictions,
    *,
    n_bins: int = 15,
    closed: str = "right",
    level: float = 0.95,
    inflation: float = 1.0,
) -> tuple[Slice, ...]:
    """Score the rows of each predicted class apart: when it says this class, how sure is it and how often right?

    Args:
        predictions: Predictions of any form.
        n_bins: Bins of equal width.
        closed: Which side of a bin belongs to it.
        level: Level of the intervals.
        inflation: By how much the variance of a gap is larger than for independent rows.

    Returns:
        One slice per class that was predicted at least once, none where classes are not known. Those come first that
        chance does not explain, and of them the widest gap.

    Example:
        >>> rows = Predictions(probs=[[0.9, 0.1]] * 40 + [[0.1, 0.9]] * 40, labels=[0] * 36 + [1] * 24 + [0] * 20)
        >>> [(part.name, round(abs(part.gap), 2)) for part in score_by_class(rows)]
        [('1', 0.4), ('0', 0.0)]
    """
    rows = as_predictions(predictions, None, where="score_by_class")
    if rows.kind == "confidence":
        return ()
    sums = SliceSums(n_bins=n_bins, closed=closed, most=_MOST)
    sums.update(rows, rows.predicted, name="predicted")
    return with_class_names(sums.slices(level=level, inflation=inflation), rows.class_names)


def slices_off(slices: Sequence[Slice], *, level: float = 0.95) -> tuple[Slice, ...]:
    """Return the slices that chance does not explain at a level, in the order given.

    Example:
        >>> part = Slice("a", 9, 0.5, 0.6, 0.1, 0.0, 0.2, 0.1, 0.005)
        >>> len(slices_off([part])), len(slices_off([part], level=0.999))
        (1, 0)
    """
    return tuple(part for part in slices if part.p_value < 1 - level)


def with_class_names(slices: tuple[Slice, ...], names: tuple[str, ...] | None) -> tuple[Slice, ...]:
    """Return slices of classes by name instead of number.

    Example:
        >>> with_class_names((Slice("1", 9, 0.5, 0.6, 0.1, 0.0, 0.2, 0.1, 0.5),), ("cat", "dog"))[0].name
        'dog'
    """
    return tuple(part._replace(name=names[int(part.name)]) for part in slices) if names else slices


def score_by_group(
    predictions: Predictions,
    by: str,
    *,
    n_bins: int = 15,
    closed: str = "right",
    level: float = 0.95,
    inflation: float = 1.0,
) -> tuple[Slice, ...]:
    """Score the rows of each group apart.

    Args:
        predictions: Predictions with groups.
        by: Name of the column of groups.
        n_bins: Bins of equal width.
        closed: Which side of a bin belongs to it.
        level: Level of the intervals.
        inflation: By how much the variance of a gap is larger than for independent rows.

    Returns:
        One slice per value of the column, those first that chance does not explain, and of them the widest gap.

    Raises:
        SpecError: If there is no such column.
        DataError: If it has more than a thousand different values.

    Example:
        >>> rows = Predictions(probs=[0.9, 0.8, 0.7], labels=[1, 1, 0], groups={"site": ["a", "a", "b"]})
        >>> [part.name for part in score_by_group(rows, "site")]
        ['b', 'a']
    """
    rows = as_predictions(predictions, None, where="score_by_group")
    column = look_up(by, rows.groups, what="column of groups", hint="the predictions have no groups.")
    sums = SliceSums(n_bins=n_bins, closed=closed)
    sums.update(rows, column, name=by)
    return sums.slices(level=level, inflation=inflation)
