"""Metrics of torchmetrics whose type or state is changed: the value is that of double precision, or an error."""

import copy
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torchmetrics import MetricCollection

from equipoise.integrations import torchmetrics as ours
from stress.children import forked
from stress.judge import Wrong, is_ours

METRICS = (ours.ECE, ours.MCE, ours.ClasswiseECE, ours.NLL, ours.Brier, ours.AdaptiveECE, ours.SmECE, ours.KS)
DTYPES = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
Batch = tuple[torch.Tensor, torch.Tensor]

#: What a training loop, a precision setting or a checkpoint may do to a module and its metrics.
CHANGES: dict[str, Callable[[Any], Any]] = {
    **{f"to {dtype}": (lambda metric, dtype=dtype: metric.to(dtype)) for dtype in DTYPES},
    "half": lambda metric: metric.half(),
    "bfloat16": lambda metric: metric.bfloat16(),
    "float": lambda metric: metric.float(),
    "double": lambda metric: metric.double(),
    "type": lambda metric: metric.type(torch.float16),
    "set_dtype": lambda metric: metric.set_dtype(torch.float16),
    "cpu": lambda metric: metric.cpu(),
    "in a module": lambda metric: torch.nn.ModuleList([metric]).half()[0],
    "copied": copy.deepcopy,
    "pickled": lambda metric: pickle.loads(pickle.dumps(metric)),
}


def prepare_adapters(folder: Path) -> None:
    for make in METRICS:
        make(3, inputs="probs")(torch.full((2, 3), 1 / 3), torch.tensor([0, 1]))


def try_adapter(_: None, chance: np.random.Generator, folder: Path) -> None:
    """Change a metric between updates, perhaps restore it from a state of other settings, and compare."""
    seed = chance.integers(2**32)

    def attempt() -> None:
        try:
            _compare(np.random.default_rng(seed))
        except Wrong:
            raise
        except Exception as error:
            if not _is_clear(error):
                raise

    found = forked(attempt, folder)
    if found.code:
        raise Wrong(f"exit code {found.code}: {' '.join(found.err.strip().splitlines()[-1:])}"[:300])


def _is_clear(error: Exception) -> bool:
    refused = isinstance(error, RuntimeError) and "Error(s) in loading state_dict" in str(error)
    return refused or is_ours(error, plain=True)


def _compare(chance: np.random.Generator) -> None:
    make = METRICS[chance.integers(len(METRICS))]
    k, n_bins = int(chance.choice([2, 3, 10, 50])), int(chance.choice([1, 5, 15, 40]))
    inputs = str(chance.choice(["logits", "probs"]))
    batches = [_batch(chance, k, inputs) for _ in range(int(chance.integers(2, 12)))]
    expected = make(k, inputs=inputs, n_bins=n_bins)
    for batch in batches:
        expected.update(*batch)
    metric: Any = make(k, inputs=inputs, n_bins=n_bins)
    if chance.random() < 0.2:
        metric = MetricCollection(
            [metric, ours.NLL(k, inputs=inputs, n_bins=n_bins)] if make is not ours.NLL else [metric]
        )
    steps = []
    restore_at = int(chance.integers(len(batches))) if chance.random() < 0.4 else -1
    for number, batch in enumerate(batches):
        if chance.random() < 0.5:
            name = list(CHANGES)[chance.integers(len(CHANGES))]
            if (
                name == "set_dtype"
                or not isinstance(metric, MetricCollection)
                or name in ("copied", "pickled")
            ):
                steps.append(name)
                metric = CHANGES[name](metric) if name != "set_dtype" else _set_dtype(metric)
        if number == restore_at and not isinstance(metric, MetricCollection):
            steps.append(_restore(metric, make, batches[:number], (k, n_bins, inputs), chance))
        metric.update(*batch)
    value = metric.compute()
    value = value[make.__name__] if isinstance(metric, MetricCollection) else value
    if not abs(float(value) - float(expected.compute())) < 1e-5 * (1 + abs(float(expected.compute()))):
        raise Wrong(f"{make.__name__} is {float(value)}, not {float(expected.compute())}, after {steps}")


def _set_dtype(metric: Any) -> Any:
    for member in metric.values() if isinstance(metric, MetricCollection) else [metric]:
        member.set_dtype(torch.float16)
    return metric


def _restore(
    metric: Any, make: Any, seen: list[Batch], settings: tuple[int, int, str], chance: np.random.Generator
) -> str:
    """Load the state of the batches seen so far, as another metric saved it: with the same settings, or others."""
    k, n_bins, inputs = settings
    how = str(chance.choice(["same", "bins", "classes", "half", "int32", "shape", "negative", "nan"]))
    other_bins, other_k = n_bins + 7 * (how == "bins"), k + (how == "classes")
    source = make(other_k, inputs=inputs, n_bins=other_bins)
    source.persistent(mode=True)
    for preds, target in seen:
        source.update(torch.cat([preds, preds[:, :1] * 0], 1) if how == "classes" else preds, target)
    state = {name: value.clone() for name, value in source.state_dict().items()}
    if how in ("half", "int32"):
        state = {
            name: value.to(torch.float16 if how == "half" else torch.int32) for name, value in state.items()
        }
    elif how == "shape":
        state = {name: value[: len(value) // 2] for name, value in state.items()}
    elif how in ("negative", "nan"):
        for value in state.values():
            value[...] = -5 if how == "negative" or not value.is_floating_point() else float("nan")
    metric.persistent(mode=True)
    metric.load_state_dict(state)
    return f"state of {how}"


def _batch(chance: np.random.Generator, k: int, inputs: str) -> Batch:
    n = int(chance.integers(1, 200))
    logits = torch.from_numpy(chance.normal(size=(n, k)) * 2)
    scores = logits if inputs == "logits" else logits.softmax(1)
    dtype = DTYPES[chance.integers(2, 4)] if inputs == "probs" else DTYPES[chance.integers(4)]
    return scores.to(dtype), torch.from_numpy(chance.integers(0, k, n))
