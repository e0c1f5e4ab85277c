"""Deep ensembles: the mean of several networks' probabilities."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from equipoise.core.errors import DataError
from equipoise.core.predictions import Predictions
from equipoise.core.rows import check_disjoint

__all__ = ["average_predictions"]

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
    if not members:
        raise DataError(f"{_WHERE}: there are no predictions to average. Pass one per network.")
    first = members[0]
    for place, member in enumerate(members):
        _check_same_rows(first, member, place)
        if member.fitted_on is not None:
            check_disjoint(member.rows, member.fitted_on, where=f"{_WHERE}, member {place}")
    mean = np.zeros(first.probs.shape)
    for member in members:
        mean += member.probs
    mean /= len(members)
    return first.with_scores(probs=mean[:, 1] if first.one_column else mean, fitted_on=first.fitted_on)


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
