"""How a number moved while networks were trained."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import cycle
from typing import TYPE_CHECKING

import numpy as np

from equipoise.core.names import look_up
from equipoise.metrics.facts import FACTS
from equipoise.plots.style import COLOURS, DASHES, check_not_empty, dress, on_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["draw_history"]


def draw_history(
    histories: Mapping[str, Sequence[Mapping[str, float]]],
    *,
    column: str = "tune_ece",
    smooth: int = 1,
    ax: Axes | None = None,
) -> Axes:
    """Draw a column of the training history of one or several methods over epochs.

    Args:
        histories: Rows, one per epoch, by the name of the method.
        column: Which number, such as ``"tune_ece"``, ``"tune_nll"`` or ``"loss"``.
        smooth: Epochs of a moving average, the last ones up to each; the plain line stays, thinner.
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
        raise ValueError(f"draw_history: `smooth` must be at least 1, got {smooth}. 1 draws what is there.")
    known = {name: name for rows in histories.values() for row in rows for name in row}
    look_up(column, known, what="column of the history")
    ax = on_axes(ax)
    split, _, key = column.partition("_")
    facts = FACTS.get(key)
    factor = 1.0 if facts is None else facts.scale
    styles = zip(cycle(COLOURS), cycle(DASHES), strict=False)
    for (name, rows), (colour, dash) in zip(histories.items(), styles, strict=False):
        epochs = [row.get("epoch", place) + 1 for place, row in enumerate(rows)]
        values = factor * np.array([row.get(column, np.nan) for row in rows])
        if smooth > 1:
            ax.plot(epochs, values, color=colour, linewidth=0.6, alpha=0.5)
        shown = values if smooth == 1 else _average(values, smooth)
        ax.plot(epochs, shown, color=colour, linestyle=dash, linewidth=1.6, label=name)
    ax.legend(frameon=False, fontsize="small")
    return dress(
        ax,
        x="epoch",
        y=column if facts is None else f"{facts.short} on {split}{' (%)' if facts.percent else ''}",
    )


def _average(values: np.ndarray, window: int) -> np.ndarray:
    """Return the mean of the last values up to each place, those that are known; a gap stays a gap."""
    known = np.isfinite(values)
    ends = np.arange(1, len(values) + 1)
    starts = np.maximum(ends - window, 0)
    sums, counts = (
        np.concatenate([[0.0], np.cumsum(part)]) for part in (np.where(known, values, 0.0), known)
    )
    mean = (sums[ends] - sums[starts]) / np.maximum(counts[ends] - counts[starts], 1)
    result: np.ndarray = np.where(known, mean, np.nan)
    return result
