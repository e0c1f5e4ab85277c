"""Results by the value of a hyperparameter, on the split that chose it and on test."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from equipoise.evaluate.sweep import Sweep
from equipoise.metrics.facts import metric_facts
from equipoise.plots.style import BLUE, GRAY, INK, RED, dress, on_axes, outside_legend, wrapped

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["draw_sweep"]

_CHOSEN = "chosen, by how many seeds"


def draw_sweep(sweep: Sweep, *, ax: Axes | None = None) -> Axes:
    """Draw a metric on ``tune`` and ``test`` against a hyperparameter, with intervals; choices are marked.

    A dotted line stands at every setting that a seed chose, with the number of seeds above it.

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
    ax = on_axes(ax, names=[_CHOSEN])
    facts = metric_facts(sweep.metric)
    across = np.array(range(len(sweep.settings)) if sweep.values is None else sweep.values, dtype=np.float64)
    order = list(sweep.ascending)
    for name, scores, color, marker in (("tune", sweep.tune, BLUE, "o"), ("test", sweep.test, RED, "s")):
        values, low, high = facts.scale * np.array([one[:3] for one in scores])[order].T
        ax.errorbar(
            across[order],
            values,
            yerr=[np.maximum(values - low, 0), np.maximum(high - values, 0)],
            color=color,
            marker=marker,
            markersize=5,
            linewidth=1.6,
            linestyle="none" if sweep.own_settings else "-",
            elinewidth=1,
            capsize=2,
            label=name,
        )
    _mark_choices(ax, {x: n for x, n in zip(across.tolist(), sweep.chosen, strict=True) if n})
    if sweep.values is None:
        ax.set_xticks(across, sweep.labels, rotation=30, ha="right", fontsize="small")
    outside_legend(ax)
    dress(ax, x=sweep.parameters, y=facts.head)
    ax.set_title(wrapped(sweep.name), loc="left", fontsize="medium", fontweight="bold", color=INK, pad=22)
    return ax


def _mark_choices(ax: Axes, counts: Mapping[float, int]) -> None:
    """Mark the settings that were chosen, each with how many seeds chose it; neighbors stand at two heights."""
    low, high = ax.get_xlim()
    last, is_raised = -np.inf, False
    for number, (x, chosen) in enumerate(sorted(counts.items())):
        ax.axvline(x, color=GRAY, linewidth=1, linestyle=":", zorder=0, label=None if number else _CHOSEN)
        is_raised = not is_raised and x - last < 0.12 * (high - low)
        last = x
        ax.annotate(
            f"{chosen}/{sum(counts.values())}",
            (x, 1.0),
            (0, 11 if is_raised else 2),
            xycoords=ax.get_xaxis_transform(),
            textcoords="offset points",
            ha="center",
            fontsize="x-small",
            color=INK,
            annotation_clip=False,
        )
