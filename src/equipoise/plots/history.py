"""How a number moved while networks were trained."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise.core.names import look_up
from equipoise.metrics.facts import FACTS
from equipoise.plots.style import (
    band_opacity,
    check_not_empty,
    dress,
    lone_marker,
    on_axes,
    outside_legend,
    series_styles,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["draw_history"]


def draw_history(
    histories: Mapping[str, Sequence[Mapping[str, float]] | Sequence[Sequence[Mapping[str, float]]]],
    *,
    column: str = "tune_ece",
    smooth: int = 1,
    ema: float = 0.0,
    ax: Axes | None = None,
) -> Axes:
    """Draw a column of the training history of one or several methods over epochs.

    Args:
        histories: Rows, one per epoch, by the name of the method; or several such histories, one per seed. Of several
            the line is their mean, and a band reaches from the lowest to the highest.
        column: Which number, such as ``"tune_ece"``, ``"tune_nll"`` or ``"loss"``.
        smooth: Epochs of a moving average, the last ones up to each; the plain line stays, thinner.
        ema: Decay of an exponential moving average, in [0, 1), instead of ``smooth``; 0 is none. The weight of an
            epoch is multiplied by it with every later epoch.
        ax: Where to draw; by default a new figure.

    Returns:
        The axes.

    Example:
        >>> rows = [{"epoch": 0, "tune_ece": 0.10}, {"epoch": 1, "tune_ece": 0.05}]
        >>> draw_history({"focal": rows}).lines[0].get_ydata().tolist()
        [10.0, 5.0]
    """
    check_not_empty(histories, where="draw_history")
    if smooth < 1:
        raise ValueError(f"draw_history: `smooth` must be at least 1, got {smooth}. 1 is no average.")
    if not 0 <= ema < 1:
        raise ValueError(f"draw_history: `ema` must be at least 0 and below 1, got {ema}. 0 is no average.")
    if smooth > 1 and ema:
        raise ValueError("draw_history: `smooth` and `ema` exclude each other. Pass one of them.")
    seeds = {name: _trainings(rows) for name, rows in histories.items()}
    known = {key: key for trainings in seeds.values() for rows in trainings for row in rows for key in row}
    look_up(column, known, what="column of the history")
    numbers = {len(trainings) for trainings in seeds.values()}
    title = None
    if max(numbers) > 1:
        few, many = min(numbers), max(numbers)
        title = f"mean and range of {many if few == many else f'{few} to {many}'} seeds"
    ax = on_axes(ax, names=[*seeds, title or ""])
    split, _, key = column.partition("_")
    facts = FACTS.get(key)
    factor = 1.0 if facts is None else facts.scale
    for (name, trainings), (color, _, dash) in zip(seeds.items(), series_styles(), strict=False):
        epochs, values = _table(trainings, column)
        values = factor * values
        if smooth > 1 or ema:
            ax.plot(epochs, _mean(values), color=color, linewidth=0.6, alpha=0.5)
            values = _exponential_average(values, ema) if ema else _average(values, smooth)
        if len(values) > 1:
            low, high = (f(values, axis=0) for f in (np.fmin.reduce, np.fmax.reduce))
            ax.fill_between(epochs, low, high, color=color, alpha=band_opacity(len(seeds)), linewidth=0)
        marker = lone_marker(len(epochs))
        ax.plot(epochs, _mean(values), color=color, linestyle=dash, marker=marker, linewidth=1.6, label=name)
    outside_legend(ax, title=title)
    return dress(
        ax,
        x="epoch",
        y=column if facts is None else f"{facts.short} on {split}{' (%)' if facts.percent else ''}",
    )


def _trainings(rows: Sequence[Any]) -> list[Sequence[Mapping[str, float]]]:
    """Return the histories of several seeds as they are, and a single one as the only one."""
    return [rows] if not rows or isinstance(rows[0], Mapping) else list(rows)


def _table(trainings: Sequence[Sequence[Mapping[str, float]]], column: str) -> tuple[list[float], np.ndarray]:
    """Return epochs, and the values of each training at them; NaN where a training has none."""
    found = [
        {row.get("epoch", number) + 1: row.get(column, np.nan) for number, row in enumerate(rows)}
        for rows in trainings
    ]
    epochs = sorted({epoch for one in found for epoch in one})
    values = [[np.nan if one.get(epoch) is None else one[epoch] for epoch in epochs] for one in found]
    return epochs, np.array(values, dtype=np.float64).reshape(len(found), len(epochs))


def _mean(values: np.ndarray) -> np.ndarray:
    """Return the mean of the values that are known, NaN where none is."""
    known = np.isfinite(values)
    total = np.where(known, values, 0.0).sum(axis=0)
    counts = known.sum(axis=0)
    result: np.ndarray = np.divide(total, counts, out=np.full(values.shape[1], np.nan), where=counts > 0)
    return result


def _average(values: np.ndarray, window: int) -> np.ndarray:
    """Return the mean of the last values up to each epoch, without unknown ones; a gap stays a gap."""
    known = np.isfinite(values)
    ends = np.arange(1, values.shape[1] + 1)
    starts = np.maximum(ends - window, 0)
    sums, counts = (
        np.pad(np.cumsum(part, axis=1, dtype=np.float64), ((0, 0), (1, 0)))
        for part in (np.where(known, values, 0.0), known)
    )
    mean = (sums[:, ends] - sums[:, starts]) / np.maximum(counts[:, ends] - counts[:, starts], 1)
    result: np.ndarray = np.where(known, mean, np.nan)
    return result


def _exponential_average(values: np.ndarray, decay: float) -> np.ndarray:
    """Return means of the known values up to each epoch, with less weight for older ones; a gap stays a gap."""
    known = np.isfinite(values)
    epochs = np.arange(values.shape[1])
    weights = np.tril(decay ** np.abs(epochs[:, None] - epochs))
    total = np.where(known, values, 0.0) @ weights.T
    # Divided by the weights so far, so that the first epochs are not pulled towards 0.
    result: np.ndarray = np.divide(total, known @ weights.T, out=np.full(values.shape, np.nan), where=known)
    return result
