"""What withholding unsure predictions buys."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from equipoise.metrics.selective import RiskCoverage
from equipoise.plots.style import check_not_empty, dress, on_axes, outside_legend, series_styles

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["draw_risk_coverage"]


def draw_risk_coverage(curves: Mapping[str, RiskCoverage], *, ax: Axes | None = None) -> Axes:
    """Draw the error rate among the rows kept, by the share kept, most confident first.

    Args:
        curves: Records by the name of the method.
        ax: Where to draw; by default a new figure.

    Returns:
        The axes.

    Example:
        >>> from equipoise.metrics import risk_coverage
        >>> curve = risk_coverage([[0.9, 0.1], [0.6, 0.4]], [0, 1])
        >>> draw_risk_coverage({"ce": curve}).lines[0].get_ydata().tolist()
        [0.0, 50.0]
    """
    check_not_empty(curves, where="draw_risk_coverage")
    ax = on_axes(ax, names=curves)
    for (name, curve), (colour, _, dash) in zip(curves.items(), series_styles(), strict=False):
        ax.plot(
            100 * curve.coverage, 100 * curve.risk, color=colour, linestyle=dash, linewidth=1.6, label=name
        )
    ax.set(xlim=(0, 100))
    ax.set_ylim(bottom=0)
    outside_legend(ax)
    return dress(ax, x="rows kept (%)", y="errors among them (%)")
