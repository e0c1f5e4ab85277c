"""The part of a Hugging Face model card that says how well a model is calibrated."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from equipoise.core.escaping import without_controls
from equipoise.evaluate.scorecard import Scorecard
from equipoise.metrics.facts import columns
from equipoise.report.numbers import title

__all__ = ["model_card_metadata", "to_model_card"]


def model_card_metadata(
    card: Scorecard,
    *,
    model: str,
    dataset: str,
    dataset_type: str | None = None,
    task: str = "image-classification",
    metrics: Sequence[str] = columns(),
) -> dict[str, Any]:
    """Return the ``model-index`` of a model card.

    It holds the fields of ``huggingface_hub.EvalResult``, nested as they stand in a card. Bins, interval,
    number of rows and resamples go to the metric's ``args``, so that the number can be repeated.

    Args:
        card: The scores.
        model: The model's name.
        dataset: The dataset's name, as people say it.
        dataset_type: Its name on the hub; by default the same.
        task: One of the hub's tasks.
        metrics: Which metrics; those that the scorecard lacks are left out.

    Returns:
        A mapping for the front matter of a ``README.md``.

    Example:
        >>> from equipoise import Predictions, score
        >>> card = score(Predictions(probs=[0.9, 0.8, 0.3], labels=[1, 0, 0], split="test"), n_resamples=20)
        >>> content = model_card_metadata(card, model="mine", dataset="Toys")
        >>> content["model-index"][0]["results"][0]["metrics"][1]["type"]
        'nll'
    """
    where: dict[str, Any] = {
        "name": without_controls(dataset),
        "type": without_controls(dataset_type or dataset),
    }
    if card.split:
        where["split"] = card.split
    found = [
        {
            "type": key,
            "name": title(key),
            "value": round(card.scores[key].value, 6),
            "args": {
                "interval": [round(card.scores[key].low, 6), round(card.scores[key].high, 6)],
                "level": card.level,
                "n": card.n_samples,
                "n_bins": card.n_bins,
                "closed": card.closed,
                "n_resamples": card.n_resamples,
                "seed": card.seed,
            },
        }
        for key in metrics
        if key in card.scores
    ]
    results = [{"task": {"type": without_controls(task)}, "dataset": where, "metrics": found}]
    return {"model-index": [{"name": without_controls(model), "results": results}]}


def to_model_card(
    card: Scorecard,
    *,
    model: str,
    dataset: str,
    dataset_type: str | None = None,
    task: str = "image-classification",
    metrics: Sequence[str] = columns(),
) -> str:
    """Return the same as YAML, to paste between the ``---`` lines on top of a model card.

    Args:
        card: The scores.
        model: The model's name.
        dataset: The dataset's name, as people say it.
        dataset_type: Its name on the hub; by default the same.
        task: One of the hub's tasks.
        metrics: Which metrics; those that the scorecard lacks are left out.

    Returns:
        YAML whose texts are quoted, whatever they hold.

    Example:
        >>> from equipoise import Predictions, score
        >>> card = score(Predictions(probs=[0.9, 0.8, 0.3], labels=[1, 0, 0]), n_resamples=20)
        >>> print(to_model_card(card, model="mine", dataset="Toys", metrics=["accuracy"]).splitlines()[1])
        - name: "mine"
    """
    content = model_card_metadata(
        card, model=model, dataset=dataset, dataset_type=dataset_type, task=task, metrics=metrics
    )
    return "\n".join(_yaml(content, 0)) + "\n"


def _yaml(value: Any, depth: int) -> list[str]:
    """Return nested mappings and lists as YAML lines; texts, numbers and short lists as JSON, which YAML holds too."""
    pad = "  " * depth
    lines: list[str] = []
    if isinstance(value, dict):
        for key, item in value.items():
            if _is_flat(item):
                lines.append(f"{pad}{key}: {json.dumps(item)}")
            else:
                inner = depth if isinstance(item, list) else depth + 1
                lines += [f"{pad}{key}:", *_yaml(item, inner)]
        return lines
    for item in value:
        first, *rest = _yaml(item, depth + 1)
        lines += [f"{pad}- {first.lstrip()}", *rest]
    return lines


def _is_flat(item: Any) -> bool:
    return not isinstance(item, dict) and not (
        isinstance(item, list) and any(isinstance(x, dict) for x in item)
    )
