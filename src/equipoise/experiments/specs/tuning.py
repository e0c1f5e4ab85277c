"""Knobs of a method that are chosen on ``tune``: how a spec asks for it, and how it is done."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, final

import numpy as np
from scipy.special import ndtri

from equipoise.calibrators import Calibrator, TemperatureScaling
from equipoise.core.choices import RULES
from equipoise.core.errors import SpecError
from equipoise.core.names import check_choice
from equipoise.core.predictions import Predictions
from equipoise.core.seeds import numpy_generator
from equipoise.evaluate import compare
from equipoise.experiments.code.names import is_sum
from equipoise.experiments.specs.parsing import record_from_table
from equipoise.experiments.specs.run import MethodSpec
from equipoise.metrics import expected_calibration_error, negative_log_likelihood

__all__ = [
    "Search",
    "TunedMethod",
    "badness",
    "is_tuned",
    "is_whole",
    "pick_setting",
    "read_tuned_method",
    "scaled",
]

#: What settings are judged by, and the metric each is a value of.
JUDGES = {"nll": "nll", "nll_scaled": "nll", "ece": "ece"}
SEARCHES = ("optuna",)
_OURS = ("choose", "by", "rule", "search", "trials")
_LEVEL = 0.95


@final
@dataclass(frozen=True, kw_only=True)
class Search:
    """Where settings are sought, and how many are tried for each seed.

    Attributes:
        method: The table of the method, without knobs.
        knobs: For each either a list, or a table with ``low``, ``high`` and perhaps ``log`` or ``step``.
        trials: How many settings.
    """

    method: Mapping[str, Any]
    knobs: Mapping[str, Any]
    trials: int

    def candidate(self, setting: Mapping[str, Any], *, where: str) -> MethodSpec:
        """Return the method at a setting."""
        method: MethodSpec = record_from_table(MethodSpec, _set(self.method, setting, where), where=where)
        return method


@final
@dataclass(frozen=True, kw_only=True)
class TunedMethod:
    """A method of a comparison whose setting is chosen on ``tune``, for each seed.

    Attributes:
        label: What tables call it.
        candidates: The method at each setting, the simplest first.
        settings: Those settings.
        by: ``"nll"``, ``"nll_scaled"`` (after a temperature fitted on half of ``tune``) or ``"ece"``.
        rule: ``"one_standard_error"`` takes the first setting that is worse than the best by no more than one
            standard error of their difference; ``"best"`` takes the best.
        search: Where settings are sought instead of listed, if they are; the one candidate is where it begins.

    Example:
        >>> choice = read_tuned_method({"name": "focal", "choose": {"gamma": [1.0, 3.0]}}, where="doc")
        >>> choice.label, [one.label for one in choice.candidates]
        ('focal(gamma by nll)', ['focal(gamma=1.0)', 'focal(gamma=3.0)'])
    """

    label: str
    candidates: tuple[MethodSpec, ...]
    settings: tuple[dict[str, Any], ...]
    by: str
    rule: str
    search: Search | None = None


def is_tuned(method: Any) -> bool:
    """Whether a method of a spec leaves something to choose.

    Example:
        >>> is_tuned("ce"), is_tuned({"name": "focal", "choose": {"gamma": [1.0]}})
        (False, True)
    """
    return isinstance(method, Mapping) and any(key in method for key in _OURS)


def read_tuned_method(table: Mapping[str, Any], *, where: str) -> TunedMethod:
    """Return what a method with ``choose`` asks for.

    Several knobs are a grid. Its settings are ordered by how many steps they are from the first of every list, so that
    lists that begin with the simplest give a grid that does.

    Args:
        table: A method with ``choose = { knob = [settings] }``, and perhaps ``by`` and ``rule``; with
            ``search = "optuna"`` and ``trials`` a knob may be ``{ low, high, log }`` as well. A knob of the loss
            inside an objective is written ``"loss_parameters.knob"``, and one of a part of a sum ``"part.knob"``.
        where: File and key, for errors.

    Raises:
        SpecError: If there is nothing to choose from, or no such judge or rule.

    Example:
        >>> grid = {"name": "mbls", "choose": {"margin": [6.0, 10.0], "strength": [0.1, 0.2]}}
        >>> [setting["margin"] for setting in read_tuned_method(grid, where="doc").settings]
        [6.0, 6.0, 10.0, 10.0]
    """
    knobs = table.get("choose")
    if not isinstance(knobs, Mapping) or not knobs:
        raise SpecError(f"{where}.choose: must be a table of knobs with settings, got {knobs!r}.")
    sought = "search" in table or "trials" in table
    for knob, values in knobs.items():
        _check_knob(values, sought=sought, where=f"{where}.choose.{knob}")
    by, rule = table.get("by", "nll"), table.get("rule", "best" if sought else RULES[0])
    try:
        check_choice(by, JUDGES, where=where, name="by")
        check_choice(rule, RULES, where=where, name="rule")
        if sought:
            check_choice(table.get("search", SEARCHES[0]), SEARCHES, where=where, name="search")
    except ValueError as error:
        raise SpecError(str(error)) from error
    # A title is that of the choice: its candidates are told apart by their settings.
    fixed = {key: value for key, value in table.items() if key not in (*_OURS, "title")}
    search = _search(table, fixed, rule, where) if sought else None
    settings = [{knob: _first(values) for knob, values in knobs.items()}] if sought else _grid(knobs)
    candidates = tuple(
        record_from_table(MethodSpec, _set(fixed, one, where), where=where) for one in settings
    )
    label = table.get("title") or _label(record_from_table(MethodSpec, fixed, where=where).label, knobs, by)
    return TunedMethod(
        label=label, candidates=candidates, settings=tuple(settings), by=by, rule=rule, search=search
    )


def _search(table: Mapping[str, Any], fixed: Mapping[str, Any], rule: str, where: str) -> Search:
    trials = table.get("trials", 20)
    if not isinstance(trials, int) or isinstance(trials, bool) or trials < 2:
        raise SpecError(
            f"{where}.trials: must be at least 2, got {trials!r}. It is the number of runs per seed."
        )
    if rule != "best":
        raise SpecError(
            f"{where}.rule: a search knows no simplest setting, so it must be 'best', got {rule!r}."
        )
    return Search(method=fixed, knobs=table["choose"], trials=trials)


def _check_knob(values: Any, *, sought: bool, where: str) -> None:
    """Raise unless a knob has settings that differ, or, in a search, a range."""
    if sought and isinstance(values, Mapping):
        low, high = (values.get(key) for key in ("low", "high"))
        numbers = all(
            isinstance(value, (int, float)) and not isinstance(value, bool) for value in (low, high)
        )
        positive = not values.get("log") or (numbers and low > 0)  # type: ignore[operator]
        if not numbers or not low < high or not positive or set(values) - {"low", "high", "log", "step"}:  # type: ignore[operator]
            raise SpecError(
                f"{where}: must be {{ low = .., high = .. }} with low below high, and perhaps `step`, or `log = true` "
                f"for numbers above 0, got {dict(values)!r}."
            )
        return
    if not isinstance(values, (list, tuple)) or not values or len(set(map(repr, values))) < len(values):
        wanted = "a list of settings that differ" + (", or a range" if sought else ", the simplest first")
        raise SpecError(f"{where}: must be {wanted}, got {values!r}.")


def _first(values: Any) -> Any:
    """Return where a search begins: the first of a list, the low end of a range."""
    if not isinstance(values, Mapping):
        return values[0]
    return values["low"] if is_whole(values) else float(values["low"])


def is_whole(knob: Mapping[str, Any]) -> bool:
    """Return whether a range is of whole numbers.

    Example:
        >>> is_whole({"low": 1, "high": 5}), is_whole({"low": 1, "high": 5.0})
        (True, False)
    """
    return all(isinstance(knob[key], int) for key in ("low", "high", "step") if key in knob)


def _label(base: str, knobs: Iterable[str], by: str) -> str:
    chosen = f"{', '.join(knob.rpartition('.')[2] for knob in knobs)} by {by}"
    return f"{base[:-1]}, {chosen})" if base.endswith(")") else f"{base}({chosen})"


def _grid(knobs: Mapping[str, Sequence[Any]]) -> list[dict[str, Any]]:
    places = sorted(product(*(range(len(values)) for values in knobs.values())), key=lambda at: (sum(at), at))
    return [
        {knob: values[place] for (knob, values), place in zip(knobs.items(), at, strict=True)}
        for at in places
    ]


def _set(table: Mapping[str, Any], setting: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Return a method's table with knobs set."""
    made = dict(table)
    for knob, value in setting.items():
        path = _path(knob, table, where)
        inner = made
        for part in path[:-1]:
            given = inner.get(part, {})
            if not isinstance(given, Mapping):
                raise SpecError(f"{where}.{part}: must be a table, got {given!r}.")
            inner[part] = dict(given)
            inner = inner[part]
        if path[-1] in inner:
            raise SpecError(
                f"{where}.choose.{knob}: is set in `{'.'.join(path[:-1])}` already. Remove it there."
            )
        inner[path[-1]] = value
    return made


def _path(knob: str, table: Mapping[str, Any], where: str) -> list[str]:
    """Return the keys that lead to a knob; parts of a sum may be files of code, whose names have dots."""
    group, _, rest = knob.partition(".")
    group, rest = (
        (group, rest) if group == "loss_parameters" else ("parameters", knob.removeprefix("parameters."))
    )
    owner = str(table.get("loss" if group == "loss_parameters" else "name", ""))
    part, _, key = rest.rpartition(".")
    if part and not is_sum(owner):
        raise SpecError(
            f"{where}.choose: knobs must be parameters of the method, or of its loss as 'loss_parameters.knob', or "
            f"of a part of a sum as 'part.knob', got {knob!r}."
        )
    return [group, *([part] if part else []), key]


def pick_setting(
    parts: Sequence[Predictions], *, by: str, rule: str, n_bins: int = 15, closed: str = "right"
) -> int:
    """Return the place of the setting to use, judged by its predictions on ``tune``.

    Args:
        parts: Predictions on the same rows at each setting, the simplest first; for ``"nll_scaled"`` already
            :func:`scaled`.
        by: What judges.
        rule: How far from the best a simpler setting may be.
        n_bins: Bins, if the ECE judges.
        closed: Which side of a bin belongs to it.

    Example:
        >>> nearly = Predictions(probs=[[0.89, 0.11]] * 10, labels=[0] * 9 + [1])
        >>> best = nearly.with_scores(probs=[[0.9, 0.1]] * 10)
        >>> pick_setting([nearly, best], by="nll", rule="one_standard_error")
        0
        >>> pick_setting([nearly, best], by="nll", rule="best")
        1
    """
    metric = JUDGES[by]
    best = int(np.argmin([badness(part, by=by, n_bins=n_bins, closed=closed) for part in parts]))
    if rule == "best":
        return best
    width = 2 * float(ndtri((1 + _LEVEL) / 2))
    for place, part in enumerate(parts[:best]):
        judged = compare(parts[best], part, metrics=[metric], n_bins=n_bins, closed=closed, level=_LEVEL)
        worse = judged.of(metric)
        if worse.difference <= (worse.high - worse.low) / width:
            return place
    return best


def badness(tune: Predictions, *, by: str, n_bins: int = 15, closed: str = "right") -> float:
    """Return what a setting is judged by, the lower the better; for ``"nll_scaled"`` of what is :func:`scaled`.

    Example:
        >>> badness(Predictions(probs=[[0.5, 0.5]], labels=[0]), by="nll")
        0.6931...
    """
    if JUDGES[by] == "ece":
        return expected_calibration_error(tune, n_bins=n_bins, closed=closed)
    return negative_log_likelihood(tune)


def scaled(tune: Predictions) -> tuple[Predictions, Calibrator]:
    """Return half of ``tune``, always the same, after the temperature that the other half asks for, and that map.

    Example:
        >>> rows = Predictions(logits=[[3.0, 0.0]] * 8, labels=[0, 0, 0, 1] * 2, split="tune")
        >>> half, fitted = scaled(rows)
        >>> len(half), fitted.kind
        (4, 'temperature')
    """
    order = numpy_generator(0, "halves of tune").permutation(len(tune))
    half = len(tune) // 2
    fitted = TemperatureScaling().fit(tune.take(np.sort(order[:half])))
    return fitted(tune.take(np.sort(order[half:]))), fitted
