"""Batches for hypothesis, and probabilities in plain Python for oracles."""

from __future__ import annotations

import math

import numpy as np
import torch
from hypothesis import strategies as st
from torch import Tensor

from helpers import numbers


@st.composite
def batches(draw: st.DrawFn, *, n_classes: tuple[int, int] = (2, 5)) -> tuple[Tensor, Tensor]:
    """Logits in quarters, so that ties are common, and labels."""
    k = draw(st.integers(*n_classes))
    n = draw(st.integers(1, 4))
    quarters = st.integers(-60, 60)
    rows = draw(st.lists(st.lists(quarters, min_size=k, max_size=k), min_size=n, max_size=n))
    labels = draw(st.lists(st.integers(0, k - 1), min_size=n, max_size=n))
    return torch.tensor(rows, dtype=torch.float64) / 4, torch.tensor(labels)


def softmax(row: list[float]) -> list[float]:
    return numbers.softmax(np.array(row)).tolist()


def log_softmax(row: list[float]) -> list[float]:
    total = math.log(sum(math.exp(value - max(row)) for value in row))
    return [value - max(row) - total for value in row]


def logits_of(*probs: float) -> Tensor:
    """One row of logits with these probabilities."""
    return torch.tensor([probs], dtype=torch.float64).log()


def rows(logits: Tensor, labels: Tensor) -> list[tuple[list[float], int]]:
    return list(zip(logits.tolist(), labels.tolist(), strict=True))


def assert_each(values: Tensor, wanted: list[float], *, tolerance: float = 1e-9) -> None:
    expected = torch.tensor(wanted, dtype=torch.float64)
    torch.testing.assert_close(values, expected, rtol=tolerance, atol=min(tolerance, 1e-9))


FIRST = torch.tensor([0])
