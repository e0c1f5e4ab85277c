"""What can be said against a spec before anything is loaded."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from equipoise.catalogue import CATALOGUE, Entry, SumFactory, check_match, failed_plugins, is_code
from equipoise.core.errors import SpecError, located
from equipoise.core.names import check_choice, look_up
from equipoise.data import COMMON_OPTIONS, VALIDATIONS
from equipoise.experiments.code.adapters import Code, UserLoss, check_keywords
from equipoise.experiments.code.names import split_reference
from equipoise.experiments.specs.methods import split_method
from equipoise.experiments.specs.parsing import plain
from equipoise.experiments.specs.run import MethodSpec, ModelSpec, RecipeSpec, Spec
from equipoise.training import Optimizer

__all__ = ["check_parameters", "check_spec", "fill_recipe", "recipe_optimizer"]

_WORDS = {
    "schedule": ("constant", "multistep", "cosine"),
    "reduction": ("mean", "sum"),
    "keep": ("last", "best"),
    "select": ("tune_nll", "tune_nll_scaled", "tune_accuracy", "tune_ece"),
}
_AT_LEAST_ONE = ("epochs", "batch_size", "accumulate")
_AT_LEAST_ZERO = (
    "weight_decay",
    "momentum",
    "decay",
    "warm_up",
    "clip_norm",
    "crop_padding",
    "cutout",
    "mixup",
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


def fill_recipe(recipe: Any, *, where: str) -> dict[str, Any]:
    """Return a recipe's table with the values of the recipe it names.

    Example:
        >>> fill_recipe({"name": "quick", "epochs": 3}, where="doc")["epochs"]
        3
    """
    table = {"name": recipe} if isinstance(recipe, str) else recipe
    if not isinstance(table, Mapping):
        raise SpecError(f"{where}: must be a name or a table, got {recipe!r}.")
    if not table.get("name"):
        return dict(table)
    with located(f"{where}.name"):
        entry = look_up(str(table["name"]), CATALOGUE["recipes"], what="recipe", renamed=failed_plugins())
    return {**plain(entry.make()), "name": entry.key, **table}


def check_spec(spec: Spec, *, where: str) -> None:
    """Raise unless names are known, parameters exist, and the parts fit each other.

    Raises:
        SpecError: With file, key and nearest valid name.
    """
    kinds = _check_data(spec, where=f"{where}.data")
    _check_model(spec.model, where=f"{where}.model")
    helper = spec.method.auxiliary
    if helper is not None:
        _check_model(helper, where=f"{where}.method.auxiliary")
    for key, model in (("model", spec.model), ("method.auxiliary", helper or spec.model)):
        if kinds is not None and not is_code(model.name):
            with located(f"{where}.{key}.name"):
                check_match(model.name, spec.data.name, kinds)
    _check_method(spec.method, where=f"{where}.method")
    _check_recipe(spec.recipe, where=f"{where}.recipe")
    if spec.method.recipe:
        with located(where):
            recipe = spec.training
        _check_recipe(recipe, where=f"{where}.method.recipe")


def _check_data(spec: Spec, *, where: str) -> tuple[str, ...] | None:
    """Return what the data may hold; None if that is known only when code has run."""
    entry = _check_name(spec.data.name, "datasets", what="dataset", where=f"{where}.name")
    if entry is None:
        return None
    check_parameters(entry, spec.data.options, where=f"{where}.options", also=COMMON_OPTIONS)
    with located(f"{where}.options"):
        check_choice(
            spec.data.options.get("validation", VALIDATIONS[0]), VALIDATIONS, where="data", name="validation"
        )
    return entry.kinds


def _check_model(model: ModelSpec, *, where: str) -> None:
    entry = _check_name(model.name, "models", what="model", where=f"{where}.name")
    if entry is not None:
        check_parameters(entry, model.options, where=f"{where}.options")


def _check_name(name: str, room: str, *, what: str, where: str) -> Entry | None:
    """Return the entry of a name; None for code, of which more is known only when it has run."""
    hint = f"`equipoise list {room}` shows all; code of your own is 'file.py:name'."
    with located(where):
        if not is_code(name):
            return look_up(name, CATALOGUE[room], what=what, hint=hint, renamed=failed_plugins())
        split_reference(name)
        return None


def _check_method(method: MethodSpec, *, where: str) -> None:
    with located(f"{where}.name"):
        objective, loss = split_method(method)
    check_parameters(objective.entry, objective.parameters, where=f"{where}.parameters")
    if loss is not None:
        key = "parameters" if method.loss is None else "loss_parameters"
        check_parameters(loss.entry, loss.parameters, where=f"{where}.{key}")


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
    if not recipe.meta < 1:
        raise SpecError(f"{where}.meta: must be below 1, a share of tune, got {recipe.meta}.")
    if not recipe.lr > 0:
        raise SpecError(f"{where}.lr: must be above 0, got {recipe.lr}.")
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


def check_parameters(
    entry: Entry, parameters: Mapping[str, Any], *, where: str, also: Iterable[str] = ()
) -> None:
    """Raise if a factory has no such parameter, and nobody else takes it.

    Raises:
        SpecError: With the nearest parameter it has.
    """
    factory = entry.factory
    if isinstance(factory, (Code, UserLoss)):
        return  # checked when it is loaded
    with located(where):
        if isinstance(factory, SumFactory):
            factory.check(parameters)
        else:
            check_keywords(factory, parameters, name=entry.key, ours=_OURS, also=also)
