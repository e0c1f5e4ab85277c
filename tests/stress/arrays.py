"""Arrays that no classifier should give, to predictions, metrics, losses and calibrators."""

from pathlib import Path
from typing import Any

import numpy as np
import torch

from equipoise import Predictions, metrics
from equipoise.catalogue import CATALOGUE
from equipoise.losses import Adaptive
from helpers.calibration_data import sample
from helpers.numbers import softmax
from stress.judge import Wrong

CALIBRATORS = CATALOGUE["calibrators"]

EXTREMES = (0.0, -0.0, 5e-324, 1e-300, 1e-38, 1e-8, 0.5, 1.0, 1e4, 3e38, 1e200, 1e300, 1.7e308)
BAD = (np.nan, np.inf, -np.inf)
DTYPES = (np.float16, np.float32, np.float64)
LOSSES = {**CATALOGUE["losses"], **CATALOGUE["penalties"]}


def hostile_scores(chance: np.random.Generator, n: int, k: int) -> np.ndarray:
    """Logits of any size: ordinary, huge, tiny, equal, or with a number that is none."""
    scores = chance.normal(size=(n, k)) * float(chance.choice([1e-300, 1e-8, 1, 10, 1e4, 1e30, 1e300]))
    how = chance.integers(6)
    if how == 0:
        scores[:] = chance.choice(EXTREMES)
    elif how == 1:
        scores = chance.choice([-1, 1], (n, k)) * chance.choice(EXTREMES, (n, k))
    elif how == 2 and n:
        scores[chance.integers(n), chance.integers(k)] = chance.choice(BAD)
    with np.errstate(over="ignore"):
        return scores.astype(DTYPES[chance.integers(len(DTYPES))])


def hostile_labels(chance: np.random.Generator, n: int, k: int) -> np.ndarray:
    labels = chance.integers(0, k, n)
    how = chance.integers(8)
    if how == 0 and n:
        labels[chance.integers(n)] = chance.choice([-1, k, k + 1, 2**31, -(2**31), 2**62, -100])
    elif how == 1:
        return labels.astype(chance.choice([np.int8, np.uint8, np.int16, np.uint64, np.float32]))
    elif how == 2:
        return labels[: chance.integers(n + 1)]
    return labels


def sizes(chance: np.random.Generator) -> tuple[int, int]:
    return int(chance.choice([1, 1, 2, 3, 20, 200])), int(chance.choice([1, 2, 2, 3, 10, 100]))


def prepare_predictions(folder: Path) -> None:
    for kind in ("probs", "logits"):
        metrics.accuracy(Predictions(**{kind: np.full((2, 2), 0.5)}, labels=[0, 1]))


def try_predictions(_: None, chance: np.random.Generator, folder: Path) -> None:
    n, k = sizes(chance)
    scores, labels = hostile_scores(chance, n, k), hostile_labels(chance, n, k)
    weights = None
    if chance.random() < 0.4:
        weights = chance.choice([0.0, 1.0, 1e-300, 5e-324, 1e200, 1.0, 2.0, -1.0, np.nan], n)
    kind = "logits"
    if chance.random() < 0.5:
        kind = "probs"
        with np.errstate(all="ignore"):
            scores = softmax(scores.astype(np.float64)).astype(scores.dtype)
    given = torch.from_numpy(scores) if chance.random() < 0.3 else scores
    found = Predictions(**{kind: given}, labels=labels, weights=weights)
    _check_metrics(found, np.asarray(scores, np.float64), np.asarray(labels, np.int64), weights, kind)
    for read in (metrics.smooth_calibration_error, metrics.adaptive_calibration_error):
        if not 0 <= read(found) <= 1 + 1e-9:
            raise Wrong(f"{read.__name__} is {read(found)}")


def _check_metrics(
    found: Predictions, scores: np.ndarray, labels: np.ndarray, weights: np.ndarray | None, kind: str
) -> None:
    """Compare with the definitions, in double precision."""
    if scores.shape[1] == 1:  # one column is the second of two classes
        scores = np.hstack([1 - scores if kind == "probs" else np.zeros_like(scores), scores])
    if not np.isfinite(scores).all() or len(labels) != len(scores) or not (labels >= 0).all():
        raise Wrong("scores or labels that are none were accepted")
    with np.errstate(over="ignore"):  # far apart is as good as infinitely far
        probs = softmax(scores) if kind == "logits" else scores / scores.sum(1, keepdims=True)
    share = np.ones(len(labels)) if weights is None else weights / weights.max()
    share = share / share.sum()
    wanted = {
        "accuracy": (share * (scores.argmax(1) == labels)).sum(),
        "brier_score": (share * np.square(probs - np.eye(scores.shape[1])[labels]).sum(1)).sum(),
    }
    for name, value in wanted.items():
        got = getattr(metrics, name)(found)
        if not abs(got - value) < 2e-3 * (1 + value):
            raise Wrong(f"{name} is {got}, not {value}")


def prepare_losses(folder: Path) -> None:
    return None


def try_loss(_: None, chance: np.random.Generator, folder: Path) -> None:
    """A loss of hostile logits is refused, or finite with a finite gradient, and 0 where nothing counts."""
    key = str(chance.choice(list(LOSSES)))
    n, k = int(chance.choice([1, 2, 8, 40])), int(chance.choice([2, 3, 10]))
    dtype = (torch.float16, torch.bfloat16, torch.float32, torch.float64)[chance.integers(4)]
    size = float(chance.choice([1e-8, 1.0, 30.0, 1e4]))
    logits = (size * torch.from_numpy(chance.normal(size=(n, k)))).clamp(-6e4, 6e4).to(dtype).requires_grad_()
    labels = torch.from_numpy(chance.integers(0, k, n))
    how = str(chance.choice(["fine", "fine", "ignored", "out", "flat"]))
    if how == "ignored":
        labels[:] = -100
    elif how == "out":
        labels[chance.integers(n)] = int(chance.choice([-1, k, k + 5, 2**40]))
    elif how == "flat":
        logits = torch.zeros(n, k, dtype=dtype, requires_grad=True)
    loss = LOSSES[key].make(**({"n_classes": k} if "n_classes" in LOSSES[key].needs else {}))
    if isinstance(loss, Adaptive):
        loss.update(logits.detach(), labels)
    value = loss(logits, labels)
    value.sum().backward()
    if how == "out":
        raise Wrong(f"{key}: a label out of range was accepted")
    if key == "logit_norm" and how == "flat" and dtype == torch.float16:
        return  # its slope at zero logits, 1 / (0.04 x 1e-7), is beyond float16
    if not value.isfinite().all() or logits.grad is None or not logits.grad.isfinite().all():
        raise Wrong(f"{key}: value or gradient is not finite ({how}, {dtype}, n={n}, k={k}, size {size})")
    if how == "ignored" and (value.any() or logits.grad.any()):
        raise Wrong(f"{key}: nothing counts, and the loss is {value.tolist()}")


def prepare_calibrators(folder: Path) -> None:
    for key in CALIBRATORS:
        CALIBRATORS[key].make().fit(*sample(60, 3))


def try_calibrator(_: None, chance: np.random.Generator, folder: Path) -> None:
    """A fit is refused, or gives probabilities, and keeps what it promises about them."""
    key = str(chance.choice(list(CALIBRATORS)))
    n, k = int(chance.choice([1, 2, 5, 30, 200])), int(chance.choice([1, 2, 3, 10, 60]))
    scores, labels = hostile_scores(chance, n, k), hostile_labels(chance, n, k)
    weights: Any = None
    if chance.random() < 0.3:
        weights = chance.choice([0.0, 1.0, 1e-300, 5e-324, 1e200, 2.0], n)
    calibrator = CALIBRATORS[key].make().fit(scores, labels, weights)
    given = scores.astype(np.float64)
    after = calibrator(given)
    if not np.isfinite(after).all():
        raise Wrong(f"{key}: what it gives is not finite (n={n}, k={k}, {scores.dtype})")
    if calibrator.gives == "probs" and k > 1 and not np.allclose(after.sum(1), 1, atol=1e-6):
        raise Wrong(f"{key}: probabilities do not sum to one")
    if calibrator.preserves_accuracy and k > 1:
        rows = np.arange(n)
        top = given.argmax(1)
        if (after[rows, top] < after.max(1) - 1e-9 * np.abs(after).max(1)).any():
            raise Wrong(f"{key}: the predicted class changed (n={n}, k={k}, {scores.dtype})")
