"""Spec: everything that decides one training run, and its identity."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, final

from equipoise.core.atomic_files import write_text
from equipoise.core.errors import SpecError
from equipoise.core.read_only import ReadOnly
from equipoise.experiments.specs.execution import Execution
from equipoise.experiments.specs.identity import BORN, first_identity, identity_of
from equipoise.experiments.specs.parsing import plain, record_from_table, set_key
from equipoise.experiments.specs.toml import format_toml, parse_override, read_toml

_NAME = re.compile(r"[^./\\\x00-\x1f][^/\\\x00-\x1f]*")
_LONGEST = 100

__all__ = [
    "DataSpec",
    "MethodSpec",
    "ModelSpec",
    "RecipeSpec",
    "Spec",
    "check_name",
    "current_keys",
    "read_spec",
    "read_stored_spec",
    "write_spec",
]


def _label(name: str, settings: Mapping[str, Any]) -> str:
    parts = [f"{key}={plain(value)}" for key, value in settings.items()]
    return f"{name}({', '.join(parts)})" if parts else name


@final
@dataclass(frozen=True, kw_only=True)
class DataSpec:
    """Which data.

    Attributes:
        name: A dataset of the catalogue, or code: ``"file.py:name"`` or ``"package.module:name"``.
        seed: Of its splits; runs that are compared share it.
        options: Parameters of its reader, for example ``{"path": "mine.npz"}``.
        digest: Of the content of its files, filled in when they are found; data that changed are other data.

    Example:
        >>> DataSpec(name="digits").seed
        0
    """

    name: str
    seed: int = 0
    options: Mapping[str, Any] = field(default_factory=ReadOnly)
    digest: str = ""

    @property
    def label(self) -> str:
        """A short name that tells settings apart."""
        return _label(self.name, {**self.options, **({"split seed": self.seed} if self.seed else {})})


@final
@dataclass(frozen=True, kw_only=True)
class ModelSpec:
    """Which network.

    Attributes:
        name: A network of the catalogue, or code.
        options: Parameters of its factory beyond the number of classes and inputs, which the data tell.

    Example:
        >>> ModelSpec(name="mlp", options={"hidden": (32,)}).name
        'mlp'
    """

    name: str
    options: Mapping[str, Any] = field(default_factory=ReadOnly)

    @property
    def label(self) -> str:
        """A short name that tells settings apart."""
        return _label(self.name, self.options)


@final
@dataclass(frozen=True, kw_only=True)
class MethodSpec:
    """Which method: a loss, a ready pair of losses, or an objective that owns its step.

    Attributes:
        name: A loss, pair or objective of the catalogue, code, or a sum: ``"focal+0.5*mdca"``.
        parameters: What differs from the paper's main setting; of a sum, a table for each part.
        loss: The loss inside an objective that takes one: a name as above.
        loss_parameters: What differs from that loss's main setting.
        auxiliary: The helping network of an objective that has one; the model itself by default.
        recipe: What differs from the recipe of the others it is compared with.
        title: What tables call it; it is no part of a run's identity.

    Example:
        >>> MethodSpec(name="focal", parameters={"gamma": 2.0}).label
        'focal(gamma=2.0)'
    """

    name: str
    parameters: Mapping[str, Any] = field(default_factory=ReadOnly)
    loss: str | None = None
    loss_parameters: Mapping[str, Any] = field(default_factory=ReadOnly)
    auxiliary: ModelSpec | None = None
    recipe: Mapping[str, Any] = field(default_factory=ReadOnly)
    title: str | None = None

    @property
    def label(self) -> str:
        """A short name for tables."""
        if self.title:
            return self.title
        parts = [f"{key}={value}" for key, value in self.parameters.items()]
        if self.loss:
            parts.append(self.loss)
        parts += [f"{key}={value}" for key, value in self.loss_parameters.items()]
        if self.auxiliary:
            parts.append(f"auxiliary={self.auxiliary.label}")
        parts += [f"{key}={plain(value)}" for key, value in self.recipe.items()]
        return f"{self.name}({', '.join(parts)})" if parts else self.name


@final
@dataclass(frozen=True, kw_only=True)
class RecipeSpec:
    """How long and how the network is moved.

    Attributes:
        name: A recipe of the catalogue that the other keys change; it is no part of a run's identity.
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
        crop_padding: Pixels of random shifting.
        flip: Random mirroring.
        cutout: Side of a square set to zero.
        mixup: Parameter of mixup; 0 is none.
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

    name: str = ""
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
    crop_padding: int = 0
    flip: bool = False
    cutout: int = 0
    mixup: float = 0.0
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


@final
@dataclass(frozen=True, kw_only=True)
class Spec:
    """Everything that decides one run.

    Attributes:
        data: Which data.
        model: Which network.
        method: Which method; ``objective`` is read as well.
        recipe: How it is trained.
        seed: Of initial weights, order, augmentation and everything else that is random.
        code: Digest of each file or module of code that is named, filled in when it is found.
        home: The folder that files of code are relative to; it is no part of a run's identity.
        name: A short name that commands show; it is no part of a run's identity.
        execution: Devices, processes and loaders; no part of a run's identity.

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
    home: str | None = field(default=None, compare=False)
    name: str | None = field(default=None, compare=False)
    execution: Execution = field(default_factory=Execution, compare=False)

    @classmethod
    def from_table(cls, table: Mapping[str, Any], *, where: str = "spec", home: str | None = None) -> Spec:
        """Return a checked spec; a named recipe is filled in. Code is named, not yet loaded.

        Args:
            table: Plain values.
            where: File, for the message.
            home: The folder that files of code are relative to; by default the current one.

        Raises:
            SpecError: With file, key and nearest valid name.
        """
        from equipoise.catalogue import add_plugins
        from equipoise.experiments.specs.checking import check_spec, fill_recipe

        add_plugins()
        filled = current_keys(table, where=where)
        if "home" in filled:
            raise SpecError(f"{where}: no key 'home'; files of code are relative to the spec.")
        if "recipe" in filled:
            filled["recipe"] = fill_recipe(filled["recipe"], where=f"{where}.recipe")
        execution = Execution.from_table(filled.pop("execution", {}), where=f"{where}.execution")
        if "name" in filled:
            check_name(filled["name"], where=where)
        spec = replace(record_from_table(cls, {**filled, "home": home}, where=where), execution=execution)
        check_spec(spec, where=where)
        return spec

    def to_table(self) -> dict[str, Any]:
        """Return plain values, ready for TOML or JSON."""
        table = plain(self)
        table["recipe"].pop("name", None)
        for key in ("home", "name", "execution"):
            table.pop(key, None)
        if not self.data.digest:
            del table["data"]["digest"]
        result: dict[str, Any] = table
        return result

    @property
    def training(self) -> RecipeSpec:
        """The recipe with what the method changes in it."""
        if not self.method.recipe:
            return self.recipe
        values: RecipeSpec = record_from_table(
            RecipeSpec, {**vars(self.recipe), **self.method.recipe}, where="method.recipe"
        )
        return values

    @property
    def identity(self) -> str:
        """Sixteen letters that are the same for the same content, and name the run's folder."""
        table = self.to_table()
        table["method"].pop("title", None)
        return identity_of(table)

    @property
    def old_identity(self) -> str:
        """The identity that versions gave whose runs were not known by the content of their data."""
        table = self.to_table()
        table["recipe"]["name"] = ""
        return first_identity(table)

    @property
    def label(self) -> str:
        """A few words for people."""
        return f"{self.method.label} · {self.model.label} · {self.data.label} · seed {self.seed}"


def read_spec(path: str | os.PathLike[str], *, overrides: Iterable[str] = ()) -> Spec:
    """Read a spec from a TOML file, with ``key=value`` overrides.

    Example:
        >>> import tempfile
        >>> path = os.path.join(tempfile.mkdtemp(), "run.toml")
        >>> write_spec(Spec.from_table({"data": "digits", "model": "mlp"}), path)
        >>> read_spec(path, overrides=["recipe.epochs=5"]).recipe.epochs
        5
    """
    table = current_keys(read_toml(path), where=str(path))
    for text in overrides:
        set_key(table, *parse_override(text))
    lists = ("data", "model", "method", "recipe", "seed")
    several = [key for key in lists if isinstance(table.get(key), list)]
    if isinstance(table.get("method"), Mapping) and "choose" in table["method"]:
        several.append("method")
    several += [key for key in ("shift",) if key in table]
    if several:
        raise SpecError(
            f"{path}: {several[0]!r} names several, so this is a comparison. Use `equipoise compare {path}`."
        )
    return Spec.from_table(table, where=str(path), home=str(Path(path).resolve().parent))


def read_stored_spec(path: str | os.PathLike[str]) -> Spec:
    """Read the spec of a run; fields it lacks are worth what they were when they were born.

    Example:
        >>> import tempfile
        >>> path = os.path.join(tempfile.mkdtemp(), "spec.toml")
        >>> write_spec(Spec.from_table({"data": "digits", "model": "mlp"}), path)
        >>> read_stored_spec(path).recipe.epochs
        10
    """
    table = read_toml(path)
    recipe = table.get("recipe", {})
    if isinstance(recipe, Mapping):
        table["recipe"] = {**BORN["recipe"], **recipe}
    return Spec.from_table(table, where=str(path))


def check_name(name: Any, *, where: str) -> str:
    """Return a name that can be part of the name of a file.

    Raises:
        SpecError: If it is none, or a way out of the folder.

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


def current_keys(table: Mapping[str, Any], *, where: str) -> dict[str, Any]:
    """Return a table in which the method has its key; specs of old call it ``objective``.

    Example:
        >>> current_keys({"objective": "focal"}, where="doc")
        {'method': 'focal'}
    """
    if "objective" in table and "method" in table:
        raise SpecError(f"{where}: `objective` is the old name of `method`. Give one of them.")
    return {"method" if key == "objective" else key: value for key, value in table.items()}


def write_spec(spec: Spec, path: str | os.PathLike[str]) -> None:
    """Write a spec as TOML, all or nothing.

    Example:
        >>> import tempfile
        >>> path = os.path.join(tempfile.mkdtemp(), "run.toml")
        >>> write_spec(Spec.from_table({"data": "digits", "model": "mlp", "seed": 3}), path)
        >>> read_spec(path).seed
        3
    """
    write_text(path, format_toml(spec.to_table()))
