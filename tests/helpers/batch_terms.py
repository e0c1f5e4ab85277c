"""What the tests of batch-level terms share: random batches, the batch as plain numbers, and the edges."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from hypothesis import strategies as st
from torch import Tensor

from helpers.per_sample import softmax

Batch = tuple[Tensor, Tensor]


@st.composite
def batches(draw: st.DrawFn, least: int = 1, most: int = 12) -> Batch:
    """Random logits in float64, with labels: 2 to 5 classes, some predictions right."""
    n_samples, n_classes = draw(st.integers(least, most)), draw(st.integers(2, 5))
    generator = torch.Generator().manual_seed(draw(st.integers(0, 10_000)))
    logits = draw(st.floats(0.1, 4)) * torch.randn(n_samples, n_classes, generator=generator).double()
    return logits, torch.randint(0, n_classes, (n_samples,), generator=generator)


def probabilities(logits: Tensor) -> list[list[float]]:
    return [softmax(row) for row in logits.tolist()]


def plain(logits: Tensor, labels: Tensor) -> tuple[list[float], list[float]]:
    """Confidence and correctness as lists."""
    probs = probabilities(logits)
    confidence = [max(row) for row in probs]
    correct = [float(row.index(max(row)) == y) for row, y in zip(probs, labels.tolist(), strict=True)]
    return confidence, correct


def entropies(logits: Tensor) -> list[float]:
    return [-sum(p * math.log(p) for p in row) for row in probabilities(logits)]


def edge_batches() -> dict[str, Batch]:
    n_classes, generator = 4, torch.Generator().manual_seed(0)
    logits = torch.randn(12, n_classes, generator=generator)
    labels = torch.randint(0, n_classes, (12,), generator=generator)
    sure = 2e4 * torch.eye(n_classes).repeat(3, 1) - 1e4
    numbers = torch.arange(n_classes).repeat(3)
    return {
        "sure and right": (sure, numbers),
        "sure and wrong": (sure, (numbers + 1) % n_classes),
        "huge logits": (1e4 * logits.sign(), labels),
        "uniform": (0 * logits, labels),
        "one sample": (logits[:1], labels[:1]),
        "two classes": (logits[:, :2], labels % 2),
        "all right": (logits, logits.argmax(1)),
        "all wrong": (logits, (logits.argmax(1) + 1) % n_classes),
        "one class only": (logits, 0 * labels),
        "all the same": (logits[:1].repeat(12, 1), labels),
    }


def check_edges(term: Callable[[Tensor, Tensor], Tensor]) -> None:
    """Value and gradient are finite on every edge, in every precision, also under autocast."""
    for name, (logits, labels) in edge_batches().items():
        for dtype in (torch.float16, torch.bfloat16, torch.float32, torch.float64):
            inputs = logits.to(dtype).requires_grad_()
            with torch.autocast("cpu", dtype=torch.bfloat16, enabled=dtype == torch.bfloat16):
                value = term(inputs, labels)
            [gradient] = torch.autograd.grad(value, inputs)
            assert value.isfinite(), f"{name}: {value}"
            assert gradient.isfinite().all(), f"{name}: {gradient}"
