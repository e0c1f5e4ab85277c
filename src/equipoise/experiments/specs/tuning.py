"""Methods whose hyperparameters are chosen on ``tune``: how a spec asks for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, final

from equipoise.core.choices import RULES
from equipoise.core.errors import SpecError, located
from equipoise.core.names import check_choice
from equipoise.core.read_only import ReadOnly
from equipoise.evaluate.selection import CRITERIA
from equipoise.experiments.code.component import is_sum
from equipoise.experiments.specs.checking import check_method, read_method
from equipoise.experiments.specs.run import MethodSpec

__all__ = ["SAMPLERS", "TunedMethod", "is_tuned", "is_whole", "parse_tuned_method"]

#: How settings are proposed: all of a grid, or one after the other by Optuna.
SAMPLERS = ("grid", "optuna")
_KEYS = ("choose", "by", "rule", "search", "trials")


@final
@dataclass(frozen=True, kw_only=True)
class TunedMethod:
    """A method of a comparison whose setting is chosen on ``tune``, for each seed.

    Attributes:
        label: What tables call it.
        method: The method without the hyperparameters that are chosen.
        space: For each hyperparameter a list, the simplest value first; for Optuna also a table with ``low``, ``high``
            and perhaps ``log`` or ``step``.
        by: ``"nll"``, ``"nll_scaled"`` (after temperature scaling fitted on half of ``tune``) or ``"ece"``.
        rule: ``"one_standard_error"`` takes the first setting that is worse than the best by no more than one
            standard error of their difference; ``"best"`` takes the best.
        sampler: ``"grid"`` or ``"optuna"``.
        trials: Number of settings that Optuna tries for each seed.

    Example:
        >>> tuned = parse_tuned_method({"name": "focal", "choose": {"gamma": [1.0, 3.0]}}, where="doc")
        >>> tuned.label, tuned.method_at({"gamma": 3.0}).label
        ('focal(gamma by nll)', 'focal(gamma=3.0)')
    """

    label: str
    method: MethodSpec
    space: Mapping[str, Any]
    by: str = "nll"
    rule: str = "one_standard_error"
    sampler: str = "grid"
    trials: int = 20

    def method_at(self, setting: Mapping[str, Any]) -> MethodSpec:
        """Return the method at a setting, checked.

        Raises:
            SpecError: If there is no such hyperparameter, or it is set already.
        """
        method = self.method
        for key, value in setting.items():
            method = _set_option(method, key, value, where=self.label)
        return check_method(method, where=self.label)


def is_tuned(method: Any) -> bool:
    """Whether a method of a spec leaves hyperparameters to choose.

    Example:
        >>> is_tuned("ce"), is_tuned({"name": "focal", "choose": {"gamma": [1.0]}})
        (False, True)
    """
    return isinstance(method, Mapping) and any(key in method for key in _KEYS)


def parse_tuned_method(table: Mapping[str, Any], *, where: str) -> TunedMethod:
    """Return what a method with ``choose`` asks for.

    Args:
        table: A method with ``choose = { gamma = [1.0, 3.0] }``, and perhaps ``by`` and ``rule``; with
            ``search = "optuna"`` and ``trials`` a hyperparameter may be ``{ low, high, log }`` as well. Options of the
            loss inside an objective are written ``"loss.gamma"``, those of a term of a sum ``"focal.gamma"``, and keys
            of the recipe ``"recipe.weight_decay"``.
        where: File and key, for errors.

    Raises:
        SpecError: If there is nothing to choose from, or no such criterion or rule.

    Example:
        >>> parse_tuned_method({"name": "mbls", "choose": {"margin": [6.0, 10.0]}}, where="doc").rule
        'one_standard_error'
    """
    space = table.get("choose")
    if not isinstance(space, Mapping) or not space:
        raise SpecError(
            f"{where}.choose: must be a table of hyperparameters with their values, got {space!r}."
        )
    searches = "search" in table or "trials" in table
    sampler = table.get("search", "optuna") if searches else "grid"
    for key, values in space.items():
        _check_values(values, searches=searches, where=f"{where}.choose.{key}")
    by, rule = table.get("by", "nll"), table.get("rule", "best" if searches else RULES[0])
    with located(where):
        check_choice(by, CRITERIA, where="choose", name="by")
        check_choice(rule, RULES, where="choose", name="rule")
        check_choice(sampler, SAMPLERS[1:] if searches else SAMPLERS, where="choose", name="search")
    trials = table.get("trials", 20)
    if not isinstance(trials, int) or isinstance(trials, bool) or trials < 2:
        raise SpecError(
            f"{where}.trials: must be at least 2, got {trials!r}. It is the number of runs per seed."
        )
    if searches and rule != "best":
        raise SpecError(
            f"{where}.rule: a search has no simplest setting, so it must be 'best', got {rule!r}."
        )
    # The title is that of the tuned method; its candidates differ in their settings.
    fixed = {key: value for key, value in table.items() if key not in (*_KEYS, "title")}
    method = read_method(fixed, where=where)
    tuned = TunedMethod(
        label=table.get("title") or _label(method.label, list(space), by),
        method=method,
        space=ReadOnly(space),
        by=by,
        rule=rule,
        sampler=sampler,
        trials=trials,
    )
    first = {
        key: values["low"] if isinstance(values, Mapping) else values[0] for key, values in space.items()
    }
    for key, value in first.items():
        _set_option(method, key, value, where=where)
    return tuned


def _check_values(values: Any, *, searches: bool, where: str) -> None:
    """Raise unless a hyperparameter has values that differ, or, in a search, a range."""
    if searches and isinstance(values, Mapping):
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
        expected = "a list of values that differ" + (", or a range" if searches else ", the simplest first")
        raise SpecError(f"{where}: must be {expected}, got {values!r}.")


def is_whole(values: Mapping[str, Any]) -> bool:
    """Return whether a range is of whole numbers.

    Example:
        >>> is_whole({"low": 1, "high": 5}), is_whole({"low": 1, "high": 5.0})
        (True, False)
    """
    return all(isinstance(values[key], int) for key in ("low", "high", "step") if key in values)


def _label(base: str, names: Sequence[str], by: str) -> str:
    chosen = f"{', '.join(name.rpartition('.')[2] for name in names)} by {by}"
    return f"{base[:-1]}, {chosen})" if base.endswith(")") else f"{base}({chosen})"


def _set_option(method: MethodSpec, name: str, value: Any, *, where: str) -> MethodSpec:
    """Return a method with one hyperparameter set.

    It is named ``"gamma"``, ``"loss.gamma"``, ``"recipe.lr"``, or ``"focal.gamma"`` in a sum.
    """
    if name.startswith("recipe."):
        key = name.removeprefix("recipe.")
        if key in method.recipe:
            raise SpecError(f"{where}.choose.{name}: is set in `recipe` already. Remove it there.")
        return replace(method, recipe={**method.recipe, key: value})
    inside = name.startswith("loss.") and method.loss is not None
    owner = method.loss if inside and method.loss is not None else method
    # Terms of a sum may be files of code, whose names have dots.
    term, _, key = name.removeprefix("loss." if inside else "options.").rpartition(".")
    if term and not is_sum(owner.name):
        raise SpecError(
            f"{where}.choose: must name options of the method, of its loss as 'loss.name', of a term of a sum as "
            f"'term.name', or keys of the recipe as 'recipe.name', got {name!r}."
        )
    table = owner.options.get(term, {}) if term else owner.options
    if not isinstance(table, Mapping):
        raise SpecError(f"{where}.options.{term}: must be a table, got {table!r}.")
    if key in table:
        raise SpecError(f"{where}.choose.{name}: is set in `options` already. Remove it there.")
    changed = {**table, key: value}
    options = {**owner.options, term: changed} if term else changed
    if inside and method.loss is not None:
        return replace(method, loss=replace(method.loss, options=options))
    return replace(method, options=options)
