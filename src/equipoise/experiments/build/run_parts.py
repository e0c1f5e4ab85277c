"""From a spec to what it names: data, networks, an objective, batches."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, final

import torch
from torch import Tensor, nn

from equipoise.catalogue import CATALOGUE, check_match
from equipoise.core.errors import SpecError
from equipoise.core.seeds import derive_seed
from equipoise.data import Augment, Dataset, batches, meta_part
from equipoise.experiments.code.adapters import Code, UserLoss, call_with, check_keywords
from equipoise.experiments.specs.methods import EntryWithParameters, code_of, split_method
from equipoise.experiments.code.names import is_code
from equipoise.experiments.specs.run import ModelSpec, RecipeSpec, Spec
from equipoise.experiments.build.data import data_of
from equipoise.experiments.specs.checking import recipe_optimizer
from equipoise.experiments.specs.parsing import number_keys
from equipoise.models import Network
from equipoise.objectives import Parts
from equipoise.training import (
    Constant,
    Cosine,
    MultiStep,
    Objective,
    Recipe,
    Schedule,
    Selection,
    Source,
    WarmUp,
)

__all__ = [
    "Built",
    "build",
    "make_loss",
    "make_network",
    "make_recipe",
    "network_options",
    "split_source",
]


@final
@dataclass(frozen=True, kw_only=True)
class Built:
    """Everything a run needs, ready to go.

    Attributes:
        data: The dataset.
        objective: The method, with freshly initialised networks.
        train: Its training batches.
        tune: Held-out batches, or None if the data have none.
        selection: How the best epoch is chosen.
    """

    data: Dataset
    objective: Objective
    train: Source
    tune: Source | None
    selection: Selection


def build(spec: Spec, *, root: str | None = None, download: bool = False, loader_workers: int = 0) -> Built:
    """Return what a spec names.

    Args:
        spec: A checked spec.
        root: The data folder.
        download: Bring the official files if they are not there.
        loader_workers: Processes that read images from disk.

    Returns:
        Data, objective and batches; the same initial weights for the same seed.

    Example:
        >>> spec = Spec.from_table({"data": "digits", "model": "mlp", "method": "focal"})
        >>> type(build(spec).objective).__name__
        'Supervised'
    """
    data = data_of(spec, root=root, download=download)
    data, meta = (
        meta_part(data, share=spec.training.meta, seed=spec.data.seed) if spec.training.meta else (data, None)
    )
    chosen, loss = split_method(spec.method, spec)
    tune = (
        split_source(data, "tune", spec, loader_workers=loader_workers)
        if len(data.splits.get("tune", ()))
        else None
    )
    if tune is None and (spec.training.keep == "best" or spec.training.patience):
        raise SpecError(
            f"recipe: `keep = \"best\"` and `patience` need a 'tune' split to judge by, and {data.name!r} has none. "
            'Use keep = "last" and patience = 0.'
        )
    torch.manual_seed(derive_seed(spec.seed, "initial weights"))
    parts = Parts(
        make_network=partial(make_network, spec.model, data, spec),
        make_auxiliary=None
        if spec.method.auxiliary is None
        else partial(make_network, spec.method.auxiliary, data, spec),
        make_loss=None if loss is None else partial(_make_loss, loss, data),
        recipe=make_recipe(spec.training),
        held_out=tune if meta is None else split_source(meta, "tune", spec, loader_workers=loader_workers),
        n_samples=len(data),
        rows=data.rows("train"),
        n_classes=data.n_classes,
    )
    objective = _make_objective(chosen, loss, parts)
    selection = Selection(metric=spec.training.select, patience=spec.training.patience or None)  # type: ignore[arg-type]
    return Built(
        data=data,
        objective=objective,
        train=split_source(data, "train", spec, loader_workers=loader_workers),
        tune=tune,
        selection=selection,
    )


def _make_objective(chosen: EntryWithParameters, loss: EntryWithParameters | None, parts: Parts) -> Objective:
    factory: Any = chosen.entry.factory
    own_step = _own_objective(loss)
    if loss is not None and own_step is not None:
        chosen, factory, parts = loss, own_step, replace(parts, make_loss=None)
    if not isinstance(factory, Code):
        made: Objective = chosen.make(parts=parts)
        return made
    check_keywords(factory.load(), chosen.parameters, name=factory.name, ours=frozenset({"parts"}))
    own: Any = factory.load()(parts=parts, **number_keys(chosen.parameters))
    if not isinstance(own, Objective):
        raise SpecError(f"{factory.name}: an Objective was wanted, got {type(own).__name__}. Return one.")
    return own


def make_network(model: ModelSpec, data: Dataset, spec: Spec | None = None) -> nn.Module:
    """Return a fresh network for a dataset; its inputs and classes come from the data.

    Args:
        model: Which.
        data: For which data.
        spec: The spec that has it, which knows where its code is.

    Raises:
        SpecError: If the network does not take such data.

    Example:
        >>> spec = Spec.from_table({"data": "digits", "model": "mlp"})
        >>> make_network(spec.model, data_of(spec)).n_classes
        10
    """
    sizes = {"n_classes": data.n_classes, **_input_sizes(data)}
    if is_code(model.name):
        return _own_network(code_of(model.name, spec), sizes, model.options)
    check_match(model.name, data.name, (data.kind,))
    entry = CATALOGUE["models"][model.name]
    options = {key: value for key, value in entry.options.items() if key not in sizes}
    network: Network = entry.factory(**{**options, **network_options(model, data)})
    if data.kind == "text" and data.embedding is not None:
        return Network(_Embedded(data.embedding, network.body), network.head)
    return network


def network_options(model: ModelSpec, data: Dataset) -> dict[str, Any]:
    """Return what a network of the catalogue is made with for a dataset, beyond the catalogue's own settings.

    Example:
        >>> spec = Spec.from_table({"data": "digits", "model": "mlp"})
        >>> network_options(spec.model, data_of(spec))
        {'n_classes': 10, 'n_inputs': 64}
    """
    known = inspect.signature(CATALOGUE["models"][model.name].factory).parameters
    sizes = {"n_classes": data.n_classes, **_input_sizes(data)}
    asked = {key: value for key, value in sizes.items() if key in known}
    return {**asked, **number_keys(model.options)}


def _own_network(code: Code, sizes: dict[str, int], options: Mapping[str, Any]) -> nn.Module:
    factory = code.load()
    check_keywords(factory, options, name=code.name)
    network = call_with(factory, sizes, number_keys(options))
    if not isinstance(network, nn.Module):
        raise SpecError(
            f"{code.name}: a class or function that gives a torch module was wanted, got {type(network).__name__}."
        )
    return network


def _input_sizes(data: Dataset) -> dict[str, int]:
    if data.kind == "text":
        return {} if data.embedding is None else {"n_embedding": int(data.embedding.shape[1])}
    if not isinstance(data.inputs, Tensor):
        return {"in_channels": 3}
    shape = data.inputs.shape[1:]
    return {"in_channels": int(shape[0]), "n_inputs": int(shape.numel())}


@final
class _Embedded(nn.Module):
    """A body for embedded words, given token numbers; the vectors are data and stay as they are."""

    vectors: Tensor

    def __init__(self, vectors: Tensor, body: nn.Module) -> None:
        super().__init__()
        self.register_buffer("vectors", vectors.float(), persistent=False)
        self.body = body

    def forward(self, tokens: Tensor) -> Any:
        return self.body(nn.functional.embedding(tokens, self.vectors))


def make_loss(spec: Spec, data: Dataset) -> nn.Module | None:
    """Return a fresh loss for a dataset; None for an objective that has its own.

    Example:
        >>> spec = Spec.from_table({"data": "digits", "model": "mlp", "method": "focal"})
        >>> make_loss(spec, data_of(spec)).gamma
        3.0
    """
    _, loss = split_method(spec.method, spec)
    if loss is None or _own_objective(loss) is not None:
        return None
    return _make_loss(loss, data)


def _own_objective(loss: EntryWithParameters | None) -> Code | None:
    """Return code that owns its step: it is given `parts`, and is no loss."""
    factory = None if loss is None else loss.entry.factory
    return factory.code if isinstance(factory, UserLoss) and factory.code.is_objective else None


def _make_loss(loss: EntryWithParameters, data: Dataset) -> nn.Module:
    known = inspect.signature(loss.entry.factory).parameters
    extra: dict[str, Any] = {}
    if data.ignore_index is not None and "ignore_index" in known:
        extra["ignore_index"] = data.ignore_index
    if "n_classes" in known:
        extra["n_classes"] = data.n_classes
    if isinstance(loss.entry.factory, UserLoss):
        check_keywords(loss.entry.factory, loss.parameters, name=loss.entry.key)
    made: nn.Module = loss.make(**extra)
    return made


def make_recipe(recipe: RecipeSpec) -> Recipe:
    """Return the recipe of one network.

    Example:
        >>> make_recipe(RecipeSpec(clip_norm=2.0)).clip_norm
        2.0
    """
    schedules: dict[str, Schedule] = {
        "constant": Constant(),
        "multistep": MultiStep(recipe.milestones, recipe.decay),
        "cosine": Cosine(),
    }
    schedule = schedules[recipe.schedule]
    return Recipe(
        optimizer=recipe_optimizer(recipe),
        schedule=WarmUp(recipe.warm_up, then=schedule) if recipe.warm_up else schedule,
        clip_norm=recipe.clip_norm or None,
        reduction=recipe.reduction,  # type: ignore[arg-type]
        accumulate=recipe.accumulate,
    )


def split_source(data: Dataset, split: str, spec: Spec, *, loader_workers: int = 0) -> Source:
    """Return the batches of a split; only ``train`` is shuffled and augmented.

    Example:
        >>> spec = Spec.from_table({"data": "digits", "model": "mlp"})
        >>> source = split_source(data_of(spec), "test", spec)
        >>> first = next(iter(source(epoch=0, visit=None, start=0, rank=0, world_size=1, device="cpu")))
        >>> first.targets.shape
        torch.Size([128])
    """
    recipe = spec.training
    augment = None
    if split == "train":
        augment = Augment(
            area=recipe.area or None,
            crop_padding=recipe.crop_padding,
            flip=recipe.flip,
            cutout=recipe.cutout,
            mixup=recipe.mixup,
            jitter=recipe.jitter,
            erase=recipe.erase,
        )
    return partial(
        batches,
        data,
        split,
        batch_size=recipe.batch_size,
        seed=spec.seed,
        augment=augment,
        drop_last=split == "train" and len(data.rows(split)) >= recipe.batch_size,
        workers=loader_workers,
    )
