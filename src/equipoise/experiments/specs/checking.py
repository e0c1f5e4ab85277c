"""Parts of a spec, parsed and checked against the catalogue before anything is loaded."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from equipoise.catalogue import (
    CATALOGUE,
    Entry,
    SumFactory,
    add_plugins,
    check_match,
    failed_plugins,
    is_code,
)
from equipoise.core.errors import SpecError, located
from equipoise.core.names import check_choice, look_up
from equipoise.data import COMMON_OPTIONS, VALIDATIONS
from equipoise.experiments.code.adapters import check_keywords
from equipoise.experiments.code.component import plain
from equipoise.experiments.specs.methods import find_entry, find_loss_entry, split_method
from equipoise.experiments.specs.parsing import record_from_table
from equipoise.experiments.specs.run import DataSpec, MethodSpec, ModelSpec, RecipeSpec, Spec
from equipoise.training import Optimizer

__all__ = [
    "check_method",
    "check_pair",
    "read_data",
    "read_method",
    "read_model",
    "read_recipe",
    "recipe_optimizer",
]

_WORDS = {
    "schedule": ("constant", "multistep", "cosine"),
    "reduction": ("mean", "sum"),
    "average": ("", "ema", "swa"),
    "keep": ("last", "best"),
    "select": ("tune_nll", "tune_nll_scaled", "tune_accuracy", "tune_ece"),
}
_AT_LEAST_ONE = ("epochs", "batch_size", "accumulate", "members")
_AT_LEAST_ZERO = (
    "weight_decay",
    "momentum",
    "decay",
    "warm_up",
    "clip_norm",
    "swa_lr",
    "sam",
    "crop_padding",
    "cutout",
    "mixup",
    "cutmix",
    "regmixup",
    "area",
    "jitter",
    "erase",
    "size",
    "meta",
    "patience",
)
#: Parameters that the experiment fills in itself.
_OURS = frozenset(
    {"parts", "self", "n_classes", "in_channels", "n_inputs", "n_embedding", "root", "seed", "download"}
)


def read_data(value: Any, *, where: str) -> DataSpec:
    """Return the data that a name or table describes, checked.

    Raises:
        SpecError: With file, key and nearest valid name.

    Example:
        >>> read_data("digits", where="doc").name
        'digits'
    """
    add_plugins()
    data = record_from_table(DataSpec, value, where=where)
    entry = find_entry(data.name, "datasets", what="dataset", where=f"{where}.name")
    if entry is not None:
        with located(f"{where}.options"):
            check_keywords(entry.factory, data.options, name=entry.key, ours=_OURS, also=COMMON_OPTIONS)
            validation = data.options.get("validation", VALIDATIONS[0])
            check_choice(validation, VALIDATIONS, where="data", name="validation")
    return data


def read_model(value: Any, *, where: str) -> ModelSpec:
    """Return the network that a name or table describes, checked.

    Raises:
        SpecError: With file, key and nearest valid name.

    Example:
        >>> read_model({"name": "mlp", "options": {"hidden": [32]}}, where="doc").label
        'mlp(hidden=[32])'
    """
    add_plugins()
    model = record_from_table(ModelSpec, value, where=where)
    _check_model(model, where=where)
    return model


def _check_model(model: ModelSpec, *, where: str) -> None:
    entry = find_entry(model.name, "models", what="model", where=f"{where}.name")
    if entry is not None:
        with located(f"{where}.options"):
            check_keywords(entry.factory, model.options, name=entry.key, ours=_OURS)


def read_method(value: Any, *, where: str) -> MethodSpec:
    """Return the method that a name or table describes, checked.

    Raises:
        SpecError: With file, key and nearest valid name.

    Example:
        >>> read_method({"name": "focal", "options": {"gamma": 2.0}}, where="doc").label
        'focal(gamma=2.0)'
    """
    add_plugins()
    if (value.get("name") if isinstance(value, Mapping) else value) == "auto":
        raise SpecError(
            f"{where}: 'auto' is not one method but a search, and cannot be compared. Use `equipoise auto FILE`."
        )
    return check_method(record_from_table(MethodSpec, value, where=where), where=where)


def check_method(method: MethodSpec, *, where: str) -> MethodSpec:
    """Return a method whose names and options are known; the keys of its recipe have the types of a recipe.

    Raises:
        SpecError: With file, key and nearest valid name.
    """
    with located(f"{where}.name"):
        objective, loss = split_method(method)
    if not objective.is_code:
        _check_options(CATALOGUE["objectives"][objective.name], objective.options, where=f"{where}.options")
    if loss is not None:
        key = "options" if method.loss is None else "loss.options"
        _check_options(find_loss_entry(loss.name), loss.options, where=f"{where}.{key}")
    if method.auxiliary is not None:
        _check_model(method.auxiliary, where=f"{where}.auxiliary")
    if method.recipe:
        recipe = record_from_table(RecipeSpec, method.recipe, where=f"{where}.recipe")
        typed = {key: getattr(recipe, key) for key in method.recipe}
        method = replace(method, recipe=typed)
    return method


def _check_options(entry: Entry, options: Mapping[str, Any], *, where: str) -> None:
    """Raise if a factory has no such option; code is checked when it is loaded."""
    if is_code(entry.key) and not entry.sum:
        return
    with located(where):
        if isinstance(entry.made_by, SumFactory):
            entry.made_by.check(options)
        else:
            check_keywords(entry.factory, options, name=entry.key, ours=_OURS)


def read_recipe(value: Any, *, where: str) -> RecipeSpec:
    """Return the recipe that a name or table describes, checked; a named recipe is filled in.

    Raises:
        SpecError: With file, key and nearest valid name.

    Example:
        >>> read_recipe({"name": "quick", "epochs": 3}, where="doc").epochs
        3
    """
    add_plugins()
    table = {"name": value} if isinstance(value, str) else value
    if isinstance(table, Mapping) and table.get("name"):
        with located(f"{where}.name"):
            entry = look_up(str(table["name"]), CATALOGUE["recipes"], what="recipe", renamed=failed_plugins())
        table = {**plain(entry.make()), "name": entry.key, **table}
    recipe = record_from_table(RecipeSpec, table, where=where)
    _check_recipe(recipe, where=where)
    return recipe


def check_pair(spec: Spec, *, where: str) -> None:
    """Raise unless the parts of a spec fit each other.

    Raises:
        SpecError: If a network does not take the data, or the method's recipe is out of range.
    """
    if not is_code(spec.data.name):
        kinds = CATALOGUE["datasets"][spec.data.name].kinds
        for key, model in (("model", spec.model), ("method.auxiliary", spec.method.auxiliary)):
            if model is not None and not model.is_code:
                with located(f"{where}.{key}.name"):
                    check_match(model.name, spec.data.name, kinds)
    if spec.method.recipe:
        _check_recipe(spec.training, where=f"{where}.method.recipe")


def _check_recipe(recipe: RecipeSpec, *, where: str) -> None:
    for key, words in _WORDS.items():
        with located(f"{where}.{key}"):
            check_choice(getattr(recipe, key), words, where="recipe", name=key)
    for key in _AT_LEAST_ONE:
        if getattr(recipe, key) < 1:
            raise SpecError(f"{where}.{key}: must be at least 1, got {getattr(recipe, key)}.")
    for key in _AT_LEAST_ZERO:
        if not getattr(recipe, key) >= 0:
            raise SpecError(f"{where}.{key}: must be at least 0, got {getattr(recipe, key)}.")
    for key in ("average_decay", "average_start"):
        if not 0 <= getattr(recipe, key) < 1:
            raise SpecError(f"{where}.{key}: must lie in [0, 1), got {getattr(recipe, key)}.")
    if recipe.calibrate_members is not None:
        with located(f"{where}.calibrate_members"):
            words = ("before", "spread")
            check_choice(recipe.calibrate_members, words, where="recipe", name="calibrate_members")
    if recipe.calibrate_members and (recipe.members == 1 or recipe.average):
        raise SpecError(
            f"{where}.calibrate_members: needs `members` above 1 and no `average`, got {recipe.members} and "
            f"{recipe.average!r}."
        )
    mixing = [key for key in ("mixup", "cutmix", "regmixup") if getattr(recipe, key)]
    if len(mixing) > 1:
        raise SpecError(f"{where}.{mixing[1]}: cannot be combined with {mixing[0]!r}. Set one of them to 0.")
    if not recipe.meta < 1:
        raise SpecError(f"{where}.meta: must be below 1, a share of tune, got {recipe.meta}.")
    if not recipe.lr > 0:
        raise SpecError(f"{where}.lr: must be above 0, got {recipe.lr}.")
    if recipe.sam and recipe.accumulate > 1:
        raise SpecError(f"{where}.sam: cannot be combined with `accumulate`. Use larger batches.")
    with located(f"{where}.optimizer"):
        recipe_optimizer(recipe)
    if recipe.schedule == "multistep" and not recipe.milestones:
        raise SpecError(f"{where}.milestones: a multistep schedule needs some, for example [150, 250].")


def recipe_optimizer(recipe: RecipeSpec) -> Optimizer:
    """Return the optimizer of a recipe.

    Raises:
        ValueError: If torch has no such optimizer, or the optimizer has no such option.

    Example:
        >>> recipe_optimizer(RecipeSpec(optimizer="RAdam", weight_decay=0.0))
        Optimizer(name='RAdam', lr=0.1, options={})
    """
    options = {"weight_decay": recipe.weight_decay} if recipe.weight_decay else {}
    if recipe.optimizer == "SGD":
        options |= {"momentum": recipe.momentum, "nesterov": recipe.nesterov}
    return Optimizer(recipe.optimizer, lr=recipe.lr, options={**options, **recipe.optimizer_options})
