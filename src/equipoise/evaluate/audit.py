"""The audit: everything that can be told about predictions, from one pass in bounded memory."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, final

import numpy as np

from equipoise.core.errors import DataError
from equipoise.core.names import look_up
from equipoise.core.predictions import Predictions
from equipoise.core.seeds import numpy_generator
from equipoise.evaluate.audit_words import describe_audit
from equipoise.evaluate.cautions import Caution, Evidence
from equipoise.evaluate.scorecard import Scorecard, score
from equipoise.evaluate.slices import Slice, SliceSums, with_class_names
from equipoise.metrics.consistency import ConsistencyTest
from equipoise.metrics.inputs import as_predictions
from equipoise.metrics.state import CalibrationState

__all__ = ["Audit", "audit"]

_MOST_CLASSES = 100_000


@final
@dataclass(frozen=True, eq=False)
class Audit:
    """What an audit found; print it to read it.

    Attributes:
        card: Every metric with its interval.
        consistency: Whether a calibrated model could score this ECE by chance.
        classes: Calibration when each class is predicted, the least believable first, corrected by Holm's rule.
        groups: The same by value of each column of groups.
        cautions: What to know before believing the numbers.
    """

    card: Scorecard
    consistency: ConsistencyTest
    classes: tuple[Slice, ...]
    groups: Mapping[str, tuple[Slice, ...]]
    cautions: tuple[Caution, ...]

    def worst(self, slices: Sequence[Slice], *, most: int = 5) -> tuple[Slice, ...]:
        """Return the slices that chance does not explain at the audit's level, at most so many.

        Example:
            >>> rows = Predictions(probs=[[0.9, 0.1]] * 40, labels=[0] * 20 + [1] * 20)
            >>> found = audit(rows)
            >>> [part.name for part in found.worst(found.classes)]
            ['0']
        """
        return tuple(part for part in slices if part.p_value < 1 - self.card.level)[:most]

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values, for JSON.

        Example:
            >>> sorted(audit(Predictions(probs=[0.9, 0.2], labels=[1, 0])).to_dict())
            ['bins', 'cautions', 'classes', 'consistency', 'groups', 'missing', 'notes', 'scores', 'settings']
        """
        card = self.card
        return {
            "settings": {
                name: getattr(card, name)
                for name in (
                    "n_samples",
                    "n_classes",
                    "split",
                    "n_bins",
                    "closed",
                    "level",
                    "n_resamples",
                    "seed",
                )
            },
            "scores": {key: value._asdict() for key, value in card.scores.items()},
            "missing": dict(card.missing),
            "consistency": self.consistency._asdict(),
            "bins": card.curve.rows(),
            "classes": [part._asdict() for part in self.classes],
            "groups": {name: [part._asdict() for part in parts] for name, parts in self.groups.items()},
            "cautions": [caution._asdict() for caution in self.cautions],
            "notes": list(card.notes),
        }

    def describe(self, *, quiet: bool = False) -> str:
        """Return the audit as plain text.

        Args:
            quiet: Results only, without heading, warnings and notes.

        Example:
            >>> print(audit(Predictions(probs=[0.9] * 50, labels=[1] * 45 + [0] * 5)).describe(quiet=True))
            Consistent with a calibrated model...
        """
        return describe_audit(self, quiet=quiet)

    def __str__(self) -> str:
        return self.describe()


def audit(
    predictions: Predictions | Iterable[Predictions],
    *,
    by: Sequence[str] | None = None,
    n_bins: int = 15,
    closed: str = "right",
    level: float = 0.95,
    n_resamples: int = 1000,
    seed: int = 0,
) -> Audit:
    """Audit predictions: scorecard, consistency test, worst classes and groups, and signs of mistakes in the file.

    Args:
        predictions: Predictions; or chunks of them, as :func:`equipoise.iter_predictions` gives, which are visited
            once. A single chunk is scored exactly; of more, adaptive and smooth errors are read from a fine sketch.
        by: Columns of groups to look at one by one; by default all that the predictions have.
        n_bins: Bins of equal width; 15 in the papers.
        closed: Which side of a bin belongs to it.
        level: Level of the intervals and of the verdicts.
        n_resamples: Bootstrap resamples behind the intervals.
        seed: The same seed gives the same answer.

    Returns:
        A record; print it to read it.

    Raises:
        DataError: If there are no rows, or a column asked for has too many different values.
        SplitError: If the rows were used to fit the calibrator that made these predictions.

    Example:
        >>> found = audit(Predictions(probs=[[0.9, 0.1]] * 40, labels=[0] * 20 + [1] * 20))
        >>> round(found.card["ece"].value, 3), found.consistency.p_value < 0.01
        (0.4, True)
    """
    chunks = (predictions,) if isinstance(predictions, Predictions) else predictions
    state: _State | None = None
    alone: Predictions | None = None
    for chunk in chunks:
        alone = chunk if state is None else None
        state = state or _State(chunk, by, n_bins, closed)
        state.update(chunk)
    if state is None:
        raise DataError("audit: no predictions were given. Pass at least one chunk.")
    settings: dict[str, Any] = {"level": level, "n_resamples": n_resamples, "seed": seed}
    card = score(state.calibration if alone is None else alone, n_bins=n_bins, closed=closed, **settings)
    return Audit(
        card=card,
        consistency=_consistency(card, state.calibration),
        classes=with_class_names(state.classes.slices(level=level), state.class_names),
        groups=MappingProxyType({name: sums.slices(level=level) for name, sums in state.groups.items()}),
        cautions=(*state.evidence.cautions(), *state.refused),
    )


def _consistency(card: Scorecard, state: CalibrationState) -> ConsistencyTest:
    """Return the test that the scorecard made, with what chance explains."""
    curve, rng = card.curve, numpy_generator(card.seed, "consistency")
    count = np.round(curve.weight * (state.effective_samples / state.total_weight)).astype(np.int64)
    mean = np.clip(np.nan_to_num(curve.confidence), 0.0, 1.0)
    right = rng.binomial(count, mean, size=(card.n_resamples, len(count)))
    draws = np.abs(count * mean - right).sum(axis=1) / max(1, count.sum())
    ece = card.scores["ece"]
    return ConsistencyTest(
        "ece", ece.value, float(draws.mean()), float(np.quantile(draws, 0.95)), float(ece.p_value or 0.0)
    )


class _State:
    """All sums of one audit; their size depends on bins, classes and groups, never on rows."""

    def __init__(self, first: Predictions, by: Sequence[str] | None, n_bins: int, closed: str) -> None:
        n_classes = 0 if first.kind == "top1" else first.n_classes or 0
        self.calibration = CalibrationState(n_classes, n_bins=n_bins, closed=closed)
        self.classes = SliceSums(n_bins=n_bins, closed=closed, most=_MOST_CLASSES)
        self.class_names = first.class_names
        self.evidence = Evidence()
        self.refused: list[Caution] = []
        self._optional = by is None
        names = list(first.groups) if by is None else list(by)
        for name in names:
            look_up(name, first.groups, what="column of groups")
        self.groups = {name: SliceSums(n_bins=n_bins, closed=closed) for name in names}

    def update(self, chunk: Predictions) -> None:
        rows = as_predictions(chunk, None, where="audit")
        self.calibration.update(rows)
        self.classes.update(rows, rows.predicted, name="predicted classes")
        self.evidence.update(rows)
        for name, sums in list(self.groups.items()):
            try:
                sums.update(rows, rows.groups[name], name=name)
            except DataError as error:
                if not self._optional:
                    raise
                # Nobody asked for this column: it stands in the file under a name that marks groups.
                del self.groups[name]
                self.refused.append(Caution("too_many_groups", str(error)))
