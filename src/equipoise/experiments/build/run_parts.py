"""From a spec to what it names: data, networks, an objective, batches."""

from __future__ import annotations

import inspect
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, final

import torch
from torch import Tensor, nn

from equipoise.catalogue import CATALOGUE, Entry, check_match
from equipoise.core.errors import DataError, SpecError, located
from equipoise.core.names import look_up
from equipoise.core.seeds import derive_seed
from equipoise.data import Augment, Dataset, batches, meta_part
from equipoise.data.folders import open_root
from equipoise.experiments.build.data import data_of
from equipoise.experiments.code.adapters import call_with, check_keywords, is_objective, loss_factory
from equipoise.experiments.code.component import Component, number_keys
from equipoise.experiments.specs.checking import recipe_optimizer
from equipoise.experiments.specs.execution import Execution
from equipoise.experiments.specs.methods import find_loss_entry, own_entry, split_method
from equipoise.experiments.specs.run import ModelSpec, RecipeSpec, Spec
from equipoise.models import Network, load_published
from equipoise.objectives import DeepEnsemble, Parts, WeightAverage
from equipoise.training import (
    Constant,
    Cosine,
    HoldFrom,
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
    "weights_file",
]


@final
@dataclass(frozen=True, kw_only=True)
class Built:
    """Everything a run needs, ready to go.

    Attributes:
        data: The dataset.
        objective: The method, with freshly initialized networks.
        train: Its training batches.
        tune: Held-out batches, or None if the data have none.
        selection: How the best epoch is chosen.
    """

    data: Dataset
    objective: Objective
    train: Source
    tune: Source | None
    selection: Selection


def build(spec: Spec, execution: Execution | None = None) -> Built:
    """Return what a spec names.

    Args:
        spec: A checked spec.
        execution: The data folder, whether to download, and the processes that read images from disk.

    Returns:
        Data, objective and batches; the same initial weights for the same seed.

    Example:
        >>> spec = Spec.from_table({"data": "digits", "model": "mlp", "method": "focal"})
        >>> type(build(spec).objective).__name__
        'Supervised'
    """
    data = data_of(spec, execution)
    execution = execution or Execution()
    root, loader_workers = execution.root, execution.loader_workers or 0
    data, meta = (
        meta_part(data, share=spec.training.meta, seed=spec.data.seed) if spec.training.meta else (data, None)
    )
    objective, loss = split_method(spec.method)
    if loss is not None and _owns_step(loss, spec):
        objective, loss = loss, None
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
    train = split_source(data, "train", spec, loader_workers=loader_workers)
    torch.manual_seed(derive_seed(spec.seed, "initial weights"))
    parts = Parts(
        make_network=partial(make_network, spec.model, data, spec, root=root),
        make_auxiliary=None
        if spec.method.auxiliary is None
        else partial(make_network, spec.method.auxiliary, data, spec, root=root),
        make_loss=None if loss is None else partial(_make_loss, loss, data, spec),
        recipe=make_recipe(spec.training),
        train=train,
        epochs=spec.training.epochs,
        held_out=tune if meta is None else split_source(meta, "tune", spec, loader_workers=loader_workers),
        n_samples=len(data),
        rows=data.rows("train"),
        n_classes=data.n_classes,
    )
    made = _make_objective(objective, parts, spec)
    if spec.training.members > 1:
        others = [_make_objective(objective, parts, spec) for _ in range(spec.training.members - 1)]
        made = DeepEnsemble([made, *others], calibrate=spec.training.calibrate_members or "after")  # type: ignore[arg-type]
    if spec.training.average:
        made = WeightAverage.around(
            made,
            parts,
            kind=spec.training.average,  # type: ignore[arg-type]
            decay=spec.training.average_decay,
            start=spec.training.average_start,
        )
    selection = Selection(metric=spec.training.select, patience=spec.training.patience or None)  # type: ignore[arg-type]
    return Built(
        data=data,
        objective=made,
        train=train,
        tune=tune,
        selection=selection,
    )


def _make_objective(objective: Component, parts: Parts, spec: Spec) -> Objective:
    if not objective.is_code:
        made: Objective = CATALOGUE["objectives"][objective.name].make(parts=parts, **objective.keywords)
        return made
    factory = spec.component(objective.name).load()
    check_keywords(factory, objective.options, name=objective.name, ours=frozenset({"parts"}))
    own: Any = factory(parts=parts, **objective.keywords)
    if not isinstance(own, Objective):
        raise SpecError(f"{objective.name}: expected an Objective, got {type(own).__name__}. Return one.")
    return own


def make_network(
    model: ModelSpec, data: Dataset, spec: Spec | None = None, *, root: str | None = None
) -> nn.Module:
    """Return a fresh network for a dataset; its inputs and classes come from the data.

    Args:
        model: Which network.
        data: For which data.
        spec: The spec that it is part of, with the folder and digest of its code.
        root: The data folder, where the checkpoint that a network starts from may be.

    Raises:
        SpecError: If the network does not take such data.
        DataError: If the checkpoint is missing, or is of another network.

    Example:
        >>> spec = Spec.from_table({"data": "digits", "model": "mlp"})
        >>> make_network(spec.model, data_of(spec)).n_classes
        10
    """
    network = _make_untrained(model, data, spec)
    if model.weights:
        load_published(_part_of(network, model), weights_file(model, root))
    return network


def weights_file(model: ModelSpec, root: str | None = None) -> Path:
    """Return the file of the checkpoint that a network starts from.

    Raises:
        DataError: If there is none.

    Example:
        >>> weights_file(ModelSpec(name="resnet50", weights="nowhere.pth"), root=".")
        Traceback (most recent call last):
        ...
        equipoise.core.errors.DataError: weights: no file nowhere.pth. Put the checkpoint there, or leave `weights` out.
    """
    path = Path(model.weights or "").expanduser()
    if not path.is_absolute():
        path = open_root(root, name="weights") / path
    if not path.is_file():
        raise DataError(f"weights: no file {path}. Put the checkpoint there, or leave `weights` out.")
    return path


def _part_of(network: nn.Module, model: ModelSpec) -> nn.Module:
    if not model.weights_into:
        return network
    parts = dict(network.named_modules())
    with located("weights_into"):
        found: nn.Module = look_up(model.weights_into, parts, what=f"part of {model.name}")
    return found


def _make_untrained(model: ModelSpec, data: Dataset, spec: Spec | None) -> nn.Module:
    sizes = {"n_classes": data.n_classes, **_input_sizes(data)}
    if model.is_code:
        own = Component(name=model.name) if spec is None else spec.component(model.name)
        return _own_network(own, sizes, model)
    check_match(model.name, data.name, (data.kind,))
    entry = CATALOGUE["models"][model.name]
    options = {key: value for key, value in entry.options.items() if key not in sizes}
    network: Network = entry.factory(**{**options, **network_options(model, data)})
    if data.kind == "text" and data.embedding is not None:
        return Network(_Embedded(data.embedding, network.body), network.head)
    return network


def network_options(model: ModelSpec, data: Dataset) -> dict[str, Any]:
    """Return the options of a network of the catalogue for a dataset, beyond the catalogue's own.

    Example:
        >>> spec = Spec.from_table({"data": "digits", "model": "mlp"})
        >>> network_options(spec.model, data_of(spec))
        {'n_classes': 10, 'n_inputs': 64}
    """
    known = inspect.signature(CATALOGUE["models"][model.name].factory).parameters
    sizes = {"n_classes": data.n_classes, **_input_sizes(data)}
    return {**{key: value for key, value in sizes.items() if key in known}, **number_keys(model.options)}


def _own_network(code: Component, sizes: dict[str, int], model: ModelSpec) -> nn.Module:
    factory = code.load()
    check_keywords(factory, model.options, name=model.name)
    network = call_with(factory, sizes, number_keys(model.options))
    if not isinstance(network, nn.Module):
        raise SpecError(
            f"{model.name}: expected a class or function that gives a torch module, got {type(network).__name__}."
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
    _, loss = split_method(spec.method)
    if loss is None or _owns_step(loss, spec):
        return None
    return _make_loss(loss, data, spec)


def _owns_step(loss: Component, spec: Spec) -> bool:
    """Whether code that stands alone makes an objective, which takes `parts`, and not a loss."""
    is_alone = loss.is_code and find_loss_entry(loss.name).sum == ""
    return is_alone and is_objective(spec.component(loss.name).load())


def _make_loss(loss: Component, data: Dataset, spec: Spec) -> nn.Module:
    def load(name: str) -> Entry:
        return replace(own_entry(name), made_by=loss_factory(spec.component(name).load(), name=name))

    entry = find_loss_entry(loss.name, own=load)
    known = inspect.signature(entry.factory).parameters
    extra: dict[str, Any] = {}
    if data.ignore_index is not None and "ignore_index" in known:
        extra["ignore_index"] = data.ignore_index
    if "n_classes" in known:
        extra["n_classes"] = data.n_classes
    if "epochs" in known:
        extra["epochs"] = spec.training.epochs
    if loss.is_code and not entry.sum:
        check_keywords(entry.factory, loss.options, name=loss.name)
    made: nn.Module = entry.make(**{**loss.keywords, **extra})
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
    if recipe.warm_up:
        schedule = WarmUp(recipe.warm_up, then=schedule)
    if recipe.average == "swa":
        level = recipe.swa_lr / recipe.lr if recipe.swa_lr else 0.5
        schedule = HoldFrom(recipe.average_start, first=schedule, level=level)
    return Recipe(
        optimizer=recipe_optimizer(recipe),
        schedule=schedule,
        clip_norm=recipe.clip_norm or None,
        reduction=recipe.reduction,  # type: ignore[arg-type]
        accumulate=recipe.accumulate,
        sam=recipe.sam,
        sam_adaptive=recipe.sam_adaptive,
    )


def split_source(data: Dataset, split: str, spec: Spec, *, loader_workers: int = 0) -> Source:
    """Return the batches of a split; only ``train`` is shuffled and augmented.

    Example:
        >>> spec = Spec.from_table({"data": "digits", "model": "mlp"})
        >>> source = split_source(data_of(spec), "test", spec)
        >>> first = next(iter(source(epoch=0, indices=None, start=0, rank=0, world_size=1, device="cpu")))
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
            cutmix=recipe.cutmix,
            regmixup=recipe.regmixup,
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
