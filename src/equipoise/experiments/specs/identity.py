"""The identity of a run: a name made from the content of its spec alone."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from equipoise.experiments.code.component import name_by_content

__all__ = ["identity_of"]


def identity_of(table: Mapping[str, Any]) -> str:
    """Return the identity of a spec that was written as plain values: sixteen letters.

    Code counts by its content, not by its path. Empty values are not in the table, so that a field that is added with
    an empty default leaves the identity of every run as it is.

    Example:
        >>> one = {"model": {"name": "a/net.py:Net"}, "code": {"a/net.py": "12"}}
        >>> two = {"model": {"name": "net.py:Net"}, "code": {"net.py": "12"}}
        >>> identity_of(one) == identity_of(two)
        True
    """
    code = table.get("code", {})
    content = {
        key: _by_content(value, code, may_be_sum=key == "method") if isinstance(value, Mapping) else value
        for key, value in table.items()
        if key != "code"
    }
    return hashlib.blake2b(json.dumps(content, sort_keys=True).encode(), digest_size=8).hexdigest()


def _by_content(part: Mapping[str, Any], code: Mapping[str, str], *, may_be_sum: bool) -> dict[str, Any]:
    """Return a table whose names of code have the digest in place of the file."""
    result = dict(part)
    if isinstance(part.get("name"), str):
        result["name"] = name_by_content(part["name"], code, may_be_sum=may_be_sum)
    if "loss" in part:
        result["loss"] = _by_content(part["loss"], code, may_be_sum=True)
    if "auxiliary" in part:
        result["auxiliary"] = _by_content(part["auxiliary"], code, may_be_sum=False)
    return result
