"""Rows to score, and the definitions as slow loops."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import strategies as st

from helpers.numbers import softmax

__all__ = ["bin_of", "binned_error", "bins", "draw", "rows", "softmax", "top_label", "weights_for"]


def draw(n=400, k=4, *, seed=0, sharpness=1.6, spread=1.5):
    """Rows of a model that is overconfident for a sharpness above 1, calibrated at 1."""
    rng = np.random.default_rng(seed)
    truth = softmax(spread * rng.normal(size=(n, k)))
    labels = (truth.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1).clip(0, k - 1)
    return softmax(sharpness * np.log(truth)), labels


@st.composite
def rows(draw, *, max_rows=25, min_rows=1, max_classes=4):
    """Probabilities with ties, zeros, ones and values on the edges of bins, and labels."""
    n = draw(st.integers(min_rows, max_rows))
    k = draw(st.integers(2, max_classes))
    parts = draw(st.lists(st.lists(st.integers(0, 6), min_size=k, max_size=k), min_size=n, max_size=n))
    counts = np.array(parts, dtype=np.float64)
    counts[counts.sum(axis=1) == 0, 0] = 1.0
    labels = np.array(draw(st.lists(st.integers(0, k - 1), min_size=n, max_size=n)))
    return counts / counts.sum(axis=1, keepdims=True), labels


def weights_for(n):
    return st.lists(st.integers(0, 3), min_size=n, max_size=n).map(
        lambda found: np.array(found if any(found) else [1] * n, dtype=np.float64)
    )


def top_label(probs, labels):
    predicted = [max(range(len(row)), key=lambda j: (row[j], -j)) for row in probs]
    confidence = [float(row[j]) for row, j in zip(probs, predicted, strict=True)]
    correct = [float(j == y) for j, y in zip(predicted, labels, strict=True)]
    return confidence, correct


def bin_of(value, n_bins, closed="right"):
    """The bin of a number among the edges k / n; 0 and 1 always have one."""
    edges = [k / n_bins for k in range(n_bins + 1)]
    for b in range(n_bins):
        inside = value <= edges[b + 1] if closed == "right" else value < edges[b + 1]
        if inside:
            return b
    return n_bins - 1


def bins(confidence, outcome, weight=None, *, n_bins, closed="right"):
    """Weight, mean confidence and mean outcome of every bin that holds rows."""
    table = {}
    for c, o, w in zip(confidence, outcome, [1.0] * len(outcome) if weight is None else weight, strict=True):
        table.setdefault(bin_of(c, n_bins, closed), []).append((w, c, o))
    found = []
    for entries in table.values():
        total = math.fsum(w for w, _, _ in entries)
        if total > 0:
            means = [math.fsum(e[0] * e[i] for e in entries) / total for i in (1, 2)]
            found.append((total, *means))
    return found


def binned_error(confidence, outcome, weight=None, *, n_bins, closed="right"):
    cells = bins(confidence, outcome, weight, n_bins=n_bins, closed=closed)
    return sum(w * abs(c - o) for w, c, o in cells) / sum(w for w, _, _ in cells)
