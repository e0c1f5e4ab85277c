"""A rehearsal: the same comparison in minutes, on made-up data of the same shape."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from equipoise.experiments.specs.parsing import as_list
from equipoise.experiments.specs.run import Spec

__all__ = ["kept_in_rehearsal", "rehearsal_table"]

#: Two batches of two images, once.
_RECIPE: dict[str, Any] = {"epochs": 1, "batch_size": 2}
#: Side of images without a GPU: the smallest that the papers' networks take, by the size of the dataset's images.
_SMALL_SIDE, _LARGE_SIDE = 16, 32
_LARGE = ("imagenet", "imagenet_lt", "voc2012")
_MOST_SETTINGS = 2


def rehearsal_table(table: Mapping[str, Any]) -> dict[str, Any]:
    """Return a comparison with stand-ins for its data, one seed, one epoch, and two settings of what is chosen.

    Networks start untrained. Without a GPU images are smaller than those of the dataset, and precision is not mixed.

    Args:
        table: A comparison as a file holds it.

    Example:
        >>> rehearsal_table({"data": "cifar10", "model": "resnet50", "method": "ce", "name": "mine"})["name"]
        'mine-rehearsal'
    """
    recipe = dict(_RECIPE)
    if not torch.cuda.is_available():
        recipe["precision"] = "32-true"  # half precision is for GPUs
    return {
        **table,
        "name": f"{table.get('name', 'comparison')}-rehearsal",
        "data": [_stand_in(one) for one in as_list(table["data"])],
        "model": [_without_weights(one) for one in as_list(table["model"])],
        "method": [_with_few_settings(one) for one in as_list(table["method"])],
        "recipe": [{**_table_of(one), **recipe} for one in as_list(table.get("recipe", {}))],
        "seed": as_list(table.get("seed", 0))[:1],
        "shift": [_stand_in(one) if "data" in one else one for one in as_list(table.get("shift", []))],
    }


def kept_in_rehearsal(spec: Spec, first: Spec, baseline: str) -> bool:
    """Whether a run is rehearsed: every method on the first data and network, the baseline on all others.

    Example:
        >>> spec = Spec.from_table({"data": "digits", "model": "mlp"})
        >>> kept_in_rehearsal(spec, spec, baseline="focal")
        True
    """
    return (spec.data, spec.model) == (first.data, first.model) or spec.method.label == baseline


def _stand_in(data: Any) -> dict[str, Any]:
    table = _table_of(data)
    small = _LARGE_SIDE if table.get("name", table.get("data")) in _LARGE else _SMALL_SIDE
    side = True if torch.cuda.is_available() else small
    return {**table, "options": {**table.get("options", {}), "stand_in": side}}


def _without_weights(model: Any) -> dict[str, Any]:
    return {key: value for key, value in _table_of(model).items() if not key.startswith("weights")}


def _with_few_settings(method: Any) -> Any:
    if not isinstance(method, Mapping) or "choose" not in method:
        return method
    few = {
        key: values[:_MOST_SETTINGS] if isinstance(values, list) else values
        for key, values in method["choose"].items()
    }
    return {**method, "choose": few}


def _table_of(named: Any) -> dict[str, Any]:
    return dict(named) if isinstance(named, Mapping) else {"name": named}
