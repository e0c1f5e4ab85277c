"""Error rate by coverage."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from equipoise.decisions import Certificate
from equipoise.metrics.selective import RiskCoverage
from equipoise.plots.style import COLORS, check_not_empty, dress, on_axes, outside_legend, series_styles

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["draw_risk_coverage"]


def draw_risk_coverage(
    curves: Mapping[str, RiskCoverage],
    *,
    certificates: Sequence[Certificate] = (),
    ax: Axes | None = None,
) -> Axes:
    """Draw the error rate among accepted rows, by the share accepted, most confident first.

    Args:
        curves: Records by the name of the method.
        certificates: From :func:`equipoise.decisions.certify_threshold`; certified thresholds are marked with the error
            that they promise.
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
    for (name, curve), (color, _, dash) in zip(curves.items(), series_styles(), strict=False):
        ax.plot(
            100 * curve.coverage, 100 * curve.risk, color=color, linestyle=dash, linewidth=1.6, label=name
        )
    for one in certificates:
        if one.certified and one.error_bound is not None:
            ax.axvline(100 * one.coverage, color=COLORS[2], linestyle="--", linewidth=1)
            ax.annotate(
                f"≤ {100 * one.error_bound:.3g}%",
                (100 * one.coverage, 1),
                xycoords=("data", "axes fraction"),
                xytext=(0, 3),
                textcoords="offset points",
                ha="center",
                fontsize=8,
                color=COLORS[2],
            )
    ax.set(xlim=(0, 100))
    ax.set_ylim(bottom=0)
    outside_legend(ax)
    return dress(ax, x="accepted rows (%)", y="errors among them (%)")
