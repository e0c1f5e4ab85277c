"""From a spec to what it names: data, networks, an objective, batches."""

from __future__ import annotations

import hashlib
import inspect
import json
import os
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, final

import torch
from torch import Tensor, nn

from equipoise.core.errors import DataError, SpecError
from equipoise.core.seeds import derive_seed
from equipoise.data import Augment, Dataset, batches, load, meta_part
from equipoise.experiments.catalogue import CATALOGUE, check_match
from equipoise.experiments.methods import split_method
from equipoise.experiments.spec import DataSpec, ModelSpec, RecipeSpec, Spec
from equipoise.experiments.spec_parsing import plain
from equipoise.models import Network
from equipoise.objectives import Parts
from equipoise.training import (
    SGD,
    Adam,
    AdamW,
    Constant,
    Cosine,
    MultiStep,
    Objective,
    Optimizer,
    Recipe,
    Schedule,
    Selection,
    Source,
    WarmUp,
)

__all__ = ["Built", "build", "load_data", "make_network", "make_recipe", "pin_data", "split_source"]


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


def build(spec: Spec, *, root: str | None = None, download: bool = False) -> Built:
    """Return what a spec names.

    Args:
        spec: A checked spec.
        root: The data folder.
        download: Bring the official files if they are not there.

    Returns:
        Data, objective and batches; the same initial weights for the same seed.

    Example:
        >>> spec = Spec.from_table({"data": "digits", "model": "mlp", "method": "focal"})
        >>> type(build(spec).objective).__name__
        'Supervised'
    """
    data = load_data(_sized(spec), root=root, download=download)
    data, meta = (
        meta_part(data, share=spec.recipe.meta, seed=spec.data.seed) if spec.recipe.meta else (data, None)
    )
    objective_entry, loss = split_method(spec.method)
    tune = split_source(data, "tune", spec) if len(data.splits.get("tune", ())) else None
    if tune is None and (spec.recipe.keep == "best" or spec.recipe.patience):
        raise SpecError(
            f"recipe: `keep = \"best\"` and `patience` need a 'tune' split to judge by, and {data.name!r} has none. "
            'Use keep = "last" and patience = 0.'
        )
    torch.manual_seed(derive_seed(spec.seed, "initial weights"))
    parts = Parts(
        make_network=partial(make_network, spec.model, data),
        make_auxiliary=None
        if spec.method.auxiliary is None
        else partial(make_network, spec.method.auxiliary, data),
        make_loss=None if loss is None else partial(_make_loss, loss, data),
        recipe=make_recipe(spec.recipe),
        held_out=tune if meta is None else split_source(meta, "tune", spec),
        n_samples=len(data),
        rows=data.rows("train"),
    )
    objective: Objective = objective_entry.make(parts=parts)
    selection = Selection(metric=spec.recipe.select, patience=spec.recipe.patience or None)  # type: ignore[arg-type]
    return Built(
        data=data,
        objective=objective,
        train=split_source(data, "train", spec),
        tune=tune,
        selection=selection,
    )


def pin_data(spec: Spec, *, root: str | None = None, download: bool = False) -> Spec:
    """Return the spec with the digest of its data's files, which is part of the run's identity.

    Args:
        spec: A checked spec.
        root: The data folder.
        download: Bring the official files if they are not there.

    Returns:
        The same spec if its data come without files, or it has their digest already.

    Raises:
        DataError: If the data are not there, or are wrong.

    Example:
        >>> spec = Spec.from_table({"data": "digits", "model": "mlp"})
        >>> pin_data(spec) is spec
        True
    """
    if spec.data.digest:
        return spec
    found = _files_digest(load_data(_sized(spec), root=root, download=download))
    return replace(spec, data=replace(spec.data, digest=found)) if found else spec


def _files_digest(data: Dataset) -> str:
    if not data.provenance:
        return ""
    contents = sorted(file.sha256 for file in data.provenance)
    return hashlib.sha256("\n".join(contents).encode()).hexdigest()


def _sized(spec: Spec) -> DataSpec:
    """Return the data with images of the recipe's size, unless their own options say another."""
    known = inspect.signature(CATALOGUE["datasets"][spec.data.name].factory).parameters
    size = spec.recipe.size
    if not size or "size" not in known or "size" in spec.data.options:
        return spec.data
    # The centre that is cut out keeps its usual share of seven eighths.
    fresh = {"size": size, **({"resize": round(size * 8 / 7)} if "resize" in known else {})}
    return replace(spec.data, options={**fresh, **spec.data.options})


def load_data(data: DataSpec, *, root: str | None = None, download: bool = False) -> Dataset:
    """Return a dataset; runs of one process share it.

    Raises:
        DataError: If its files are not there, are wrong, or are not the ones that the spec was given for.

    Example:
        >>> load_data(DataSpec(name="digits")) is load_data(DataSpec(name="digits"))
        True
    """
    nameless = replace(data, digest="")
    found = _load(json.dumps(plain(nameless), sort_keys=True), root, download, _stamp(data, root))
    if data.digest and data.digest != _files_digest(found):
        raise DataError(
            f"{data.label}: its files are not the ones this run was begun with. Put those back, or give the command "
            "again: changed data are another run."
        )
    return found


def _stamp(data: DataSpec, root: str | None) -> tuple[Any, ...]:
    """Tell when what a dataset is read from was last changed, as far as its folder shows."""
    own, base = data.options.get("path"), root or os.environ.get("EQUIPOISE_DATA")
    if own is None and base is None:
        return ()
    place = Path(str(base if own is None else own)).expanduser()
    stats = [found.stat() for found in (place, *sorted(place.glob("*"))) if found.exists()]
    return tuple((stat.st_ino, stat.st_size, stat.st_mtime_ns) for stat in stats)


@lru_cache(maxsize=2)
def _load(content: str, root: str | None, download: bool, stamp: tuple[Any, ...]) -> Dataset:
    table = json.loads(content)
    options = {**CATALOGUE["datasets"][table["name"]].parameters, **table.get("options", {})}
    return load(table["name"], root=root, seed=table["seed"], download=download, options=options)


def make_network(model: ModelSpec, data: Dataset) -> nn.Module:
    """Return a fresh network for a dataset; its inputs and classes come from the data.

    Raises:
        SpecError: If the network does not take such data.

    Example:
        >>> make_network(ModelSpec(name="mlp"), load_data(DataSpec(name="digits"))).n_classes
        10
    """
    check_match(model.name, data.name, (data.kind,))
    entry = CATALOGUE["models"][model.name]
    sizes = {"n_classes": data.n_classes, **_input_sizes(data)}
    known = inspect.signature(entry.factory).parameters
    options = {
        **entry.parameters,
        **{key: value for key, value in sizes.items() if key in known},
        **model.options,
    }
    network: Network = entry.factory(**options)
    if data.kind == "text" and data.embedding is not None:
        return Network(_Embedded(data.embedding, network.body), network.head)
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


def _make_loss(loss: Any, data: Dataset) -> nn.Module:
    known = inspect.signature(loss.entry.factory).parameters
    extra: dict[str, Any] = {}
    if data.ignore_index is not None and "ignore_index" in known:
        extra["ignore_index"] = data.ignore_index
    if "n_classes" in known:
        extra["n_classes"] = data.n_classes
    made: nn.Module = loss.make(**extra)
    return made


def make_recipe(recipe: RecipeSpec) -> Recipe:
    """Return the recipe of one network.

    Example:
        >>> make_recipe(RecipeSpec(clip_norm=2.0)).clip_norm
        2.0
    """
    optimizers: dict[str, Optimizer] = {
        "sgd": SGD(
            rate=recipe.rate,
            weight_decay=recipe.weight_decay,
            momentum=recipe.momentum,
            nesterov=recipe.nesterov,
        ),
        "adam": Adam(rate=recipe.rate, weight_decay=recipe.weight_decay),
        "adamw": AdamW(rate=recipe.rate, weight_decay=recipe.weight_decay),
    }
    schedules: dict[str, Schedule] = {
        "constant": Constant(),
        "multistep": MultiStep(recipe.milestones, recipe.decay),
        "cosine": Cosine(),
    }
    schedule = schedules[recipe.schedule]
    return Recipe(
        optimizer=optimizers[recipe.optimizer],
        schedule=WarmUp(recipe.warm_up, then=schedule) if recipe.warm_up else schedule,
        clip_norm=recipe.clip_norm or None,
        reduction=recipe.reduction,  # type: ignore[arg-type]
        accumulate=recipe.accumulate,
    )


def split_source(data: Dataset, split: str, spec: Spec) -> Source:
    """Return the batches of a split; only ``train`` is shuffled and augmented.

    Example:
        >>> spec = Spec.from_table({"data": "digits", "model": "mlp"})
        >>> source = split_source(load_data(spec.data), "test", spec)
        >>> first = next(iter(source(epoch=0, visit=None, start=0, rank=0, world_size=1, device="cpu")))
        >>> first.targets.shape
        torch.Size([128])
    """
    recipe = spec.recipe
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
    )
