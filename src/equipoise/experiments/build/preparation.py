"""Before the first run: everything a spec names is found, pinned by its content, and built once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import torch
from torch import Tensor, nn

from equipoise.calibrators import Calibrator
from equipoise.catalogue import is_code
from equipoise.core.errors import DataError, EquipoiseError, SpecError, SplitError
from equipoise.core.predictions import Predictions
from equipoise.core.read_only import ReadOnly
from equipoise.data import Dataset
from equipoise.data.folders import file_record
from equipoise.experiments.build.data import content_digest, data_of
from equipoise.experiments.build.run_parts import build, make_loss, make_network, split_source, weights_file
from equipoise.experiments.build.test_sets import load_other_data, make_test_set
from equipoise.experiments.code.component import Component, code_in_sum
from equipoise.experiments.code.source import check_not_loading, split_reference
from equipoise.experiments.specs.calibrators import make_calibrator
from equipoise.experiments.specs.execution import Execution
from equipoise.experiments.specs.metrics import score_metric
from equipoise.experiments.specs.run import ModelSpec, Spec
from equipoise.experiments.specs.scoring import ScoringOptions
from equipoise.losses.adaptive import check_saved_state, made_up_rows
from equipoise.training.network_call import as_logits, call_network

__all__ = ["code_files", "code_in_spec", "pin", "prepare", "refuse_code"]

Code = Mapping[str, Sequence[Component]]


def code_in_spec(spec: Spec) -> dict[str, list[Component]]:
    """Return the code of a spec, by the key it stands at.

    Example:
        >>> table = {"data": "digits", "model": "net.py:Net", "method": "ce+0.5*loss.py:Mine"}
        >>> {key: [one.name for one in found] for key, found in code_in_spec(Spec.from_table(table)).items()}
        {'model': ['net.py:Net'], 'method': ['loss.py:Mine']}
    """
    method = spec.method
    names = {
        "data": [spec.data.name],
        "model": [spec.model.name],
        "method": list(code_in_sum(method.name)),
        "method.loss": list(code_in_sum(method.loss.name)) if method.loss else [],
        "method.auxiliary": [method.auxiliary.name] if method.auxiliary else [],
    }
    found = {
        key: [Component(name=name, base_dir=spec.base_dir) for name in parts if is_code(name)]
        for key, parts in names.items()
    }
    return {key: parts for key, parts in found.items() if parts}


def code_files(specs: Iterable[Spec], *, where: str = "spec", extra: Code | None = None) -> list[Path]:
    """Return every file that specs will run; nothing is run to find out.

    Args:
        specs: Checked specs.
        where: Their file, for the message.
        extra: Further code, by the key it stands at.

    Raises:
        SpecError: If code is not where a spec says.

    Example:
        >>> code_files([Spec.from_table({"data": "digits", "model": "mlp"})])
        []
    """
    files: dict[Path, None] = {}
    for found in (*map(code_in_spec, specs), extra or {}):
        for key, parts in found.items():
            with _at(f"{where}.{key}"):
                files |= {file: None for one in parts for file in one.find().files}
    return list(files)


def refuse_code(specs: Iterable[Spec], *, where: str, extra: Code | None = None) -> None:
    """Raise if a spec names code, or any is named besides.

    Raises:
        SpecError: With the names.

    Example:
        >>> refuse_code([Spec.from_table({"data": "digits", "model": "net.py:Net"})], where="a.toml")
        Traceback (most recent call last):
        ...
        equipoise.core.errors.SpecError: a.toml: names code that would be run, 'net.py:Net', and code is refused here.
    """
    found = (*map(code_in_spec, specs), extra or {})
    names = dict.fromkeys(one.name for code in found for parts in code.values() for one in parts)
    if names:
        shown = ", ".join(map(repr, names))
        raise SpecError(f"{where}: names code that would be run, {shown}, and code is refused here.")


def pin(spec: Spec, execution: Execution | None = None, *, where: str = "spec") -> Spec:
    """Return the spec with the digests of its code and data, which are part of the run's identity.

    Args:
        spec: A checked spec.
        execution: The data folder, and whether to download official files that are missing.
        where: Its file, for the message.

    Returns:
        The same spec if it names no code and its data come without files, or it has their digests already.

    Raises:
        SpecError: If code is missing.
        DataError: If the data are missing, or are wrong.

    Example:
        >>> spec = Spec.from_table({"data": "digits", "model": "mlp"})
        >>> pin(spec) is spec
        True
    """
    check_not_loading()
    if not spec.code:
        digests: dict[str, str] = {}
        for key, parts in code_in_spec(spec).items():
            with _at(f"{where}.{key}"):
                digests |= {split_reference(one.name)[0]: one.find().digest for one in parts}
        spec = replace(spec, code=ReadOnly(digests)) if digests else spec
    root = None if execution is None else execution.root
    with _at(f"{where}.model"):
        spec = replace(spec, model=_pin_weights(spec.model, root)) if spec.model.weights else spec
    helper = spec.method.auxiliary
    if helper is not None and helper.weights:
        with _at(f"{where}.method.auxiliary"):
            spec = replace(spec, method=replace(spec.method, auxiliary=_pin_weights(helper, root)))
    if spec.data.digest:
        return spec
    with _at(f"{where}.data"):
        found = content_digest(data_of(spec, execution))
    return replace(spec, data=replace(spec.data, digest=found)) if found else spec


def _pin_weights(model: ModelSpec, root: str | None) -> ModelSpec:
    """Return a network with the digest of the checkpoint that it starts from."""
    if model.digest:
        return model
    file = weights_file(model, root)
    return replace(model, digest=file_record(file, file.parent).sha256)


def prepare(
    specs: Sequence[Spec],
    *,
    where: str = "spec",
    execution: Execution | None = None,
    scoring: ScoringOptions | None = None,
) -> list[Spec]:
    """Pin specs, and build what each names once, so that all mistakes are reported before the first run.

    Args:
        specs: Checked specs.
        where: Their file, for the message.
        execution: The data folder, and whether to download.
        scoring: Calibrators, metrics and additional test sets; those that are code are tried.

    Returns:
        The specs with the digests of code and data.

    Raises:
        SpecError: With file and key, if a value is not allowed.
        DataError: If data are missing or wrong.

    Example:
        >>> table = {"data": "digits", "model": "mlp", "method": {"name": "focal", "options": {"gamma": -3}}}
        >>> prepare([Spec.from_table(table)], where="mine.toml")
        Traceback (most recent call last):
        ...
        equipoise.core.errors.SpecError: mine.toml.method: FocalLoss: `gamma` must be at least 0, got -3. ...
    """
    pinned = [pin(spec, execution, where=where) for spec in specs]
    for spec in {replace(one, seed=0): one for one in pinned}.values():
        _check_builds(spec, execution, where)
    if scoring is not None:
        for spec in {one.data: one for one in pinned}.values():
            data = data_of(spec, execution)
            _check_test_sets(spec, data, scoring, execution or Execution(), where)
            _try_calibrators_and_metrics(data.n_classes, scoring, where)
    return pinned


def _check_builds(spec: Spec, execution: Execution | None, where: str) -> None:
    """Build what a spec names, and try code on a few rows; the random numbers of the caller stay as they are."""
    with _at(f"{where}.data"):
        data = data_of(spec, execution)
    with torch.random.fork_rng(devices=[]):
        with _at(f"{where}.model"):
            network = make_network(spec.model, data, spec, root=execution and execution.root)
        with _at(f"{where}.method"):
            build(spec, execution)
        if is_code(spec.model.name):
            with _at(f"{where}.model"):
                _try_network(network, spec, data)
        if is_code(spec.method.name) or (spec.method.loss is not None and spec.method.loss.is_code):
            with _at(f"{where}.method"):
                _try_loss(spec, data)


def _check_test_sets(
    spec: Spec, data: Dataset, scoring: ScoringOptions, execution: Execution, where: str
) -> None:
    """Load what additional test sets are of, and make the first rows of each."""
    few = replace(data, splits={**data.splits, "test": data.rows("test")[:2]})
    for one in scoring.shift_list:
        with _at(f"{where}.shift"):
            other = load_other_data(one, spec, execution) if one.data else None
            make_test_set(one, few, other, spec, execution)


def _try_calibrators_and_metrics(n_classes: int, scoring: ScoringOptions, where: str) -> None:
    """Fit calibrators and compute metrics that are code on a few made-up rows; random numbers stay as they are."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        labels = torch.arange(20 * n_classes) % n_classes
        logits = 2 * torch.randn(len(labels), n_classes) + 2 * torch.nn.functional.one_hot(labels, n_classes)
        rows = Predictions(logits=logits, labels=labels, split="calib")
        for one in scoring.calibrator_list:
            if one.is_code:
                with _at(f"{where}.calibrators"):
                    fitted: Calibrator = make_calibrator(one).fit(rows)
                    fitted(rows.logits)
        for metric in scoring.metric_list:
            if metric.is_code:
                with _at(f"{where}.metrics"):
                    score_metric(metric, rows, level=0.95, seed=0)


def _try_network(network: nn.Module, spec: Spec, data: Dataset) -> None:
    """Raise unless a network gives logits for each class."""
    few = replace(spec, recipe=replace(spec.recipe, batch_size=4), method=replace(spec.method, recipe={}))
    source = split_source(data, "test", few)
    device = torch.device("cpu")
    batch = next(iter(source(epoch=0, indices=None, start=0, rank=0, world_size=1, device=device)))
    network.eval()
    with torch.no_grad():
        logits = as_logits(call_network(network, batch.inputs), where=spec.model.name)
    if logits.shape[:2] != (len(batch.index), data.n_classes):
        raise SpecError(
            f"{spec.model.name}: expected logits of shape ({len(batch.index)}, {data.n_classes}), one column per "
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
            f"{spec.method.name}: expected one number with a gradient from (logits, labels), got {got}. Average over "
            "the batch, and compute with torch."
        )
    check_saved_state(loss, *made_up_rows(data.n_classes), where=spec.method.name)


@contextmanager
def _at(where: str) -> Iterator[None]:
    """Add file and key to errors of the user's input, whatever their code raised."""
    try:
        yield
    except (DataError, SpecError, SplitError) as error:
        raise error.within(where) from error
    except EquipoiseError:
        raise
    except Exception as error:
        kind = "" if isinstance(error, ValueError) else f"{type(error).__name__}: "
        raise SpecError(f"{where}: {kind}{error}") from error
