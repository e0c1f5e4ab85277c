"""What the papers printed, to stand beside our numbers."""

from __future__ import annotations

import csv
from collections.abc import Collection, Mapping, Sequence
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import Any, NamedTuple

from equipoise.experiments.specs.run import Spec

__all__ = ["PaperResult", "find_paper_results", "paper_results", "paper_results_for", "printed_for"]

_UNITS = {"percent": 0.01, "1e-3": 0.001, "fraction": 1.0}
#: By paper and method: parameters that the paper chose on its validation set, for each dataset and network.
_CHOSEN = {("dual_focal", "dual_focal"): {"gamma"}, ("dual_focal", "inverse_focal"): {"gamma"}}


class PaperResult(NamedTuple):
    """One printed number.

    Attributes:
        paper: Key of the paper.
        table: Its number as printed.
        dataset: As people say it.
        model: As people say it.
        method: As the tables call it.
        metric: Our key of the metric; the files also hold the name that was printed.
        stage: ``"raw"``, ``"temperature"`` or empty.
        value: The number, as a fraction.
        temperature: Printed in brackets, if any.
        note: Doubts and details.
        data_key: Our key of the data; empty if we cannot run on them.
        model_keys: Our keys of the network; two different networks are called ResNet-110.
        method_keys: Our keys of the method.
        settings: Parameters of the method that are not our defaults; with ``data.`` before them, options of the data;
            with ``ood.``, key and options of out-of-distribution data.
        loss_key: Key of the loss inside the method, if the table names one that is not our default.
        auxiliary_key: Key of the helping network, for methods that have one.
        calibrator_keys: After which of our calibrators the number holds; none for settings that we do not have.

    Example:
        >>> row = paper_results()[0]
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
    data_key: str
    model_keys: tuple[str, ...]
    method_keys: tuple[str, ...]
    settings: dict[str, float | str]
    loss_key: str
    auxiliary_key: str
    calibrator_keys: tuple[str, ...]


@cache
def paper_results() -> tuple[PaperResult, ...]:
    """Return every printed number that is shipped.

    Example:
        >>> len(paper_results()) > 1000
        True
    """
    found = []
    for file in sorted(
        files("equipoise.experiments").joinpath("papers").iterdir(), key=lambda file: file.name
    ):
        if file.name.endswith(".csv"):
            found += [_row(row) for row in csv.DictReader(file.read_text(encoding="utf-8").splitlines())]
    return tuple(found)


def _row(row: dict[str, Any]) -> PaperResult:
    value = float(row["value"]) * _UNITS[row["unit"]]
    return PaperResult(
        paper=row["paper"],
        table=row["table"],
        dataset=row["dataset"],
        model=row["model"],
        method=row["method"],
        metric=row["metric_key"],
        stage=row["stage"],
        # Some tables print how often it is wrong, where we say how often it is right.
        value=1 - value if row["metric"] == "error" else value,
        temperature=float(row["temperature"]) if row["temperature"] else None,
        note=row["note"],
        data_key=row["data_key"],
        model_keys=tuple(row["model_keys"].split()),
        method_keys=tuple(row["method_keys"].split()),
        settings={key: _value(text) for key, text in (part.split("=") for part in row["settings"].split())},
        loss_key=row["loss_key"],
        auxiliary_key=row["auxiliary_key"],
        calibrator_keys=tuple(row["calibrator_keys"].split()),
    )


def _value(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text


def find_paper_results(
    *, method: str, dataset: str | None = None, model: str | None = None, metric: str | None = None
) -> list[PaperResult]:
    """Return the printed numbers of a method, on one dataset and network if wanted.

    Args:
        method: Key of the catalogue, or what the tables call it.
        dataset: Title of the dataset.
        model: Title of the network.
        metric: Key of the metric.

    Returns:
        Rows as printed; papers differ in splits and recipes, so they are not comparable with each other.

    Example:
        >>> row = find_paper_results(method="dual_focal", dataset="CIFAR-10", model="ResNet-50", metric="ece")[0]
        >>> row.value
        0.0046
    """
    return [
        row
        for row in paper_results()
        if method in (row.method, *row.method_keys)
        and dataset in (None, row.dataset)
        and model in (None, row.model)
        and metric in (None, row.metric)
    ]


def paper_results_for(
    spec: Spec,
    *,
    calibrator: str = "identity",
    tuned: Collection[str] = (),
    ood: Mapping[str, Any] = MappingProxyType({}),
) -> list[PaperResult]:
    """Return what papers printed for a run's data, network, method and setting, after a calibrator.

    Args:
        spec: The run.
        calibrator: Key of the post-hoc map; temperature scaling counts however its temperature was chosen.
        tuned: Parameters that were chosen on ``tune``. They match the numbers of a paper that chose them too, whatever
            was chosen.
        ood: Key (``data``) and options of the out-of-distribution data, for numbers about such data.

    Returns:
        Rows that match; none if the run has a setting that no paper printed.

    Example:
        >>> spec = Spec.from_table({"data": "tiny_imagenet", "model": "resnet50_tiny", "method": "cals_alm"})
        >>> [(row.metric, row.value, row.paper) for row in paper_results_for(spec)][0]
        ('accuracy', 0.6503, 'cals')
    """
    return [
        row
        for row in paper_results()
        if row.data_key == spec.data.name
        and spec.model.name in row.model_keys
        and spec.method.name in row.method_keys
        and calibrator in row.calibrator_keys
        and _is_setting(row, spec, tuned, ood)
    ]


def _is_setting(row: PaperResult, spec: Spec, tuned: Collection[str], ood: Mapping[str, Any]) -> bool:
    """Whether a row is of a run's setting of the method."""
    method = spec.method
    chosen = _CHOSEN.get((row.paper, row.method), set()) & {name.removeprefix("options.") for name in tuned}
    fixed = {key: value for key, value in method.options.items() if key not in chosen}
    ood_keys = {f"ood.{key}": value for key, value in ood.items()}
    # Trained on all rows, with nothing held out, it is another network than the one of the same name beside it.
    whole = {f"data.{key}": 0.0 for key in ("tune", "calib") if spec.data.options.get(key) == 0}
    if {**fixed, **whole, **ood_keys} != row.settings:
        return False
    noted = _noted_weight_decay(row)
    if noted not in (None, spec.training.weight_decay) or (noted is None and "weight_decay" in method.recipe):
        return False
    if method.loss is not None and (method.loss.options or method.loss.name != row.loss_key):
        return False
    if row.auxiliary_key:
        return (method.auxiliary or spec.model).name == row.auxiliary_key
    return method.auxiliary is None


def _noted_weight_decay(row: PaperResult) -> float | None:
    """Return the weight decay that tells a row of cross-entropy from others, if it names one."""
    _, found, rest = row.note.partition("weight_decay=")
    return float(rest.partition(";")[0]) if found else None


def printed_for(
    spec: Spec,
    calibrator: str,
    columns: Sequence[str],
    *,
    tuned: Collection[str] = (),
    ood: Mapping[str, Any] = MappingProxyType({}),
) -> dict[str, str]:
    """Return what papers printed for a run's dataset, network and method, by metric, with the source.

    Args:
        spec: The run.
        calibrator: Key of the post-hoc calibrator.
        columns: Keys of metrics.
        tuned: Parameters that were chosen on ``tune``.
        ood: Key and options of the out-of-distribution data, for numbers about such data.

    Example:
        >>> spec = Spec.from_table({"data": "tiny_imagenet", "model": "resnet50_tiny", "method": "cals_alm"})
        >>> printed_for(spec, "identity", ["accuracy"])
        {'accuracy': '65.03% (cals, table 1)'}
        >>> spec = Spec.from_table({"data": "cifar10", "model": "resnet50", "method": "adafocal"})
        >>> printed_for(spec, "identity", ["ece"])
        {'ece': '0.66% (dual_focal, table 3)'}
    """
    from equipoise.metrics.facts import metric_facts  # loads torch, which a list of methods does without

    result = {}
    rows = paper_results_for(spec, calibrator=calibrator, tuned=tuned, ood=ood)
    for metric in columns:
        text = metric_facts(metric).text
        tables: dict[tuple[str, str, str], list[str]] = {}
        for row in rows:
            if row.metric == metric:
                found = tables.setdefault((text(row.value), row.paper, _doubt(row)), [])
                found += [row.table] if row.table not in found else []
        sources = [
            f"{value} ({paper}, {_tables(found)}{doubt})" for (value, paper, doubt), found in tables.items()
        ]
        if sources:
            result[metric] = " and ".join(sources)
    return result


def _tables(numbers: Sequence[str]) -> str:
    if len(numbers) == 1:
        return f"table {numbers[0]}"
    return f"tables {', '.join(numbers[:-1])} and {numbers[-1]}"


def _doubt(row: PaperResult) -> str:
    _, found, doubt = row.note.partition("suspect=")
    return f", doubtful: {doubt}" if found else ""
