"""From a run to a model in use: network, calibrator, class names and scaling of inputs, compared with the run."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from pathlib import Path
from typing import Any, final

from equipoise.core import torch_required as _torch_required  # noqa: F401 - first, for its message

# isort: split
import numpy as np
import torch
from torch import Tensor, nn

from equipoise.calibrators import Calibrator, Identity, load
from equipoise.core.arrays import Array
from equipoise.core.errors import DataError, SpecError
from equipoise.core.names import nearest
from equipoise.core.predictions import Predictions
from equipoise.data import Dataset
from equipoise.data.streaming import ImageFiles
from equipoise.decisions.accept_rule import AcceptRule
from equipoise.experiments import Execution, find_runs
from equipoise.experiments.build.run_parts import Built, build, network_options, split_source
from equipoise.experiments.runs.folder import RunFolder
from equipoise.experiments.runs.stages import load_network
from equipoise.integrations.calibrated import CalibratedNetwork, calibrator_of_rule
from equipoise.integrations.raw_inputs import RawInputs, ScaledNetwork
from equipoise.integrations.saved_model import load_model, save_model
from equipoise.objectives.deep_ensemble import MeanNetwork
from equipoise.training.network_call import as_logits, call_network

__all__ = ["RunModel", "export_run", "find_run", "load_run", "save_members", "save_run"]

#: Test rows that a model is compared on, and the most values of their inputs.
_ROWS, _VALUES = 256, 1 << 22
_TOLERANCE = 1e-4
_SHOWN = 12


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class RunModel:
    """A trained model with all that is needed to use it.

    Attributes:
        label: The run in words.
        network: With its weights, in evaluation mode.
        calibrator: The calibrator behind it.
        calibrator_name: Its name in the run; ``"identity"`` is none.
        rule: Which predictions are accepted; None if there is no rule.
        class_names: One name per class.
        raw_inputs: What is done to inputs before the network gets them.
        input_shape: Shape of one input; None for text, whose length is free.
        architecture: The network's name in the catalogue; None for code of the user's.
        options: What the network was made with.
        example: Raw inputs of some test rows.
        difference: The largest difference of a probability to what the run stored for these rows.
    """

    label: str
    network: nn.Module
    calibrator: Calibrator
    calibrator_name: str
    rule: AcceptRule | None
    class_names: tuple[str, ...]
    raw_inputs: RawInputs
    input_shape: tuple[int, ...] | None
    architecture: str | None
    options: Mapping[str, Any]
    example: Tensor
    difference: float


def find_run(
    folder: str | os.PathLike[str], *, method: str | None = None, seed: int | None = None
) -> RunFolder:
    """Return the only run in a folder, or the only one of a method and a seed.

    Args:
        folder: A run's folder, or a folder of runs.
        method: The method's name in tables.
        seed: The seed of the training.

    Raises:
        SpecError: If there is no such run, or several; the message lists them.
    """
    found = [run for run in find_runs(folder) if run.status() == "finished"]
    if not found:
        raise SpecError(f"{folder}: holds no finished run. `equipoise runs {folder}` shows what is there.")
    labels = {run: run.spec().method.label for run in found}
    if method is not None and method not in labels.values():
        guess = nearest(method, labels.values())
        remedy = (
            f"Did you mean {guess!r}?" if guess else f"Methods: {', '.join(dict.fromkeys(labels.values()))}."
        )
        raise SpecError(f"{folder}: holds no finished run of the method {method!r}. {remedy}")
    chosen = [
        run
        for run in found
        if (method is None or labels[run] == method) and (seed is None or run.spec().seed == seed)
    ]
    if len(chosen) == 1:
        return chosen[0]
    if not chosen:
        seeds = sorted({run.spec().seed for run in found if method is None or labels[run] == method})
        raise SpecError(
            f"{folder}: holds no finished run with seed {seed}. Seeds: {', '.join(map(str, seeds))}."
        )
    listed = "; ".join(f"{run.path} ({run.spec().label})" for run in chosen[:_SHOWN])
    more = f"; and {len(chosen) - _SHOWN} more" if len(chosen) > _SHOWN else ""
    raise SpecError(
        f"{folder}: expected one run, got {len(chosen)}. Select one by method and seed (--method, --seed), or pass its "
        f"own folder: {listed}{more}."
    )


def load_run(
    run: RunFolder,
    *,
    calibrator: str | None = None,
    rule: AcceptRule | None = None,
    root: str | None = None,
    code: str | os.PathLike[str] | None = None,
) -> RunModel:
    """Return the model of a run, compared with the predictions that the run stored.

    Args:
        run: A finished run.
        calibrator: A calibrator of the run, ``"identity"`` for none, or a file; by default the only one that the run
            fitted.
        rule: A certified rule for predictions of this run, which is saved or exported along. Its calibrator is used,
            and ``calibrator`` must be None or the same.
        root: The data folder.
        code: The folder that the spec's files of code are relative to; by default the current one. Files that were
            changed since the run are refused.

    Raises:
        SpecError: If the run has several calibrators and none is named, or none of that name.
        DataError: If the data or the weights are gone, the model answers otherwise than the run did, or a network
            cannot apply the rule.
    """
    spec = replace(run.spec(), base_dir=None if code is None else str(code))
    weights = run.path / ("best.pt" if spec.training.keep == "best" else "last.pt")
    if not weights.exists():
        raise DataError(
            f"{weights}: was deleted, so the network is lost. Delete the run's folder and train it again."
        )
    if rule is None:
        name, fitted = _calibrator(run, calibrator)
    else:
        # A rule without a calibrator may be of raw or of calibrated probabilities, so the caller must say which.
        own = calibrator is None and rule.calibrator is not None
        given = None if own else _calibrator(run, calibrator)[1]
        fitted = calibrator_of_rule(rule, given, where=str(run.path)) or Identity()
        name = fitted.kind
    try:
        built = build(spec, Execution(root=root))
    except SpecError as error:
        if not spec.code:
            raise
        raise SpecError(
            f"{error} The run used {', '.join(spec.code)}: pass the folder that these are relative to, code=... "
            "(--code)."
        ) from error
    network = load_network(run, built, spec).cpu().eval()
    example = _example(built.data)
    raw_inputs = RawInputs.of(built.data)
    difference = _difference(run, built, ScaledNetwork(raw_inputs, network), example, fitted)
    if not difference <= _TOLERANCE:
        raise DataError(
            f"{run.path}: the model's probabilities differ from those that the run stored by {difference:.2g}, more "
            f"than {_TOLERANCE:.0e}. Nothing was written. Were the data or the code changed since?"
        )
    own = spec.model.is_code
    return RunModel(
        label=spec.label,
        network=network,
        calibrator=fitted,
        calibrator_name=name,
        rule=rule,
        class_names=built.data.class_names,
        raw_inputs=raw_inputs,
        input_shape=None if raw_inputs.kind == "tokens" else tuple(example.shape[1:]),
        architecture=None if own else spec.model.name,
        options=dict(spec.model.options) if own else network_options(spec.model, built.data),
        example=example,
        difference=difference,
    )


def save_run(model: RunModel, path: str | os.PathLike[str]) -> float:
    """Write a run's model to a file for :func:`load_model`, and compare what it reads back.

    Args:
        model: What :func:`load_run` gives.
        path: A name that ends in ``.safetensors``.

    Returns:
        The largest difference of a probability to the run's own that was found.

    Raises:
        DataError: If the method's network is not one network of the catalogue, or the file answers otherwise.
    """
    if model.raw_inputs.kind == "tokens" and model.architecture is not None:
        raise DataError(
            f"save_run: {model.label} has an embedding of words, which is data and is not kept in .safetensors files. "
            "Export it to ONNX, which keeps it."
        )
    try:
        save_model(
            path,
            model.network,
            model.calibrator,
            class_names=model.class_names,
            architecture=model.architecture,
            options=model.options if model.architecture is not None else None,
            input_shape=model.input_shape,
            raw_inputs=model.raw_inputs,
            rule=model.rule,
        )
    except DataError as error:
        raise DataError(
            f"{error} A method with several networks cannot be saved as one of the catalogue; use `equipoise export` "
            "and export it to ONNX."
        ) from error
    twin = None if model.architecture is not None else model.network
    found = load_model(path, network=twin).predict_proba(model.example)
    difference = float(np.abs(found - _probs(model, model.example)).max())
    if not difference <= _TOLERANCE:
        Path(path).unlink()
        raise DataError(
            f"{path}: the file answers otherwise than the run, by {difference:.2g}. It was removed."
        )
    return max(difference, model.difference)


def save_members(
    runs: Sequence[RunFolder],
    calibrator: Calibrator,
    folder: Path,
    *,
    root: str | None = None,
    code: str | os.PathLike[str] | None = None,
) -> Path:
    """Write the mean of runs' networks with one calibrator behind it as one file, compared with the runs.

    Args:
        runs: Finished runs of the same data and network.
        calibrator: Fitted on the mean of their predictions.
        folder: Where ``model.safetensors`` goes; text networks become ``model.onnx``, which contains their embedding.
        root: The data folder.
        code: The folder that the spec's files of code are relative to.

    Returns:
        The file.
    """
    models = [load_run(run, calibrator="identity", root=root, code=code) for run in runs]
    first = models[0]
    mean = first.network if len(models) == 1 else MeanNetwork([one.network for one in models]).eval()
    model = replace(
        first,
        label=first.label if len(models) == 1 else f"mean of {len(models)} networks, first {first.label}",
        network=mean,
        calibrator=calibrator,
        calibrator_name=calibrator.kind,
        difference=max(one.difference for one in models),
    )
    if model.raw_inputs.kind == "tokens":
        export_run(model, folder / "model.onnx")
        return folder / "model.onnx"
    save_run(model, folder / "model.safetensors")
    return folder / "model.safetensors"


def export_run(model: RunModel, path: str | os.PathLike[str]) -> float:
    """Write a run's model as one ONNX graph from raw inputs to calibrated probabilities, and ``accept`` with a rule.

    Args:
        model: What :func:`load_run` gives.
        path: A name that ends in ``.onnx``.

    Returns:
        The largest difference of a probability to the run's own that was found.
    """
    from equipoise.integrations.onnx import export_onnx  # these packages are heavy, and extras

    found = export_onnx(
        path,
        ScaledNetwork(model.raw_inputs, model.network),
        model.calibrator,
        model.example[:16],
        class_names=model.class_names,
        notes={"inputs": model.raw_inputs.describe(model.input_shape), "run": model.label},
        tolerance=_TOLERANCE,
        rule=model.rule,
    )
    return max(found, model.difference)


def _calibrator(run: RunFolder, wanted: str | None) -> tuple[str, Calibrator]:
    names = [name for name in run.calibrators() if name != "identity"]
    if wanted is None:
        if len(names) > 1:
            raise SpecError(
                f"{run.path}: has the calibrators {', '.join(names)}. Choose one with --calibrator, or 'identity' for "
                "none."
            )
        wanted = names[0] if names else "identity"
    if wanted == "identity":
        return wanted, Identity()
    if wanted in names:
        return wanted, run.calibrator(wanted)
    if Path(wanted).is_file():
        return wanted, load(wanted)
    raise SpecError(
        f"{run.path}: has no calibrator {wanted!r}, and there is no such file. Calibrators: "
        f"{', '.join([*names, 'identity'])}."
    )


def _example(data: Dataset) -> Tensor:
    """Return raw inputs of the first test rows."""
    rows = data.rows("test")
    if isinstance(data.inputs, ImageFiles):
        most = max(1, min(_ROWS, _VALUES // (3 * data.inputs.size**2)))
        return torch.stack([data.inputs.read(int(row))[0] for row in rows[:most]])
    most = max(1, min(_ROWS, _VALUES // max(1, prod(data.inputs.shape[1:]))))
    found = data.inputs[rows[:most]].contiguous()
    return found.long() if data.kind == "text" else found


def _difference(
    run: RunFolder, built: Built, network: nn.Module, example: Tensor, calibrator: Calibrator
) -> float:
    """Return the largest difference of a probability, before and after the calibrator, to what the run says."""
    with torch.inference_mode():
        logits = as_logits(call_network(network, example), where="load_run")
    if built.data.kind == "segmentation":  # the run keeps a sample of pixels, so its network is asked again
        source = split_source(built.data, "test", run.spec())
        batch = next(
            iter(source(epoch=0, indices=None, start=0, rank=0, world_size=1, device=torch.device("cpu")))
        )
        inner = network.network if isinstance(network, ScaledNetwork) else network
        with torch.inference_mode():
            reference = as_logits(call_network(inner, batch.inputs), where="load_run")[: len(example)]
        return float((logits[: len(reference)].softmax(1) - reference.softmax(1)).abs().max())
    stored = run.predictions("test").take(slice(0, len(example)))
    if not np.array_equal(stored.labels, built.data.labels[built.data.rows("test")[: len(example)]].numpy()):
        raise DataError(
            f"{run.path}: the test rows are not those that the run predicted. Were the data changed?"
        )
    before = np.abs(Predictions(logits=logits).probs - stored.probs).max()
    # The calibrator is compared on the stored logits: near a step of it, rounding of logits may change much.
    with torch.inference_mode():
        mapped = CalibratedNetwork(nn.Identity(), calibrator)(torch.tensor(stored.logits)).numpy()
    after = np.abs(mapped - calibrator(stored).probs).max()
    return float(max(before, after))


def _probs(model: RunModel, inputs: Tensor) -> Array:
    network = ScaledNetwork(model.raw_inputs, model.network)
    with torch.inference_mode():
        found: Array = CalibratedNetwork(network, model.calibrator)(inputs).numpy()
    return found
