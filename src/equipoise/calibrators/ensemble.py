"""Ensembles: the mean of several networks' probabilities, and its calibrator with two parameters."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Self, final

import numpy as np
from scipy.optimize import minimize

from equipoise.calibrators import artifact
from equipoise.calibrators.artifact_checks import check_parameters
from equipoise.calibrators.one_vs_rest import row_weights
from equipoise.calibrators.result import FitResult
from equipoise.core.array_functions import logsumexp
from equipoise.core.arrays import Array
from equipoise.core.errors import DataError, NotFittedError, SplitError
from equipoise.core.predictions import Predictions
from equipoise.core.rows import Rows, check_disjoint

__all__ = ["EnsembleScaling", "average_predictions"]

_WHERE = "average_predictions"


def average_predictions(members: Sequence[Predictions]) -> Predictions:
    r"""Average the probabilities of several networks on the same rows.

    .. math:: p = \frac{1}{M} \sum_m p_m

    Averaging lowers overconfidence by itself; calibrate the average rather than the members.

    Args:
        members: Predictions of each network, rows in the same order.

    Returns:
        Predictions with the mean probabilities; labels, weights, names and rows of the first member.

    Raises:
        DataError: If there is no member, or they are not about the same rows.
        SplitError: If a member was calibrated on rows it is averaged over.

    Example:
        >>> one = Predictions(probs=[[0.9, 0.1]], labels=[0])
        >>> two = Predictions(probs=[[0.5, 0.5]], labels=[0])
        >>> average_predictions([one, two]).probs
        array([[0.7, 0.3]])

    Reference:
        Lakshminarayanan, Pritzel, Blundell (2017), Simple and scalable predictive uncertainty estimation using
        deep ensembles.

    Differs from the authors' code:
        Nothing known.
    """
    _check_members(members)
    first = members[0]
    mean = np.zeros(first.probs.shape)
    for member in members:
        mean += member.probs
    mean /= len(members)
    return first.with_scores(probs=mean[:, 1] if first.one_column else mean, fitted_on=first.fitted_on)


@final
class EnsembleScaling:
    r"""Calibrate an ensemble by two parameters: a temperature of its members, and a factor of their spread.

    Members' log-probabilities are divided by a temperature *T*, and their differences from the members' mean are
    multiplied by a factor *s*. The members' probabilities are averaged after that.

    .. math::
        p = \frac{1}{M} \sum_m \operatorname{softmax} \left( \frac{\bar\ell + s (\ell_m - \bar\ell)}{T} \right), \qquad
        \bar\ell = \frac1M \sum_m \ell_m, \quad \ell_m = \log p_m

    With *s* = 1 members are calibrated by one temperature before averaging, with *s* = 0 the geometric mean is
    calibrated; above 1 a disagreement counts for more than the members show. Both parameters minimize the negative
    log-likelihood of held-out rows. *T* = *s* = 1 is the plain average, so that the fit rows are never worse than that.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> logits = 2 * rng.normal(size=(500, 3))
        >>> labels = (logits + rng.gumbel(size=(500, 3))).argmax(1)
        >>> members = [
        ...     Predictions(logits=3 * (logits + rng.normal(size=logits.shape)), labels=labels) for _ in range(4)
        ... ]
        >>> calibrator = EnsembleScaling().fit(members)
        >>> calibrator.result.nll_after < calibrator.result.nll_before
        True
        >>> calibrator(members)
        Predictions(probs, n=500, k=3)

    Reference:
        Ours.

    Differs from the authors' code:
        Ours, there is no other.
    """

    _result: FitResult | None = None
    _n_classes: int | None = None
    _rows: Rows | None = None

    @property
    def result(self) -> FitResult:
        """What the fit found."""
        if self._result is None:
            raise NotFittedError(
                "EnsembleScaling: not fitted yet. Call fit(members) with held-out predictions first."
            )
        return self._result

    @property
    def temperature(self) -> float:
        """The temperature of the members."""
        return float(self.result.parameters["temperature"])

    @property
    def spread(self) -> float:
        """The factor of the members' differences from their mean."""
        return float(self.result.parameters["spread"])

    def fit(self, members: Sequence[Predictions]) -> Self:
        """Find both parameters.

        Args:
            members: Held-out predictions of each network, at least two, rows in the same order.

        Returns:
            The calibrator itself.

        Raises:
            SplitError: If the predictions are from the split ``test``.
            DataError: If they are not about the same rows.
        """
        stacked = _log_probs(members)
        if members[0].split == "test":
            raise SplitError(
                "EnsembleScaling.fit: the predictions are from the split 'test', which only judges. Fit on 'calib'."
            )
        labels, weights = members[0].labels, row_weights(members[0].weights, len(members[0]))
        temperature, spread, before, after, steps = fit_ensemble(stacked, labels, weights)
        kind = "over" if temperature > 1 else "under"
        words = f"members are {kind}confident: divide their logits by {temperature:.3g}"
        self._result = FitResult(
            parameters={"temperature": np.array(temperature), "spread": np.array(spread)},
            words=f"{words}; their spread counts {spread:.3g} times",
            iterations=steps,
            nll_before=float(before),
            nll_after=float(after),
        )
        self._n_classes, self._rows = stacked.shape[2], members[0].rows
        return self

    def __call__(self, members: Sequence[Predictions]) -> Predictions:
        """Return the calibrated mean of the members.

        Raises:
            NotFittedError: If there is no fit yet.
            DataError: If members are not about the same rows, or have other classes than in the fit.
        """
        _ = self.result  # raises if there is no fit
        stacked = _log_probs(members)
        if stacked.shape[2] != self._n_classes:
            raise DataError(
                f"EnsembleScaling: members must have {self._n_classes} classes, as in the fit, got {stacked.shape[2]}."
            )
        probs = np.exp(_mixed(stacked, 1 / self.temperature, self.spread / self.temperature))
        first = members[0]
        fitted_on = self._rows if self._rows is not None else Rows(np.empty(0, np.uint64), first.rows.named)
        return first.with_scores(probs=probs[:, 1] if first.one_column else probs, fitted_on=fitted_on)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a versioned artifact: ``.json`` or ``.safetensors``."""
        content = artifact.pack(
            kind="ensemble",
            settings={},
            n_classes=self._n_classes,
            fingerprint=None if self._rows is None else self._rows.fingerprint,
            result=self.result,
            rows=self._rows,
        )
        artifact.write(path, content)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> EnsembleScaling:
        """Read what :meth:`save` wrote.

        Raises:
            DataError: If the file is something else, is from a newer version, or was changed.
        """
        content = artifact.read(path)
        if content["kind"] != "ensemble" or content["n_classes"] is None:
            raise DataError(f"load: {path} must contain a saved EnsembleScaling, got {content['kind']!r}.")
        made, result = cls(), artifact.unpack_result(content)
        check_parameters(result.parameters, {"temperature": (), "spread": ()}, where=f"load: {path}")
        made._result, made._n_classes = result, content["n_classes"]
        rows = content.get("rows")
        made._rows = None if rows is None else Rows.unpacked(rows)
        return made


def fit_ensemble(log_probs: Array, labels: Array, weights: Array) -> tuple[float, float, float, float, int]:
    """Return temperature, spread, the mean NLL before and after, and the number of steps.

    Args:
        log_probs: Of the members, ``(M, n, k)``.
        labels: True classes ``(n,)``.
        weights: One per row.
    """
    center = log_probs.mean(axis=0)
    apart = log_probs - center
    rows, share = np.arange(len(labels)), weights / weights.sum()

    def loss(point: Array) -> tuple[float, Array]:
        # Linear in (1 / T, s / T): both slopes are those of a mixture of softmax regressions.
        scores = point[0] * center + point[1] * apart
        own = scores - logsumexp(scores)
        belief = own[:, rows, labels]
        total = logsumexp(belief, axis=0)[0]
        part, probs = np.exp(belief - total), np.exp(own)
        slopes = [
            -float(share @ (part * (one[..., rows, labels] - (probs * one).sum(axis=2))).sum(axis=0))
            for one in (np.broadcast_to(center, apart.shape), apart)
        ]
        return float(-(share @ total)) + np.log(len(log_probs)), np.array(slopes)

    start = np.ones(2)
    before = loss(start)[0]
    found = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=[(1e-3, 1e3), (0.0, 1e3)])
    if not found.fun <= before:
        return 1.0, 1.0, before, before, int(found.nit)
    scale, spread = found.x
    return float(1 / scale), float(spread / scale), before, float(found.fun), int(found.nit)


def _mixed(log_probs: Array, scale: float, spread: float) -> Array:
    """Return logarithms of the mean probabilities ``(n, k)``."""
    center = log_probs.mean(axis=0)
    scores = scale * center + spread * (log_probs - center)
    own = scores - logsumexp(scores)
    mixed: Array = logsumexp(own, axis=0)[0] - np.log(len(log_probs))
    return mixed


def _log_probs(members: Sequence[Predictions]) -> Array:
    if len(members) < 2:
        raise DataError(f"EnsembleScaling: members must be at least two, got {len(members)}.")
    _check_members(members)
    return np.stack([member.log_probs.astype(np.float64) for member in members])


def _check_members(members: Sequence[Predictions]) -> None:
    if not members:
        raise DataError(f"{_WHERE}: there are no predictions to average. Pass one per network.")
    for place, member in enumerate(members):
        _check_same_rows(members[0], member, place)
        if member.fitted_on is not None:
            check_disjoint(member.rows, member.fitted_on, where=f"{_WHERE}, member {place}")


def _check_same_rows(first: Predictions, member: Predictions, place: int) -> None:
    where = f"{_WHERE}: member {place}"
    if member.n_classes != first.n_classes:
        raise DataError(f"{where} has {member.n_classes} classes, the first has {first.n_classes}.")
    if member.has_labels != first.has_labels:
        raise DataError(f"{where} must have labels if the first has, and none if it has none.")
    if first.has_labels and not np.array_equal(member.labels, first.labels):
        raise DataError(f"{where} has other labels than the first. Rows must be the same, in the same order.")
    both_named = member.rows.named and first.rows.named
    if both_named and not np.array_equal(member.rows.hashes, first.rows.hashes):
        raise DataError(f"{where} has other ids than the first. Rows must be the same, in the same order.")
