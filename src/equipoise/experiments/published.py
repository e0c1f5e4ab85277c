"""What the papers printed, to stand beside our numbers."""

from __future__ import annotations

import csv
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

from equipoise.experiments.catalogue import CATALOGUE
from equipoise.experiments.spec import Spec

__all__ = ["Published", "find_published", "published_for", "published_rows"]

_UNITS = {"percent": 0.01, "1e-3": 0.001, "fraction": 1.0}
#: Our keys for what the tables call otherwise.
_METHODS = {
    "mutual_learning": ("dml",),
    "differentiated_mutual_learning": ("diff_dml",),
    "deep_ensemble": ("ensemble_3",),
    "pruned": ("focal+dtdp",),
    "ce+dca": ("dca",),
    "ce+mmce": ("mmce",),
    "ce+mmce_weighted": ("mmce",),
    "ce+kde": ("kde_xe",),
}


_CIFAR = {
    "resnet34": "ResNet-34",
    "resnet50": "ResNet-50",
    "resnet110": "ResNet-110",
    "resnet110_focal": "ResNet-110",
    "resnet110_sd": "ResNet-110sd",
    "wide_resnet_26_10": "Wide-ResNet-26-10",
    "densenet121": "DenseNet-121",
    "densenet40": "DenseNet-40",
}
_LARGE = {"resnet50_imagenet": "ResNet-50", "swinv2_t": "SwinV2-T"}
#: What the tables call our data, and on them our networks; two different networks are called ResNet-110.
_PLACES = {
    "cifar10": ("CIFAR-10", _CIFAR),
    "cifar100": ("CIFAR-100", _CIFAR),
    "tiny_imagenet": ("Tiny-ImageNet", {"resnet34": "ResNet-34", "resnet50_tiny": "ResNet-50"}),
    "imagenet": ("ImageNet", _LARGE),
    "imagenet_lt": ("ImageNet-LT", _LARGE),
    "voc2012": ("PASCAL VOC 2012", {"deeplabv3_resnet34": "DeepLabV3"}),
    "newsgroups": ("20 Newsgroups", {"global_pooling_cnn": "Global Pooling CNN"}),
}
#: The one table with the networks of the KDE-XE paper, whose ResNet-110 has plain blocks.
_PLAIN_TABLE = ("dual_focal", "10")
#: The helping network of Diff-DML where its tables do not name another.
_AUXILIARY = "ResNet-18"
#: Settings that papers used on some data and that are not our defaults.
_SETTINGS = {("newsgroups", key): {"margin": 6.0} for key in ("mbls", "cals_hr", "cals_alm")}
#: Settings that the tables list as methods of their own.
_VARIANTS = {
    ("mutual_learning", "n_networks", 3): "dml_2",
    ("differentiated_mutual_learning", "n_auxiliaries", 2): "diff_dml_2",
    ("deep_ensemble", "n_members", 3): "ensemble_3",
}


class Published(NamedTuple):
    """One printed number.

    Attributes:
        paper: Key of the paper.
        table: Its number as printed.
        dataset: As people say it.
        model: As people say it.
        method: Key of the method.
        metric: Key of the metric.
        stage: ``"raw"``, ``"temperature"`` or empty.
        value: The number, as a fraction.
        temperature: Printed in brackets, if any.
        note: Doubts and details.

    Example:
        >>> row = published_rows()[0]
        >>> row.paper, row.dataset, row.metric
        ('cals', 'Tiny-ImageNet', 'accuracy')
    """

    paper: str
    table: str
    dataset: str
    model: str
    method: str
    metric: str
    stage: str
    value: float
    temperature: float | None
    note: str


@cache
def published_rows() -> tuple[Published, ...]:
    """Return every printed number that is shipped.

    Example:
        >>> len(published_rows()) > 1000
        True
    """
    found = []
    for file in sorted(
        files("equipoise.experiments").joinpath("published").iterdir(), key=lambda file: file.name
    ):
        if file.name.endswith(".csv"):
            found += [_row(row) for row in csv.DictReader(file.read_text(encoding="utf-8").splitlines())]
    return tuple(found)


def _row(row: dict[str, Any]) -> Published:
    value = float(row["value"]) * _UNITS[row["unit"]]
    metric, method = row["metric"], row["method"]
    if metric == "error":
        metric, value = "accuracy", 1 - value
    return Published(
        paper=row["paper"],
        table=row["table"],
        dataset=row["dataset"],
        model=row["model"],
        method=method,
        metric=metric,
        stage=row["stage"],
        value=value,
        temperature=float(row["temperature"]) if row["temperature"] else None,
        note=row["note"],
    )


def find_published(
    *, method: str, dataset: str | None = None, model: str | None = None, metric: str | None = None
) -> list[Published]:
    """Return the printed numbers of a method, on one dataset and network if wanted.

    Args:
        method: Key of the catalogue.
        dataset: Title of the dataset.
        model: Title of the network.
        metric: Key of the metric.

    Returns:
        Rows as printed; papers differ in splits and recipes, so they are not comparable with each other.

    Example:
        >>> row = find_published(method="dual_focal", dataset="CIFAR-10", model="ResNet-50", metric="ece")[0]
        >>> row.value
        0.0046
    """
    names = {method, *_METHODS.get(method, ())}
    return [
        row
        for row in published_rows()
        if row.method in names
        and dataset in (None, row.dataset)
        and model in (None, row.model)
        and metric in (None, row.metric)
    ]


def published_for(spec: Spec, *, calibrator: str = "identity") -> list[Published]:
    """Return what papers printed for a run's data, network, method and setting, after a calibrator.

    Args:
        spec: The run.
        calibrator: Key of the post-hoc map; temperature scaling counts however its temperature was chosen.

    Returns:
        Rows that match; none if the run has a setting that no paper printed.

    Example:
        >>> spec = Spec.from_table({"data": "tiny_imagenet", "model": "resnet50_tiny", "objective": "cals_alm"})
        >>> [(row.metric, row.value, row.paper) for row in published_for(spec)][0]
        ('accuracy', 0.6503, 'cals')
    """
    dataset, networks = _PLACES.get(spec.data.name, ("", {}))
    model = networks.get(spec.model.name)
    name, settings = _name_and_settings(spec)
    if model is None or name is None:
        return []
    return [
        row
        for row in find_published(method=name, dataset=dataset, model=model)
        if _is_network(row, spec.model.name)
        and _is_stage(row, calibrator)
        and _is_setting(row, settings, spec)
    ] + find_published(method=f"{name}+{calibrator}", dataset=dataset, model=model)


def _name_and_settings(spec: Spec) -> tuple[str | None, dict[str, Any]]:
    """Return the tables' name of a method, and what is left of its parameters."""
    method = spec.objective
    left = dict(method.parameters)
    name: str | None = method.name
    for (key, parameter, value), variant in _VARIANTS.items():
        if key == method.name and left.get(parameter) == value:
            name = variant
            del left[parameter]
    if left and left == _SETTINGS.get((spec.data.name, method.name)):
        left = {}
    if method.loss is not None:
        is_dtdp = (method.name, method.loss) == ("pruned", "focal+huber_ca") and not method.loss_parameters
        name = "focal+dtdp" if is_dtdp else None
    elif name == "deep_ensemble":
        name = None  # printed with three members only
    return name, left


def _is_network(row: Published, model: str) -> bool:
    """Tell the two networks called ResNet-110 apart."""
    plain = (row.paper, row.table) == _PLAIN_TABLE
    return not (model == "resnet110" and not plain) and not (model == "resnet110_focal" and plain)


def _is_stage(row: Published, calibrator: str) -> bool:
    if calibrator == "identity":
        return row.stage in ("", "raw")
    is_temperature = calibrator in ("temperature", "temperature_ece")
    return is_temperature and (row.stage == "temperature" or (row.stage == "" and row.metric == "accuracy"))


def _is_setting(row: Published, settings: dict[str, Any], spec: Spec) -> bool:
    """Whether a row is of a run's setting, where tables vary one."""
    notes = dict(part.split("=", 1) for part in row.note.split("; ") if "=" in part)
    if notes.get("rival", "first") != "first":
        return False
    helper = (spec.objective.auxiliary or spec.model).name
    if row.method.startswith("diff_dml"):
        if notes.get("auxiliary", _AUXILIARY) != CATALOGUE["models"][helper].title:
            return False
    elif spec.objective.auxiliary is not None:
        return False
    return {key: float(notes[key]) for key in ("gamma",) if key in notes} == settings
