"""Methods side by side in one number."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import cycle
from typing import TYPE_CHECKING

import numpy as np

from equipoise.evaluate.scorecard import Score
from equipoise.metrics.facts import metric_facts
from equipoise.plots.style import COLORS, INK, check_not_empty, dress, on_axes, outside_legend

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["draw_bars"]


def draw_bars(
    scores: Mapping[str, Mapping[str, Score]], *, metric: str = "ece", ax: Axes | None = None
) -> Axes:
    """Draw a metric of each method as a bar with its interval, one bar per variant.

    Args:
        scores: By method and variant, such as ``{"ce": {"identity": score, "temperature": score}}``.
        metric: Which number it is.
        ax: Where to draw; by default a new figure.

    Returns:
        The axes.

    Example:
        >>> ax = draw_bars({"ce": {"before": Score(0.1, 0.08, 0.12)}, "focal": {"before": Score(0.05, 0.04, 0.06)}})
        >>> [float(bar.get_height()) for bar in ax.patches]
        [10.0, 5.0]
    """
    check_not_empty(scores, where="draw_bars")
    facts = metric_facts(metric)
    variants = list(dict.fromkeys(name for part in scores.values() for name in part))
    shown = variants if len(variants) > 1 else []
    ax = on_axes(ax, size=(max(4.5, 0.24 * len(scores) * len(variants) + 1.5), 3.4), names=shown)
    width = 0.8 / len(variants)
    for number, (variant, color) in enumerate(zip(variants, cycle(COLORS), strict=False)):
        found = [(at, part[variant]) for at, part in enumerate(scores.values()) if variant in part]
        values, low, high = facts.scale * np.array([one[:3] for _, one in found]).T
        across = np.array([at for at, _ in found]) + (number - (len(variants) - 1) / 2) * width
        ax.bar(across, values, width=0.92 * width, color=color, label=variant)
        reach = [np.maximum(values - low, 0), np.maximum(high - values, 0)]
        ax.errorbar(across, values, yerr=reach, color=INK, linestyle="none", elinewidth=1, capsize=2)
    ax.set_xticks(range(len(scores)), list(scores), rotation=30, ha="right", fontsize="small")
    if len(variants) > 1:
        outside_legend(ax)
    return dress(ax, x="", y=facts.head)
