"""Calibrators by group: one for all rows, and one for each group, shrunk towards it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import copy
from dataclasses import dataclass, replace
from math import inf, prod
from typing import Any, final

import numpy as np

from equipoise.calibrators.artifact_checks import Axes, check_parameters
from equipoise.calibrators.base import Calibrator
from equipoise.calibrators.fit_warnings import mean_and_error
from equipoise.calibrators.forms import ONE_CONFIDENCE
from equipoise.calibrators.one_vs_rest import row_weights
from equipoise.calibrators.result import FitResult
from equipoise.calibrators.zeros import floored
from equipoise.core.array_functions import AnyArray, log_softmax
from equipoise.core.arrays import Array
from equipoise.core.errors import DataError
from equipoise.core.predictions import Predictions
from equipoise.core.seeds import numpy_generator

__all__ = ["CalibrationByGroup"]

#: Numbers of rows that the calibrator of all rows may count as in a group; infinity is no calibrator by group.
_PRIOR_ROWS = (0.0, 10.0, 30.0, 100.0, 300.0, 1000.0, 3000.0, 10_000.0, inf)
_FOLDS = 5
_FEWEST_ROWS = 20
_EACH = "each_"


@final
@dataclass(kw_only=True, eq=False)
class CalibrationByGroup(Calibrator):
    r"""Fit a calibrator on all rows and one on each group, and mix them by the number of rows of the group.

    Groups may err in different directions, such as sites, devices or subjects. A calibrator of each group's own rows
    follows chance if they are few; one of all rows cannot follow any group.

    .. math:: z' = (1 - w_g) \, f(z) + w_g \, f_g(z), \qquad w_g = \frac{n_g}{n_g + m}

    Where the base is linear in its parameters, as vector and matrix scaling are, this mixes the parameters. The
    strength *m* is one number for all groups. Cross-validated log-loss chooses it. Calibrators by group are used only
    if they lower it by more than a standard error, so that by cross-validation the result is never worse than the
    calibrator of all rows. Groups with fewer than 20 rows, and groups that the fit has not seen, use the calibrator of
    all rows.

    Args:
        base: The calibrator, not fitted; one with a fixed number of parameters.
        by: Name of the column of groups.

    Example:
        >>> from equipoise.calibrators import TemperatureScaling
        >>> rng = np.random.default_rng(0)
        >>> logits, site = rng.normal(size=(2000, 3)) * 2, np.repeat(["a", "b"], 1000)
        >>> labels = (logits + rng.gumbel(size=(2000, 3))).argmax(1)
        >>> logits[site == "b"] *= 3  # overconfident at one site
        >>> rows = Predictions(logits=logits, labels=labels, groups={"site": site})
        >>> calibrator = CalibrationByGroup(base=TemperatureScaling(), by="site").fit(rows)
        >>> calibrator.result.groups
        ('a', 'b')
        >>> calibrator.result.nll_after < TemperatureScaling().fit(rows).result.nll_after - 0.05
        True

    Reference:
        Ours. The weight is that of an empirical Bayes estimate of a group's mean, as in James and Stein (1961).

    Differs from the authors' code:
        Ours, there is no other.
    """

    base: Calibrator
    by: str

    kind = "by_group"
    penalized = True

    def __post_init__(self) -> None:
        axes = self.base._axes(2)
        if not axes or any(isinstance(length, str) for one in axes.values() for length in one):
            raise ValueError(
                f"CalibrationByGroup: `base` must have a fixed number of parameters, got {self.base.kind!r}. Use "
                "temperature, ets, platt, beta, vector, svs or sms."
            )
        self.gives = self.base.gives
        self.preserves_accuracy, self.preserves_order = (
            self.base.preserves_accuracy,
            self.base.preserves_order,
        )

    @property
    def settings(self) -> dict[str, Any]:
        """The constructor's parameters; the base by its kind and settings."""
        return {"base": {"kind": self.base.kind, "settings": self.base.settings}, "by": self.by}

    @property
    def takes_claims(self) -> bool:
        """Whether it can be fitted on top-1 predictions: if its base can."""
        return self.base.takes_claims

    def n_parameters(self, n_classes: int) -> int:
        """Count the parameters: those of the base for all rows and for each group, and the strength."""
        n_groups = len(self.result.groups) if self.fitted else 0
        return self.base.n_parameters(n_classes) * (1 + n_groups) + 1

    def groups_without_own(self, predictions: Predictions) -> dict[str, int]:
        """Return the groups that use the calibrator of all rows, with the number of their rows.

        Raises:
            DataError: If the predictions do not have the column of groups.
        """
        names, codes = self._groups(predictions)
        counts = np.bincount(codes, minlength=len(names))
        own = set(self.result.groups)
        return {name: int(n) for name, n in zip(names, counts, strict=True) if name not in own}

    def _groups(self, data: Predictions) -> tuple[list[str], Array]:
        if self.by not in data.groups:
            known = ", ".join(data.groups) or "none"
            raise DataError(
                f"CalibrationByGroup: the column of groups {self.by!r} is missing, got {known}. Give it in `groups`."
            )
        names, codes = np.unique(data.groups[self.by].astype(np.str_), return_inverse=True)
        return names.tolist(), codes

    def _axes(self, n_classes: int) -> Mapping[str, Axes]:
        return _stacked(self.base._axes(n_classes))

    def _claim_axes(self) -> Mapping[str, Axes]:
        return _stacked(self.base._claim_axes())

    def _learn(self, predictions: Predictions) -> FitResult:
        return self._fit_groups(predictions, claims=False)

    def _learn_claims(self, claims: Predictions) -> FitResult:
        return self._fit_groups(claims, claims=True)

    def _fit_groups(self, data: Predictions, *, claims: bool) -> FitResult:
        names, codes = self._groups(data)
        weights = row_weights(data.weights, len(data))
        strength, note = self._choose_strength(data, codes, weights, claims=claims)
        found = self._fit_members(data, codes, weights, len(names), claims=claims)
        share = _shares(found, codes, weights, strength)
        if not share.any():
            return self._result_of(found, (), share[:0], data, claims=claims, words=note)
        own = np.flatnonzero(share)
        few = len(names) - len(own)
        mixed = (
            f"mixed with that of all rows, which counts as {strength:g} rows" if strength else "not shrunk"
        )
        words = (
            f"{self.base.kind} for each of {len(own)} groups of {self.by!r}, {mixed}; unseen groups"
            f"{f' and {few} with fewer than {_FEWEST_ROWS} rows' if few else ''} use that of all rows"
        )
        kept = (found[0], *(found[1 + place] for place in own))
        return self._result_of(
            kept, tuple(names[place] for place in own), share[own], data, claims=claims, words=words
        )

    def _fit_members(
        self, data: Predictions, codes: Array, weights: Array, n_groups: int, *, claims: bool
    ) -> tuple[FitResult | None, ...]:
        """Return the fit of all rows, then that of each group; None for groups that have too few rows."""
        members: list[FitResult | None] = [self.base._learned(data, (), claims=claims)]
        sizes = np.bincount(codes, weights, n_groups)
        for group in range(n_groups):
            own = codes == group
            enough = sizes[group] >= _FEWEST_ROWS and own.sum() >= _FEWEST_ROWS
            members.append(self.base._learned(data.take(own), (), claims=claims) if enough else None)
        return tuple(members)

    def _choose_strength(
        self, data: Predictions, codes: Array, weights: Array, *, claims: bool
    ) -> tuple[float, str]:
        """Return the number of rows that the calibrator of all rows counts as, and why there may be none by group."""
        n_groups = int(codes.max()) + 1
        fold = numpy_generator(0, "by_group").permutation(len(data)) % _FOLDS
        losses = np.empty((len(_PRIOR_ROWS), len(data)))
        for part in range(min(_FOLDS, len(data))):
            held, rest = fold == part, fold != part
            if not rest.any() or not weights[rest].any():
                return inf, "too few rows to compare groups: all rows share one calibrator"
            members = self._fit_members(data.take(rest), codes[rest], weights[rest], n_groups, claims=claims)
            pooled, own = self._both(data.logits[held].astype(np.float64, copy=False), codes[held], members)
            for place, strength in enumerate(_PRIOR_ROWS):
                share = _shares(members, codes[rest], weights[rest], strength)[codes[held], None]
                losses[place, held] = _log_loss(pooled + share * (own - pooled), data.labels[held])
        best = int(np.argmin(losses @ weights))
        gain, error = mean_and_error(losses[-1] - losses[best], weights)
        if gain <= error:
            return inf, "no difference between groups is shown: all rows share one calibrator"
        return _PRIOR_ROWS[best], ""

    def _both(
        self, logits: Array, codes: Array, members: tuple[FitResult | None, ...]
    ) -> tuple[Array, Array]:
        """Return rows after the calibrator of all rows, and after that of their group, if it has one."""
        pooled = self._mapped_by(members[0], logits)
        own = pooled.copy()
        for group, member in enumerate(members[1:]):
            if member is not None:
                rows = codes == group
                own[rows] = self._mapped_by(member, logits[rows])
        return pooled, own

    def _mapped_by(self, member: FitResult | None, logits: Array) -> Array:
        if member is None or member.identity:
            return logits
        mapped: Array = self.base._map(logits, member.parameters)
        return mapped

    def _result_of(
        self,
        members: tuple[FitResult | None, ...],
        names: tuple[str, ...],
        share: Array,
        data: Predictions,
        *,
        claims: bool,
        words: str,
    ) -> FitResult:
        """Return the parameters of all members, one row each; the first is that of all rows."""
        known = [member for member in members if member is not None]
        parameters = {
            _EACH + name: np.stack([member.parameters[name].ravel() for member in known])
            for name in known[0].parameters
        }
        parameters["share"] = np.append(1.0, share)
        parameters["used"] = np.array([not member.identity for member in known])
        found = FitResult(
            parameters=parameters,
            words=words,
            converged=all(member.converged for member in known),
            iterations=sum(member.iterations for member in known),
            warnings=known[0].warnings,
            groups=names,
        )
        logits, weights = (
            data.logits.astype(np.float64, copy=False),
            row_weights(data.weights, len(data)),
        )
        mixed = self._mix(logits, data, found, claims=claims)
        before, after = (
            float(np.average(_log_loss(one, data.labels), weights=weights)) for one in (logits, mixed)
        )
        return replace(found, nll_before=before, nll_after=after)

    def _mix(self, logits: Array, data: Predictions, found: FitResult, *, claims: bool) -> Array:
        axes = self.base._claim_axes() if claims else self.base._axes(logits.shape[1])
        names, codes = self._groups(data)
        share, used = found.parameters["share"], found.parameters["used"]
        pooled = self.base._map(logits, _member(found, axes, 0)) if used[0] else logits
        mixed, places = pooled.copy(), {name: place for place, name in enumerate(found.groups, 1)}
        for code, name in enumerate(names):
            if name in places:
                place, rows = places[name], codes == code
                own = (
                    self.base._map(logits[rows], _member(found, axes, place)) if used[place] else logits[rows]
                )
                mixed[rows] += share[place] * (own - pooled[rows])
        return mixed

    @np.errstate(divide="ignore", over="ignore", under="ignore", invalid="ignore")
    def _mapped_rows(self, logits: Array, data: Predictions) -> Array:
        found = self.result
        self._check_classes(logits.shape[1])
        if found.identity:
            return logits
        wide = logits.astype(np.float64, copy=False)
        if found.floor:
            wide = floored(wide, found.floor)
        return self._mix(wide, data, found, claims=self._n_classes == ONE_CONFIDENCE).astype(
            logits.dtype, copy=False
        )

    def _map(self, logits: AnyArray, parameters: Mapping[str, AnyArray]) -> AnyArray:
        return self._function()(logits, parameters)

    def _function(self) -> Callable[[AnyArray, Mapping[str, AnyArray]], AnyArray]:
        raise DataError(
            f"CalibrationByGroup: arrays and networks do not have groups. Pass Predictions(..., groups={{{self.by!r}: "
            "...}), or use a calibrator of all rows."
        )

    @property
    def keeps_logit_level(self) -> bool:
        """Whether a constant added to all logits of a row still shows afterwards: as for the base on all rows."""
        if self._n_classes == ONE_CONFIDENCE or not self.result.parameters["used"][0]:
            return self._n_classes != ONE_CONFIDENCE
        pooled = copy(self.base)
        parameters = _member(self.result, self.base._axes(self._n_classes or 2), 0)
        pooled._result, pooled._n_classes = FitResult(parameters=parameters, words=""), self._n_classes
        return pooled.keeps_logit_level

    def _check_restored(self, where: str) -> None:
        """Raise unless the parameters of every member, as read from a file, can be those of the base."""
        found = self.result
        axes = (
            self.base._claim_axes()
            if self._n_classes == ONE_CONFIDENCE
            else self.base._axes(self._n_classes or 2)
        )
        share, used = found.parameters["share"], found.parameters["used"]
        if (
            len(share) != len(found.groups) + 1
            or not ((share >= 0) & (share <= 1) & np.isin(used, (0, 1))).all()
        ):
            raise DataError(
                f"{where} is damaged: `share` and `used` must be one number from 0 to 1 per group. Fit it again."
            )
        for place in range(len(share)):
            check_parameters(_member(found, axes, place), axes, where=where)


def _stacked(axes: Mapping[str, Axes]) -> dict[str, Axes]:
    """Return the axes of one row of parameters per member; the letter is the number of members."""
    sizes = {name: prod(int(length) for length in lengths) for name, lengths in axes.items()}
    return {"share": ("g",), "used": ("g",), **{_EACH + name: ("g", size) for name, size in sizes.items()}}


def _member(found: FitResult, axes: Mapping[str, Axes], place: int) -> dict[str, Array]:
    return {name: found.parameters[_EACH + name][place].reshape(lengths) for name, lengths in axes.items()}


def _shares(members: tuple[FitResult | None, ...], codes: Array, weights: Array, strength: float) -> Array:
    """Return the share of each group's own calibrator."""
    sizes = np.bincount(codes, weights, len(members) - 1)
    has_own = np.array([member is not None for member in members[1:]])
    return np.where(has_own, sizes / np.maximum(sizes + strength, 1e-300), 0.0)


def _log_loss(logits: Array, labels: Array) -> Array:
    own: Array = log_softmax(logits)[np.arange(len(labels)), labels]
    return -own
