"""What each setting of a knob gave, where it was chosen and where it was judged."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from equipoise.evaluate.sweep import Sweep
from equipoise.metrics.facts import metric_facts
from equipoise.plots.style import BLUE, GREY, INK, RED, dress, on_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["draw_sweep"]


def draw_sweep(sweep: Sweep, *, ax: Axes | None = None) -> Axes:
    """Draw a metric on ``tune`` and ``test`` against a knob, with intervals; the setting most seeds chose is marked.

    Args:
        sweep: The record to draw.
        ax: Where to draw; by default a new figure.

    Returns:
        The axes; settings that are no numbers stand at equal distances.

    Example:
        >>> from equipoise.evaluate import Score
        >>> low, high = Score(0.5, 0.4, 0.6), Score(0.7, 0.6, 0.8)
        >>> settings = ({"gamma": 1.0}, {"gamma": 3.0})
        >>> ax = draw_sweep(Sweep("focal", "nll", settings, (low, high), (high, low), (1, 0), ""))
        >>> ax.get_xlabel(), ax.get_ylabel()
        ('gamma', 'NLL')
    """
    ax = on_axes(ax)
    facts = metric_facts(sweep.metric)
    across = np.array(range(len(sweep.settings)) if sweep.values is None else sweep.values, dtype=np.float64)
    order = list(sweep.ascending)
    for name, scores, colour, marker in (("tune", sweep.tune, BLUE, "o"), ("test", sweep.test, RED, "s")):
        values, low, high = facts.scale * np.array([one[:3] for one in scores])[order].T
        ax.errorbar(
            across[order],
            values,
            yerr=[np.maximum(values - low, 0), np.maximum(high - values, 0)],
            color=colour,
            marker=marker,
            markersize=5,
            linewidth=1.6,
            elinewidth=1,
            capsize=2,
            label=name,
        )
    picked = across[int(np.argmax(sweep.chosen))]
    ax.axvline(picked, color=GREY, linewidth=1, linestyle=":", zorder=0)
    ax.text(picked, 1.0, " chosen", transform=ax.get_xaxis_transform(), color=INK, fontsize="small", va="top")
    if sweep.values is None:
        ax.set_xticks(across, sweep.labels, rotation=30, ha="right", fontsize="small")
    ax.legend(frameon=False, fontsize="small")
    return dress(ax, x=sweep.knobs, y=facts.head, title=sweep.name)
