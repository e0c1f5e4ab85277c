"""One file for a model that is put to use: weights, calibrator and class names, which never part."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias, final

from equipoise.core import torch_required as _torch_required  # noqa: F401 - first, for its message

# isort: split
import numpy as np
import torch
from torch import Tensor, nn

from equipoise import __version__
from equipoise.calibrators.base import Calibrator
from equipoise.calibrators.identity import Identity
from equipoise.calibrators.loading import from_artifact
from equipoise.core.arrays import Array
from equipoise.core.atomic_files import atomic_path, save_tensors
from equipoise.core.checksums import content_checksum
from equipoise.core.errors import DataError, EquipoiseError, first_line, require
from equipoise.core.predictions import Predictions
from equipoise.decisions.accept_rule import AcceptRule, replace_calibrator
from equipoise.integrations.bounded_network import (
    build_network,
    check_input_shape,
    check_weights,
    count_classes,
)
from equipoise.integrations.calibrated import CalibratedNetwork, calibrator_of_rule
from equipoise.integrations.raw_inputs import RawInputs, ScaledNetwork
from equipoise.objectives.deep_ensemble import MeanNetwork
from equipoise.training.batch_source import Inputs

__all__ = ["SavedModel", "load_model", "save_model"]

#: What a model in use is called with.
ArrayInputs: TypeAlias = Array | Tensor | Mapping[str, Array | Tensor]

_FORMAT = "equipoise.model"
#: Files with several networks have the last version, those with a rule 3, with a scaling of inputs 2, others 1.
_VERSION = 4
_NETWORK, _CALIBRATOR, _INPUTS = "network.", "calibrator.", "raw_inputs."


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class SavedModel:
    """What :func:`load_model` gives.

    Attributes:
        network: With its weights, in evaluation mode.
        calibrator: The calibrator behind it; the identity if there was none.
        class_names: One name per class, if they were saved.
        input_shape: Shape of one input, if it was saved.
        raw_inputs: What is done to inputs before the network gets them; None passes them on as they are.
        rule: Which predictions are accepted, if a rule was saved.
    """

    network: nn.Module
    calibrator: Calibrator
    class_names: tuple[str, ...] | None = None
    input_shape: tuple[int, ...] | None = None
    raw_inputs: RawInputs | None = None
    rule: AcceptRule | None = None

    def accept(self, inputs: ArrayInputs) -> Array:
        """Return which inputs have a prediction that the saved rule accepts ``(n,)``.

        Raises:
            DataError: If the model was saved without a rule.
        """
        if self.rule is None:
            raise DataError("SavedModel.accept: the model was saved without a rule. Save it with `rule`.")
        # The probabilities are calibrated already.
        without = replace_calibrator(self.rule, None)
        return without(Predictions(probs=self.predict_proba(inputs)))

    def predict_proba(self, inputs: ArrayInputs) -> Array:
        """Return calibrated probabilities ``(n, k)`` of a batch of inputs.

        Args:
            inputs: An array or tensor, or a mapping of them by name for networks that take named tensors. A model with
                ``raw_inputs`` takes them in the units of the data's files: images as uint8 from 0 to 255.

        Raises:
            DataError: If the inputs are not of the kind that the model takes, or the network's outputs are not finite:
                an input is NaN or infinite, or a number overflowed.
        """
        given: Inputs
        if isinstance(inputs, Mapping):
            given = {str(name): _as_tensor(one) for name, one in inputs.items()}
        else:
            given = _as_tensor(inputs)
        network = self.network
        if self.raw_inputs is not None:
            if isinstance(given, Mapping):
                raise DataError("SavedModel.predict_proba: expected one array of inputs, got named ones.")
            given = self.raw_inputs.check(given, where="SavedModel.predict_proba")
            network = ScaledNetwork(self.raw_inputs, network)
        with torch.inference_mode():
            probs: Array = CalibratedNetwork(network, self.calibrator)(given).numpy()
        bad = int((~np.isfinite(probs).all(axis=1)).sum())
        if bad:
            raise DataError(
                f"SavedModel.predict_proba: expected finite outputs of the network, got NaN or infinity for {bad} of "
                f"{len(probs)} inputs. Check the inputs for NaN and infinity, and the size of the weights."
            )
        return probs

    def predict(self, inputs: ArrayInputs) -> Array:
        """Return the most probable class of each input: its name, or its number if there are no names."""
        numbers = self.predict_proba(inputs).argmax(axis=1)
        named: Array = numbers if self.class_names is None else np.array(self.class_names)[numbers]
        return named


def _as_tensor(values: Array | Tensor) -> Tensor:
    return values if isinstance(values, Tensor) else torch.from_numpy(np.ascontiguousarray(values))


def save_model(
    path: str | os.PathLike[str],
    network: nn.Module,
    calibrator: Calibrator | None = None,
    *,
    class_names: Sequence[str] | None = None,
    architecture: str | None = None,
    options: Mapping[str, Any] | None = None,
    input_shape: Sequence[int] | None = None,
    raw_inputs: RawInputs | None = None,
    rule: AcceptRule | None = None,
) -> None:
    """Write weights and calibrator into one file, with a digest over all of it; never a pickle.

    Args:
        path: A name that ends in ``.safetensors``.
        network: Its parameters and buffers are written, not its code. An ensemble is a
            :class:`~equipoise.objectives.deep_ensemble.MeanNetwork` of networks of the architecture.
        calibrator: A fitted calibrator.
        class_names: One name per class.
        architecture: The network's name in the catalogue, so that the file can be loaded by itself.
        options: What it was made with, such as ``{"n_classes": 10}``.
        input_shape: Shape of one input, without the batch; wanted for the export.
        raw_inputs: What is done to inputs before the network gets them, so that the file takes them raw.
        rule: A certified rule, so that the loaded model can accept or abstain. Its calibrator must be ``calibrator``,
            which may be left out.

    Raises:
        ValueError: For another ending.
        DataError: For a network that the architecture does not make, weights that are not finite, or numbers of
            classes or input shapes that do not fit the network.

    Example:
        >>> import tempfile
        >>> from equipoise.calibrators import TemperatureScaling
        >>> from equipoise.models import mlp
        >>> network = mlp(n_inputs=4, n_classes=2)
        >>> fitted = TemperatureScaling().fit([[3.0, 0.0]] * 4, [0, 0, 0, 1])
        >>> path = Path(tempfile.mkdtemp()) / "model.safetensors"
        >>> save_model(path, network, fitted, architecture="mlp", options={"n_inputs": 4, "n_classes": 2})
        >>> load_model(path).predict_proba(torch.zeros(3, 4)).shape
        (3, 2)
    """
    if Path(path).suffix != ".safetensors":
        raise ValueError(f"save_model: the name must end in .safetensors, got {str(path)!r}.")
    if isinstance(calibrator, Identity):
        calibrator = None
    if rule is not None:
        calibrator = calibrator_of_rule(rule, calibrator, where="save_model")
    packed = None if calibrator is None else calibrator.to_artifact()
    parameters = {} if packed is None else packed.pop("parameters")
    weights = _weights(network)
    made_of: dict[str, Any] | None = None
    if architecture is not None:
        made_of = {"name": architecture, "options": dict(options or {})}
        if isinstance(network, MeanNetwork):
            made_of["members"] = len(network.networks)
    names = None if class_names is None else tuple(class_names)
    shape = None if input_shape is None else tuple(input_shape)
    check_weights(network, weights, where="save_model")
    if made_of is not None:
        build_network(made_of, weights, where="save_model")
    _check_sizes(network, calibrator, names, shape, named=made_of is not None, where="save_model")
    header = {
        "format": _FORMAT,
        # An older package must not read a file with parts that it would ignore.
        "version": _file_version(made_of, raw_inputs, rule),
        "written_by": {"equipoise": __version__, "torch": torch.__version__},
        "architecture": made_of,
        "class_names": None if names is None else list(names),
        "input_shape": None if shape is None else list(shape),
        "calibrator": packed,
        **({} if raw_inputs is None else {"raw_inputs": raw_inputs.kind}),
        **({} if rule is None else {"rule": replace_calibrator(rule, None).as_dict()}),
    }
    tensors = {_NETWORK + name: value for name, value in weights.items()}
    for name, entry in parameters.items():
        values = torch.tensor(entry["values"], dtype=torch.float64, device="cpu").reshape(entry["shape"])
        tensors[_CALIBRATOR + name] = values
    for name, value in {} if raw_inputs is None else raw_inputs.state_dict().items():
        tensors[_INPUTS + name] = value.clone()
    header["digest"] = _digest(header, tensors)
    metadata = {_FORMAT: json.dumps(header)}
    with atomic_path(path) as temporary:
        save_tensors(temporary, tensors, metadata=metadata, framework="torch", purpose="save a model")


def _file_version(
    made_of: Mapping[str, Any] | None, raw_inputs: RawInputs | None, rule: AcceptRule | None
) -> int:
    if made_of is not None and "members" in made_of:
        return _VERSION
    return 3 if rule is not None else 1 if raw_inputs is None else 2


def load_model(path: str | os.PathLike[str], *, network: nn.Module | None = None) -> SavedModel:
    """Read what :func:`save_model` wrote; nothing in the file is run.

    Args:
        path: The file.
        network: A network of the same architecture, to be filled; not needed if the file names one of the catalogue.

    Returns:
        The model, ready to predict.

    Raises:
        DataError: If the file is not such a model, is damaged or from a newer version, or its weights, class names,
            calibrator or input shape do not fit the network. Sizes are compared before the network is built.

    Example:
        >>> import tempfile
        >>> from equipoise.models import mlp
        >>> options = {"n_inputs": 4, "n_classes": 2}
        >>> path = Path(tempfile.mkdtemp()) / "model.safetensors"
        >>> save_model(path, mlp(**options), class_names=["cat", "dog"], architecture="mlp", options=options)
        >>> load_model(path).predict(torch.zeros(3, 4)).shape
        (3,)
    """
    header, tensors = _read(path)
    where = f"load_model: {path}"
    try:
        weights = {
            name[len(_NETWORK) :]: value for name, value in tensors.items() if name.startswith(_NETWORK)
        }
        if network is None and header["architecture"] is None:
            raise DataError(
                f"load_model: {path} names no architecture. Pass load_model(path, network=...) with a network of the "
                "same kind."
            )
        names = None if header["class_names"] is None else tuple(header["class_names"])
        shape = None if header["input_shape"] is None else tuple(header["input_shape"])
        calibrator = _calibrator(header, tensors)
        filled = build_network(header["architecture"], weights, where=where) if network is None else network
        check_weights(filled, weights, where=where)
        _check_sizes(filled, calibrator, names, shape, named=network is None, where=where)
        filled.load_state_dict(weights)
        return SavedModel(
            network=filled.eval(),
            calibrator=calibrator,
            class_names=names,
            input_shape=shape,
            raw_inputs=_raw_inputs(header, tensors, shape),
            rule=_rule(header, calibrator, where),
        )
    except EquipoiseError:
        raise
    except (KeyError, TypeError, AttributeError, ValueError, RuntimeError) as error:
        raise DataError(f"{where} is damaged: {type(error).__name__} {first_line(error)}.") from error


def _rule(header: Mapping[str, Any], calibrator: Calibrator, where: str) -> AcceptRule | None:
    if header.get("rule") is None:
        return None
    found = AcceptRule.from_dict(header["rule"], where=where)
    return replace_calibrator(found, None if isinstance(calibrator, Identity) else calibrator)


def _calibrator(header: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> Calibrator:
    if header["calibrator"] is None:
        return Identity()
    parameters = {
        name[len(_CALIBRATOR) :]: {"shape": list(value.shape), "values": value.ravel().tolist()}
        for name, value in tensors.items()
        if name.startswith(_CALIBRATOR)
    }
    return from_artifact({**header["calibrator"], "parameters": parameters})


def _raw_inputs(
    header: Mapping[str, Any], tensors: Mapping[str, Tensor], shape: tuple[int, ...] | None
) -> RawInputs | None:
    if header.get("raw_inputs") is None:
        return None
    found = RawInputs(header["raw_inputs"], tensors[f"{_INPUTS}center"], tensors[f"{_INPUTS}spread"])
    fits = {"image": 0, "features": -1}.get(found.kind)
    if shape and found.center.ndim and (fits is None or len(found.center) not in (1, shape[fits])):
        raise DataError(
            f"load_model: expected a scaling that fits inputs of shape {shape}, got {len(found.center)} values."
        )
    return found


def _weights(network: nn.Module) -> dict[str, Tensor]:
    state = network.state_dict()
    others = [name for name, value in state.items() if not isinstance(value, Tensor)]
    if others:
        raise ValueError(
            f"save_model: the network keeps {others[0]!r}, which is not a tensor. Make it a buffer, or leave it out."
        )
    # Tied weights share memory, which the format refuses.
    return {name: value.detach().cpu().clone().contiguous() for name, value in state.items()}


def _check_sizes(
    network: nn.Module,
    calibrator: Calibrator | None,
    class_names: tuple[str, ...] | None,
    input_shape: tuple[int, ...] | None,
    *,
    named: bool,
    where: str,
) -> None:
    """Raise unless network, calibrator, class names and input shape agree.

    A network that is not of the catalogue is not run: its inputs need not be one tensor.
    """
    if input_shape is not None and not all(type(size) is int and size > 0 for size in input_shape):
        raise DataError(f"{where}: `input_shape` must be sizes of at least 1, got {repr(input_shape)[:80]}.")
    if class_names is not None and not all(type(name) is str for name in class_names):
        raise DataError(f"{where}: `class_names` must be texts, got {repr(class_names)[:80]}.")
    if class_names is not None and len(set(class_names)) < len(class_names):
        raise DataError(f"{where}: `class_names` has a name twice. Give every class its own name.")
    counts = {
        "network": count_classes(network),
        "calibrator": None if calibrator is None else calibrator.n_classes,
        "class_names": None if class_names is None else len(class_names),
    }
    if named and input_shape is not None:
        counts["network"] = check_input_shape(network, input_shape, where=where)[0]
    known = {name: count for name, count in counts.items() if count is not None}
    if len(set(known.values())) > 1:
        listed = ", ".join(f"{name} {count}" for name, count in known.items())
        raise DataError(f"{where}: the numbers of classes differ: {listed}. Save parts that belong together.")


def _read(path: str | os.PathLike[str]) -> tuple[dict[str, Any], dict[str, Tensor]]:
    safetensors = require("safetensors", extra="safetensors", purpose="load a model")
    try:
        with safetensors.safe_open(path, framework="pt") as stream:
            header = json.loads((stream.metadata() or {}).get(_FORMAT, "null"))
            tensors = {name: stream.get_tensor(name) for name in stream.keys()}  # noqa: SIM118
    except OSError as error:
        raise DataError(f"load_model: {path} cannot be read ({error.strerror or error}).") from error
    except (safetensors.SafetensorError, ValueError, RecursionError) as error:
        raise DataError(f"load_model: {path} is no safetensors file, or is damaged ({error}).") from error
    if not isinstance(header, dict) or header.get("format") != _FORMAT:
        raise DataError(f"load_model: {path} is not a saved model. Write one with save_model(path, network).")
    if not isinstance(header.get("version"), int) or header["version"] > _VERSION:
        raise DataError(
            f"load_model: {path} has version {header.get('version')}, this package reads up to {_VERSION}. "
            "Upgrade equipoise."
        )
    if header.get("digest") != _digest(header, tensors):
        raise DataError(
            f"load_model: {path} was changed or damaged since it was written: its content does not match its digest. "
            "Save the model again."
        )
    return header, tensors


def _digest(header: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> str:
    rest = {name: value for name, value in header.items() if name != "digest"}
    return content_checksum({"metadata": rest, "tensors": tensors})
