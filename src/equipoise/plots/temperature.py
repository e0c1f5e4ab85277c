"""What each temperature would give."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from equipoise.metrics.temperature_sweep import TemperatureSweep
from equipoise.plots.style import BLUE, GRAY, RED, dress, on_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["draw_temperature_sweep"]


def draw_temperature_sweep(sweep: TemperatureSweep, *, ax: Axes | None = None) -> Axes:
    """Draw ECE and NLL over temperature, the lowest point of each marked; they need not agree.

    Args:
        sweep: The record to draw.
        ax: Where to draw; by default a new figure.

    Returns:
        The axes of the ECE; those of the NLL share their horizontal axis.

    Example:
        >>> record = TemperatureSweep(np.array([1.0, 2.0]), np.array([0.2, 0.1]), np.array([0.9, 0.7]))
        >>> draw_temperature_sweep(record).lines[0].get_ydata().tolist()
        [20.0, 10.0]
    """
    ax = on_axes(ax)
    other = ax.twinx()
    lines = []
    for axes, values, color, dash, name in (
        (ax, 100 * sweep.ece, BLUE, "-", "ECE (%)"),
        (other, sweep.nll, RED, "--", "NLL"),
    ):
        lines += axes.plot(sweep.temperature, values, color=color, linestyle=dash, linewidth=1.6, label=name)
        best = int(np.argmin(values))
        axes.plot(sweep.temperature[best], values[best], marker="o", color=color)
        axes.set_ylim(bottom=0)
        dress(axes, x="temperature", y=name, grid=axes is ax)
        axes.yaxis.label.set_color(color)
    other.spines["left"].set_visible(False)
    ax.axvline(1.0, color=GRAY, linewidth=1, linestyle=":")
    ax.set_xscale("log", base=2)
    ax.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    ax.legend(handles=lines, frameon=False, fontsize="small", loc="upper center")
    return ax
