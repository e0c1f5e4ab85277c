"""How the multipliers of class-adaptive smoothing grew."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from equipoise.core.errors import DataError
from equipoise.plots.style import BLUE, dress, lone_marker, on_axes, outside_legend

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["draw_multipliers"]


def draw_multipliers(
    rows: Sequence[Mapping[str, float]], *, buffer: str = "multipliers", ax: Axes | None = None
) -> Axes:
    """Draw the learned quantity of an adaptive loss over the epochs: its mean, and the range from least to largest.

    Args:
        rows: The training history, with the columns ``<buffer>_mean``, ``_min`` and ``_max``.
        buffer: The learned quantity: ``"multipliers"`` and ``"rho"`` of CALS, ``"gammas"`` of AdaFocal, ``"gamma"`` of
            gamma-net.
        ax: Where to draw; by default a new figure.

    Returns:
        The axes.

    Raises:
        DataError: If the history has no such columns.

    Example:
        >>> rows = [{"epoch": 0, "multipliers_mean": 1.0, "multipliers_min": 0.5, "multipliers_max": 2.0}]
        >>> draw_multipliers(rows).lines[0].get_ydata().tolist()
        [1.0]
    """
    names = [f"{buffer}_{end}" for end in ("mean", "min", "max")]
    found = [row for row in rows if all(name in row for name in names)]
    if not found:
        raise DataError(
            f"draw_multipliers: the history must have the columns {', '.join(names)}, and has none. "
            "Only losses that adapt write them."
        )
    ax = on_axes(ax, names=["least to largest"])
    epochs = [row["epoch"] + 1 for row in found]
    mean, low, high = ([row[name] for row in found] for name in names)
    ax.fill_between(epochs, low, high, color=BLUE, alpha=0.2, linewidth=0, label="least to largest")
    ax.plot(epochs, mean, color=BLUE, marker=lone_marker(len(epochs)), linewidth=1.6, label="mean")
    outside_legend(ax)
    return dress(ax, x="epoch", y=buffer)
