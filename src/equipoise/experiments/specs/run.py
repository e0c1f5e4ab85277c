"""Spec: everything that decides one training run, and its identity."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, final

from equipoise.catalogue import is_code
from equipoise.core.atomic_files import write_text
from equipoise.core.errors import SpecError
from equipoise.core.read_only import ReadOnly
from equipoise.experiments.code.component import Component, format_label, freeze, plain
from equipoise.experiments.code.source import split_reference
from equipoise.experiments.specs.execution import Execution
from equipoise.experiments.specs.identity import identity_of
from equipoise.experiments.specs.parsing import check_keys, parse_value, record_from_table, set_key
from equipoise.experiments.specs.toml import format_toml, parse_override, read_toml

_NAME = re.compile(r"[^./\\\x00-\x1f][^/\\\x00-\x1f]*")
_LONGEST = 100
_KEYS = ("data", "model", "method", "recipe", "seed", "code", "name", "execution")

__all__ = [
    "DataSpec",
    "MethodSpec",
    "ModelSpec",
    "RecipeSpec",
    "Spec",
    "check_name",
    "read_spec",
    "read_stored_spec",
    "write_spec",
]


@final
@dataclass(frozen=True, kw_only=True)
class DataSpec:
    """Which data.

    Attributes:
        name: A dataset of the catalogue, or code: ``"file.py:name"`` or ``"package.module:name"``.
        seed: Random seed of its splits; runs that are compared share it.
        options: Options of its reader, for example ``{"path": "mine.npz"}``.
        digest: Digest of the content of its files, filled in when they are found; changed data are other data.

    Example:
        >>> DataSpec(name="digits").seed
        0
    """

    name: str
    seed: int = 0
    options: Mapping[str, Any] = field(default_factory=ReadOnly)
    digest: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "options", freeze(self.options))

    @property
    def fit_split(self) -> str:
        """The split that calibrators are fitted on: ``tune`` for the whole validation set, else ``calib``."""
        return "tune" if self.options.get("validation") == "whole" else "calib"

    @property
    def label(self) -> str:
        """A short name that tells settings apart."""
        return format_label(self.name, {**self.options, **({"split seed": self.seed} if self.seed else {})})


@final
@dataclass(frozen=True, kw_only=True)
class ModelSpec:
    """Which network.

    Attributes:
        name: A network of the catalogue, or code.
        options: Options of its factory beyond the number of classes and inputs, which come from the data.
        weights: A checkpoint that it starts from: a file in the data folder, or an absolute path.
        weights_into: The part of the network that the checkpoint fills, such as ``"body.encoder"``; by default all.
        digest: Digest of the checkpoint, filled in when it is found; another checkpoint is another run.

    Example:
        >>> ModelSpec(name="mlp", options={"hidden": (32,)}).label
        'mlp(hidden=[32])'
    """

    name: str
    options: Mapping[str, Any] = field(default_factory=ReadOnly)
    weights: str | None = None
    weights_into: str | None = None
    digest: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "options", freeze(self.options))

    @property
    def is_code(self) -> bool:
        """Whether it is the user's own code and not an entry of the catalogue."""
        return is_code(self.name)

    @property
    def label(self) -> str:
        """A short name that tells settings apart."""
        return format_label(
            self.name, {**self.options, **({"weights": self.weights} if self.weights else {})}
        )


@final
@dataclass(frozen=True, kw_only=True)
class MethodSpec:
    """Which method: a loss, a sum of losses, or an objective that owns its step.

    Attributes:
        name: A loss or objective of the catalogue, code, or a sum: ``"focal+0.5*mdca"``.
        options: Options that differ from the paper's main setting; for a sum, a table for each term.
        loss: The loss inside an objective that takes one: a name as above, with options.
        auxiliary: The auxiliary network of an objective that has one; the model itself by default.
        recipe: Keys that differ from the recipe of the methods it is compared with.
        title: What tables call it; not part of a run's identity.

    Example:
        >>> MethodSpec(name="focal", options={"gamma": 2.0}).label
        'focal(gamma=2.0)'
    """

    name: str
    options: Mapping[str, Any] = field(default_factory=ReadOnly)
    loss: Component | None = None
    auxiliary: ModelSpec | None = None
    recipe: Mapping[str, Any] = field(default_factory=ReadOnly)
    title: str | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "options", freeze(self.options))
        object.__setattr__(self, "recipe", freeze(self.recipe, "recipe"))

    @property
    def label(self) -> str:
        """A short name for tables."""
        if self.title:
            return self.title
        parts = [f"{key}={plain(value)}" for key, value in self.options.items()]
        if self.loss:
            parts += [self.loss.name, *(f"{key}={plain(value)}" for key, value in self.loss.options.items())]
        if self.auxiliary:
            parts.append(f"auxiliary={self.auxiliary.label}")
        parts += [f"{key}={plain(value)}" for key, value in self.recipe.items()]
        return f"{self.name}({', '.join(parts)})" if parts else self.name


@final
@dataclass(frozen=True, kw_only=True)
class RecipeSpec:
    """How a network is trained.

    Attributes:
        name: A recipe of the catalogue that the other keys change; not part of a run's identity.
        epochs: Times through the data.
        batch_size: Samples per step.
        optimizer: A class of ``torch.optim``: ``"SGD"``, ``"AdamW"``, ...
        lr: Initial learning rate.
        weight_decay: Weight decay.
        momentum: Momentum; SGD only.
        nesterov: Nesterov momentum; SGD only.
        optimizer_options: Other options of the optimizer, for example ``{"betas": [0.9, 0.95]}``.
        schedule: ``"constant"``, ``"multistep"`` or ``"cosine"``.
        milestones: Epochs at whose start a multi-step learning rate falls.
        decay: What it is multiplied with.
        warm_up: Epochs of a straight rise before the schedule.
        clip_norm: Largest gradient norm; 0 does not clip.
        reduction: ``"mean"``, or ``"sum"`` as in the focal repository and its kin.
        accumulate: Batches per step.
        sam: Distance of sharpness-aware minimization, 0.05 in the paper; 0 takes plain steps.
        sam_adaptive: Measure that distance relative to each weight: ASAM, with ``sam`` from 0.5 to 2.
        members: Number of networks that are trained alike and averaged, whatever the method; 1 trains one.
        calibrate_members: ``"before"`` gives each member a temperature before averaging, ``"spread"`` fits one
            temperature and a factor of the members' spread, both on ``tune``; None calibrates only the average.
        average: ``"ema"`` or ``"swa"`` evaluates and ships an average of the weights; empty does not average.
        average_decay: Decay of ``"ema"``.
        average_start: Share of the epochs after which ``"swa"`` averages, at a constant learning rate.
        swa_lr: That learning rate; 0 takes half the initial one.
        crop_padding: Pixels of random shifting.
        flip: Random mirroring.
        cutout: Side of a square set to zero.
        mixup: Parameter of the beta distribution of mixup; 0 does not mix.
        cutmix: The same for CutMix; 1 is usual.
        regmixup: The same for RegMixup; 10 to 20 are usual.
        area: Smallest share of a streamed image that a random crop shows; 0 is none.
        jitter: How far from one brightness, contrast and saturation are multiplied; 0 is none.
        erase: Probability that a rectangle of an image is set to the mean; 0 is none.
        size: Side of images that are read from files; 0 leaves it to the dataset.
        meta: Share of ``tune`` that bilevel objectives learn from and nobody judges by; 0 lets both use all of it.
        keep: ``"last"`` epoch's network, or the ``"best"`` by ``select``.
        select: ``"tune_nll"``, ``"tune_nll_scaled"``, ``"tune_accuracy"`` or ``"tune_ece"``.
        patience: Epochs without a new best after which training stops; 0 never stops.
        precision: In the words of Lightning Fabric.
        sync_batchnorm: With several processes, take the statistics of batch norms over all of them; False lets each
            process use its own part of a batch, which is another experiment.

    Example:
        >>> RecipeSpec(epochs=3).batch_size
        128
    """

    name: str = field(default="", compare=False)
    epochs: int = 10
    batch_size: int = 128
    optimizer: str = "SGD"
    lr: float = 0.1
    weight_decay: float = 5e-4
    momentum: float = 0.9
    nesterov: bool = False
    optimizer_options: Mapping[str, Any] = field(default_factory=ReadOnly)
    schedule: str = "constant"
    milestones: tuple[int, ...] = ()
    decay: float = 0.1
    warm_up: float = 0.0
    clip_norm: float = 0.0
    reduction: str = "mean"
    accumulate: int = 1
    sam: float = 0.0
    sam_adaptive: bool = False
    members: int = 1
    calibrate_members: str | None = None
    average: str = ""
    average_decay: float = 0.999
    average_start: float = 0.75
    swa_lr: float = 0.0
    crop_padding: int = 0
    flip: bool = False
    cutout: int = 0
    mixup: float = 0.0
    cutmix: float = 0.0
    regmixup: float = 0.0
    area: float = 0.0
    jitter: float = 0.0
    erase: float = 0.0
    size: int = 0
    meta: float = 0.0
    keep: str = "last"
    select: str = "tune_nll"
    patience: int = 0
    precision: str = "32-true"
    sync_batchnorm: bool = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "optimizer_options", freeze(self.optimizer_options))


@final
@dataclass(frozen=True, kw_only=True)
class Spec:
    """Everything that decides one run.

    Attributes:
        data: Which data.
        model: Which network; its number of classes and inputs come from the data.
        method: Which method.
        recipe: How it is trained.
        seed: Random seed of initial weights, order, augmentation and everything else.
        code: Digest of each file or module of code that is named, filled in when it is found.
        base_dir: The folder that files of code are relative to; not part of a run's identity.
        name: A short name that commands show; not part of a run's identity.
        execution: Devices, processes and loaders; not part of a run's identity.

    Example:
        >>> spec = Spec.from_table({"data": "digits", "model": "mlp", "method": "focal", "recipe": "quick"})
        >>> spec.method.name, len(spec.identity)
        ('focal', 16)
        >>> spec.identity == Spec.from_table(spec.to_table()).identity
        True
    """

    data: DataSpec
    model: ModelSpec
    method: MethodSpec = field(default_factory=lambda: MethodSpec(name="ce"))
    recipe: RecipeSpec = field(default_factory=RecipeSpec)
    seed: int = 0
    code: Mapping[str, str] = field(default_factory=ReadOnly)
    base_dir: str | None = field(default=None, compare=False)
    name: str | None = field(default=None, compare=False)
    execution: Execution = field(default_factory=Execution, compare=False)

    @classmethod
    def from_table(
        cls, table: Mapping[str, Any], *, where: str = "spec", base_dir: str | None = None
    ) -> Spec:
        """Return a checked spec; a named recipe is filled in. Code is named, not yet loaded.

        Args:
            table: Plain values.
            where: File, for the message.
            base_dir: The folder that files of code are relative to; by default the current one.

        Raises:
            SpecError: With file, key and nearest valid name.
        """
        from equipoise.experiments.specs.checking import (
            check_pair,
            read_data,
            read_method,
            read_model,
            read_recipe,
        )

        check_keys(table, _KEYS, where=where)
        for key in ("data", "model"):
            if key not in table:
                raise SpecError(f"{where}: the key {key!r} is missing.")
        if "name" in table:
            check_name(table["name"], where=where)
        spec = cls(
            data=read_data(table["data"], where=f"{where}.data"),
            model=read_model(table["model"], where=f"{where}.model"),
            method=read_method(table.get("method", "ce"), where=f"{where}.method"),
            recipe=read_recipe(table.get("recipe", {}), where=f"{where}.recipe"),
            execution=Execution.from_table(table.get("execution", {}), where=f"{where}.execution"),
            seed=parse_value(int, table.get("seed", 0), where=f"{where}.seed"),
            code=parse_value(Mapping[str, str], table.get("code", {}), where=f"{where}.code"),
            name=table.get("name"),
            base_dir=base_dir,
        )
        check_pair(spec, where=where)
        return spec

    def to_table(self) -> dict[str, Any]:
        """Return plain values, ready for TOML or JSON."""
        table: dict[str, Any] = plain(self)
        table["recipe"].pop("name", None)
        for key in ("base_dir", "name", "execution"):
            table.pop(key, None)
        return table

    @cached_property
    def training(self) -> RecipeSpec:
        """The recipe with the keys that the method changes."""
        return replace(self.recipe, **self.method.recipe)

    @cached_property
    def identity(self) -> str:
        """Sixteen letters that are the same for the same content, and name the run's folder."""
        table = self.to_table()
        table["method"].pop("title", None)
        for model in filter(None, (table["model"], table["method"].get("auxiliary"))):
            if "digest" in model:
                del model["weights"]  # the content of the file counts, not its path
        return identity_of(table)

    @property
    def label(self) -> str:
        """A few words for people."""
        return f"{self.method.label} · {self.model.label} · {self.data.label} · seed {self.seed}"

    def component(self, name: str, options: Mapping[str, Any] = ReadOnly()) -> Component:
        """Return code of the spec as a component, with its folder and digest.

        Raises:
            SpecError: If the spec has digests of its code, but not of this one.
        """
        source, _ = split_reference(name)
        if self.code and source not in self.code:
            raise SpecError(
                f"{name}: the spec has digests of its code, but none of {source}. Give the command again."
            )
        return Component(name=name, options=options, base_dir=self.base_dir, digest=self.code.get(source))


def read_spec(path: str | os.PathLike[str], *, overrides: Iterable[str] = ()) -> Spec:
    """Read a spec from a TOML file, with ``key=value`` overrides.

    Example:
        >>> import tempfile
        >>> path = os.path.join(tempfile.mkdtemp(), "run.toml")
        >>> write_spec(Spec.from_table({"data": "digits", "model": "mlp"}), path)
        >>> read_spec(path, overrides=["recipe.epochs=5"]).recipe.epochs
        5
    """
    table = read_toml(path)
    for text in overrides:
        set_key(table, *parse_override(text))
    several = [
        key for key in ("data", "model", "method", "recipe", "seed") if isinstance(table.get(key), list)
    ]
    if isinstance(table.get("method"), Mapping) and "choose" in table["method"]:
        several.append("method")
    several += [key for key in ("shift",) if key in table]
    if several:
        raise SpecError(
            f"{path}: {several[0]!r} names several, so this is a comparison. Use `equipoise compare {path}`."
        )
    return Spec.from_table(table, where=str(path), base_dir=str(Path(path).resolve().parent))


def read_stored_spec(path: str | os.PathLike[str]) -> Spec:
    """Read the spec of a run, which was checked when the run was made: only its names are looked up again.

    Example:
        >>> import tempfile
        >>> path = os.path.join(tempfile.mkdtemp(), "spec.toml")
        >>> write_spec(Spec.from_table({"data": "digits", "model": "mlp"}), path)
        >>> read_stored_spec(path).recipe.epochs
        10
    """
    from equipoise.experiments.specs.methods import check_names

    spec: Spec = record_from_table(Spec, read_toml(path), where=str(path))
    check_names(spec, where=str(path))
    return spec


def check_name(name: Any, *, where: str) -> str:
    """Return a name that can be part of the name of a file.

    Raises:
        SpecError: If it is not one, or would leave the folder.

    Example:
        >>> check_name("mine", where="doc")
        'mine'
    """
    if not isinstance(name, str) or not _NAME.fullmatch(name) or len(name) > _LONGEST:
        raise SpecError(
            f"{where}.name: must be a name for files, of at most {_LONGEST} letters, without slashes and not beginning "
            f"with a dot, got {name!r}. `--out` says where files go."
        )
    return name


def write_spec(spec: Spec, path: str | os.PathLike[str]) -> None:
    """Write a spec as TOML, whole or not at all.

    Example:
        >>> import tempfile
        >>> path = os.path.join(tempfile.mkdtemp(), "run.toml")
        >>> write_spec(Spec.from_table({"data": "digits", "model": "mlp", "seed": 3}), path)
        >>> read_spec(path).seed
        3
    """
    write_text(path, format_toml(spec.to_table()))
