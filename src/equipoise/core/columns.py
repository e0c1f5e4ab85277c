"""The names of columns that are known, those a caller asks for, and what they are read as."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from equipoise.core.formats.table import Reading

__all__ = ["AMBIGUOUS_NAMES", "CLASS_PREFIXES", "KNOWN_NAMES", "Layout", "Wanted"]

#: Names that are recognised, in lower case, by what they mean.
KNOWN_NAMES: Mapping[str, tuple[str, ...]] = {
    "logits": ("logits", "logit"),
    "probs": (
        "probs", "probabilities", "prob", "proba", "probas", "probability", "predictions", "y_prob", "y_proba",
        "softmax",
    ),
    "labels": (
        "labels", "label", "targets", "target", "ground_truth", "y_true", "y", "true_label", "true_labels",
        "true_class",
    ),
    "predicted": (
        "predicted", "pred_label", "pred_labels", "predicted_label", "predicted_labels", "predicted_class",
        "pred_class", "prediction", "y_pred",
    ),
    "confidence": (
        "confidence", "confidences", "conf", "top_prob", "top_probability", "top1_prob", "max_prob",
        "max_probability",
    ),
    "weights": ("weights", "weight", "sample_weight", "sample_weights"),
}  # fmt: skip

#: Names that could mean logits or probabilities.
AMBIGUOUS_NAMES = (
    "scores",
    "score",
    "y_score",
    "y_scores",
    "output",
    "outputs",
    "preds",
    "pred",
    "decision_function",
)

#: What the columns of single classes begin with.
CLASS_PREFIXES: Mapping[str, Literal["logits", "probs"]] = {
    "logit": "logits",
    "logits": "logits",
    "prob": "probs",
    "probs": "probs",
    "proba": "probs",
    "probability": "probs",
    "p": "probs",
    "softmax": "probs",
}


@dataclass(frozen=True)
class Wanted:
    """Names that the caller gave; None means: recognise it.

    Attributes:
        logits: One column, several, or a pattern such as ``"score_*"``.
        probs: The same.
        labels: One column.
        predicted: One column.
        confidence: One column.
        weights: One column.
        groups: Columns to slice by; if none are given, those that begin with ``group_``.
        ids: One column.
    """

    logits: str | Sequence[str] | None = None
    probs: str | Sequence[str] | None = None
    labels: str | None = None
    predicted: str | None = None
    confidence: str | None = None
    weights: str | None = None
    groups: Sequence[str] = ()
    ids: str | None = None


@dataclass(frozen=True)
class Layout:
    """Which columns to read, and as what.

    Attributes:
        kind: ``logits``, ``probs`` or ``top1``.
        labels: The true class.
        scores: One array of scores, or a column per class; empty in the top-1 form.
        predicted: The class named, in the top-1 form.
        confidence: Its probability.
        weights: Sample weights.
        groups: Group names and their columns.
        ids: Ids of the rows.
        hashes: Hashes of the rows that an earlier writer kept.
        class_names: Names told by the columns of classes.
        one_per_class: True if every column of scores is a class.
    """

    kind: Literal["logits", "probs", "top1"]
    labels: str
    scores: tuple[str, ...] = ()
    predicted: str | None = None
    confidence: str | None = None
    weights: str | None = None
    groups: Mapping[str, str] = field(default_factory=dict)
    ids: str | None = None
    hashes: str | None = None
    class_names: tuple[str, ...] | None = None
    one_per_class: bool = False

    def readings(self) -> dict[str, Reading]:
        """Return every column that is needed and how it is meant."""
        roles: list[tuple[Sequence[str | None], Reading]] = [
            (self.scores, "number"),
            ((self.labels, self.predicted), "label"),
            ((self.confidence, self.weights), "number"),
            (tuple(self.groups.values()), "group"),
            ((self.ids,), "text"),
            ((self.hashes,), "hash"),
        ]
        found: dict[str, Reading] = {}
        for names, reading in roles:
            found |= {name: found.get(name, reading) for name in names if name is not None}
        return found
