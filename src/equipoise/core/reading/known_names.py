"""The names of columns that are known."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

__all__ = ["AMBIGUOUS_NAMES", "CLASS_PREFIXES", "KNOWN_NAMES"]

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
    "correct": ("correct", "is_correct"),
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
