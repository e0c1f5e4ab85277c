"""Before the first run: everything a spec names is found, pinned by its content, and built once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import torch
from torch import Tensor, nn

from equipoise.calibrators import Calibrator
from equipoise.core.errors import DataError, EquipoiseError, SpecError, SplitError
from equipoise.core.predictions import Predictions
from equipoise.data import Dataset, read_shifts
from equipoise.data.folders import file_record
from equipoise.experiments.build.data import content_digest, data_of
from equipoise.experiments.build.run_parts import build, make_loss, make_network, split_source, weights_file
from equipoise.experiments.code.named import Wanted
from equipoise.experiments.code.names import code_in_sum, is_code, split_reference
from equipoise.experiments.code.source import (
    CodeSource,
    check_not_loading,
    code_digest,
    find_source,
)
from equipoise.experiments.runs.shift import foreign_data, further_set
from equipoise.experiments.specs.calibrators import MapSpec
from equipoise.experiments.specs.metrics import MetricSpec, score_metric
from equipoise.experiments.specs.run import ModelSpec, Spec
from equipoise.losses.adaptive import check_saved_state, made_up_rows
from equipoise.training.network_call import as_logits, call_network

__all__ = ["Beside", "code_files", "code_names", "pin", "pinned", "prepare", "refuse_code"]

Pinned = TypeVar("Pinned", bound=Wanted)


class Beside(NamedTuple):
    """Code that is named beside what decides a run: a calibrator, a metric, a further test set.

    Attributes:
        name: ``"file.py:name"`` or ``"package.module:name"``.
        key: Where it stands.
        home: The folder that files are relative to.
    """

    name: str
    key: str
    home: str | None


def code_names(spec: Spec) -> dict[str, str]:
    """Return the names of code in a spec, each with the key it stands at.

    Example:
        >>> code_names(Spec.from_table({"data": "digits", "model": "net.py:Net", "method": "ce+0.5*loss.py:Mine"}))
        {'net.py:Net': 'model', 'loss.py:Mine': 'method'}
    """
    helper = spec.method.auxiliary
    names = {
        "data": [spec.data.name],
        "model": [spec.model.name],
        "method": code_in_sum(spec.method.name),
        "method.loss": code_in_sum(spec.method.loss or ""),
        "method.auxiliary": [helper.name] if helper else [],
    }
    return {name: key for key, found in names.items() for name in found if is_code(name)}


def code_files(specs: Iterable[Spec], *, where: str = "spec", beside: Iterable[Beside] = ()) -> list[Path]:
    """Return every file that specs will run; nothing is run to find out.

    Args:
        specs: Checked specs.
        where: Their file, for the message.
        beside: Further code.

    Raises:
        SpecError: If code is not where a spec says.

    Example:
        >>> code_files([Spec.from_table({"data": "digits", "model": "mlp"})])
        []
    """
    sources = {source: None for spec in specs for source in _sources(spec, where).values()}
    for name, key, home in beside:
        with _told(f"{where}.{key}"):
            sources[find_source(split_reference(name)[0], home)] = None
    return list(dict.fromkeys(file for source in sources for file in source.files))


def _sources(spec: Spec, where: str) -> dict[str, CodeSource]:
    """Return where the code of a spec is, by the file or module as it is written there."""
    found = {}
    for name, key in code_names(spec).items():
        source, _ = split_reference(name)
        with _told(f"{where}.{key}"):
            found[source] = find_source(source, spec.home)
    return found


def refuse_code(specs: Iterable[Spec], *, where: str, beside: Iterable[Beside] = ()) -> None:
    """Raise if a spec names code, or any is named beside it.

    Raises:
        SpecError: With the names.

    Example:
        >>> refuse_code([Spec.from_table({"data": "digits", "model": "net.py:Net"})], where="a.toml")
        Traceback (most recent call last):
        ...
        equipoise.core.errors.SpecError: a.toml: names code that would be run, 'net.py:Net', and code is refused here.
    """
    names = list(
        dict.fromkeys([*(name for spec in specs for name in code_names(spec)), *(one.name for one in beside)])
    )
    if names:
        shown = ", ".join(map(repr, names))
        raise SpecError(f"{where}: names code that would be run, {shown}, and code is refused here.")


def pin(spec: Spec, *, where: str = "spec", root: str | None = None, download: bool = False) -> Spec:
    """Return the spec with the digests of its code and data, which are part of the run's identity.

    Args:
        spec: A checked spec.
        where: Its file, for the message.
        root: The data folder.
        download: Bring the official files if they are not there.

    Returns:
        The same spec if it names no code and its data come without files, or it has their digests already.

    Raises:
        SpecError: If code is not there.
        DataError: If the data are not there, or are wrong.

    Example:
        >>> spec = Spec.from_table({"data": "digits", "model": "mlp"})
        >>> pin(spec) is spec
        True
    """
    check_not_loading()
    if not spec.code and code_names(spec):
        spec = replace(spec, code={name: found.digest for name, found in _sources(spec, where).items()})
    with _told(f"{where}.model"):
        spec = replace(spec, model=_pin_weights(spec.model, root)) if spec.model.weights else spec
    helper = spec.method.auxiliary
    if helper is not None and helper.weights:
        with _told(f"{where}.method.auxiliary"):
            spec = replace(spec, method=replace(spec.method, auxiliary=_pin_weights(helper, root)))
    if spec.data.digest:
        return spec
    with _told(f"{where}.data"):
        data = data_of(spec, root=root, download=download)
    found = content_digest(data)
    return replace(spec, data=replace(spec.data, digest=found)) if found else spec


def _pin_weights(model: ModelSpec, root: str | None) -> ModelSpec:
    """Return a network with the digest of the checkpoint that it starts from."""
    if model.digest:
        return model
    file = weights_file(model, root)
    return replace(model, digest=file_record(file, file.parent).sha256)


def pinned(named: Pinned) -> Pinned:
    """Return a calibrator or metric with the digest of its code, if it is code that has none yet.

    Example:
        >>> pinned(MapSpec(name="vector")).digest
        ''
    """
    return named if named.digest else replace(named, digest=code_digest(named.name, named.home))


def prepare(
    specs: Sequence[Spec],
    *,
    where: str = "spec",
    root: str | None = None,
    download: bool = False,
    maps: Sequence[MapSpec] = (),
    metrics: Sequence[MetricSpec] = (),
    shift: Sequence[Mapping[str, Any]] = (),
) -> list[Spec]:
    """Pin specs, and build what each names once, so that whatever is wrong is said before the first run.

    Args:
        specs: Checked specs.
        where: Their file, for the message.
        root: The data folder.
        download: Bring the official files if they are not there.
        maps: Calibrators that will be fitted; those of code are tried.
        metrics: Metrics that will be computed; those of code are tried.
        shift: Further test sets that will be predicted.

    Returns:
        The specs with the digests of code and data.

    Raises:
        SpecError: With file and key, if a value is refused by what it is for.
        DataError: If data are missing or wrong.

    Example:
        >>> table = {"data": "digits", "model": "mlp", "method": {"name": "focal", "parameters": {"gamma": -3}}}
        >>> prepare([Spec.from_table(table)], where="mine.toml")
        Traceback (most recent call last):
        ...
        equipoise.core.errors.SpecError: mine.toml.method: FocalLoss: `gamma` must be at least 0, got -3. ...
    """
    with_digests = [pin(spec, where=where, root=root, download=download) for spec in specs]
    for spec in {replace(one, seed=0).identity: one for one in with_digests}.values():
        _check_builds(spec, where, root, download)
    for spec in {(one.data.label, one.data.digest): one for one in with_digests}.values():
        data = data_of(spec, root=root, download=download)
        _check_shifts(spec, data, shift, where, root=root, seed=spec.data.seed, download=download)
        _try_maps_and_metrics(data.n_classes, maps, metrics, where)
    return with_digests


def _check_builds(spec: Spec, where: str, root: str | None, download: bool) -> None:
    """Build what a spec names, and try code on a few rows; the random numbers of the caller stay as they are."""
    with _told(f"{where}.data"):
        data = data_of(spec, root=root, download=download)
    with torch.random.fork_rng(devices=[]):
        with _told(f"{where}.model"):
            network = make_network(spec.model, data, spec, root=root)
        with _told(f"{where}.method"):
            build(spec, root=root, download=download)
        if is_code(spec.model.name):
            with _told(f"{where}.model"):
                _try_network(network, spec, data)
        if any(map(is_code, (spec.method.name, spec.method.loss or ""))):
            with _told(f"{where}.method"):
                _try_loss(spec, data)


def _check_shifts(
    spec: Spec, data: Dataset, shift: Sequence[Mapping[str, Any]], where: str, **place: Any
) -> None:
    """Load what further test sets are of, and make the first rows of each."""
    few = replace(data, splits={**data.splits, "test": data.rows("test")[:2]})
    for one in read_shifts(shift):
        with _told(f"{where}.shift"):
            other = foreign_data(one, spec.home, **place) if one.data else None
            further_set(one, few, other, **place)


def _try_maps_and_metrics(
    n_classes: int, maps: Sequence[MapSpec], metrics: Sequence[MetricSpec], where: str
) -> None:
    """Fit maps and compute metrics that are code on a few made-up rows; random numbers stay as they are."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        labels = torch.arange(20 * n_classes) % n_classes
        logits = 2 * torch.randn(len(labels), n_classes) + 2 * torch.nn.functional.one_hot(labels, n_classes)
        rows = Predictions(logits=logits, labels=labels, split="calib")
        for one in (one for one in maps if is_code(one.name)):
            with _told(f"{where}.calibrators"):
                _try_map(one, rows)
        for metric in (metric for metric in metrics if is_code(metric.name)):
            with _told(f"{where}.metrics"):
                score_metric(metric, rows, level=0.95, seed=0)


def _try_map(wanted: MapSpec, rows: Predictions) -> None:
    """Fit a map and apply it."""
    fitted: Calibrator = wanted.make().fit(rows)
    fitted(rows.logits)


def _try_network(network: nn.Module, spec: Spec, data: Dataset) -> None:
    """Raise unless a network gives logits for each class."""
    few = replace(spec, recipe=replace(spec.recipe, batch_size=4), method=replace(spec.method, recipe={}))
    source = split_source(data, "test", few)
    device = torch.device("cpu")
    batch = next(iter(source(epoch=0, visit=None, start=0, rank=0, world_size=1, device=device)))
    network.eval()
    with torch.no_grad():
        logits = as_logits(call_network(network, batch.inputs), where=spec.model.name)
    if logits.shape[:2] != (len(batch.index), data.n_classes):
        raise SpecError(
            f"{spec.model.name}: logits of shape ({len(batch.index)}, {data.n_classes}) were wanted, one column per "
            f"class, got {tuple(logits.shape)}. Let it take `n_classes`."
        )


def _try_loss(spec: Spec, data: Dataset) -> None:
    """Raise unless a loss gives one number that has a gradient."""
    loss = make_loss(spec, data)
    if loss is None:
        return
    logits = torch.randn(8, data.n_classes, requires_grad=True)
    value = loss(logits, torch.arange(8) % data.n_classes)
    if not isinstance(value, Tensor) or value.shape != () or not value.requires_grad:
        got = f"a tensor of shape {tuple(value.shape)}" if isinstance(value, Tensor) else type(value).__name__
        if isinstance(value, Tensor) and value.shape == ():
            got = "one without"
        raise SpecError(
            f"{spec.method.name}: one number with a gradient was wanted from (logits, labels), got {got}. Average over "
            "the batch, and compute with torch."
        )
    check_saved_state(loss, *made_up_rows(data.n_classes), where=spec.method.name)


@contextmanager
def _told(where: str) -> Iterator[None]:
    """What is said against the user's input gets file and key, whatever code of theirs raised."""
    try:
        yield
    except (DataError, SpecError, SplitError) as error:
        raise error.within(where) from error
    except EquipoiseError:
        raise
    except Exception as error:
        kind = "" if isinstance(error, ValueError) else f"{type(error).__name__}: "
        raise SpecError(f"{where}: {kind}{error}") from error
