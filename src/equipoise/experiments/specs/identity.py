"""Which run it is: a name made from content alone, that stays the same as the format grows."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from equipoise.experiments.code.names import name_by_content

__all__ = ["BORN", "first_identity", "identity_of", "table_digest"]

_FORMAT = 2
#: What fields were worth when they were born. A run is known by what differs from this, so that a field that is added
#: at the end together with its first default leaves the identity of every older run as it is. Never change a line.
BORN: Mapping[str, Mapping[str, Any]] = {
    "data": {"seed": 0, "digest": ""},
    "recipe": {
        "epochs": 10,
        "batch_size": 128,
        "optimizer": "SGD",
        "lr": 0.1,
        "weight_decay": 5e-4,
        "momentum": 0.9,
        "nesterov": False,
        "optimizer_options": {},
        "schedule": "constant",
        "milestones": [],
        "decay": 0.1,
        "warm_up": 0.0,
        "clip_norm": 0.0,
        "reduction": "mean",
        "accumulate": 1,
        "crop_padding": 0,
        "flip": False,
        "cutout": 0,
        "mixup": 0.0,
        "area": 0.0,
        "keep": "last",
        "select": "tune_nll",
        "patience": 0,
        "precision": "32-true",
        "jitter": 0.0,
        "erase": 0.0,
        "size": 0,
        "meta": 0.0,
        "sync_batchnorm": True,
    },
}
#: How many of these fields recipes had before runs were known by the content of their data.
_N_OLD = 23


def identity_of(table: Mapping[str, Any]) -> str:
    """Return the identity of a spec that was written as plain values.

    Fields that are worth what they were when they were born do not count, so that new ones leave older runs their
    names. Code counts by its content, not by where it lies; names that are only shown do not count.

    Example:
        >>> one = {"model": {"name": "a/net.py:Net"}, "code": {"a/net.py": "12"}}
        >>> two = {"model": {"name": "net.py:Net"}, "code": {"net.py": "12"}}
        >>> identity_of(one) == identity_of(two)
        True
    """
    known = {key: value for key, value in table.items() if key != "code"}
    for part, born in BORN.items():
        full = {**born, **known.get(part, {})}
        known[part] = {key: value for key, value in full.items() if key not in born or value != born[key]}
    code = table.get("code", {})
    if code:
        for part in ("data", "model", "method"):
            known[part] = _by_content(known.get(part, {}), code, may_be_sum=part == "method")
    return table_digest([_FORMAT, known])


def _by_content(part: Mapping[str, Any], code: Mapping[str, str], *, may_be_sum: bool) -> dict[str, Any]:
    """Return a table whose names of code hold its digest in place of the file."""
    result = dict(part)
    for key, value in part.items():
        if key == "auxiliary":
            result[key] = _by_content(value, code, may_be_sum=False) if value else value
        elif key in ("name", "loss") and isinstance(value, str):
            result[key] = name_by_content(value, code, may_be_sum=may_be_sum)
    return result


def first_identity(table: Mapping[str, Any]) -> str:
    """Return the identity that versions gave whose runs were not known by the content of their data.

    Example:
        >>> first_identity({"data": {"name": "digits"}, "recipe": {}, "method": {"name": "ce"}})
        '5e213f11b616651f'
    """
    older = {**table, "data": dict(table["data"]), "recipe": dict(table["recipe"])}
    older["data"].pop("digest", None)
    for later in list(BORN["recipe"])[_N_OLD:]:
        older["recipe"].pop(later, None)
    older["objective"] = older.pop("method")
    return table_digest([1, older])


def table_digest(content: Any) -> str:
    """Return sixteen letters that are the same for the same plain values.

    Example:
        >>> len(table_digest({"seed": 1}))
        16
    """
    return hashlib.blake2b(json.dumps(content, sort_keys=True).encode(), digest_size=8).hexdigest()
