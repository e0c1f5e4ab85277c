"""What is judged: the predicted class, the probability of a positive class, or every class against the rest."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np
from scipy.special import expit

from equipoise.core.arrays import Array
from equipoise.core.errors import SpecError
from equipoise.core.escaping import visible
from equipoise.core.names import check_choice, look_up
from equipoise.core.predictions import Predictions
from equipoise.metrics.facts import metric_facts
from equipoise.metrics.metric_record import MetricFacts

__all__ = ["POSITIVE_KEYS", "TARGETS", "TOP", "Target", "event_view", "find_target", "target_facts"]

#: What can be judged.
TARGETS = ("top", "positive", "classwise")
#: Metrics of the probability of the positive class, beside those that all targets share.
POSITIVE_KEYS = (
    "ece",
    "ece_over",
    "ece_under",
    "debiased_ece",
    "ada_ece",
    "mce",
    "rms_ce",
    "smece",
    "ks",
    "confidence_gap",
    "over_confidence_error",
    "auroc",
    "corp_miscalibration",
    "corp_discrimination",
    "corp_uncertainty",
    "corp_log_miscalibration",
    "corp_log_discrimination",
    "corp_log_uncertainty",
)
_LONGEST_NAME = 32


class Target(NamedTuple):
    """What is judged.

    Attributes:
        kind: ``"top"``: confidence of the predicted class against accuracy. ``"positive"``: probability of one of two
            classes against its frequency. ``"classwise"``: probability of each class against its frequency.
        positive: The number of the positive class; None for the other kinds.
        name: The name of the positive class, or its number as text; empty for the other kinds.

    Example:
        >>> Target("positive", 1, "fraud").label
        'P(fraud)'
    """

    kind: Literal["top", "positive", "classwise"] = "top"
    positive: int | None = None
    name: str = ""

    @property
    def event(self) -> str:
        """The name of the positive class as it may be shown."""
        shown = visible(self.name[: _LONGEST_NAME + 1])
        return shown if len(self.name) <= _LONGEST_NAME else f"{shown[: _LONGEST_NAME - 3]}..."

    @property
    def label(self) -> str:
        """What the numbers are of, in one word: ``"top"``, ``"P(fraud)"`` or ``"classwise"``."""
        return f"P({self.event})" if self.kind == "positive" else self.kind

    def titled(self, title: str) -> str:
        """Return the title of a metric with what it is of.

        Example:
            >>> Target("positive", 1, "fraud").titled("ECE"), Target("classwise").titled("ECE"), TOP.titled("ECE")
            ('ECE of P(fraud)', 'ECE over all classes', 'ECE')
        """
        of = {"top": "", "classwise": " over all classes", "positive": f" of {self.label}"}
        return f"{title}{of[self.kind]}"


#: The predicted class.
TOP = Target()


def find_target(
    target: str | None,
    positive: str | int | None,
    *,
    n_classes: int | None,
    class_names: Sequence[str] | None,
    where: str,
) -> Target | None:
    """Return what is to be judged; None if nothing was said.

    Args:
        target: ``"top"``, ``"positive"``, ``"classwise"`` or None; naming a positive class means ``"positive"``.
        positive: The positive class, by name or number; by default class 1.
        n_classes: How many classes have scores; 0 or None if only the predicted class has.
        class_names: Their names.
        where: What to call the function in messages.

    Raises:
        SpecError: If the target does not exist, does not fit the classes, or has no positive class.

    Example:
        >>> find_target("positive", "fraud", n_classes=2, class_names=("legit", "fraud"), where="score")
        Target(kind='positive', positive=1, name='fraud')
    """
    if target is None and positive is None:
        return None
    if target is not None:
        check_choice(target, TARGETS, where=where, name="target")
    if target in ("top", "classwise") and positive is not None:
        raise SpecError(
            f"{{positive}} names the class of target 'positive', got target {target!r}. Leave one of them out.",
            where=where,
            arguments={"positive": ""},
        )
    if target == "top":
        return TOP
    if not n_classes:
        raise SpecError(
            f"{where}: target {target or 'positive'!r} needs the probability of every class, got only the predicted "
            "class and its confidence. Save logits or probabilities."
        )
    if target == "classwise":
        return Target("classwise")
    if n_classes != 2:
        raise SpecError(
            f"{where}: target 'positive' is for two classes, got {n_classes}. Use target 'classwise'."
        )
    place = 1 if positive is None else _class_number(positive, class_names)
    return Target("positive", place, class_names[place] if class_names else str(place))


def _class_number(positive: str | int, class_names: Sequence[str] | None) -> int:
    names = list(class_names or ())
    if str(positive) in names and not (isinstance(positive, int) and not isinstance(positive, bool)):
        return names.index(str(positive))
    if str(positive) in ("0", "1"):
        return int(positive)
    return look_up(
        str(positive), {name: place for place, name in enumerate(names or ["0", "1"])}, what="class"
    )


def event_view(predictions: Predictions, positive: int) -> Predictions:
    """Return predictions of an event: the confidence is the probability of the positive class, "correct" its truth.

    Whatever reads confidence and correctness then judges that probability on the whole range from 0 to 1.

    Args:
        predictions: Logits or probabilities of two classes.
        positive: The positive class, 0 or 1.

    Example:
        >>> rows = event_view(Predictions(probs=[[0.9, 0.1], [0.4, 0.6]], labels=[1, 1]), 1)
        >>> rows.confidence, rows.correct
        (array([0.1, 0.6]), array([ True,  True]))
    """
    view = Predictions(
        predicted=np.ones(len(predictions), np.int64),
        confidence=_probability(predictions, positive),
        labels=(predictions.labels == positive).astype(np.int64),
        groups=dict(predictions.groups),
        split=predictions.split,
    )
    return view._copy(weights=predictions.weights, _ids=predictions.rows)


def _probability(predictions: Predictions, positive: int) -> Array:
    if predictions.kind == "logits":
        logits = predictions.logits.astype(np.float64)
        found: Array = expit(logits[:, positive] - logits[:, 1 - positive])
        return found
    return np.clip(predictions.probs[:, positive], 0, 1)


def target_facts(key: str, target: Target) -> MetricFacts:
    """Return what is known about a metric of a target: its titles say what it is of.

    Example:
        >>> target_facts("confidence_gap", Target("positive", 1, "fraud")).title
        'P(fraud) - frequency of fraud'
    """
    facts = metric_facts(key)
    if target.kind == "classwise" and key == "ece":
        return facts._replace(
            title=target.titled("ECE"),
            meaning="mean gap between the probability of a class and its frequency",
        )
    if target.kind != "positive":
        return facts
    label, event = target.label, target.event
    if key == "confidence_gap":
        title, minus = f"{label} - frequency of {event}", f"{label} − frequency"
        return facts._replace(title=title, short=minus, meaning=f"above zero: {label} is too high on average")
    if key in ("ece_over", "ece_under"):
        way = "high" if key == "ece_over" else "low"
        return facts._replace(
            title=f"part of the ECE where {label} is too {way}",
            short=f"part where {label} is too {way}",
            meaning=f"where {label} is too {way}",
        )
    if key == "auroc":
        return facts._replace(
            title=f"AUROC of {label}", meaning=f"how well {label} tells {event} from the rest; 0.5 is chance"
        )
    if key == "ece":
        return facts._replace(
            title=target.titled("ECE"), meaning=f"mean gap between {label} and frequency over bins"
        )
    if key == "debiased_ece":
        return facts._replace(
            title=f"{target.titled('ECE')}, debiased", short=f"debiased {target.titled('ECE')}"
        )
    if key == "nll":
        return facts._replace(title=target.titled("log-loss"), short="log-loss")
    if key in POSITIVE_KEYS or key in ("brier", "root_brier"):
        return facts._replace(title=target.titled(facts.title))
    return facts
