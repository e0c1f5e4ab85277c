"""The action with the least expected cost, and what it costs."""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, final

import numpy as np
from scipy.special import stdtrit

from equipoise.core.arrays import Array, as_numpy
from equipoise.core.errors import DataError
from equipoise.core.escaping import shown_name
from equipoise.core.predictions import Predictions
from equipoise.core.records import Record, read_record, write_record
from equipoise.core.rows import check_disjoint
from equipoise.decisions.inputs import apply_calibrator, as_predictions, check_json_name, read_calibrator

__all__ = ["CostRule", "CostSummary", "CostedActions", "least_cost_actions", "read_costs"]

_WHERE = "least_cost_actions"
_FORMAT, _VERSION = "equipoise.cost_rule", 1
#: With fewer rows that cost more than expected, intervals of realized costs miss the truth too often.
_FEWEST_COSTLIER = 5


@final
@dataclass(frozen=True)
class CostSummary:
    """Mean cost per row that the probabilities promise, and that the labels show.

    Attributes:
        expected: Mean expected cost of the chosen actions.
        expected_low: Lower end of its interval.
        expected_high: Upper end.
        realized: Mean cost with the true classes; None without labels.
        realized_low: Lower end of its interval.
        realized_high: Upper end.
        gap: Realized minus expected cost; above zero if the probabilities are too optimistic.
        gap_low: Lower end of its interval.
        gap_high: Upper end.
        shares: Share of the rows for which each action is chosen, by name.
        n: Number of rows.
        n_costlier: Rows whose realized cost is above the expected one; None without labels. Intervals of the realized
            cost and of the gap are too short with fewer than five.
    """

    expected: float
    expected_low: float
    expected_high: float
    realized: float | None
    realized_low: float | None
    realized_high: float | None
    gap: float | None
    gap_low: float | None
    gap_high: float | None
    shares: dict[str, float]
    n: int
    n_costlier: int | None

    def as_dict(self) -> dict[str, Any]:
        """Return the fields as plain values, for JSON."""
        return asdict(self)

    def describe(self) -> str:
        """Return the costs in two or three lines."""
        shares = ", ".join(f"{shown_name(name)} {100 * share:.1f}%" for name, share in self.shares.items())
        text = f"Actions of least expected cost on {self.n:,} rows: {shares}.\nExpected cost per row "
        text += f"{self.expected:.4g} [{self.expected_low:.4g}, {self.expected_high:.4g}]"
        if self.realized is None or self.gap is None or self.gap_low is None or self.gap_high is None:
            return f"{text}; without labels, the realized cost is not known."
        text += f", realized {self.realized:.4g} [{self.realized_low:.4g}, {self.realized_high:.4g}]."
        if self.gap_low > 0:
            word = "The probabilities are too optimistic: calibrate them."
        elif self.gap_high < 0:
            word = "The probabilities are too pessimistic: calibrate them."
        else:
            word = "Expected and realized cost agree."
        text += f"\n{word} Difference {self.gap:+.4g} [{self.gap_low:+.4g}, {self.gap_high:+.4g}]."
        if self.n_costlier is not None and self.n_costlier < _FEWEST_COSTLIER:
            text += (
                f"\nOnly {self.n_costlier} rows cost more than expected: these intervals may be too short."
            )
        return text


@final
@dataclass(frozen=True, eq=False)
class CostedActions:
    """An action for every row.

    Attributes:
        action: Number of the chosen action ``(n,)``.
        names: Names of the actions.
        expected: Expected cost of the chosen action ``(n,)``, under the predicted probabilities.
        realized: Cost of the chosen action given the true class ``(n,)``; None without labels.
        weights: Weights of the rows, or None.
    """

    action: Array
    names: tuple[str, ...]
    expected: Array
    realized: Array | None
    weights: Array | None = None

    def summary(self, *, level: float = 0.95) -> CostSummary:
        """Return mean costs with intervals, which allow for rare and large costs.

        Args:
            level: Probability with which an interval contains the true mean.

        Raises:
            DataError: If there is only one row.
        """
        if len(self.action) < 2:
            raise DataError("CostedActions.summary: an interval needs at least two rows, got one.")
        columns = [self.expected]
        if self.realized is not None:
            columns += [self.realized, self.realized - self.expected]
        weight = np.ones(len(self.action)) if self.weights is None else self.weights
        ends: list[tuple[Any, Any, Any]] = [_mean_interval(column, weight, level) for column in columns]
        ends += [(None, None, None)] * (3 - len(ends))
        expected, realized, gap = ends
        shares = np.bincount(self.action, weight, len(self.names)) / weight.sum()
        return CostSummary(
            *expected,
            *realized,
            *gap,
            shares=dict(zip(self.names, shares.tolist(), strict=True)),
            n=len(self.action),
            n_costlier=None if self.realized is None else int((self.realized > self.expected).sum()),
        )


def least_cost_actions(
    predictions: Any,
    labels: Any = None,
    *,
    wrong: float | None = None,
    abstain: float | None = None,
    right: float = 0.0,
    matrix: Any = None,
    actions: Sequence[str] | None = None,
) -> CostedActions:
    """Choose for every row the action with the least expected cost.

    The choice is only as good as the calibration of the probabilities, so compare expected and realized cost.

    Args:
        predictions: Predictions with calibrated probabilities, or probabilities ``(n, k)`` or ``(n,)``.
        labels: True classes ``(n,)``, with probabilities only; not needed for the choice.
        wrong: Cost of an accepted prediction that is wrong; with
        abstain: cost of an abstention: accept if ``(1 - p) * wrong + p * right`` is less than this.
        right: Cost of an accepted prediction that is right.
        matrix: Instead of the above: costs ``(k, a)`` of every action (column) for every true class (row), at least 0.
        actions: Names of the actions of the matrix. By default the names of the classes if there is one action per
            class, and otherwise numbers.

    Returns:
        Actions with their costs. With ``wrong`` and ``abstain`` they are "abstain" and "accept".

    Raises:
        SplitError: If the rows were used to fit the calibrator behind the probabilities.

    Example:
        >>> rows = Predictions(probs=[[0.95, 0.05], [0.7, 0.3]], labels=[0, 1])
        >>> found = least_cost_actions(rows, wrong=10, abstain=1)
        >>> [found.names[one] for one in found.action], found.expected.round(2), found.realized
        (['accept', 'abstain'], array([0.5, 1. ]), array([0., 1.]))
    """
    predictions = as_predictions(predictions, labels, where=_WHERE)
    if predictions.fitted_on is not None and predictions.has_labels:
        check_disjoint(predictions.rows, predictions.fitted_on, where=_WHERE)
    if matrix is None:
        if wrong is None or abstain is None:
            raise TypeError(f"{_WHERE}: give `wrong` and `abstain`, or `matrix`.")
        wrong, abstain, right = _checked_costs([wrong, abstain, right]).tolist()
        if not wrong > right:
            raise ValueError(f"{_WHERE}: `wrong` must cost more than `right`, got {wrong} and {right}.")
        if not right <= abstain <= wrong:
            raise ValueError(
                f"{_WHERE}: `abstain` must be between {right} (`right`) and {wrong} (`wrong`), got {abstain}. "
                "Otherwise all rows get the same action."
            )
        confidence = predictions.confidence.astype(np.float64)
        accept = (1 - confidence) * wrong + confidence * right
        table = np.stack([np.full(len(accept), float(abstain)), accept], axis=1)
        names: tuple[str, ...] = ("abstain", "accept")
        truth = None
        if predictions.has_labels:
            truth = np.stack([table[:, 0], np.where(predictions.correct, right, wrong)], axis=1)
    else:
        if wrong is not None or abstain is not None:
            raise TypeError(f"{_WHERE}: give `wrong` and `abstain`, or `matrix`, and not both.")
        costs, names = _checked_matrix(matrix, actions, predictions)
        table = predictions.probs.astype(np.float64) @ costs
        truth = costs[predictions.labels] if predictions.has_labels else None
    action = table.argmin(axis=1)
    at = np.arange(len(action))
    realized = None if truth is None else truth[at, action]
    return CostedActions(action, names, table[at, action], realized, predictions.weights)


@final
@dataclass(frozen=True, eq=False)
class CostRule:
    """Costs of decisions that are saved and applied to new rows.

    Args:
        wrong: Cost of an accepted prediction that is wrong, with ``abstain``; or
        abstain: cost of an abstention.
        right: Cost of an accepted prediction that is right.
        matrix: Costs ``(k, a)`` of every action (column) for every true class (row), as nested lists.
        actions: Names of the actions of the matrix.
        calibrator: Fitted calibrator that is applied first.

    Example:
        >>> rule = CostRule(wrong=10, abstain=1)
        >>> rule(Predictions(probs=[[0.95, 0.05], [0.7, 0.3]])).action
        array([1, 0])
    """

    wrong: float | None = None
    abstain: float | None = None
    right: float = 0.0
    matrix: Sequence[Sequence[float]] | None = None
    actions: Sequence[str] | None = None
    calibrator: Any = None

    def __call__(self, predictions: Any, labels: Any = None) -> CostedActions:
        """Return the action of least expected cost of every row."""
        rows = as_predictions(predictions, labels, where="CostRule")
        return least_cost_actions(
            apply_calibrator(self.calibrator, rows, where="CostRule"),
            wrong=self.wrong,
            abstain=self.abstain,
            right=self.right,
            matrix=self.matrix,
            actions=self.actions,
        )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the rule as JSON with a checksum."""
        check_json_name(path, where="CostRule.save")
        names = ("wrong", "abstain", "right", "matrix", "actions")
        plain = {name: getattr(self, name) for name in names}
        plain["calibrator"] = None if self.calibrator is None else self.calibrator.to_artifact()
        write_record(path, _FORMAT, _VERSION, Record(plain, {}))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> CostRule:
        """Read a rule that :meth:`save` wrote.

        Raises:
            DataError: If the file is something else, is from a newer version, or was changed.
        """
        plain = dict(read_record(path, _FORMAT, _VERSION).plain)
        try:
            calibrator = read_calibrator(plain.pop("calibrator"))
            names = plain["actions"]
            if names is not None and not (
                isinstance(names, list) and all(isinstance(one, str) for one in names)
            ):
                raise TypeError("`actions` must be a list of names")
            return cls(**plain, calibrator=calibrator)
        except (KeyError, TypeError) as error:
            raise DataError(f"CostRule.load: {path} is damaged ({error}). Save the rule again.") from None


def read_costs(path: str | os.PathLike[str], *, class_names: Sequence[str] | None = None) -> CostRule:
    r"""Read a matrix of costs from a CSV or JSON file.

    A CSV file has the names of the actions in its first line and the name of the true class at the start of every other
    line. A JSON file has ``actions`` and ``costs``, a list with one list per class.

    Args:
        path: The file.
        class_names: Names of the classes in order; lines of the CSV file are sorted accordingly.

    Raises:
        DataError: If the file has another form, or its classes are not those of the predictions.

    Example:
        >>> import tempfile
        >>> from pathlib import Path
        >>> file = Path(tempfile.mkdtemp()) / "costs.csv"
        >>> _ = file.write_text("class,pay,block,ask\nhonest,0,5,1\nfraud,100,0,1\n")
        >>> read_costs(file).actions
        ('pay', 'block', 'ask')
    """
    file = Path(path)
    try:
        text = file.read_text("utf-8-sig")
        if file.suffix.lower() == ".json":
            content = json.loads(text)
            if not isinstance(content, dict) or not {"actions", "costs"} <= set(content):
                raise ValueError("expected an object with `actions` and `costs`")
            actions, names = tuple(str(one) for one in content["actions"]), None
            costs = [[float(value) for value in row] for row in content["costs"]]
        else:
            head, *lines = [row for row in csv.reader(text.splitlines()) if row] or [[]]
            actions, names = tuple(name.strip() for name in head[1:]), [row[0].strip() for row in lines]
            costs = [[float(value) for value in row[1:]] for row in lines]
    except OSError as error:
        raise DataError(f"read_costs: {path} cannot be read ({error.strerror or error}).") from None
    except (ValueError, KeyError, TypeError, IndexError) as error:
        raise DataError(
            f"read_costs: {path} must be a table with a line per true class and a column per action ({error})."
        ) from None
    if not costs or not actions:
        raise DataError(
            f"read_costs: {path} must be a table with a line per true class and a column per action, got "
            f"{len(costs)} lines and {len(actions)} actions."
        )
    if any(len(row) != len(actions) for row in costs):
        raise DataError(f"read_costs: {path} must have {len(actions)} costs in every line, one per action.")
    if names is not None and class_names is not None:
        if sorted(names) != sorted(class_names):
            raise DataError(
                f"read_costs: {path} must have one line for each class ({', '.join(class_names)}), got lines for "
                f"{', '.join(names)}."
            )
        costs = [costs[names.index(name)] for name in class_names]
    return CostRule(matrix=costs, actions=actions)


def _checked_matrix(
    matrix: Any, actions: Sequence[str] | None, predictions: Predictions
) -> tuple[Array, tuple[str, ...]]:
    costs = _checked_costs(matrix)
    n_classes = predictions.probs.shape[1]
    if costs.ndim != 2 or costs.shape[0] != n_classes or costs.shape[1] == 0:
        raise DataError(
            f"{_WHERE}: `matrix` must have one row per class, ({n_classes}, a), got {costs.shape}. "
            "Rows are true classes, columns actions."
        )
    if isinstance(actions, str):
        raise TypeError(f"{_WHERE}: `actions` must be a list of names, got {actions!r}.")
    if actions is None:
        own = predictions.class_names if costs.shape[1] == n_classes else None
        actions = own or [str(j) for j in range(costs.shape[1])]
    if len(actions) != costs.shape[1] or len(set(actions)) != len(actions):
        raise ValueError(
            f"{_WHERE}: `actions` must be {costs.shape[1]} different names, got {list(actions)}."
        )
    return costs, tuple(actions)


def _checked_costs(values: Any) -> Array:
    """Return costs as numbers."""
    try:
        costs: Array = as_numpy(values).astype(np.float64)
    except (TypeError, ValueError):
        raise DataError(
            f"{_WHERE}: costs must be numbers, in a matrix as many in every row, got {values!r}."
        ) from None
    if not np.isfinite(costs).all():
        raise DataError(f"{_WHERE}: costs must be finite numbers, got {costs[~np.isfinite(costs)][0]}.")
    if (costs < 0).any():
        raise DataError(
            f"{_WHERE}: costs must be at least 0, got {costs.min():g}. For a gain, add the same number to all costs of "
            "its true class, which changes no choice."
        )
    return costs


def _mean_interval(values: Array, weight: Array, level: float) -> tuple[float, float, float]:
    """Return a weighted mean and the ends of its interval, corrected for skewness.

    A few wrong rows of high cost make a mean skewed, and a symmetric or percentile interval then ends too low. The t
    statistic is made symmetric by a cubic transformation whose inverse is known (Hall 1992, On the removal of skewness
    by transformation).
    """
    n = len(values)
    mean = float(np.average(values, weights=weight))
    residuals = weight / weight.mean() * (values - mean)
    spread = float(np.sqrt((residuals**2).sum() / (n - 1)))
    if spread <= 1e-12 * (1.0 + abs(mean)):
        return mean, mean, mean
    skewness = float((residuals**3).mean()) / spread**3
    reach = float(stdtrit(n - 1, (1 + level) / 2)) / np.sqrt(n)
    low, high = (mean - spread * _inverse_hall(side, skewness, n) for side in (reach, -reach))
    return mean, low, high


def _inverse_hall(value: float, skewness: float, n: int) -> float:
    """Return the standardized mean whose transformed value is given."""
    if abs(skewness) < 1e-6:
        return value
    return float(3 / skewness * (np.cbrt(1 + skewness * (value - skewness / (6 * n))) - 1))
