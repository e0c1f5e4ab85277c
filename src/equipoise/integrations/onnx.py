"""ONNX: a network and its calibrator as one graph, checked against the original before the file gets its name."""

from __future__ import annotations

import copy
import json
import logging
import os
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from equipoise.core import torch_required as _torch_required  # noqa: F401 - first, for its message

# isort: split
import numpy as np
import torch
from torch import Tensor, nn

from equipoise import __version__
from equipoise.calibrators.base import Calibrator
from equipoise.core.arrays import Array
from equipoise.core.atomic_files import atomic_path
from equipoise.core.errors import DataError, needs
from equipoise.decisions.accept_rule import AcceptRule
from equipoise.integrations.calibrated import CalibratedNetwork, SelectiveNetwork, calibrator_of_rule
from equipoise.training.batch_source import Inputs
from equipoise.training.network_call import as_logits, call_network

with needs("onnx", extra="onnx", purpose="export to ONNX"):
    import onnx
with needs("onnxruntime", extra="onnx", purpose="check an exported graph"):
    import onnxruntime
with needs("onnxscript", extra="onnx", purpose="export to ONNX"):
    from onnxscript import opset20 as op

__all__ = ["check_parity", "export_onnx"]

_LARGEST = 1e4
_NEAR = 1e-4


def export_onnx(
    path: str | os.PathLike[str],
    network: nn.Module,
    calibrator: Calibrator | None,
    example: Inputs,
    *,
    class_names: Sequence[str] | None = None,
    notes: Mapping[str, str] | None = None,
    tolerance: float = 1e-4,
    rule: AcceptRule | None = None,
) -> float:
    """Write network and calibrator as one ONNX graph from ``inputs`` to ``probs``, or no file if its answers differ.

    The graph is run by onnxruntime beside the original on the example and on difficult logits: ties, the calibrator's
    own bin edges, and logits of up to 10,000.

    Args:
        path: A name that ends in ``.onnx``.
        network: Gives logits ``(n, k)``, or an object with ``logits``; it is copied and put into evaluation mode.
        calibrator: A fitted calibrator; None leaves the logits alone.
        example: A batch of real inputs: a tensor, or named tensors such as ``input_ids`` and ``attention_mask``, which
            become the inputs of the graph. The number of rows stays free in the graph. So does the length of token
            numbers (integers of shape ``(n, length)``), if the network takes other lengths.
        class_names: Kept in the file's metadata.
        notes: Further texts for the metadata, by name.
        tolerance: Largest difference of a probability that is accepted.
        rule: A certified rule, which adds the output ``accept``: whether each prediction is accepted. Its calibrator
            takes the place of ``calibrator``, which must be None or the same.

    Returns:
        The largest difference that was found.

    Raises:
        DataError: If the graph differs from the original by more than the tolerance.

    Example:
        >>> import tempfile
        >>> from equipoise.calibrators import TemperatureScaling
        >>> fitted = TemperatureScaling().fit([[3.0, 0.0]] * 4, [0, 0, 0, 1])
        >>> path = Path(tempfile.mkdtemp()) / "model.onnx"
        >>> export_onnx(path, nn.Linear(4, 2), fitted, torch.randn(8, 4)) < 1e-6
        True
    """
    if Path(path).suffix != ".onnx":
        raise ValueError(f"export_onnx: the name must end in .onnx, got {str(path)!r}.")
    if rule is not None:
        calibrator = calibrator_of_rule(rule, calibrator, where="export_onnx")
    network = copy.deepcopy(network).eval().cpu()
    # An own kind of mapping, such as that of a tokenizer, would be traced as one object.
    example = dict(example) if isinstance(example, Mapping) else example
    with atomic_path(path) as temporary:
        if rule is None:
            _write(temporary, CalibratedNetwork(network, calibrator).eval(), example, "inputs")
        else:
            _write(
                temporary,
                SelectiveNetwork(network, rule).eval(),
                example,
                "inputs",
                outputs=("probs", "accept"),
            )
            notes = {**(notes or {}), "accept": rule.certificate.describe(rule.score or "score")}
        _describe(temporary, calibrator, class_names, notes or {})
        found = check_parity(temporary, CalibratedNetwork(network, calibrator).eval(), example)
        if calibrator is not None:
            found = max(found, _map_parity(temporary.parent, calibrator, network, example))
        if not found <= tolerance:
            raise DataError(
                f"export_onnx: the graph's probabilities differ from the original's by {found:.2g}, more than "
                f"{tolerance:.2g}. Nothing was written; report it, or raise the tolerance if that is enough for you."
            )
        if rule is not None:
            _check_accept(temporary, SelectiveNetwork(network, rule).eval(), example)
    return found


def _check_accept(path: Path, model: SelectiveNetwork, example: Inputs) -> None:
    """Raise unless the graph accepts the same rows, except within rounding of the threshold."""
    accepted = _run(path, example, "accept")
    with torch.no_grad():
        wanted = model(example)[1].numpy()
        shifted = []
        for step in (-_NEAR, _NEAR):
            near = copy.copy(model)
            near.threshold = model.threshold + step
            shifted.append(near(example)[1].numpy())
    clear = shifted[0] == shifted[1]
    if (accepted != wanted)[clear].any():
        raise DataError(
            "export_onnx: the graph accepts other rows than the original. Nothing was written; report it."
        )


def check_parity(path: str | os.PathLike[str], model: nn.Module, inputs: Inputs) -> float:
    """Return the largest difference between what a graph answers and what a module does.

    Args:
        path: An ONNX file with one output.
        model: What it was made from.
        inputs: A batch, as a tensor or as named tensors; one row alone is compared too, and token numbers that are one
            shorter, if the graph takes other lengths.
    """
    batches = [inputs, _cut(inputs, rows=1)]
    if _has_free_length(path):
        batches.append(_cut(inputs, shorter=True))
    return float(max(_gaps(path, model, batch).max(initial=0.0) for batch in batches))


def _cut(inputs: Inputs, *, rows: int | None = None, shorter: bool = False) -> Inputs:
    if isinstance(inputs, Mapping):
        return {name: _cut_tensor(one, rows, shorter=shorter) for name, one in inputs.items()}
    return _cut_tensor(inputs, rows, shorter=shorter)


def _cut_tensor(values: Tensor, rows: int | None, *, shorter: bool) -> Tensor:
    return values[:rows, :-1] if shorter and _is_tokens(values) else values[:rows]


def _is_tokens(values: Tensor) -> bool:
    """Say whether a tensor holds token numbers, or a mask of them: rows of integers."""
    return (
        values.ndim == 2
        and not values.is_floating_point()
        and values.dtype != torch.uint8
        and values.shape[1] > 2
    )


def _session(path: str | os.PathLike[str]) -> Any:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def _has_free_length(path: str | os.PathLike[str]) -> bool:
    shapes = [one.shape for one in _session(path).get_inputs()]
    return any(len(shape) == 2 and isinstance(shape[1], str) for shape in shapes)


def _gaps(path: str | os.PathLike[str], model: nn.Module, inputs: Inputs) -> Array:
    """Return the largest difference in each row; infinite where one side is no number."""
    answer = _run(path, inputs, "probs")
    with torch.no_grad():
        wanted = model(inputs).double().numpy()
    gaps = np.abs(answer.astype(np.float64) - wanted).reshape(len(wanted), -1).max(axis=1)
    return np.where(np.isfinite(gaps), gaps, np.inf)


def _run(path: str | os.PathLike[str], inputs: Inputs, output: str) -> Array:
    session = _session(path)
    wanted_inputs = [one.name for one in session.get_inputs()]
    given = inputs if isinstance(inputs, Mapping) else {wanted_inputs[0]: inputs}
    # What a network does not use is no input of its graph.
    (answer,) = session.run([output], {name: given[name].numpy() for name in wanted_inputs})
    found: Array = answer
    return found


def _map_parity(folder: Path, calibrator: Calibrator, network: nn.Module, example: Inputs) -> float:
    """Return the largest difference of the calibrator alone, on logits that a network rarely gives."""
    with torch.no_grad():
        n_classes = as_logits(call_network(network, example), where="export_onnx").shape[1]
    hostile, edges = _hostile_logits(n_classes), _edge_logits(n_classes, calibrator)
    file = folder / f".map-parity-{os.getpid()}.onnx"
    module = CalibratedNetwork(nn.Identity(), calibrator)
    try:
        _write(file, module, hostile, "logits")
        worst = check_parity(file, module, hostile)
        if len(edges):
            # A row within rounding of a bin's edge may fall to either side; a little off it, it may not.
            off = edges + _NEAR * torch.eye(n_classes, device="cpu")[0]
            near_edges = np.minimum(_gaps(file, module, edges), _gaps(file, module, off))
            worst = max(worst, float(near_edges.max()))
    finally:
        file.unlink(missing_ok=True)
    return worst


def _hostile_logits(n_classes: int) -> Tensor:
    corners = np.vstack([np.eye(n_classes), -np.eye(n_classes), np.zeros((1, n_classes))])
    plain = np.random.default_rng(0).normal(size=(200, n_classes))
    return torch.from_numpy(np.vstack([plain, 5 * plain, _LARGEST * corners, corners]).astype(np.float32))


def _edge_logits(n_classes: int, calibrator: Calibrator) -> Tensor:
    """Return logits whose first probability is at an edge or knot of the calibrator, the others equal."""
    known = _known(calibrator)[0]
    edges = known.get("edges", known.get("knots", np.empty(0)))
    inner = np.unique(edges[(edges > 0) & (edges < 1)])[:500]
    logits = np.zeros((len(inner), n_classes), np.float32)
    logits[:, 0] = np.log(inner / (1 - inner)) + np.log(n_classes - 1)
    return torch.from_numpy(logits)


def _known(calibrator: Calibrator) -> tuple[Mapping[str, Array], str]:
    """Return what a calibrator learned, and in words; nothing if it follows from its settings."""
    return (calibrator.result.parameters, calibrator.result.words) if calibrator.needs_fit else ({}, "")


def _write(
    path: Path, model: nn.Module, example: Inputs, name: str, *, outputs: Sequence[str] = ("probs",)
) -> None:
    """Write a graph whose number of rows is free, and the length of token numbers if the network allows it."""
    lengths = {one.shape[1] for one in _tensors(example) if _is_tokens(one)}
    if len(lengths) == 1:
        try:
            _write_graph(path, model, example, name, outputs, sequence=torch.export.Dim("sequence", min=2))
            return
        except Exception:  # noqa: BLE001 - the exporter wraps whatever a network of one length raises
            path.write_bytes(b"")
    _write_graph(path, model, example, name, outputs, sequence=None)


def _write_graph(
    path: Path, model: nn.Module, example: Inputs, name: str, outputs: Sequence[str], *, sequence: Any
) -> None:
    batch = torch.export.Dim("batch", min=1)

    def free(values: Tensor) -> dict[int, Any]:
        return {0: batch, 1: sequence} if sequence is not None and _is_tokens(values) else {0: batch}

    shapes = (
        {key: free(one) for key, one in example.items()} if isinstance(example, Mapping) else free(example)
    )
    with _quiet():
        program = torch.onnx.export(
            _OneArgument(model),
            kwargs={"inputs": example},  # as a position, a mapping would be taken for keywords
            dynamo=True,
            dynamic_shapes={"inputs": shapes},
            input_names=list(example) if isinstance(example, Mapping) else [name],
            output_names=list(outputs),
            custom_translation_table={torch.ops.aten.searchsorted.Tensor: _searchsorted},
            verbose=False,
        )
    assert program is not None
    program.save(str(path))


class _OneArgument(nn.Module):
    """A model whose only argument is the batch: the exporter does not take further ones by keyword."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, inputs: Inputs) -> Any:
        return self.model(inputs)


def _tensors(inputs: Inputs) -> list[Tensor]:
    return list(inputs.values()) if isinstance(inputs, Mapping) else [inputs]


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep back what the exporter says of its own parts and of packages that are not used; errors are raised still."""
    log = logging.getLogger("torch.onnx")
    level = log.level
    log.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        log.setLevel(level)


def _searchsorted(  # the arguments are named by the operator that is translated
    sorted_sequence: Any,
    self: Any,
    out_int32: bool = False,
    right: bool = False,
    side: str | None = None,
    sorter: Any = None,
) -> Any:
    """Count the edges below each value, which is what a search in sorted edges finds."""
    values = op.Unsqueeze(self, op.Constant(value_ints=[-1]))
    edges = op.Unsqueeze(sorted_sequence, op.Constant(value_ints=[-2]))
    below = op.LessOrEqual(edges, values) if right else op.Less(edges, values)
    counted = op.Cast(below, to=onnx.TensorProto.INT64)
    return op.ReduceSum(counted, op.Constant(value_ints=[-1]), keepdims=0)


def _describe(
    path: Path, calibrator: Calibrator | None, class_names: Sequence[str] | None, notes: Mapping[str, str]
) -> None:
    model = onnx.load(str(path))
    properties: Mapping[str, Any] = {
        **notes,
        "equipoise": __version__,
        "torch": torch.__version__,
        "class_names": json.dumps(None if class_names is None else list(class_names)),
        "calibrator": "none" if calibrator is None else calibrator.kind,
        "calibrator_settings": json.dumps({} if calibrator is None else calibrator.settings),
        "calibrator_words": "" if calibrator is None else _known(calibrator)[1],
    }
    onnx.helper.set_model_props(model, {key: str(value) for key, value in properties.items()})
    onnx.save(model, str(path))
