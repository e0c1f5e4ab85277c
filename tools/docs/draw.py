"""The figures of the generated pages: how hard a loss pulls, against confidence."""

from __future__ import annotations

import io
import math

import matplotlib as mpl
import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from pages.figures import STYLE
from torch import Tensor, nn

from equipoise.catalogue import Entry
from equipoise.losses import Adaptive, Loss
from equipoise.theory import gradient_weight

N_CLASSES = 10
INK, PLAIN, RIGHT, WRONG = "#1f4e79", "#8a8a8a", "#1f7a4d", "#b3412f"


def gradient_picture(entry: Entry) -> str:
    """Draw one loss as SVG text."""
    needed = {"n_classes": N_CLASSES} if "n_classes" in entry.needs else {}
    loss = entry.make(**needed)
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(5.2, 2.9))
        figure.subplots_adjust(left=0.15, right=0.97, bottom=0.17, top=0.92)
        axes = figure.add_subplot()
        if isinstance(loss, Loss | nn.CrossEntropyLoss):
            _per_sample(axes, loss)
        else:
            _batch(axes, loss)
        axes.ticklabel_format(axis="y", scilimits=(-2, 3))
        axes.axhline(0, color="black", linewidth=0.6)
        stream = io.BytesIO()
        figure.savefig(stream, format="svg", metadata={"Date": None, "Creator": None})
    lines = (line.rstrip() for line in stream.getvalue().decode().splitlines())
    return "\n".join(lines) + "\n"


def caption(entry: Entry) -> str:
    """Say what the figure shows."""
    needed = {"n_classes": N_CLASSES} if "n_classes" in entry.needs else {}
    loss = entry.make(**needed)
    if not isinstance(loss, Loss | nn.CrossEntropyLoss):
        return (
            "How hard it pulls up the logit of the predicted class (minus the gradient, times the batch "
            "size), in a batch whose predictions are right less often than their confidence says, by 0.15, "
            "at every confidence, and name one class too often; shown for that class. Below 0 it pushes down."
        )
    text = (
        f"How hard it pulls up the logit of the true class (minus the gradient) against that class's "
        f"probability, the other {N_CLASSES - 1} classes sharing the rest; below 0 it pushes down. "
        "Dashed: cross-entropy."
    )
    if isinstance(loss, Adaptive) and "held_out" in entry.needs:
        text += " Light: before the first update. Dark: after 10 updates with overconfident predictions."
    return text


def _per_sample(axes: Axes, loss: nn.Module) -> None:
    odds = torch.linspace(-5, 12, 171, dtype=torch.float64)
    axes.plot(odds, _pull_on_truth(nn.CrossEntropyLoss(), odds), "--", color=PLAIN, linewidth=1)
    if isinstance(loss, Adaptive):
        axes.plot(odds, _pull_on_truth(loss, odds), color=INK, linewidth=1.2, alpha=0.4)
        _teach(loss)
    axes.plot(odds, _pull_on_truth(loss, odds), color=INK, linewidth=1.8)
    shown = (0.01, 0.1, 0.5, 0.9, 0.99, 0.999, 0.9999)
    axes.set_xticks([math.log(p / (1 - p)) for p in shown], [f"{p:g}" for p in shown])
    axes.set_xlabel("probability of the true class")
    axes.set_ylabel("pull on its logit")


def _pull_on_truth(loss: nn.Module, odds: Tensor) -> np.ndarray:
    pull = gradient_weight(loss, confidence=torch.sigmoid(odds).numpy(), n_classes=N_CLASSES)
    return _rounded(torch.from_numpy(pull.weight))


def _teach(loss: Adaptive) -> None:
    generator = torch.Generator().manual_seed(0)
    labels = torch.randint(0, N_CLASSES, (4000,), generator=generator)
    skill = 4 * torch.rand(4000, 1, generator=generator)
    logits = torch.randn(4000, N_CLASSES, generator=generator)
    logits = 4 * logits.scatter_add(1, labels[:, None], skill)
    for _ in range(10):
        loss.update(logits, labels)


def _batch(axes: Axes, loss: nn.Module) -> None:
    confidence, right, pull = _pull_in_a_batch(loss)
    axes.plot(*_averaged(confidence, pull, right), color=RIGHT, linewidth=1.8, label="right")
    axes.plot(*_averaged(confidence, pull, ~right), "--", color=WRONG, linewidth=1.5, label="wrong")
    axes.set_xlabel("confidence of the prediction")
    axes.set_ylabel("pull on its logit")
    axes.legend(frameon=False, loc="best")


def _pull_in_a_batch(loss: nn.Module) -> tuple[Tensor, Tensor, Tensor]:
    """Predictions that are right less often than their confidence says, and name the last class too often.

    Returns confidence, correctness and pull of those that name it.
    """
    n = 1200
    confidence = torch.linspace(0.2, 0.99, n, dtype=torch.float64)
    spread = torch.arange(n) * 0.6180339887 % 1  # evenly over [0, 1) in any stretch of confidences
    right = spread < confidence - 0.15
    rest = (1 - confidence)[:, None].expand(-1, N_CLASSES - 1) / (N_CLASSES - 1)
    probs = torch.cat([confidence[:, None], rest], -1)
    predicted = (torch.arange(n) * 7 % (N_CLASSES + 2)).clamp(max=N_CLASSES - 1)
    places = (torch.arange(N_CLASSES) - predicted[:, None]) % N_CLASSES
    logits = probs.gather(1, places).log().requires_grad_()
    others = (predicted + 1 + torch.arange(n) % (N_CLASSES - 1)) % N_CLASSES
    loss(logits, torch.where(right, predicted, others)).backward()
    shown = predicted == N_CLASSES - 1
    return confidence[shown], right[shown], -n * logits.grad[shown, -1]


def _averaged(confidence: Tensor, pull: Tensor, chosen: Tensor) -> tuple[np.ndarray, np.ndarray]:
    """Means over thirty stretches of confidence, where there is anything to average."""
    counts, x, y = (
        torch.stack([part.sum() for part in (values * chosen).chunk(30)])
        for values in (torch.ones_like(pull), confidence, pull)
    )
    filled = counts > 0
    return _rounded((x / counts)[filled]), _rounded((y / counts)[filled])


def _rounded(values: Tensor) -> np.ndarray:
    """Four digits of the largest, so that the last digits of another machine leave the file as it is."""
    digits = 3 - int(torch.log10(values.abs().max().clamp(min=1e-9)).floor())
    return np.round(values.numpy(), digits) + 0.0
