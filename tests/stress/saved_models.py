"""Saved models whose header, metadata, options or weights were changed by others."""

import copy
import json
import struct
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from safetensors.torch import save_file

from equipoise.calibrators import TemperatureScaling
from equipoise.core.errors import EquipoiseError
from equipoise.integrations import saved_model
from equipoise.integrations.saved_model import load_model, save_model
from equipoise.models import mlp, small_cnn
from helpers.calibration_data import sample
from helpers.hostile_files import WAYS, damaged
from stress.children import MUCH, check_finished, command, forked, warm_up
from stress.files import LIES, lying
from stress.judge import Wrong
from stress.stored import replace_somewhere

FORMAT = "equipoise.model"
#: Options of networks that small files may declare.
OPTIONS: tuple[dict[str, Any], ...] = (
    {"hidden": [60_000, 60_000]}, {"hidden": [4] * 200_000}, {"hidden": [10**12]}, {"n_classes": 10**9},
    {"n_inputs": 10**9}, {"n_inputs": -4}, {"n_classes": 2.5}, {"hidden": "abc"}, {"dropout": 0.5}, {"dropout": 7},
    {"hidden": []}, {"n_classes": True}, {"unknown": 1}, {"n_inputs": "64"}, {"hidden": [[8]]},
)  # fmt: skip
SHAPES: tuple[Any, ...] = (
    [5],
    [],
    [0],
    [-1],
    [10**9],
    [4, 4, 4, 4],
    "abc",
    [1.5],
    None,
    [10**6, 10**6],
    4,
    {"a": 1},
)


class Saved(NamedTuple):
    """A model on disk: its file, metadata and tensors, inputs, and the probabilities it gives for them."""

    content: bytes
    metadata: dict[str, Any]
    tensors: dict[str, torch.Tensor]
    inputs: torch.Tensor
    probs: np.ndarray


def prepare_saved_models(folder: Path) -> list[Saved]:
    fitted = TemperatureScaling().fit(*sample(60, 3))
    made = (
        (
            mlp(n_inputs=4, n_classes=3, hidden=(8,)),
            "mlp",
            {"n_inputs": 4, "n_classes": 3, "hidden": [8]},
            (4,),
        ),
        (
            small_cnn(3, 1, widths=(2, 3, 4)),
            "small_cnn",
            {"n_classes": 3, "in_channels": 1, "widths": [2, 3, 4]},
            (1, 8, 8),
        ),
    )
    found = []
    for number, (network, name, options, shape) in enumerate(made):
        path = folder / f"{number}.safetensors"
        save_model(
            path,
            network,
            fitted,
            class_names=["cat", "dog", "eel"],
            architecture=name,
            options=options,
            input_shape=shape,
        )
        inputs = torch.randn(5, *shape, generator=torch.Generator().manual_seed(1))
        metadata, tensors = saved_model._read(path)
        found.append(
            Saved(path.read_bytes(), metadata, tensors, inputs, load_model(path).predict_proba(inputs))
        )
    warm_up(["export", folder / "0.safetensors", "-o", folder / "0.onnx"])
    return found


def try_saved_model(prepared: list[Saved], chance: np.random.Generator, folder: Path) -> None:
    """A damaged model is refused in one line or equals the original; so is one whose metadata are false."""
    saved = prepared[chance.integers(len(prepared))]
    path = folder / "model.safetensors"
    how = str(
        chance.choice(["damage", "header", "options", "metadata", "metadata", "weights", "shape", "names"])
    )
    if how == "damage":
        path.write_bytes(damaged(saved.content, chance, str(chance.choice(WAYS))))
    elif how == "header":
        path.write_bytes(_false_header(saved.content, chance))
    else:
        _write_forged(saved, path, chance, how)
    may_change = {"metadata": "calibrator"}.get(how)
    if chance.random() < 0.1:
        found = command(["export", path, "-o", folder / "model.onnx", "--shape", "5"], folder)
        check_finished(found, f"export ({how})")
        return

    def load() -> None:
        try:
            model = load_model(path)
            probs = model.predict_proba(saved.inputs)
        except EquipoiseError as error:
            if "\n" in str(error).strip():
                raise Wrong(f"{how}: not one line: {str(error)[:100]!r}") from None
            return
        _check_model(model, probs, saved, how, calibrator_may_change=may_change is not None)

    found = forked(load, folder)
    if found.code:
        raise Wrong(f"{how}: exit code {found.code}: {found.err.strip().splitlines()[-1:]}"[:300])
    if found.grown > MUCH:
        raise Wrong(f"{how}: {found.grown / 2**30:.1f} GB of address space")


def _check_model(
    model: saved_model.SavedModel, probs: np.ndarray, saved: Saved, how: str, *, calibrator_may_change: bool
) -> None:
    if probs.shape != saved.probs.shape or not np.isfinite(probs).all() or not np.allclose(probs.sum(1), 1):
        raise Wrong(f"{how}: loaded, and its outputs are no probabilities of {saved.probs.shape[1]} classes")
    names = model.class_names
    if names is not None and (
        len(names) != probs.shape[1] or not all(isinstance(name, str) for name in names)
    ):
        raise Wrong(f"{how}: loaded, and its class names are {str(names)[:60]}")
    shape = model.input_shape
    if shape is not None:
        model.predict_proba(torch.zeros(1, *shape))
    if not calibrator_may_change and not np.allclose(probs, saved.probs, atol=1e-7):
        raise Wrong(f"{how}: loaded, and gives other probabilities")


def _false_header(content: bytes, chance: np.random.Generator) -> bytes:
    length = struct.unpack("<Q", content[:8])[0]
    if chance.random() < 0.3:
        return struct.pack("<Q", int(chance.choice(LIES)) % 2**64) + content[8:]
    header = lying(content[8 : 8 + length], chance)
    return struct.pack("<Q", len(header)) + header + content[8 + length :]


def _write_forged(saved: Saved, path: Path, chance: np.random.Generator, how: str) -> None:
    metadata = copy.deepcopy(saved.metadata)
    tensors = {name: value.clone() for name, value in saved.tensors.items()}
    if how == "options":
        metadata["architecture"]["options"] |= OPTIONS[chance.integers(len(OPTIONS))]
    elif how == "shape":
        metadata["input_shape"] = SHAPES[chance.integers(len(SHAPES))]
    elif how == "names":
        few = (
            ["a", "b"],
            ["a"] * 4,
            [],
            "abcd",
            [1, 2, 3],
            ["a", "a", "a"],
            {"a": 1},
            [None] * 3,
            ["a", "b", "c"],
        )
        metadata["class_names"] = few[chance.integers(len(few))]
    elif how == "metadata":
        for _ in range(int(chance.integers(1, 3))):
            replace_somewhere(metadata, chance)
    else:
        _change_weights(tensors, chance)
    try:
        metadata["digest"] = saved_model._digest(metadata, tensors)
        text = json.dumps(metadata)
        text.encode()
    except (ValueError, TypeError):  # what JSON cannot hold
        text = json.dumps(saved.metadata | {"digest": "x"})
    save_file(tensors, path, metadata={FORMAT: text})


def _change_weights(tensors: dict[str, torch.Tensor], chance: np.random.Generator) -> None:
    names = [name for name, value in tensors.items() if value.is_floating_point() and value.numel()]
    name = names[chance.integers(len(names))]
    how = chance.integers(6)
    if how <= 1:
        bad = (float("nan"), float("inf"), float("-inf"))[chance.integers(3)]
        tensors[name].view(-1)[chance.integers(tensors[name].numel())] = bad
    elif how == 2:
        tensors[name] = tensors[name].reshape(-1)[:-1].clone()
    elif how == 3:
        del tensors[name]
    elif how == 4:
        tensors["network.extra"] = torch.zeros(3)
    else:
        tensors[name] = tensors[name].to(torch.complex64)
