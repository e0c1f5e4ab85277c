"""What a saved calibrator may hold: a file can be damaged or forged, and only what was checked is used."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields
from math import prod
from typing import Any, TypeAlias

import numpy as np

from equipoise.core.arrays import Array
from equipoise.core.errors import DataError
from equipoise.core.rows import Rows

__all__ = ["Axes", "check_content", "check_parameters", "check_settings"]

#: Lengths of a parameter's axes. A letter is a length that the fit decides, the same wherever it stands; a letter
#: with ``+1`` is one more.
Axes: TypeAlias = tuple[int | str, ...]

_NUMBER = (int, float)
_MOST_CLASSES = 1 << 31


_Rule: TypeAlias = tuple[Callable[[Any], bool], str]


def check_content(content: Any, *, where: str) -> None:
    """Raise unless every part of an artifact is there and of its kind.

    Raises:
        DataError: With the first part that is not.

    Example:
        >>> check_content({"kind": 3}, where="load: map.json")
        Traceback (most recent call last):
        ...
        equipoise.core.errors.DataError: load: map.json is damaged: `kind` must be text, got 3...
    """
    _check_table(content, _PARTS, where=where, path="")
    try:
        _ = Rows.unpacked(content["rows"]) if content.get("rows") is not None else None
    except ValueError:
        raise _damaged(where, "rows", "packed hashes", content["rows"]) from None
    frequencies = content.get("frequencies", [1.0])
    if not (_numbers(frequencies) and all(0 <= one <= 1 for one in frequencies)):
        raise _damaged(where, "frequencies", "probabilities", frequencies)
    _check_table(content["result"], _RESULT, where=where, path="result.")
    extra = {name: rule for name, rule in _OPTIONAL.items() if name in content["result"]}
    _check_table(content["result"], extra, where=where, path="result.")
    _check_nothing_else(content["result"], _RESULT | _OPTIONAL, where=where, path="result.")
    floor = content["result"].get("floor", [])
    if len(floor) == 2 and content["n_classes"] not in (1, 2):
        raise _damaged(where, "result.floor", "one probability unless there are two classes", floor)
    for name, entry in content["parameters"].items():
        _check_table(entry, _PARAMETER, where=where, path=f"parameters.{name}.")
        _check_nothing_else(entry, _PARAMETER, where=where, path=f"parameters.{name}.")
        if prod(entry["shape"]) != len(entry["values"]):
            raise _damaged(
                where, f"parameters.{name}", f"{prod(entry['shape'])} numbers", len(entry["values"])
            )


def _check_table(table: Any, wanted: Mapping[str, _Rule], *, where: str, path: str) -> None:
    if not isinstance(table, Mapping):
        raise _damaged(where, path.rstrip(".") or "content", "a table", table)
    for name, (holds, words) in wanted.items():
        if name not in table or not holds(table[name]):
            raise _damaged(where, path + name, words, table.get(name, "nothing"))


def _check_nothing_else(table: Mapping[str, Any], known: Mapping[str, Any], *, where: str, path: str) -> None:
    for name in table:
        if name not in known:
            raise _damaged(where, f"{path}{name}", "absent", table[name])


def _damaged(where: str, name: str, words: str, got: Any) -> DataError:
    return DataError(
        f"{where} is damaged: `{name}` must be {words}, got {repr(got)[:60]}. Fit and save the calibrator again."
    )


def _is(*kinds: type) -> Callable[[Any], bool]:
    return lambda value: type(value) in kinds  # True and False are no numbers here


def _numbers(value: Any) -> bool:
    return type(value) is list and set(map(type, value)) <= set(_NUMBER)


def _count(value: Any) -> bool:
    return type(value) is int and 0 <= value < _MOST_CLASSES


def _texts(value: Any) -> bool:
    return type(value) is list and set(map(type, value)) <= {str}


def _named(value: Any, *kinds: type) -> bool:
    return isinstance(value, Mapping) and {type(one) for one in value.values()} <= set(kinds)


_PARTS: dict[str, _Rule] = {
    "kind": (_is(str), "text"),
    "settings": (lambda value: isinstance(value, Mapping), "a table"),
    "n_classes": (lambda value: value is None or (_count(value) and value > 0), "a number of classes"),
    "fitted_on": (_is(str, type(None)), "text"),
    "result": (lambda value: isinstance(value, Mapping), "a table"),
    "parameters": (lambda value: isinstance(value, Mapping), "a table"),
}
_RESULT: dict[str, _Rule] = {
    "words": (_is(str), "text"),
    "converged": (_is(bool), "true or false"),
    "iterations": (_count, "a count"),
    "certificate": (lambda value: _named(value, *_NUMBER), "a table of numbers"),
    "warnings": (_texts, "a list of texts"),
    "nll_before": (_is(*_NUMBER), "a number"),
    "nll_after": (_is(*_NUMBER), "a number"),
    "identity": (_is(bool), "true or false"),
}
# What exact zeros counted as, and the names of groups; other fits do not hold them.
_OPTIONAL: dict[str, _Rule] = {
    "notes": (_texts, "a list of texts"),
    "floor": (
        lambda value: _numbers(value) and 1 <= len(value) <= 2 and all(0 < one <= 0.5 for one in value),
        "one or two probabilities above 0",
    ),
    "groups": (lambda value: _texts(value) and len(set(value)) == len(value), "a list of different texts"),
}
_PARAMETER: dict[str, _Rule] = {
    "shape": (
        lambda value: type(value) is list and len(value) <= 2 and all(map(_count, value)),
        "at most two lengths",
    ),
    "values": (_numbers, "a list of numbers"),
}


def check_settings(kind: type, settings: Mapping[str, Any], *, where: str) -> None:
    """Raise unless settings are known to a calibrator and of the kind its defaults are.

    Example:
        >>> from equipoise.calibrators import HistogramBinning
        >>> check_settings(HistogramBinning, {"n_bins": 10, "bins": "mass"}, where="load: map.json")
    """
    known = {one.name: one.default for one in fields(kind)}
    for name, value in settings.items():
        default = known.get(name, MISSING)
        if default is MISSING:
            raise _damaged(where, f"settings.{name}", f"a setting of {kind.__name__}", value)
        if default is None:  # a list of counts or nothing: the only setting without a default
            fits = value is None or (type(value) in (list, tuple) and all(map(_count, value)))
        else:
            fits = type(value) is type(default) or (type(value) is int and type(default) is float)
        if not fits:
            raise _damaged(where, f"settings.{name}", f"of the kind of {default!r}", value)


def check_parameters(parameters: Mapping[str, Array], axes: Mapping[str, Axes], *, where: str) -> None:
    """Raise unless a calibrator's numbers have their names, shapes and ranges.

    Args:
        parameters: What was read.
        axes: The names wanted, and the lengths of the axes of each.
        where: Who asks, for messages.

    Raises:
        DataError: If one is missing or unknown, or cannot be.

    Example:
        >>> check_parameters({"temperature": np.array(-1.0)}, {"temperature": ()}, where="load: map.json")
        Traceback (most recent call last):
        ...
        equipoise.core.errors.DataError: load: map.json is damaged: `temperature` must be above 0, got ...
    """
    if set(parameters) != set(axes):
        wanted = ", ".join(axes) or "nothing"
        raise _damaged(where, "parameters", f"a table of {wanted}", ", ".join(parameters) or "nothing")
    letters: dict[str, int] = {}
    for name, wanted_axes in axes.items():
        values = parameters[name]
        if values.ndim != len(wanted_axes) or not all(
            _length(axis, size, letters) for axis, size in zip(wanted_axes, values.shape, strict=True)
        ):
            raise _damaged(where, name, f"of shape {wanted_axes}", values.shape)
        holds, words = _RANGES.get(name, _FINITE)
        if not holds(values):
            raise _damaged(where, name, words, values.ravel()[:5].tolist())


def _length(axis: int | str, size: int, letters: dict[str, int]) -> bool:
    if isinstance(axis, int):
        return size == axis
    letter, more = axis[0], int(axis[1:] or 0)
    return letters.setdefault(letter, size - more) == size - more


def _ascending(values: Array) -> bool:
    # A pair of paddings is inf - inf: compare, do not subtract.
    return not np.isnan(values).any() and bool((values[:, 1:] >= values[:, :-1]).all())


def _ascending_pair(values: Array) -> bool:
    return bool((np.abs(values) <= 1e130).all() and (values[:, 0] <= values[:, 1]).all())


_FINITE: _Rule = (lambda values: bool(np.isfinite(values).all()), "finite")
_RANGES: dict[str, _Rule] = {
    "temperature": (lambda values: bool((values > 0).all() and np.isfinite(values).all()), "above 0"),
    "uniform": (lambda values: bool(((values > 0) & (values < 1)).all()), "between 0 and 1"),
    "mixture": (
        lambda values: bool((values >= 0).all() and abs(values.sum() - 1) < 1e-6 and values[2] < 1),
        "shares that sum to 1, not all of them of the uniform part",
    ),
    "edges": (_ascending, "ascending"),
    "knots": (
        lambda values: values.shape[1] > 1 and _ascending(values) and bool(np.isfinite(values).all()),
        "two or more, ascending and finite",
    ),
    **dict.fromkeys(
        ("values", "lower", "upper"),
        (lambda values: bool(((values >= 0) & (values <= 1)).all()), "probabilities"),
    ),
    "coefficients": (lambda values: bool((np.abs(values) <= 1e30).all()), "at most 1e30"),
    "gamma": (lambda values: bool((values >= 0).all() and np.isfinite(values).all()), "at least 0"),
    "priors": (
        lambda values: bool((values > 0).all() and abs(values.sum() - 1) < 1e-6),
        "above 0 with a sum of 1",
    ),
    "range": (_ascending_pair, "pairs of ascending numbers"),
}
