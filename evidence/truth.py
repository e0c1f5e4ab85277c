"""True probabilities of the classes of test rows, where they are known: of a mixture, and by the votes of people."""

from __future__ import annotations

import inspect
from functools import cache

import numpy as np
import torch
from torch import Tensor

from equipoise import Predictions
from equipoise.data import gaussian_mixture
from equipoise.data.readers.cifar10h import cifar10h
from equipoise.data.readers.mixtures import top_label_error
from equipoise.experiments import Spec
from equipoise.experiments.build.data import data_of


def truth_of(spec: Spec, folder: str | None) -> Tensor | None:
    """Give the true probabilities ``(n, k)`` of a run's test rows; None where nobody knows them.

    Args:
        spec: What was run.
        folder: The data folder, which holds the votes.
    """
    if spec.data.name == "mixture":
        known = inspect.signature(gaussian_mixture).parameters
        options = {key: value for key, value in spec.data.options.items() if key in known}
        data = data_of(spec)
        return gaussian_mixture(**options, seed=spec.data.seed).posterior(data.inputs[data.rows("test")])
    if spec.data.name == "cifar10":
        if folder is None:
            raise SystemExit(
                "cifar10: human votes are its truth; say with --data which folder holds cifar10h/."
            )
        return _votes(folder)
    return None


@cache
def _votes(folder: str) -> Tensor:
    data = cifar10h(root=folder)
    assert data.soft_labels is not None
    return data.soft_labels[data.rows("test")]


def truth_scores(predictions: Predictions, truth: Tensor) -> dict[str, float]:
    """Score predictions by true probabilities in place of labels: top-label calibration error, and cross-entropy."""
    probs = torch.from_numpy(np.array(predictions.probs)).double()
    # Probabilities of exactly zero have no logarithm; no calibrated row is that sure of ten classes.
    logs = probs.clamp_min(torch.finfo(torch.float32).tiny).log()
    return {
        "true_error": top_label_error(probs, truth),
        "true_nll": -float((truth.double() * logs).sum(dim=1).mean()),
    }
