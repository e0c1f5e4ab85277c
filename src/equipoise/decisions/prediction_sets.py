"""Sets of classes that contain the true one with a given probability (split conformal prediction)."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Real
from typing import Any, Literal, final

import numpy as np
from scipy.special import betaincinv
from scipy.stats import betabinom

from equipoise.core.arrays import Array
from equipoise.core.checks import check_integer
from equipoise.core.errors import DataError, NotFittedError, SplitError
from equipoise.core.names import check_choice
from equipoise.core.predictions import Predictions
from equipoise.core.records import Record, read_record, write_record
from equipoise.core.rows import Rows, check_disjoint
from equipoise.core.seeds import numpy_generator
from equipoise.decisions.inputs import (
    apply_calibrator,
    as_predictions,
    check_json_name,
    check_share,
    read_calibrator,
)
from equipoise.decisions.set_report import ClassSets

__all__ = ["PredictionSets", "set_scores"]

_FORMAT, _VERSION = "equipoise.prediction_sets", 1
_MOST_ROWS = 1 << 14
_METHODS = ("lac", "aps", "raps")
_PENALTIES = (0.001, 0.01, 0.1, 0.2, 0.5)
#: Rows in a block of scores.
_BLOCK = 1 << 22


def set_scores(
    probs: Array, method: str, *, uniform: Array | float = 1.0, penalty: float = 0.01, k_reg: int = 5
) -> Array:
    r"""Return how badly every class fits every row ``(n, k)``; sets contain the classes with low scores.

    LAC: :math:`1 - p_k`. APS: :math:`\sum_{j: p_j > p_k} p_j + u p_k`. RAPS: APS plus
    :math:`\lambda \max(0, \mathrm{rank}_k - k_{reg})`.

    Args:
        probs: Probabilities ``(n, k)``.
        method: ``"lac"``, ``"aps"`` or ``"raps"``.
        uniform: One number in [0, 1] per row (*u*); 1 is the version without randomization, whose sets are larger.
        penalty: Cost of every class beyond the first ``k_reg`` (lambda in the paper), for RAPS.
        k_reg: Number of classes without a cost, for RAPS.

    Example:
        >>> set_scores(np.array([[0.5, 0.3, 0.2]]), "aps").round(2)
        array([[0.5, 0.8, 1. ]])

    Reference:
        Sadinle, Lei, Wasserman (2019), LAC; Romano, Sesia, Candes (2020), APS; Angelopoulos et al. (2021), RAPS.
    """
    probs = probs.astype(np.float64)
    if method == "lac":
        return 1.0 - probs
    order = np.argsort(-probs, axis=1, kind="stable")
    ordered = np.take_along_axis(probs, order, axis=1)
    before = np.cumsum(ordered, axis=1) - ordered
    # Classes of equal probability have the same sum of larger ones.
    tied = np.concatenate([np.zeros((len(probs), 1), bool), ordered[:, 1:] == ordered[:, :-1]], axis=1)
    first = np.maximum.accumulate(np.where(tied, 0, np.arange(probs.shape[1])), axis=1)
    before = np.take_along_axis(before, first, axis=1)
    score = before + np.reshape(uniform, (-1, 1)) * ordered
    if method == "raps":
        score = score + penalty * np.maximum(0.0, np.arange(1.0, probs.shape[1] + 1) - k_reg)
    result: Array = np.empty_like(score)
    np.put_along_axis(result, order, score, axis=1)
    return result


@final
@dataclass(eq=False)
class PredictionSets:
    """Sets of classes with a guaranteed coverage.

    For rows that are exchangeable with the calibration rows, the true class is in its set with probability at least
    ``coverage``, whatever the model. Fit on labelled rows that nothing else was fitted on.

    Args:
        method: ``"lac"`` (smallest sets on average), ``"aps"`` (adaptive sizes) or ``"raps"`` (adaptive, without long
            tails).
        coverage: Probability that a set contains the true class.
        conditional: None, ``"class"`` (coverage within every class) or ``"group"`` (within every group).
        by: Name of the column of ``groups``, for ``conditional="group"``.
        randomized: Randomize APS and RAPS, which makes their coverage exact and their sets smaller; sets may be empty.
        penalty: RAPS: cost of every class beyond the first ``k_reg``.
        k_reg: RAPS: number of classes without a cost.
        tune: RAPS: share of the calibration rows on which ``penalty`` and ``k_reg`` are chosen for small sets. These
            rows take no part in the calibration. 0 uses the given values.
        seed: Random seed of the randomization and of the choice of rows.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> logits = rng.normal(size=(1000, 4)); labels = (logits + rng.gumbel(size=(1000, 4))).argmax(1)
        >>> rows = Predictions(logits=logits, labels=labels)
        >>> sets = PredictionSets("aps", coverage=0.9).fit(rows.take(slice(0, 500)))
        >>> found = sets(rows.take(slice(500, 1000)))
        >>> found.members.shape, round(float(found.report().coverage), 2)
        ((500, 4), 0.91)
    """

    method: Literal["lac", "aps", "raps"] = "lac"
    coverage: float = 0.9
    conditional: Literal["class", "group"] | None = None
    by: str | None = None
    randomized: bool = True
    penalty: float = 0.01
    k_reg: int = 5
    tune: float = 0.0
    seed: int = 0

    def __post_init__(self) -> None:
        where = "PredictionSets"
        check_choice(self.method, _METHODS, where=where, name="method")
        if self.conditional is not None:
            check_choice(self.conditional, ("class", "group"), where=where, name="conditional")
        check_share(self.coverage, where=where, name="coverage", example="90% is 0.9")
        if (self.conditional == "group") != (self.by is not None):
            raise TypeError(f"{where}: `by` and `conditional='group'` must be given together.")
        for name in ("k_reg", "seed"):
            value = getattr(self, name)
            check_integer(value, where=where, name=name, least=0)
            if value is None or value >= 1 << 62:
                raise ValueError(f"{where}: `{name}` must be an integer of 64 bits, got {value!r}.")
        penalty: Any = self.penalty
        if not isinstance(penalty, Real) or not 0 <= float(penalty) < 1e300:
            raise ValueError(f"{where}: `penalty` must be at least 0 and finite, got {penalty!r}.")
        if self.by is not None and not isinstance(self.by, str):
            raise TypeError(f"{where}: `by` must be the name of one column of groups, got {self.by!r}.")
        if not 0 <= self.tune < 1:
            raise ValueError(f"{where}: `tune` must be at least 0 and below 1, got {self.tune}.")
        if self.tune and self.method != "raps":
            raise TypeError(
                f"{where}: `tune` chooses the parameters of 'raps', got {self.method!r}. Leave it out."
            )
        self._limits: dict[str, float] | None = None
        self._counts: dict[str, int] = {}
        self._n_classes = 0
        self.rows: Rows | None = None
        self.calibrator: Any = None

    def fit(self, predictions: Any, labels: Any = None, *, calibrator: Any = None) -> PredictionSets:
        """Find the limits of the scores on labelled calibration rows.

        Args:
            predictions: Labelled predictions, or probabilities ``(n, k)`` or ``(n,)`` with
            labels: true classes ``(n,)``.
            calibrator: Fitted calibrator, applied first here and in every call, and saved with the sets. Its rows must
                be other rows.

        Raises:
            SplitError: If the rows are from ``train``, or were used to fit the calibrator behind the probabilities.
        """
        where = "PredictionSets.fit"
        predictions = as_predictions(predictions, labels, where=where)
        self.calibrator = calibrator
        predictions = apply_calibrator(calibrator, predictions, where=where)
        if predictions.split == "train":
            raise SplitError(f"{where}: the predictions are from the split 'train'. Fit on 'calib'.")
        if predictions.fitted_on is not None:
            check_disjoint(predictions.rows, predictions.fitted_on, where=where)
        if predictions.weights is not None:
            raise DataError(f"{where}: rows with weights are not exchangeable. Pass rows without weights.")
        if not len(predictions):
            raise DataError(f"{where}: the predictions have no rows. Pass labelled rows.")
        self.rows = predictions.rows
        if self.tune:
            predictions = self._tuned(predictions)
        true = predictions.labels
        self._n_classes = predictions.probs.shape[1]
        own = self._scores(predictions, "fit")[np.arange(len(true)), true]
        keys = self.keys(predictions, true, where)
        self._counts = dict.fromkeys(self._all_keys(), 0) | {
            str(key): int((keys == key).sum()) for key in np.unique(keys)
        }
        self._limits = {key: self._limit(own[keys == key]) for key in self._counts}
        return self

    def __call__(self, predictions: Any, labels: Any = None) -> ClassSets:
        """Return the sets of some rows, given like those of :meth:`fit`; labels are needed for reports only."""
        predictions = as_predictions(predictions, labels, where="PredictionSets")
        if self._limits is None:
            raise NotFittedError(
                "PredictionSets: not fitted yet. Call fit(predictions) with calibration rows first."
            )
        predictions = apply_calibrator(self.calibrator, predictions, where="PredictionSets")
        if predictions.probs.shape[1] != self._n_classes:
            raise ValueError(
                f"PredictionSets: `probs` must have {self._n_classes} classes, as in the fit, got "
                f"{predictions.probs.shape[1]}. Fit on predictions of this model."
            )
        scores = self._scores(predictions, "apply")
        if self.conditional == "class":
            limit = np.array([self._limits[key] for key in self._all_keys()])[None, :]
        else:
            names, codes = np.unique(self.keys(predictions, None, "PredictionSets"), return_inverse=True)
            unseen = [name for name in names.tolist() if name not in self._limits]
            if unseen:
                raise DataError(
                    f"PredictionSets: the group {unseen[0]!r} of {self.by!r} has no calibration rows. Fit on rows with "
                    "every group."
                )
            limit = np.array([self._limits[name] for name in names.tolist()])[codes][:, None]
        return ClassSets(scores <= limit, predictions, self)

    @property
    def limits(self) -> Mapping[str, float]:
        """Largest accepted score: one number under the empty name, or one per class number or group."""
        return dict(self._limits or {})

    @property
    def counts(self) -> Mapping[str, int]:
        """Number of calibration rows behind every limit."""
        return dict(self._counts)

    @property
    def fewest_rows(self) -> int:
        """Number of calibration rows below which a set contains every class."""
        return math.ceil(self.coverage / (1 - self.coverage) - 1e-9)

    def expected_coverage(self, level: float = 0.95) -> tuple[float, float]:
        """Return the interval in which the coverage of all rows lies, given one calibration set.

        Without a condition the distribution is Beta(n + 1 - l, l), where ``l`` is the integer part of
        ``(n + 1) * (1 - coverage)``. With a condition it is a beta distribution with the mean and the variance of the
        mixture of classes or groups, which are assumed to be as frequent as in the calibration set.
        """
        if not self._counts:
            raise NotFittedError(
                "PredictionSets.expected_coverage: not fitted yet. Call fit(predictions) first."
            )
        laws = {key: self._law(count) for key, count in self._counts.items() if count}
        shares = np.array([self._counts[key] for key in laws]) / sum(self._counts.values())
        first, second = np.array(list(laws.values()), np.float64).T
        means = first / (first + second)
        variances = means * (1 - means) / (first + second + 1)
        mean, variance = float(shares @ means), float(shares**2 @ variances)
        if variance <= 0:
            return 1.0, 1.0
        weight = mean * (1 - mean) / variance - 1
        low, high = (
            float(betaincinv(mean * weight, (1 - mean) * weight, end))
            for end in ((1 - level) / 2, (1 + level) / 2)
        )
        return low, high

    def coverage_p_value(self, covered: int, n: int, key: str = "") -> float:
        """Return the probability of at most so many covered rows, over calibration and test rows (beta-binomial).

        Exact for randomized scores and scores without ties; conservative otherwise.

        Args:
            covered: Number of rows whose set contains the true class.
            n: Number of rows.
            key: Class number or group of the rows, for sets with a condition.
        """
        first, second = self._law(self._counts.get(key, 0))
        return float(betabinom.cdf(covered, n, first, second)) if second else 1.0

    def _law(self, n: int) -> tuple[int, int]:
        """Return the parameters of the beta distribution of the coverage after a fit to ``n`` rows.

        The second parameter is zero if the sets contain every class.
        """
        rank = min(math.ceil((n + 1) * self.coverage - 1e-9), n + 1)
        return rank, n + 1 - rank

    @property
    def full_keys(self) -> list[str]:
        """Class numbers or groups whose limit is infinite, since they have too few calibration rows."""
        return [key for key, limit in self.limits.items() if math.isinf(limit)]

    def check_disjoint(self, predictions: Predictions) -> None:
        """Raise if rows were used to fit the sets.

        Raises:
            SplitError: With the number of shared rows.
        """
        if self.rows is None:
            return
        problem = "rows were used to fit the sets, so they cannot judge them. Pass other rows."
        check_disjoint(predictions.rows, self.rows, where="PredictionSets", problem=problem)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted sets as JSON with a checksum."""
        if self._limits is None:
            raise NotFittedError("PredictionSets.save: not fitted yet. Call fit(predictions) first.")
        check_json_name(path, where="PredictionSets.save")
        plain = {
            "settings": {name: getattr(self, name) for name in self.__dataclass_fields__},
            "limits": {key: None if math.isinf(value) else value for key, value in self._limits.items()},
            "counts": self._counts,
            "n_classes": self._n_classes,
            "rows": None if self.rows is None else self.rows.sketch(_MOST_ROWS).packed(),
            "calibrator": None if self.calibrator is None else self.calibrator.to_artifact(),
        }
        write_record(path, _FORMAT, _VERSION, Record(plain, {}))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> PredictionSets:
        """Read sets that :meth:`save` wrote.

        Raises:
            DataError: If the file is something else, is from a newer version, or was changed.
        """
        plain = read_record(path, _FORMAT, _VERSION).plain
        try:
            made = cls(**plain["settings"])
            made._limits = {
                str(key): math.inf if value is None else float(value)
                for key, value in plain["limits"].items()
            }
            made._counts = {str(key): int(value) for key, value in plain["counts"].items()}
            made._n_classes = int(plain["n_classes"])
            keys = {"class": set(made._all_keys()), None: {""}}.get(made.conditional, set(made._limits))
            if set(made._limits) != keys or set(made._counts) != keys or not sum(made._counts.values()) > 0:
                raise ValueError("limits and counts do not fit together")
            made.rows = None if plain["rows"] is None else Rows.unpacked(plain["rows"])
            made.calibrator = read_calibrator(plain["calibrator"])
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise DataError(
                f"PredictionSets.load: {path} is damaged ({error}). Fit and save again."
            ) from None
        return made

    def _scores(self, predictions: Predictions, purpose: str) -> Array:
        uniform = np.ones(len(predictions))
        if self.randomized and self.method != "lac":
            uniform = numpy_generator(self.seed, "sets", purpose).random(len(predictions))
        probs = predictions.probs
        step = max(1, _BLOCK // probs.shape[1])
        blocks = [
            set_scores(
                probs[start : start + step],
                self.method,
                uniform=uniform[start : start + step],
                penalty=self.penalty,
                k_reg=self.k_reg,
            )
            for start in range(0, len(probs), step)
        ]
        return np.concatenate(blocks)

    def _limit(self, own: Array) -> float:
        rank, beyond = self._law(len(own))
        return float(np.partition(own, rank - 1)[rank - 1]) if beyond else math.inf

    def _all_keys(self) -> list[str]:
        return [str(j) for j in range(self._n_classes)] if self.conditional == "class" else []

    def keys(self, predictions: Predictions, labels: Array | None, where: str = "PredictionSets") -> Array:
        """Return the class number or group of every row, whose limit it has; empty names without a condition."""
        if self.conditional == "class" and labels is not None:
            return labels.astype(np.str_)
        if self.conditional == "group":
            if self.by not in predictions.groups:
                known = ", ".join(predictions.groups) or "none"
                raise DataError(
                    f"{where}: `by` must name a column of groups, got {self.by!r}. Columns: {known}."
                )
            return predictions.groups[str(self.by)].astype(np.str_)
        return np.full(len(predictions), "")

    def _tuned(self, predictions: Predictions) -> Predictions:
        """Choose the parameters on some rows; return the others."""
        n = len(predictions)
        order = numpy_generator(self.seed, "tune").permutation(n)
        count = round(self.tune * n)
        if count < 2 or n - count < 1:
            raise DataError(f"PredictionSets.fit: `tune` leaves {count} of {n} rows. Give more rows.")
        apart, rest = predictions.take(np.sort(order[:count])), predictions.take(np.sort(order[count:]))
        probs, labels = apart.probs, apart.labels
        ranks = (probs > probs[np.arange(count), labels][:, None]).sum(axis=1) + 1
        self.k_reg = int(np.quantile(ranks, self.coverage, method="higher"))
        sizes = {}
        for penalty in _PENALTIES:
            self.penalty = penalty
            scores = self._scores(apart, "tune")
            limit = self._limit(scores[np.arange(count), labels])
            sizes[penalty] = float((scores <= limit).sum(axis=1).mean())
        self.penalty = min(sizes, key=sizes.__getitem__)
        return rest
